"""`Lowering`: what the lowering rule of one ONNX op sees, and the builders that make most rules a line or two.

    Relu       ctx.map(lambda x: x.maximum(0))
    Add        ctx.map(lambda x, y: x + y)
    Transpose  ctx.generate(ctx.out_dims(), lambda n, i: n.read(x, [i[p] for p in inverse]))
    ReduceSum  ctx.reduce("add", x, axes)
    MatMul     ctx.generate([m, n], lambda nest, i, r: nest.read(a, [i[0], r[0]]) * nest.read(b, [r[0], i[1]]),
                            over=[k], combiner="add")

A rule returns one loop-level tensor for each output, `None` for an output that nobody asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from xdsl.dialects.builtin import DictionaryAttr, TensorType, i64
from xdsl.ir import Attribute, BlockArgument, SSAValue

from igniter.dialects.fusion import RegionOp, TablesOp
from igniter.dialects.loop import Combiner, is_float
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
"""`(nest, subscripts)`, or `(nest, subscripts, reduction_subscripts)` where values are combined."""

ScalarFunction: TypeAlias = (
    Callable[[], Scalar]
    | Callable[[Scalar], Scalar]
    | Callable[[Scalar, Scalar], Scalar]
    | Callable[[Scalar, Scalar, Scalar], Scalar]
    | Callable[[Scalar, Scalar, Scalar, Scalar], Scalar]
    | Callable[[Scalar, Scalar, Scalar, Scalar, Scalar], Scalar]
)
"""One scalar for each tensor; spelled out so that the parameters of a lambda have types."""


def call_scalars(function: ScalarFunction, scalars: Sequence[Scalar]) -> Scalar:
    """`function` of the scalars."""
    return cast("Callable[..., Scalar]", function)(*scalars)


class LoweringError(IgniterError):
    """A node that cannot be lowered though it was put into a region."""


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
        """The attribute's python value, the schema's default where it is absent."""
        return self.op.attr(name, default)

    def fail(self, reason: str) -> LoweringError:
        """The error for a node that should not have come here; the rule raises it."""
        where = f" '{self.op.node_name}'" if self.op.node_name else ""
        return LoweringError(f"{self.op.qualified_name}{where} cannot be lowered: {reason}")

    # -- operands ------------------------------------------------------------------------------------------------------

    def input(self, index: int) -> SSAValue | None:
        """The operand as a tensor of the kernel; None when it is omitted."""
        value = self._inputs[index] if index < len(self._inputs) else None
        return None if value is None else self._values[value]

    def required(self, index: int) -> SSAValue:
        """The operand, which must be there."""
        value = self.input(index)
        if value is None:
            raise self.fail(f"it has no input {index}")
        return value

    def lowered(self, value: SSAValue) -> SSAValue:
        """Any value of the region that stands before the node, as a tensor of the kernel."""
        return self._values[value]

    @property
    def inputs(self) -> list[SSAValue]:
        """The operands that are there, as tensors of the kernel."""
        return [self._values[v] for v in self._inputs if v is not None]

    def dims(self, index: int) -> Dims:
        """The dims of an operand."""
        return dims_of(self.required(index).type)

    def element(self, index: int) -> Attribute:
        """The element type of an operand."""
        return element_of(self.required(index).type)

    def values(self, index: int) -> Dims | None:
        """The elements of an integer operand, in row-major order, where the compiler knows them."""
        return operand_values(self.op, index)

    def constant(self, index: int) -> np.ndarray[Any, Any] | None:
        """The operand as an array, when it is a constant."""
        from igniter.dialects.onnx.base import constant_value

        return constant_value(self._inputs[index]) if index < len(self._inputs) else None

    def is_weight(self, index: int) -> bool:
        """Whether the operand is a constant, maybe one that comes into the region: its elements are for `legal`."""
        from igniter.dialects.onnx.base import constant_weight

        value, region = self._inputs[index], self.op.parent_op()
        if isinstance(value, BlockArgument) and isinstance(region, RegionOp):
            value = region.inputs[value.index]
        return constant_weight(value) is not None

    def has_table(self, name: str) -> bool:
        """Whether the region has a table of that name for the node."""
        before = self.op.prev_op
        return isinstance(before, TablesOp) and name in before.by_name

    def table(self, name: str) -> SSAValue:
        """One of the tables that the op's spec makes of its attributes, as a tensor of the kernel."""
        before = self.op.prev_op
        if not isinstance(before, TablesOp):
            raise self.fail("its tables are not there; form-fusion-regions puts them into its region")
        return self._values[before.by_name[name]]

    # -- results -------------------------------------------------------------------------------------------------------

    def output_type(self, index: int = 0) -> TensorType[Attribute]:
        """The type of a result."""
        found = self.op.results[index].type
        if not isinstance(found, TensorType):
            raise self.fail(f"output {index} is {found}, not a ranked tensor")
        return cast("TensorType[Attribute]", found)

    def out_dims(self, index: int = 0) -> Dims:
        return dims_of(self.output_type(index))

    def out_element(self, index: int = 0) -> Attribute:
        return element_of(self.output_type(index))

    def wide_element(self, index: int = 0) -> Attribute:
        """The type that arithmetic on elements of a result is done in."""
        return compute_type(self.out_element(index))

    def wants(self, index: int) -> bool:
        """Whether the node has this output and something may use it."""
        outputs = self.op.outputs
        return index < len(outputs) and outputs[index] is not None

    # -- checks on data ------------------------------------------------------------------------------------------------

    def check(self, found: SSAValue, text: str, bounds: tuple[Expr, Expr] | None = None) -> None:
        """Has a run end with an error unless `found`, one i64, is `FINE`: otherwise it is the value that is wrong.

        The error names the node and has `text`, the value and the `bounds` that it should be in. The run goes on to
        its end, so accesses stay guarded.
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
        """Has a run end with an error where an element of `index`, or one that is `last` along its last dim, is outside
        of [-dim, dim - 1], or of [0, dim - 1] where `negative` ones do not count from the end; not where the dims
        `each` of what one index stands for are those of an empty tensor."""
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
        """A nest named after the op: `softmax`, or `softmax.max` for part `max`. For what the helpers do not say."""
        name = self.op.op_type.lower()
        return self.kernel.nest(f"{name}.{part}" if part else name)

    def procedure(self, inputs: Sequence[SSAValue], results: Sequence[Attribute], part: str = "") -> Procedure:
        """A procedure from `inputs` to tensors of the types `results`, for what nests do not say."""
        name = self.op.op_type.lower()
        return Procedure(self.kernel, f"{name}.{part}" if part else name, inputs, results)

    def view(self, tensor: SSAValue, dims: Sequence[ExprLike]) -> SSAValue:
        """`tensor` with other dims, no data moved."""
        return self.kernel.view(tensor, dims)

    def splat(self, number: float, dims: Sequence[ExprLike], element: Attribute) -> SSAValue:
        """A tensor of one number, which costs nothing where it is read."""
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
        """The tensor of `dims` whose element at `i` is `point(nest, i)`.

        With reduction axes of the extents `over`, it is `point(nest, i, r)` folded over `r` with `combiner`. `element`
        defaults to the type of the first output; to that which arithmetic on it is done in, for sums and products.
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
        """`tensor` in the element type of output `index`, to which sums of 16-bit floats have yet to be rounded."""
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
        """`function` of the elements of `tensors` (the operands by default), broadcast against each other.

        `dims` and `element` default to those of the first output.
        """
        operands = tensors or tuple(self.inputs)
        shape = self.out_dims() if dims is None else tuple(Expr.of(d) for d in dims)
        return self.generate(
            shape,
            lambda nest, at: call_scalars(function, [self.read_broadcast(nest, t, at, shape) for t in operands]),
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
        """Folds `function` of the elements of `tensors`, broadcast to the dims of the first, over `axes` of it.

        The result is accumulated in, and has, the type `element`: by default that which arithmetic on the first
        tensor's elements is done in. Parallel axes come before reduction axes. `by_rows` folds long sums of floats
        over several axes row by row, and then the rows: where channels are last, a sum is one number in one lane, and
        after thousands of terms every further one is rounded as the whole is.
        """
        operands = [tensors] if isinstance(tensors, SSAValue) else list(tensors)
        dims = dims_of(operands[0].type)
        if by_rows and _is_long(dims, axes) and is_float(compute_type(element or element_of(operands[0].type))):
            last = max(axis for axis in axes if dims[axis] != ONE)
            rows = f"{part}.rows" if part else "rows"
            partial = self.reduce(combiner, operands, [last], function, element=element, part=rows)
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

    def read_broadcast(self, nest: Nest, tensor: SSAValue, at: Sequence[Expr], dims: Dims) -> Scalar:
        """The element of `tensor` at the subscripts `at` of a domain of `dims` that it is broadcast to."""
        subscripts = aligned(dims_of(tensor.type), at, dims)
        if isinstance(subscripts, str):
            raise self.fail(subscripts)
        return nest.read(tensor, subscripts)

    def broadcast(self, *tensors: SSAValue) -> Dims:
        """The dims that `tensors` have when broadcast against each other."""
        found = broadcast_dims([dims_of(t.type) for t in tensors])
        if isinstance(found, str):
            raise self.fail(found)
        return found


LONG_SUM = 1024
"""Terms that a sum may have one after the other: each is rounded to half a unit in the last place of the sum so far, so
that at the worst 3e-5 of it is lost."""


def _is_long(dims: Dims, axes: Sequence[int]) -> bool:
    """Whether a sum over axes has several rows, and more terms than go one after the other; sizes that only a run knows
    may be large."""
    extents = [dims[axis] for axis in axes if dims[axis] != ONE]
    terms = product(extents).constant
    return len(extents) > 1 and (terms is None or terms > LONG_SUM)


def operand_values(op: OnnxOp, index: int) -> Dims | None:
    """The elements of an integer operand of `op`: what `infer-shapes` noted on it, or a constant's."""
    noted = op.attributes.get(VALUES_ATTRIBUTE)
    if isinstance(noted, DictionaryAttr):
        dims = noted.data.get(str(index))
        if isinstance(dims, DimsAttr):
            return dims.data
    inputs = op.inputs
    if index >= len(inputs) or inputs[index] is None:
        return None
    from igniter.dialects.onnx.base import constant_value

    array = constant_value(inputs[index])
    if array is None or array.dtype.kind not in "iu":
        return None
    return tuple(Expr.of(int(v)) for v in array.reshape(-1))
