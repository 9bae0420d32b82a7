"""`Lowering`: the interface of lowering rules to their node, with builders that make most rules one or two lines.

    Relu       ctx.map(lambda x: x.maximum(0))
    Add        ctx.map(lambda x, y: x + y)
    Transpose  ctx.generate(ctx.out_dims(), lambda n, i: n.read(x, [i[p] for p in inverse]))
    ReduceSum  ctx.reduce("add", x, axes)
    MatMul     ctx.generate([m, n], lambda nest, i, r: nest.read(a, [i[0], r[0]]) * nest.read(b, [r[0], i[1]]),
                            over=[k], combiner="add")

A rule returns one loop-level tensor for each output, `None` for an unused output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.dialects.builtin import DictionaryAttr, TensorType, i64
from xdsl.ir import Attribute, BlockArgument, SSAValue

from igniter.dialects.fusion import RegionOp, TablesOp
from igniter.dialects.loop import Combiner, is_float
from igniter.dialects.onnx.base import constant_value, constant_weight
from igniter.dialects.onnx.lowering.broadcast import aligned, broadcast_dims
from igniter.dialects.onnx.lowering.builder import KernelBuilder, Nest
from igniter.dialects.onnx.lowering.procedure import Procedure
from igniter.dialects.onnx.lowering.scalar import Scalar, compute_type
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE, Dims
from igniter.dialects.sym import DimsAttr, dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, ExprLike, minimum, product
from igniter.dialects.sym.requirements import FINE, DataCheck
from igniter.errors import IgniterError

if TYPE_CHECKING:
    import numpy as np

    from igniter.dialects.onnx.base import OnnxOp

Subscripts: TypeAlias = Sequence[Expr]
PointRule: TypeAlias = Callable[[Nest, Subscripts], Scalar] | Callable[[Nest, Subscripts, Subscripts], Scalar]
"""A function `(nest, subscripts)`, or `(nest, subscripts, reduction_subscripts)` for reductions."""

ScalarFunction: TypeAlias = (
    Callable[[], Scalar]
    | Callable[[Scalar], Scalar]
    | Callable[[Scalar, Scalar], Scalar]
    | Callable[[Scalar, Scalar, Scalar], Scalar]
    | Callable[[Scalar, Scalar, Scalar, Scalar], Scalar]
    | Callable[[Scalar, Scalar, Scalar, Scalar, Scalar], Scalar]
)
"""A function with one scalar per tensor; spelled out so that the parameters of a lambda have types."""


def call_scalars(function: ScalarFunction, scalars: Sequence[Scalar]) -> Scalar:
    """Calls `function` with the scalars."""
    return cast("Callable[..., Scalar]", function)(*scalars)


class LoweringError(IgniterError):
    """An error for a node in a region that cannot be lowered."""

    code = "IGN0301"


class Lowering:
    """The lowering of one op into `kernel`. `values` maps the region's values to the kernel's."""

    def __init__(self, op: OnnxOp, kernel: KernelBuilder, values: dict[SSAValue, SSAValue]):
        self.op = op
        self.kernel = kernel
        self._values = values
        self._inputs = op.inputs

    # -- the node ------------------------------------------------------------------------------------------------------

    @property
    def opset(self) -> int:
        return self.op.opset

    def attr(self, name: str, default: Any = None) -> Any:
        """Returns the Python value of the attribute, or the schema's default if it is absent."""
        return self.op.attr(name, default)

    def fail(self, reason: str) -> LoweringError:
        """Returns an error for a node that should not be in a region; the rule raises it."""
        where = f" '{self.op.node_name}'" if self.op.node_name else ""
        return LoweringError(f"{self.op.qualified_name}{where} cannot be lowered: {reason}")

    # -- operands ------------------------------------------------------------------------------------------------------

    def input(self, index: int) -> SSAValue | None:
        """Returns the operand as a tensor of the kernel; None if it is omitted."""
        value = self._inputs[index] if index < len(self._inputs) else None
        return None if value is None else self._values[value]

    def required(self, index: int) -> SSAValue:
        """Returns the operand; raises an error if it is omitted."""
        value = self.input(index)
        if value is None:
            raise self.fail(f"it has no input {index}")
        return value

    def lowered(self, value: SSAValue) -> SSAValue:
        """Returns a value defined earlier in the region, as a tensor of the kernel."""
        return self._values[value]

    @property
    def inputs(self) -> list[SSAValue]:
        """The operands that are present, as tensors of the kernel."""
        return [self._values[v] for v in self._inputs if v is not None]

    def dims(self, index: int) -> Dims:
        """Returns the dims of an operand."""
        return dims_of(self.required(index).type)

    def element(self, index: int) -> Attribute:
        """Returns the element type of an operand."""
        return element_of(self.required(index).type)

    def values(self, index: int) -> Dims | None:
        """Returns the elements of an integer operand, in row-major order; None if they are unknown at compile time."""
        return operand_values(self.op, index)

    def constant(self, index: int) -> np.ndarray[Any, Any] | None:
        """Returns the operand as an array; None if it is not constant."""
        return constant_value(self._inputs[index]) if index < len(self._inputs) else None

    def is_weight(self, index: int) -> bool:
        """True if the operand is a constant, possibly an input of the region; only `legal` may
        depend on its elements."""
        value, region = self._inputs[index], self.op.parent_op()
        if isinstance(value, BlockArgument) and isinstance(region, RegionOp):
            value = region.inputs[value.index]
        return constant_weight(value) is not None

    def has_table(self, name: str) -> bool:
        """True if the region has a table of that name for the node."""
        before = self.op.prev_op
        return isinstance(before, TablesOp) and name in before.by_name

    def table(self, name: str) -> SSAValue:
        """Returns a table made by the op's spec from its attributes, as a tensor of the kernel."""
        before = self.op.prev_op
        if not isinstance(before, TablesOp):
            raise self.fail("its tables are missing; run form-fusion-regions, which puts them into its region")
        return self._values[before.by_name[name]]

    # -- results -------------------------------------------------------------------------------------------------------

    def output_type(self, index: int = 0) -> TensorType[Attribute]:
        """Returns the type of a result."""
        found = self.op.results[index].type
        if not isinstance(found, TensorType):
            raise self.fail(f"output {index} is {found}, not a ranked tensor")
        return cast("TensorType[Attribute]", found)

    def out_dims(self, index: int = 0) -> Dims:
        return dims_of(self.output_type(index))

    def out_element(self, index: int = 0) -> Attribute:
        return element_of(self.output_type(index))

    def wide_element(self, index: int = 0) -> Attribute:
        """Returns the type used for arithmetic on elements of a result."""
        return compute_type(self.out_element(index))

    def wants(self, index: int) -> bool:
        """True if the node has this output."""
        outputs = self.op.outputs
        return index < len(outputs) and outputs[index] is not None

    # -- checks on data ------------------------------------------------------------------------------------------------

    def check(self, found: SSAValue, text: str, bounds: tuple[Expr, Expr] | None = None) -> None:
        """Makes a run end with an error unless `found`, one i64, is `FINE`; any other value is the offending one.

        The error names the node and contains `text`, the value and its allowed `bounds`. The run still continues to its
        end, so accesses stay guarded.
        """
        self.kernel.checks.append((DataCheck(text, bounds), found))

    def check_indices(
        self,
        index: SSAValue,
        dim: Expr,
        text: str = "indices element out of data bounds",
        last: int | None = None,
        each: Sequence[Expr] = (),
        negative: bool = True,
    ) -> None:
        """Makes a run end with an error if an element of `index` (only element `last` along its last dim, if given) is
        outside [-dim, dim - 1], or [0, dim - 1] if `negative` is off. The check is skipped if the dims `each` of the
        elements per index make an empty tensor."""
        shape = dims_of(index.type)
        any_read, least = minimum(product(each), ONE), -dim if negative else ZERO

        def wrong(nest: Nest, _: Subscripts, at: Subscripts) -> Scalar:
            at = at[: len(shape)] if last is None else [*at[: len(shape) - 1], Expr.of(last)]
            value = nest.read(index, at).to(i64)
            low, high = nest.index(least), nest.index(dim - 1)
            outside = (value < low) | (value > high)
            return outside.select(value.maximum(FINE + 1), nest.const(FINE, i64))

        over = [*(shape if last is None else shape[:-1]), *([] if any_read == ONE else [any_read])]
        found = self.generate([], wrong, over=over, combiner="max", element=i64, part="check")
        self.check(found, text, (least, dim - 1))

    # -- builders ------------------------------------------------------------------------------------------------------

    def nest(self, part: str = "") -> Nest:
        """Creates a nest named after the op: `softmax`, or `softmax.max` for part `max`; for rules
        beyond the helpers."""
        name = self.op.op_type.lower()
        return self.kernel.nest(f"{name}.{part}" if part else name)

    def procedure(self, inputs: Sequence[SSAValue], results: Sequence[Attribute], part: str = "") -> Procedure:
        """Creates a procedure from `inputs` to tensors of the types `results`, for algorithms beyond nests."""
        name = self.op.op_type.lower()
        return Procedure(self.kernel, f"{name}.{part}" if part else name, inputs, results)

    def view(self, tensor: SSAValue, dims: Sequence[ExprLike]) -> SSAValue:
        """Returns `tensor` with other dims, without moving data."""
        return self.kernel.view(tensor, dims)

    def splat(self, number: float, dims: Sequence[ExprLike], element: Attribute) -> SSAValue:
        """Returns a tensor of one number, which readers get at no cost."""
        return self.kernel.splat(number, tensor_of(element, dims))

    def generate(
        self,
        dims: Sequence[ExprLike],
        point: PointRule,
        *,
        over: Sequence[ExprLike] = (),
        combiner: Combiner = "none",
        element: Attribute | None = None,
        part: str = "",
    ) -> SSAValue:
        """Returns the tensor of `dims` whose element at `i` is `point(nest, i)`.

        With reduction axes of the extents `over`, it is `point(nest, i, r)` folded over `r` with `combiner`. `element`
        defaults to the type of the first output; for sums and products, to its arithmetic type.
        """
        nest = self.nest(part)
        at = nest.axes(dims)
        rule = cast("Callable[..., Scalar]", point)
        value = rule(nest, at, [nest.reduction(e) for e in over]) if combiner != "none" else rule(nest, at)
        made = self.out_element() if element is None else element
        if element is None and combiner in ("add", "mul"):
            made = compute_type(made)
        return nest.finish((combiner, value, at, tensor_of(made, dims)))[0]

    def rounded(self, tensor: SSAValue, index: int = 0) -> SSAValue:
        """Returns `tensor` in the element type of output `index`; rounds sums of 16-bit floats to it."""
        if element_of(tensor.type) == self.out_element(index):
            return tensor
        return self.map(lambda x: x, tensor, element=self.out_element(index), dims=dims_of(tensor.type), part="round")

    def map(
        self,
        function: ScalarFunction,
        *tensors: SSAValue,
        element: Attribute | None = None,
        dims: Sequence[ExprLike] | None = None,
        part: str = "",
    ) -> SSAValue:
        """Returns `function` of the elements of `tensors` (by default the operands), broadcast against each other.

        `dims` and `element` default to those of the first output. The operands may have dims that only a run knows to
        be 1 or the output's; an op that maps them requires it (`broadcast_requires`).
        """
        operands, capped = tensors or tuple(self.inputs), not tensors and dims is None
        shape = self.out_dims() if dims is None else tuple(Expr.of(d) for d in dims)
        return self.generate(
            shape,
            lambda nest, at: call_scalars(
                function, [self.read_broadcast(nest, t, at, shape, capped) for t in operands]
            ),
            element=element,
            part=part,
        )

    def reduce(
        self,
        combiner: Combiner,
        tensors: SSAValue | Sequence[SSAValue],
        axes: Sequence[int],
        function: ScalarFunction = lambda x: x,
        *,
        keepdims: bool = True,
        element: Attribute | None = None,
        part: str = "",
        by_rows: bool = False,
    ) -> SSAValue:
        """Folds `function` of the elements of `tensors`, broadcast to the dims of the first, over its `axes`.

        The accumulator and the result have the type `element`, by default the arithmetic type of the first tensor.
        Parallel axes come before reduction axes. `by_rows` folds long float sums over several axes in two steps: each
        row, then the rows. With channels last, a sum is one number in one lane, and after thousands of terms each
        addition is rounded to the unit of a large sum.
        """
        operands = [tensors] if isinstance(tensors, SSAValue) else list(tensors)
        dims = dims_of(operands[0].type)
        if by_rows and _is_long(dims, axes) and is_float(compute_type(element or element_of(operands[0].type))):
            rows = f"{part}.rows" if part else "rows"
            partial = self.reduce(combiner, operands, _row_of(dims, axes), function, element=element, part=rows)
            return self.reduce(combiner, partial, axes, keepdims=keepdims, element=element, part=part, by_rows=True)
        nest = self.nest(part)
        at: dict[int, Expr] = {d: nest.parallel(e) for d, e in enumerate(dims) if d not in axes}
        kept = dict(at)
        at.update((d, nest.reduction(dims[d])) for d in sorted(axes))
        where = [at[d] for d in range(len(dims))]
        value = call_scalars(function, [self.read_broadcast(nest, t, where, dims) for t in operands]).widened()
        rank = range(len(dims))
        target_dims = [dims[d] if d in kept else Expr.of(1) for d in rank if keepdims or d in kept]
        target = [kept.get(d, ZERO) for d in rank if keepdims or d in kept]
        accumulated = compute_type(value.element) if element is None else element
        return nest.finish((combiner, value, target, tensor_of(accumulated, target_dims)))[0]

    def read_broadcast(
        self, nest: Nest, tensor: SSAValue, at: Sequence[Expr], dims: Dims, capped: bool = False
    ) -> Scalar:
        """Reads the element of `tensor` at the subscripts `at` of a domain of `dims` to which it is broadcast."""
        subscripts = aligned(dims_of(tensor.type), at, dims, capped)
        if isinstance(subscripts, str):
            raise self.fail(subscripts)
        return nest.read(tensor, subscripts)

    def broadcast(self, *tensors: SSAValue) -> Dims:
        """Returns the dims of `tensors` broadcast against each other."""
        found = broadcast_dims([dims_of(t.type) for t in tensors])
        if isinstance(found, str):
            raise self.fail(found)
        return found


LONG_SUM = 1024
"""The maximum number of terms summed in sequence. Each addition rounds to half a unit in the last place of the sum so
far; the worst relative loss is 3e-5."""


SHORT_ROW = 32
"""A shorter row is joined with the next axis, up to `LONG_SUM` terms: the 9 places of a window of 3 x 3 are one row."""


def _row_of(dims: Dims, axes: Sequence[int]) -> list[int]:
    """Returns the axes of one row of a long sum: the innermost with more than one element, or several if few terms."""
    *outer, last = [axis for axis in sorted(axes) if dims[axis] != ONE]
    row, terms = [last], dims[last].constant
    while len(outer) > 1 and terms is not None and terms < SHORT_ROW:
        more = dims[outer[-1]].constant
        if more is None or terms * more > LONG_SUM:
            break
        row, terms = [outer.pop(), *row], terms * more
    return row


def _is_long(dims: Dims, axes: Sequence[int]) -> bool:
    """True if a sum over axes has several rows and more than `LONG_SUM` terms; unknown sizes count as large."""
    extents = [dims[axis] for axis in axes if dims[axis] != ONE]
    terms = product(extents).constant
    return len(extents) > 1 and (terms is None or terms > LONG_SUM)


def operand_values(op: OnnxOp, index: int) -> Dims | None:
    """Returns the elements of an integer operand of `op`: those recorded by `infer-shapes`, or those of a constant."""
    noted = op.attributes.get(VALUES_ATTRIBUTE)
    if isinstance(noted, DictionaryAttr):
        dims = noted.data.get(str(index))
        if isinstance(dims, DimsAttr):
            return dims.data
    inputs = op.inputs
    if index >= len(inputs) or inputs[index] is None:
        return None

    array = constant_value(inputs[index])
    if array is None or array.dtype.kind not in "iu":
        return None
    return tuple(Expr.of(int(v)) for v in array.reshape(-1))
