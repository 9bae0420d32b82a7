"""The launch of `#loop.prefix`: a scan along the steps, block after block with the combination of those before."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import SSAValue

from igniter.dialects import triton as tt
from igniter.dialects.loop import PrefixAttr
from igniter.dialects.sym import element_of
from igniter.transforms.conversion.algorithm_body import COLUMNS, ROWS, STEPS, AlgorithmBody
from igniter.transforms.conversion.block_builder import BlockBuilder
from igniter.transforms.conversion.launch_values import Scope, combined


class PrefixBody(AlgorithmBody):
    """Running sums or products along the steps.

    An exclusive scan is an inclusive one of the operand shifted by one step. 16-bit floats are combined in f32 and
    rounded once.
    """

    @property
    def prefix(self) -> PrefixAttr:
        """The algorithm."""
        assert isinstance(self.procedure.computes, PrefixAttr)
        return self.procedure.computes

    def _compute(self, scope: Scope) -> None:
        dim = self.by_name["steps"]
        if not dim.looped:
            self._block(scope, None)
            return
        shape = self.shape("rows", "columns")
        start = self._nothing(scope.builder)
        start = scope.builder.shaped(start, shape) if shape else start
        blocks = scope.builder.expr(dim.blocks, scope.index)

        def step(inside: Scope, number: SSAValue, carried: list[SSAValue]) -> Sequence[SSAValue]:
            if self.prefix.reverse:
                last = inside.builder.binary(arith.SubiOp, blocks, inside.builder.number(1))
                number = inside.builder.binary(arith.SubiOp, last, number)
            self._enter(inside, dim, number)
            return [self._block(inside, carried[0])]

        self.repeat(scope, blocks, [start], step)

    def _block(self, scope: Scope, before: SSAValue | None) -> SSAValue:
        """Computes a block of steps, given the combination of the blocks before. Returns the combination with it;
        of a block that is a whole row, the results."""
        builder, prefix = scope.builder, self.prefix
        place, conditions = STEPS, self.masked(scope, "rows", "steps", "columns")
        if prefix.exclusive:
            place = STEPS + 1 if prefix.reverse else STEPS - 1
            # A partial block has no element at its end either.
            guard = self.by_name["steps"].extent - 1 - place if prefix.reverse else place
            conditions = [*conditions, builder.nonneg(guard, scope.index)]
        pointers = self.at(scope, self.source, (ROWS, place, COLUMNS))
        value = builder.widened(self.load(scope, pointers, conditions, self._neutral))
        value = builder.shaped(value, self.shape("rows", "steps", "columns")) if self.laned else value
        found = self.scanned(scope, value, "steps", self._combine, reverse=prefix.reverse)
        if before is not None:
            found = self._combine(builder, before, found)
        stored = found
        if tt.element_type(stored.type) != element_of(self.source.type) and self._narrow:
            stored = builder.cast(arith.TruncFOp, stored, element_of(self.source.type))
        (result,) = self.procedure.outputs
        pointers = self.at(scope, result, (ROWS, STEPS, COLUMNS))
        self.store(scope, pointers, stored, self.masked(scope, "rows", "steps", "columns"))
        if before is None:
            return found
        return self._combine(builder, before, self.reduced(scope, value, "steps", self._combine))

    @property
    def _narrow(self) -> bool:
        return element_of(self.source.type).name in ("f16", "bf16")

    @property
    def _neutral(self) -> float:
        return 0 if self.prefix.combiner == "add" else 1

    def _nothing(self, builder: BlockBuilder) -> SSAValue:
        element = Float32Type() if self._narrow else self._memory(self.source)
        return builder.const(self._neutral, element)

    def _combine(self, builder: BlockBuilder, a: SSAValue, b: SSAValue) -> SSAValue:
        element = Float32Type() if self._narrow else element_of(self.source.type)
        return combined(builder, self.prefix.combiner, element, a, b)
