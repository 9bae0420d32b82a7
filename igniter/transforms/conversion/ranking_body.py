"""The launches of `#loop.top`: the first elements of each row in order, and their places.

Elements become keys, integers whose order is the wanted one. The rank of an element is the number of elements that come
first: those with a lower key, and of those with the same key the ones before it. So every element is compared with all
others of its row, in blocks of ranked elements and others, and an element with a rank below k is stored at its rank.

Rows with many elements are narrowed to k candidates by a launch before it, if the schedule has `steps`. A program finds
the k-th lowest key of a row by its digits, the highest first: for each digit it counts the keys below a few candidates,
block after block. Then it writes the places of all elements below that key, and of as many equal to it as are missing,
the first ones. The comparisons are those of the candidates alone.

A sort of blocks by compare and exchange (a bitonic sort) needs fewer comparisons, but its steps are all different code:
Triton takes half a minute to compile one of 2048 elements. Here the code has one size for all rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerType, i32, i64
from xdsl.ir import SSAValue

from igniter.dialects import triton as tt
from igniter.dialects.arith import CmpiOp, ExtSIOp, ExtUIOp
from igniter.dialects.loop import TopAttr, element_bytes
from igniter.dialects.loop.attrs import is_float, is_unsigned
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr
from igniter.schedules.launch_groups import LaunchGroup
from igniter.transforms.conversion.algorithm_body import (
    COLUMNS,
    ROWS,
    STEPS,
    AlgorithmBody,
    MakeDim,
    Scratch,
    add,
)
from igniter.transforms.conversion.block_builder import BlockBuilder
from igniter.transforms.conversion.launch_values import Scope

RANKED, OTHERS = Expr.of("ranked"), Expr.of("others")

DIGIT = 2
"""The bits of a key that a pass over a row determines."""


def ranking_bodies(
    name: str, group: LaunchGroup, dim: MakeDim, scratch: Scratch, symbols: Sequence[str]
) -> Iterator[AlgorithmBody]:
    """Yields the kernels of `#loop.top`, in the order of their launches."""
    procedure = group.procedure
    assert procedure is not None
    assert procedure.schedule is not None
    rows, extent, columns = dims_of(procedure.inputs[0].type)
    kept = dims_of(procedure.outputs[0].type)[1]
    around = dim("rows", rows), dim("columns", columns)
    if not any(loop.axis == "steps" for loop in procedure.schedule.loops):
        dims = [around[0], dim("ranked", extent), dim("others", extent), around[1]]
        yield RankingBody(name, group, dims, symbols)
        return
    chosen = scratch(i32, (rows, kept, columns))
    # A program narrows one row.
    single = [d.one_by_one() for d in around]
    yield NarrowingBody(f"{name}.narrow", group, [single[0], dim("steps", extent), single[1]], symbols, [chosen])
    dims = [around[0], dim("ranked", kept), dim("others", kept), around[1]]
    yield RankingBody(name, group, dims, symbols, [chosen])


FLOATS = {"f16": (16, 5), "bf16": (16, 8), "f32": (32, 8), "f64": (64, 11)}
"""The bits of a float, and those of its exponent."""


class _Keys(AlgorithmBody):
    """A kernel that orders elements by keys."""

    @property
    def largest(self) -> bool:
        """True if the order is descending."""
        assert isinstance(self.procedure.computes, TopAttr)
        return self.procedure.computes.largest

    def keys(self, builder: BlockBuilder, value: SSAValue) -> SSAValue:
        """Returns the keys of elements: signed integers of the same width, the first element with the lowest one. All
        NaNs have the key of the greatest element, and both zeros have the same key."""
        element = element_of(self.source.type)
        if is_float(element):
            value = self._of_floats(builder, value)
        elif is_unsigned(element):
            value = builder.binary(arith.XOrIOp, value, self._least(builder, value))
        if not self.largest:
            return value
        return builder.binary(arith.XOrIOp, value, builder.const(-1, tt.element_type(value.type)))

    def _of_floats(self, builder: BlockBuilder, value: SSAValue) -> SSAValue:
        width, exponent = FLOATS[tt.element_type(value.type).name]
        kind = IntegerType(width)
        bits = builder.cast(arith.BitcastOp, value, kind)
        least, most = self._least(builder, bits), builder.const((1 << width - 1) - 1, kind)
        # A comparison of floats would do, but not for bf16 in Triton's interpreter, to which they are integers.
        infinity = builder.const((1 << exponent) - 1 << width - 1 - exponent, kind)
        is_nan = builder.below(infinity, builder.binary(arith.AndIOp, bits, most))
        zero = builder.const(0, kind)
        is_zero = builder.binary(lambda a, b: CmpiOp(a, b, "eq"), bits, least)
        bits = builder.select(is_zero, zero, bits)
        # The bits of negative numbers rise with their size.
        turned = builder.binary(arith.XOrIOp, bits, most)
        ordered = builder.select(builder.below(bits, zero), turned, bits)
        return builder.select(is_nan, most, ordered)

    @staticmethod
    def _least(builder: BlockBuilder, value: SSAValue) -> SSAValue:
        width = tt.width_of(value.type)
        return builder.const(-(1 << width - 1), tt.element_type(value.type))


class RankingBody(_Keys):
    """The ranks of elements, and the elements of low ranks. With a buffer of chosen places, these are ranked instead of
    all elements of a row."""

    def _compute(self, scope: Scope) -> None:
        builder = scope.builder
        mine, my_place = self._elements(scope, "ranked", RANKED)
        my_key = self.keys(builder, mine)
        others = self.by_name["others"]
        shape = self.shape("rows", "ranked", "columns")
        rank = builder.const(0, i32)
        if others.looped:
            start = builder.shaped(rank, shape) if shape else rank
            blocks = builder.expr(others.blocks, scope.index)

            def step(inside: Scope, number: SSAValue, carried: list[SSAValue]) -> Sequence[SSAValue]:
                self._enter(inside, others, number)
                return [add(inside.builder, carried[0], self._count(inside, my_key, my_place))]

            (rank,) = self.repeat(scope, blocks, [start], step)
        else:
            rank = self._count(scope, my_key, my_place)
        rank = builder.to_index(rank)
        values, places = self.procedure.outputs
        last = builder.expr(dims_of(values.type)[1], scope.index)
        conditions = [*self.masked(scope, "rows", "ranked", "columns"), builder.below(rank, last)]
        at = (ROWS, Expr.of("rank"), COLUMNS)
        self.store(scope, self.at(scope, values, at, rank=rank), mine, conditions)
        place = my_place if my_place.type == rank.type else builder.from_index(my_place, i64)
        place = builder.from_index(place, i64)
        self.store(scope, self.at(scope, places, at, rank=rank), place, conditions)

    def _elements(self, scope: Scope, dim: str, along: Expr) -> tuple[SSAValue, SSAValue]:
        """Returns the elements of the current block along a dim, and their places."""
        builder, conditions = scope.builder, self.masked(scope, "rows", dim, "columns")
        if not self.made:
            place = scope.index[dim]
            return self.load(scope, self.at(scope, self.source, (ROWS, along, COLUMNS)), conditions), place
        found = self.load(scope, self.at(scope, self.made[0], (ROWS, along, COLUMNS)), conditions)
        place = builder.to_index(found)
        at = (ROWS, Expr.of("chosen"), COLUMNS)
        return self.load(scope, self.at(scope, self.source, at, chosen=place), conditions), place

    def _count(self, scope: Scope, my_key: SSAValue, my_place: SSAValue) -> SSAValue:
        """Returns how many of the current others come before each ranked element."""
        builder = scope.builder
        theirs, place = self._elements(scope, "others", OTHERS)
        key = self.keys(builder, theirs)
        same = builder.binary(lambda a, b: CmpiOp(a, b, "eq"), key, my_key)
        earlier = builder.binary(arith.AndIOp, same, builder.below(place, my_place))
        first = builder.binary(arith.OrIOp, builder.below(key, my_key), earlier)
        counted = builder.all_of([first, *self.masked(scope, "others")])
        assert counted is not None
        terms = builder.cast(ExtUIOp, counted, i32)
        terms = builder.shaped(terms, self.shape("rows", "ranked", "others", "columns")) if self.laned else terms
        return self.reduced(scope, terms, "others", add)


class NarrowingBody(_Keys):
    """The places of the first k elements of a row, in any order."""

    def _compute(self, scope: Scope) -> None:
        builder = scope.builder
        blocks = builder.expr(self.by_name["steps"].blocks, scope.index)
        kept = builder.expr(dims_of(self.procedure.outputs[0].type)[1], scope.index)
        kept = builder.from_index(kept, i32)
        last = self._last_key(scope, blocks, kept)
        none = builder.const(0, i32)
        below = self._counts(scope, blocks, [last])[0]

        def step(inside: Scope, number: SSAValue, carried: list[SSAValue]) -> Sequence[SSAValue]:
            self._enter(inside, self.by_name["steps"], number)
            key, valid = self._block_keys(inside)
            made: list[SSAValue] = []
            for how, before in zip(("slt", "eq"), carried, strict=True):
                chosen = inside.builder.binary(lambda a, b, how=how: CmpiOp(a, b, how), key, last)
                chosen = inside.builder.all_of([chosen, *valid])
                assert chosen is not None
                made.append(self._write(inside, chosen, before, kept))
            return made

        # Those equal to the last key follow those below it.
        self.repeat(scope, blocks, [none, below], step)

    def _write(self, scope: Scope, chosen: SSAValue, before: SSAValue, kept: SSAValue) -> SSAValue:
        """Stores the places of chosen elements behind those `before`, as far as there is room; returns how many there
        are now."""
        builder = scope.builder
        ones = builder.cast(ExtUIOp, chosen, i32)
        upto = self.scanned(scope, ones, "steps", add)
        at = builder.binary(arith.SubiOp, add(builder, before, upto), builder.const(1, i32))
        room = builder.below(at, kept)
        where = self.at(scope, self.made[0], (ROWS, Expr.of("at"), COLUMNS), at=builder.to_index(at))
        place = builder.from_index(scope.index["steps"], i32)
        self.store(scope, where, place, [chosen, room])
        return add(builder, before, self.reduced(scope, ones, "steps", add))

    def _block_keys(self, scope: Scope) -> tuple[SSAValue, list[SSAValue]]:
        """Returns the keys of the current block, at least 32 bits wide, and the mask of its elements."""
        valid = self.masked(scope, "steps")
        value = self.load(scope, self.at(scope, self.source, (ROWS, STEPS, COLUMNS)), valid)
        key = self.keys(scope.builder, value)
        return (scope.builder.cast(ExtSIOp, key, i32) if tt.width_of(key.type) < 32 else key), valid

    def _last_key(self, scope: Scope, blocks: SSAValue, kept: SSAValue) -> SSAValue:
        """Returns the k-th lowest key of the row. With all digits found so far and 0 for the others, it is the highest
        key with fewer than k keys below it."""
        builder = scope.builder
        width = 8 * element_bytes(element_of(self.source.type))
        kind = IntegerType(max(width, 32))
        least = builder.const(-(1 << width - 1), kind)

        def digit(inside: Scope, number: SSAValue, carried: list[SSAValue]) -> Sequence[SSAValue]:
            inner = inside.builder
            # The lowest bit of the digit.
            number = inner.from_index(number, kind)
            shift = inner.binary(
                arith.SubiOp,
                inner.const(width - DIGIT, kind),
                inner.binary(arith.MuliOp, number, inner.const(DIGIT, kind)),
            )
            unit = inner.binary(arith.ShLIOp, inner.const(1, kind), shift)
            candidates = [
                add(inner, carried[0], inner.binary(arith.MuliOp, unit, inner.const(d, kind)))
                for d in range(1, 1 << DIGIT)
            ]
            counts = self._counts(inside, blocks, candidates)
            best = carried[0]
            for candidate, count in zip(candidates, counts, strict=True):
                best = inner.select(inner.below(count, kept), candidate, best)
            return [best]

        passes = builder.number(width // DIGIT)
        return self.repeat(scope, passes, [least], digit)[0]

    def _counts(self, scope: Scope, blocks: SSAValue, candidates: Sequence[SSAValue]) -> list[SSAValue]:
        """Returns how many keys of the row are below each candidate."""
        shape = self.shape("steps")
        zero = scope.builder.shaped(scope.builder.const(0, i32), shape)

        def step(inside: Scope, number: SSAValue, carried: list[SSAValue]) -> Sequence[SSAValue]:
            inner = inside.builder
            self._enter(inside, self.by_name["steps"], number)
            key, valid = self._block_keys(inside)
            made: list[SSAValue] = []
            for candidate, before in zip(candidates, carried, strict=True):
                counted = inner.all_of([inner.below(key, candidate), *valid])
                assert counted is not None
                made.append(add(inner, before, inner.cast(ExtUIOp, counted, i32)))
            return made

        found = self.repeat(scope, blocks, [zero] * len(candidates), step)
        return [self.reduced(scope, count, "steps", add) for count in found]


__all__ = ["DIGIT", "RankingBody", "ranking_bodies"]
