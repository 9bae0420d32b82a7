"""The blocks of keys that a program of an attention visits: those that one of its rows sees.

    first  unmasked  unmasked_end  end
      |  mask  |  no mask  |  mask  |         in blocks of keys

A block between the two inner bounds is seen whole by all rows, so it needs no mask. The bounds are integers of a
program, computed from the limits of its first and last row (`igniter.analysis.structured.key_limits`) in 64 bits.

If the score of a hidden key is finite, a row that sees no key gives all hidden keys a weight. So if a row of the
program may see none, the program visits all blocks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from igniter.analysis.structured.key_limits import Limit, Term
from igniter.dialects.arith import CmpiOp
from igniter.dialects.sym.expr import Expr
from igniter.schedules.launch_groups import renamed
from igniter.transforms.conversion.block_builder import BlockBuilder
from igniter.transforms.conversion.launch_values import Scope

if TYPE_CHECKING:
    from igniter.transforms.conversion.attention_body import AttentionBody
    from igniter.transforms.conversion.lower_to_triton import Dim


@dataclass(frozen=True)
class KeyRange:
    """A range of blocks of keys."""

    first: SSAValue
    end: SSAValue
    whole: bool
    """True if every row sees every key of these blocks, and no block is partial."""


class KeyRanges:
    """Emits the bounds of one program."""

    def __init__(self, body: AttentionBody, scope: Scope, limits: Sequence[Limit]):
        self.body, self.scope, self.limits = body, scope, limits
        self.keys: Dim = body.by_name[body.at.keys]
        self.builder = BlockBuilder(scope.builder.block, scope.builder.ranges, i64)
        self.count = self._expr(self.keys.extent)
        """The number of keys."""

    def end(self) -> SSAValue | None:
        """Returns the number of keys up to the last one that a row of the program sees; None if it is not data. Behind
        a length that is data, memory may hold anything."""
        uppers, lowers = [x for x in self.limits if x.upper], [x for x in self.limits if not x.upper]
        if not any(isinstance(term.value, SSAValue) for limit in uppers for term in limit.terms):
            return None
        keys = self.count
        for limit in uppers:
            keys = self._least(keys, self._keys_to(self._extreme(limit, highest=True)))
        if self.body.score.low is not None:
            keys = self.builder.select(self._every_row_sees(uppers, lowers), keys, self.count)
        return self._narrow(keys)

    def ranges(self) -> list[KeyRange]:
        """Returns the ranges of blocks that the program visits, in order."""
        if not self.limits:
            builder = self.scope.builder
            whole = builder.number(0), builder.expr(self.keys.blocks, self.scope.index)
            return self._without_limits(*self.body.part_of(builder, *whole))
        builder = self.builder
        uppers, lowers = [x for x in self.limits if x.upper], [x for x in self.limits if not x.upper]
        begin, stop = builder.number(0), self._blocks(self.count)
        inner, inner_stop = begin, builder.binary(arith.DivSIOp, self.count, builder.number(self.keys.lanes))
        for limit in uppers:
            stop = self._least(stop, self._blocks(self._keys_to(self._extreme(limit, highest=True))))
            whole = self._keys_to(self._extreme(limit, highest=False))
            inner_stop = self._least(inner_stop, builder.binary(arith.DivSIOp, whole, self._lanes()))
        for limit in lowers:
            seen = self._clamped(self._extreme(limit, highest=False))
            begin = self._most(begin, builder.binary(arith.DivSIOp, seen, self._lanes()))
            inner = self._most(inner, self._blocks(self._clamped(self._extreme(limit, highest=True))))
        if self.body.score.low is not None:
            seeing = self._every_row_sees(uppers, lowers)
            begin = builder.select(seeing, begin, builder.number(0))
            stop = builder.select(seeing, stop, self._blocks(self.count))
        begin, stop = self.body.part_of(builder, begin, stop)
        inner = self._least(self._most(inner, begin), stop)
        inner_stop = self._least(self._most(inner_stop, inner), stop)
        begin, inner, inner_stop, stop = (self._narrow(v) for v in (begin, inner, inner_stop, stop))
        masked = [KeyRange(begin, inner, whole=False)] if lowers else []
        # Without a lower limit the first block is seen by every row, if there is any.
        return [*masked, KeyRange(inner, inner_stop, whole=True), KeyRange(inner_stop, stop, whole=False)]

    def _without_limits(self, first: SSAValue, end: SSAValue) -> list[KeyRange]:
        """Returns the full blocks, and the partial one after them."""
        if self.keys.is_exact:
            return [KeyRange(first, end, whole=True)]
        builder = self.scope.builder
        full = builder.expr(self.keys.extent // self.keys.lanes, self.scope.index)
        full = builder.binary(arith.MinSIOp, builder.binary(arith.MaxSIOp, full, first), end)
        return [KeyRange(first, full, whole=True), KeyRange(full, end, whole=False)]

    def _every_row_sees(self, uppers: Sequence[Limit], lowers: Sequence[Limit]) -> SSAValue:
        """Returns a test that every row sees at least one key: limits are linear, so it looks at the rows at both
        ends."""
        builder, zero = self.builder, self.builder.number(0)
        rooms = [self._extreme(limit, highest=False) for limit in uppers]
        last = builder.binary(arith.SubiOp, self.count, builder.number(1))
        rooms += [builder.binary(arith.SubiOp, last, self._extreme(limit, highest=True)) for limit in lowers]
        for row in self._ends():
            rooms += [
                builder.binary(arith.SubiOp, self._at(upper, row), self._at(lower, row))
                for upper in uppers
                for lower in lowers
            ]
        least = rooms[0]
        for room in rooms[1:]:
            least = self._least(least, room)
        return builder.binary(lambda a, b: CmpiOp(a, b, "sge"), least, zero)

    # -- limits -------------------------------------------------------------------------------------------------------

    def _ends(self) -> tuple[SSAValue, SSAValue]:
        """Returns the first and the last row of the program."""
        builder, name = self.builder, self.body.at.rows
        if not name:
            return builder.number(0), builder.number(0)
        dim, begin = self.body.by_name[name], self.scope.firsts[name]
        first = builder.number(0) if begin is None else builder.to_index(begin)
        last = builder.binary(arith.AddiOp, first, builder.number(dim.lanes - 1))
        end = builder.binary(arith.SubiOp, self._expr(dim.extent), builder.number(1))
        return first, self._least(last, end)

    def _extreme(self, limit: Limit, *, highest: bool) -> SSAValue:
        """Returns the highest or lowest limit of all rows."""
        first, last = self._ends()
        return self._at(limit, last if (limit.slope > 0) == highest else first)

    def _at(self, limit: Limit, row: SSAValue) -> SSAValue:
        """Returns the limit of a row."""
        builder = self.builder
        made = builder.number(limit.offset)
        if limit.slope:
            made = builder.binary(arith.AddiOp, made, self._times(limit.slope, row))
        for term in limit.terms:
            made = builder.binary(arith.AddiOp, made, self._times(term.factor, self._term(term)))
        return made

    def _times(self, factor: int, value: SSAValue) -> SSAValue:
        return value if factor == 1 else self.builder.binary(arith.MuliOp, self.builder.number(factor), value)

    def _term(self, term: Term) -> SSAValue:
        if isinstance(term.value, Expr):
            (e,) = renamed([term.value], self.body.group.names[term.nest])
            return self._expr(e)
        return self.builder.to_index(self.body.value_of(term.nest, term.value, self.scope))

    # -- integers -----------------------------------------------------------------------------------------------------

    def _expr(self, e: Expr) -> SSAValue:
        index: Mapping[str, SSAValue] = self.scope.index
        return self.builder.expr(e, {name: self.builder.to_index(index[name]) for name in e.symbols})

    def _lanes(self) -> SSAValue:
        return self.builder.number(self.keys.lanes)

    def _least(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.builder.binary(arith.MinSIOp, a, b)

    def _most(self, a: SSAValue, b: SSAValue) -> SSAValue:
        return self.builder.binary(arith.MaxSIOp, a, b)

    def _clamped(self, key: SSAValue) -> SSAValue:
        """Returns a number of keys from 0 to all of them."""
        return self._least(self._most(key, self.builder.number(0)), self.count)

    def _keys_to(self, last: SSAValue) -> SSAValue:
        """Returns the number of keys up to a last one."""
        return self._clamped(self.builder.binary(arith.AddiOp, last, self.builder.number(1)))

    def _blocks(self, keys: SSAValue) -> SSAValue:
        """Returns the number of blocks that hold a number of keys."""
        whole = self.builder.binary(arith.AddiOp, keys, self.builder.number(self.keys.lanes - 1))
        return self.builder.binary(arith.DivSIOp, whole, self._lanes())

    def _narrow(self, blocks: SSAValue) -> SSAValue:
        return self.scope.builder.to_index(blocks)
