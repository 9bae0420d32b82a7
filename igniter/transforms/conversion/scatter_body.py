"""The launches of `#loop.scatter`: of several updates of one element, the last one counts on every run.

Programs run in any order, so a plain store of each update would leave any of them. Instead, each position of the data
has a winner, the highest number of an update there, or -1:

    fill     winner[p] = -1
    vote     winner[position of u] = max(winner[..], u), atomically; the order of maxima has no effect
    gather   y[e] = the winner's update if there is one, else x[e]

Positions are elements of the data if indices are along a dim, and otherwise the coordinates that an index gives.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import SSAValue

from igniter.dialects import triton as tt
from igniter.dialects.arith import CmpiOp
from igniter.dialects.loop import ScatterAttr
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, delinearize, floordiv, linearize, mod, product
from igniter.schedules.launch_groups import LaunchGroup
from igniter.transforms.conversion.algorithm_body import AlgorithmBody, MakeDim, Scratch
from igniter.transforms.conversion.launch_values import Scope

POSITIONS, UPDATES, ELEMENTS = Expr.of("positions"), Expr.of("updates"), Expr.of("elements")


def scatter_bodies(
    name: str, group: LaunchGroup, dim: MakeDim, scratch: Scratch, symbols: Sequence[str]
) -> Iterator[AlgorithmBody]:
    """Yields the kernels of `#loop.scatter`, in the order of their launches."""
    procedure = group.procedure
    assert procedure is not None
    how = procedure.computes
    assert isinstance(how, ScatterAttr)
    data, indices, _ = (dims_of(v.type) for v in procedure.inputs)
    positions = product(data) if how.axis is not None else product(data[: how.depth])
    updates = product(indices) if how.axis is not None else product(indices[:-1])
    few = updates.constant is not None and updates.constant < 1 << 31
    winners = scratch(i32 if few else i64, [positions])
    yield FillBody(f"{name}.fill", group, [dim("positions", positions)], symbols, [winners])
    yield VoteBody(f"{name}.vote", group, [dim("updates", updates)], symbols, [winners])
    yield GatherBody(name, group, [dim("elements", product(data))], symbols, [winners])


class _Scatter(AlgorithmBody):
    """A kernel with a buffer of winners."""

    @property
    def how(self) -> ScatterAttr:
        """The algorithm."""
        assert isinstance(self.procedure.computes, ScatterAttr)
        return self.procedure.computes

    @property
    def winners(self) -> SSAValue:
        """The buffer of the numbers of updates."""
        return self.made[0]

    def _index_type(self) -> IntegerType:
        # Indices are data of any size.
        return i64


class FillBody(_Scatter):
    """No winner at any position."""

    def _compute(self, scope: Scope) -> None:
        nothing = scope.builder.const(-1, self._memory(self.winners))
        self.store(scope, self.at(scope, self.winners, [POSITIONS]), nothing, self.masked(scope, "positions"))


class VoteBody(_Scatter):
    """Each update is the winner of its position, unless a later one is."""

    def _compute(self, scope: Scope) -> None:
        builder, valid = scope.builder, self.masked(scope, "updates")
        dims, given = dims_of(self.procedure.inputs[0].type), dims_of(self.procedure.inputs[1].type)
        place: list[Expr]
        if self.how.axis is not None:
            place = delinearize(UPDATES, given)
            place[self.how.axis] = Expr.of("index0")
            subscripts, limits = [UPDATES], [dims[self.how.axis]]
        else:
            place = [Expr.of(f"index{k}") for k in range(self.how.depth)]
            subscripts = [UPDATES * self.how.depth + k for k in range(self.how.depth)]
            limits, dims = list(dims[: self.how.depth]), dims[: self.how.depth]
        found: dict[str, SSAValue] = {}
        conditions = list(valid)
        for k, (subscript, limit) in enumerate(zip(subscripts, limits, strict=True)):
            index, inside = self._index(scope, subscript, limit, valid)
            found[f"index{k}"] = index
            conditions += inside
        pointers = self.at(scope, self.winners, [linearize(place, dims)], **found)
        number = builder.from_index(scope.index["updates"], self._memory(self.winners))
        mask = builder.all_of(conditions)
        given_values = builder.together([pointers, number, *([mask] if mask is not None else [])])
        builder.block.add_op(tt.AtomicRMWOp("max", *given_values))

    def _index(
        self, scope: Scope, subscript: Expr, limit: Expr, valid: Sequence[SSAValue]
    ) -> tuple[SSAValue, list[SSAValue]]:
        """Returns an index counted from the front, and the conditions for it to be within the data."""
        builder = scope.builder
        offset = builder.expr(subscript, scope.index)
        pointers = self._pointers(builder, self.procedure.inputs[1], offset)
        index = builder.to_index(self.load(scope, pointers, valid))
        size, zero = builder.expr(limit, scope.index), builder.number(0)
        turned = builder.binary(arith.AddiOp, index, size)
        index = builder.select(builder.below(index, zero), turned, index)
        positive = builder.binary(lambda a, b: CmpiOp(a, b, "sge"), index, zero)
        return index, [positive, builder.below(index, size)]


class GatherBody(_Scatter):
    """The update of the winner of each element, or the element of the data."""

    def _compute(self, scope: Scope) -> None:
        builder, valid = scope.builder, self.masked(scope, "elements")
        data, _, updates = self.procedure.inputs
        inner = ONE if self.how.axis is not None else product(dims_of(data.type)[self.how.depth :])
        position = ELEMENTS if inner == ONE else floordiv(ELEMENTS, inner)
        rest = ZERO if inner == ONE else mod(ELEMENTS, inner)
        winner = self.load(scope, self.at(scope, self.winners, [position]), valid)
        updated = builder.binary(lambda a, b: CmpiOp(a, b, "sge"), winner, builder.const(0, self._memory(self.winners)))
        kept = builder.binary(lambda a, b: CmpiOp(a, b, "slt"), winner, builder.const(0, self._memory(self.winners)))
        at = Expr.of("winner") * inner + rest
        offset = builder.expr(at, {**scope.index, "winner": builder.to_index(winner)})
        new = self.load(scope, self._pointers(builder, updates, offset), [*valid, updated])
        offset = builder.expr(ELEMENTS, scope.index)
        old = self.load(scope, self._pointers(builder, data, offset), [*valid, kept])
        (result,) = self.procedure.outputs
        value = builder.select(updated, new, old)
        self.store(scope, self._pointers(builder, result, offset), value, valid)
