"""`BodyEmitter`: the body of a `linalg` op as the body of a nest or a procedure.

A value of the body is known (an expression over axes and sizes) as long as possible, so that subscripts and guards
become expressions; it becomes a scalar of the nest where an op needs one.

    %i = linalg.index 1                                    i1
    %c = arith.cmpi eq, %dim, %c1                          x_d1 == 1
    %s = arith.select %c, %c0, %i
    %e = tensor.extract %x[%s]                             loop.read %x[min(i1, x_d1 - 1)]

The last read is how exporters write broadcasting. It relies on x_d1 being 1 or greater than i1, which the kernel then
requires. Reads in a branch of an `scf.if` are guarded by its condition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects import affine, arith, cf, scf, tensor
from xdsl.dialects.builtin import FloatAttr, i1, i64
from xdsl.dialects.linalg.ops import YieldOp
from xdsl.ir import Attribute, Block, Operation, SSAValue

from igniter.dialects.linalg import IndexOp
from igniter.dialects.linalg.structure import expr_of
from igniter.dialects.loop.attrs import scalar_type
from igniter.dialects.onnx.lowering.builder import Nest, Subscript
from igniter.dialects.onnx.lowering.scalar import Scalar
from igniter.dialects.sym import axis_ranges, dims_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, maximum, minimum, product
from igniter.dialects.sym.proofs import proven
from igniter.dialects.sym.ranges import Ranges
from igniter.dialects.sym.requirements import equal
from igniter.dialects.tensor import RankOp
from igniter.transforms.conversion.linalg.bounds import greatest
from igniter.transforms.conversion.linalg.errors import refused
from igniter.transforms.conversion.linalg.known import Known, constant, decided, fold, of_constant
from igniter.transforms.conversion.linalg.scalars import ScalarExpr, body_type, compute
from igniter.transforms.conversion.linalg.values import Scope


@dataclass(frozen=True)
class Assertion:
    """A condition that a body asserts at every point, with the text of its error."""

    holds: Scalar
    text: str
    op: Operation


class Reads:
    """How a body reads tensors: those of a nest by `loop.read`."""

    def __init__(self, nest: Nest):
        self.nest = nest

    def read(
        self, source: SSAValue, at: Sequence[Subscript], guards: Sequence[Expr] = (), indices: Sequence[Scalar] = ()
    ) -> Scalar:
        """Returns the element at subscripts inside of the tensor, or 0 where a guard is negative."""
        return self.nest.read(source, at, guards=guards, indices=indices)

    def read_inside(
        self, source: SSAValue, at: Sequence[Subscript], guards: Sequence[Expr], indices: Sequence[Scalar]
    ) -> Scalar:
        """Returns the element at subscripts, or 0 outside of the tensor."""
        return self.nest.read_inside(source, at, guards=guards, indices=indices)


@dataclass
class BodyEmitter:
    """The emission of one body. `axes` are the expressions of the op's axes, `extents` those of the nest."""

    scope: Scope
    reads: Reads
    axes: Sequence[Expr]
    extents: Mapping[str, Expr]
    op: Operation
    known: dict[SSAValue, Known] = field(default_factory=dict[SSAValue, Known])
    scalars: dict[SSAValue, Scalar] = field(default_factory=dict[SSAValue, Scalar])
    assertions: list[Assertion] = field(default_factory=list[Assertion])
    checking: bool = False
    """True in the nest that checks the assertions: reads out of bounds are among them."""
    wide: set[SSAValue] = field(default_factory=set[SSAValue])
    """The products of 16-bit floats that only a sum reads: they stay in f32."""
    _path: tuple[Known | Scalar, ...] = ()

    @property
    def nest(self) -> Nest:
        return self.reads.nest

    @property
    def ranges(self) -> Ranges:
        return axis_ranges(self.extents.items())

    # -- values --------------------------------------------------------------------------------------------------------

    def known_of(self, value: SSAValue) -> Known | None:
        """Returns a value that is known."""
        if value in self.known:
            return self.known[value]
        if value in self.scalars:
            return None
        found = self.scope.values.get(value)
        return found if isinstance(found, Known) else None

    def scalar(self, value: SSAValue, op: Operation) -> Scalar:
        """Returns a value as a scalar of the nest."""
        if value not in self.scalars:
            self.scalars[value] = self._scalar(value, op)
        return self.scalars[value]

    def _scalar(self, value: SSAValue, op: Operation) -> Scalar:
        known = self.known_of(value)
        if known is None:
            source = self.scope.tensor(value, op)
            if dims_of(source.type):
                raise refused(op, f"the body uses the whole tensor {value.type}; read it by tensor.extract")
            return self.typed(self.reads.read(source, []))
        kind = body_type(op, value.type)
        self.scope.facts.require(op, *known.needs)
        if known.expr is not None:
            if known.expr.constant is not None:
                return self.nest.const(known.expr.constant, kind)
            return self.nest.index(known.expr).to(kind)
        if known.truth is not None:
            return self._condition(known)
        assert isinstance(known.number, FloatAttr)
        return self.nest.const(float(known.number.value.data), kind)

    def _condition(self, known: Known) -> Scalar:
        assert known.truth is not None
        value = decided(known, self.ranges)
        return self.nest.const(value, i1) if value is not None else self.nest.index(known.truth) >= 0

    @staticmethod
    def typed(x: Scalar) -> Scalar:
        """Returns an element as the signless scalar of a body."""
        return Scalar(x.nest, x.value, scalar_type(x.element))

    # -- the body ------------------------------------------------------------------------------------------------------

    def emit(self, block: Block) -> Sequence[SSAValue]:
        """Emits a block; returns the operands of its terminator."""
        for op in block.ops:
            if isinstance(op, (YieldOp, scf.YieldOp, tensor.YieldOp)):
                return list(op.operands)
            self.emit_op(op)
        raise refused(self.op, "its body has no terminator")

    def emit_op(self, op: Operation) -> None:
        """Emits one op of a body."""
        if isinstance(op, arith.ConstantOp):
            known = of_constant(op.value)
            if known is None:
                raise refused(op, "a constant in a body is a scalar; move a tensor out of the body")
            self.known[op.results[0]] = known
        elif isinstance(op, IndexOp):
            self.known[op.results[0]] = Known(expr=self._axis(op.axis, op))
        elif isinstance(op, (tensor.DimOp, RankOp)):
            self.known[op.results[0]] = self.dim(op)
        elif isinstance(op, (affine.ApplyOp, affine.MinOp)):
            self._apply(op)
        elif isinstance(op, tensor.ExtractOp):
            self.scalars[op.results[0]] = self.typed(self._extract(op))
        elif isinstance(op, cf.AssertOp):
            self._assert(op)
        elif isinstance(op, scf.IfOp):
            self._if(op)
        elif op.name == "index.constant":
            self.known[op.results[0]] = of_constant(op.properties["value"]) or constant(0)
        else:
            self._compute(op)

    def _axis(self, number: int, op: Operation) -> Expr:
        if number >= len(self.axes):
            raise refused(op, f"axis {number} of an op with {len(self.axes)} axes")
        return self.axes[number]

    def dim(self, op: tensor.DimOp | RankOp) -> Known:
        """Returns the dim or the rank of a tensor."""
        dims = self.scope.dims(op.source, op)
        if isinstance(op, RankOp):
            return constant(len(dims))
        index = self.known_of(op.index)
        place = None if index is None or index.expr is None else index.expr.constant
        if place is None or not 0 <= place < len(dims):
            raise refused(op, f"the index must be a constant below {len(dims)}")
        return Known(expr=dims[place])

    def _apply(self, op: affine.ApplyOp | affine.MinOp) -> None:
        values = list(op.mapOperands if isinstance(op, affine.ApplyOp) else op.operands)
        exprs: list[Expr] = []
        scalars: dict[str, Scalar] = {}
        for k, value in enumerate(values):
            known = self.known_of(value)
            if known is not None and known.expr is not None:
                self.scope.facts.require(op, *known.needs)
                exprs.append(known.expr)
            else:
                name = f"$data{k}"
                scalars[name] = self.scalar(value, op)
                exprs.append(Expr.of(name))
        found = op.map.data
        made = minimum(*(expr_of(e, exprs[found.num_dims :], exprs[: found.num_dims]) for e in found.results))
        if scalars:
            self.scalars[op.results[0]] = ScalarExpr(self.nest, scalars).lower(made)
        else:
            self.known[op.results[0]] = Known(expr=made)

    def _compute(self, op: Operation) -> None:
        if len(op.results) != 1 or op.regions:
            raise refused(op, "it is not supported in a body; use ops of arith and math, and tensor.extract")
        result = op.results[0]
        found = [self.known_of(v) for v in op.operands]
        args = [k for k in found if k is not None]
        if len(args) == len(found):
            folded = fold(op, args, self.ranges)
            if folded is not None:
                self.known[result] = folded
                return
        kind = body_type(op, result.type)
        if result in self.wide:
            a, b = (self.scalar(v, op).widened() for v in op.operands)
            self.scalars[result] = a * b
        else:
            self.scalars[result] = self.computed(op, kind)

    def computed(self, op: Operation, kind: Attribute) -> Scalar:
        """Returns the result of an op on scalars, of the body type `kind`."""
        return compute(op, [self.scalar(v, op) for v in op.operands], kind)

    # -- reads ---------------------------------------------------------------------------------------------------------

    def _extract(self, op: tensor.ExtractOp) -> Scalar:
        source = self.scope.tensor(op.tensor, op)
        dims = dims_of(source.type)
        at = [self._subscript(index, dim, op) for index, dim in zip(op.indices, dims, strict=True)]
        guards, indices = self._guards(at)
        if self.checking:
            self._check_bounds(at, dims, op)
        return self.reads.read_inside(source, at, guards, indices)

    def _subscript(self, index: SSAValue, dim: Expr, op: Operation) -> Subscript:
        known = self.known_of(index)
        if known is None or known.expr is None:
            return self.scalar(index, op).to(i64)
        self.scope.facts.require(op, *known.needs)
        broadcast = self._broadcast(known, dim, op)
        if broadcast is not None:
            return broadcast
        if not self._path:
            self._require_inside(known.expr, dim, op)
        return known.expr

    def _broadcast(self, known: Known, dim: Expr, op: Operation) -> Expr | None:
        """Returns the subscript `dim == 1 ? 0 : at`, requiring the dim to be 1 or the extent of `at`; None for another
        subscript."""
        if known.choice is None or self._path:
            return None
        condition, zero, other = known.choice
        if condition.equal not in (((dim, ONE),), ((ONE, dim),)) or zero.expr != ZERO or other.expr is None:
            return None
        last = greatest(other.expr, self.ranges)
        if last is None or not proven(other.expr, self.ranges):
            return None
        # (dim - 1) * max(last - dim + 1, 0) is 0 if the dim is 1, or greater than the last subscript.
        wrong = (dim - 1) * maximum(last - dim + 1, ZERO)
        own = other.expr.symbol
        points = product(e for name, e in self.extents.items() if name != own and e.constant is None)
        whole = equal(points * wrong, 0, "an operand cannot be broadcast")
        self.scope.facts.require(op, whole)
        return minimum(other.expr, dim - 1)

    def _require_inside(self, at: Expr, dim: Expr, op: Operation) -> None:
        """Requires a subscript to be inside of its dim at every point, if its extremes are expressions of sizes. Other
        subscripts are checked with the data."""
        ranges, facts, points = self.ranges, self.scope.facts, list(self.extents.values())
        for low, text in ((at, "a subscript is negative"), (dim - 1 - at, "a subscript is beyond its dim")):
            if proven(low, ranges):
                continue
            worst = greatest(-low, ranges)
            if worst is not None:
                facts.at_most(op, worst, ZERO, text, points)

    def _check_bounds(self, at: Sequence[Subscript], dims: Sequence[Expr], op: Operation) -> None:
        """Asserts the subscripts whose values are data to be inside of their dims, where the path leads here."""
        for subscript, dim in zip(at, dims, strict=True):
            if isinstance(subscript, Scalar):
                inside = (subscript >= 0) & (subscript < self.nest.index(dim))
                text = "an index is out of bounds"
                self.assertions.append(Assertion(self._on_path(inside), text, op))

    # -- paths ---------------------------------------------------------------------------------------------------------

    def _guards(self, at: Sequence[Subscript]) -> tuple[list[Expr], list[Scalar]]:
        """Returns the conditions of the path as guards, with the scalars that they name."""
        guards: list[Expr] = []
        indices: list[Scalar] = []
        for each in self._path:
            if isinstance(each, Known):
                guards.append(each.truth or ZERO)
            else:
                guards.append(Expr.of(f"_{len(indices)}") - 1)
                indices.append(each.to(i64))
        return guards, indices

    def _on_path(self, condition: Scalar) -> Scalar:
        for each in self._path:
            condition = condition | ~(self._condition(each) if isinstance(each, Known) else each)
        return condition

    def _if(self, op: scf.IfOp) -> None:
        known = self.known_of(op.cond)
        value = None if known is None else decided(known, self.ranges)
        if value is not None:
            region = op.true_region if value else op.false_region
            yielded: Sequence[SSAValue] = self.emit(region.block) if region.blocks else ()
            for result, inner in zip(op.results, yielded, strict=True):
                self._alias(result, inner, op)
            return
        condition: Known | Scalar = known if known is not None else self.scalar(op.cond, op)
        opposite = Known(truth=-(known.truth or ZERO) - 1) if known is not None else ~self.scalar(op.cond, op)
        path, results = self._path, [list[SSAValue](), list[SSAValue]()]
        for region, term, found in ((op.true_region, condition, results[0]), (op.false_region, opposite, results[1])):
            if region.blocks:
                self._path = (*path, term)
                found.extend(self.emit(region.block))
                self._path = path
        for result, a, b in zip(op.results, *results, strict=True):
            self.scalars[result] = self.scalar(op.cond, op).select(self.scalar(a, op), self.scalar(b, op))

    def _alias(self, result: SSAValue, inner: SSAValue, op: Operation) -> None:
        known = self.known_of(inner)
        if known is not None:
            self.known[result] = known
        else:
            self.scalars[result] = self.scalar(inner, op)

    # -- assertions ----------------------------------------------------------------------------------------------------

    def _assert(self, op: cf.AssertOp) -> None:
        known = self.known_of(op.arg)
        if known is not None and known.truth is not None and not self._path:
            value = decided(known, self.ranges)
            if value is True:
                return
            if not known.truth.symbols & self.extents.keys():
                self.scope.facts.require(op, *known.needs)
                self.scope.facts.at_most(op, -known.truth, ZERO, op.msg.data, list(self.extents.values()))
                return
        if self.checking:
            self.assertions.append(Assertion(self._on_path(self.scalar(op.arg, op)), op.msg.data, op))


def needs_check(block: Block) -> bool:
    """True if a body has assertions, or subscripts that may be data."""
    return any(isinstance(op, (cf.AssertOp, tensor.ExtractOp)) for op in block.walk())
