"""Makes the loops of one nest from its schedule: a part of `lower-to-loops`.

    loop.nest "dot" [i: parallel 64, j: parallel 96, k: reduction 768] schedule [
      i by 8, k by 256, j by 32, k, i unroll, j vector 16 unroll] ...
becomes
    loop.for i = 0 to 8 {
      %sums = loop.alloc "dot" : memref<8x96xf32, "local">                  with 0 in each element
      loop.for k = 0 to 3 reduction {
        loop.for j = 0 to 3 {
          %tile = loop.alloc "dot" : memref<8x32xf32, "register">           with 0 in each element
          loop.for k1 = 0 to 256 reduction { .. loop.accumulate add .., %tile[i1, j1] }
          .. loop.accumulate add .., %sums[i2, 32*j + j2]
        }
      }
      .. store to the result
    }

If parallel loops are inside a reduction, its sums are in a buffer with one element per point of those loops, in
registers if all of them are unrolled, else in memory of the task; inner reductions first sum locally. With `into
result` the result itself is that buffer, and the first iteration writes it.

A loop over blocks with a `tail` stays one loop here, with its `by`: `tile-loops` makes the blocks after the
nests of a group are fused, and `sink-loops` moves the loop inside a block to its place. A contraction whose
schedule has a `product` becomes a micro-kernel for each tile (`product_loops.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Block, Operation, SSAValue

from igniter.analysis.scheduled.loop_accesses import at_most_constants, enclosing_loops, loop_range
from igniter.analysis.structured.updates import UpdateEnd
from igniter.dialects.loop import (
    AccumulateOp,
    AllocOp,
    Axis,
    Combiner,
    ComputeOp,
    ForOp,
    IfOp,
    IndexOp,
    LoadOp,
    NestOp,
    ReadOp,
    StoreOp,
    YieldOp,
)
from igniter.dialects.loop.combiners import identity
from igniter.dialects.loop.schedule import Loop
from igniter.dialects.loop.words import NO_WORDS, LoopWords, carried, without
from igniter.dialects.sym import element_of, memref_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, maximum, minimum
from igniter.dialects.sym.ranges import Ranges, simplify
from igniter.errors import IgniterError
from igniter.transforms.conversion.schedule_words import inside_tiles, tile_words

Values = dict[str, Expr]
"""The value of each axis at a point of the code, for the axes whose loops surround it."""


@dataclass(frozen=True)
class Level:
    """One loop of a nest."""

    axis: Axis
    loop: Loop
    words: LoopWords
    """The words left on the loop."""
    around: int | None
    """The block size of the enclosing loop over the same axis; None for the axis's first loop."""

    @property
    def is_reduction(self) -> bool:
        return self.axis.kind == "reduction"

    def extent(self, values: Mapping[str, Expr]) -> Expr:
        """Returns the number of elements of the axis that the loop covers."""
        whole = self.axis.extent
        if self.around is None:
            return whole
        if whole.constant is not None and whole.constant % self.around == 0:
            return Expr.of(self.around)
        return minimum(Expr.of(self.around), whole - values[self.axis.name])

    def most(self) -> int | None:
        """Returns the largest such number, if it is constant; else None."""
        return self.axis.extent.constant if self.around is None else self.around

    def iterations(self, values: Mapping[str, Expr]) -> Expr:
        if self.around is None or self.loop.by == 1:
            return self.extent(values).ceildiv(self.loop.by)
        whole, blocks = self.axis.extent, Expr.of(self.around // self.loop.by)
        if whole.constant is not None and whole.constant % self.around == 0:
            return blocks
        return minimum(blocks, (whole - values[self.axis.name]).ceildiv(self.loop.by))

    def open(
        self,
        values: Values,
        block: Block,
        fresh: Callable[[str], str],
        within: tuple[Expr, Expr] | None = None,
    ) -> Block:
        """Adds the loop at the end of `block`, and the value of its axis to `values`. Returns its body. `within`: the
        range of its iterations, instead of all."""
        body = Block()
        name = fresh(self.axis.name)
        first, end = within or (ZERO, self.iterations(values))
        if self.loop.into_result:
            end = maximum(ONE, end)  # It writes the result, even if there are no elements.
        values[self.axis.name] = values.get(self.axis.name, ZERO) + Expr.of(name) * self.loop.by
        block.add_op(ForOp(name, first, end, body, reduction=self.is_reduction, words=self.words))
        return body


def levels_of(op: ComputeOp) -> list[Level]:
    """Returns the loops of a nest in the order of its schedule; without one, in the order of the axes, parallel ones
    first."""
    op.verify_schedule()
    by_name = {a.name: a for a in op.axes}
    if op.schedule is None:
        return [Level(a, Loop(a.name), NO_WORDS, None) for a in sorted(op.axes, key=lambda a: a.kind == "reduction")]
    loops = [loop for loop in op.schedule.loops if loop.axis in by_name]
    inner = inside_tiles(loops)
    words = tile_words(op, loops, inner)
    levels: list[Level] = []
    sizes: dict[str, int] = {}
    for k, loop in enumerate(loops):
        if k not in inner.values():
            whole = replace(loop, by=1) if k in inner else loop
            levels.append(Level(by_name[loop.axis], whole, words.get(k, carried(loop)), sizes.get(loop.axis)))
            sizes[loop.axis] = loop.by
    return levels


# -- loops ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sums:
    """The partial sums of one clause: a buffer over the elements of `axes`, starting at `base`."""

    buffer: SSAValue
    axes: tuple[str, ...]
    base: Mapping[str, Expr]

    def place(self, values: Mapping[str, Expr]) -> list[Expr]:
        return [values[n] - self.base.get(n, ZERO) for n in self.axes]


class NestLoops:
    """Lowers one nest; `fresh` names loops, and `buffers` are those of the kernel's tensors."""

    def __init__(
        self,
        nest: NestOp,
        levels: Sequence[Level],
        buffers: Mapping[SSAValue, SSAValue],
        fresh: Callable[[str], str],
        ends: Mapping[SSAValue, UpdateEnd] = {},
    ):
        self.nest, self.levels, self.buffers, self.fresh = nest, list(levels), buffers, fresh
        self.ends = {tensor: end for tensor, end in ends.items() if end.limits(nest, tensor)}
        self.clauses = nest.yield_op.clauses
        self.first: Expr | None = None
        """An expression that is 0 in the iterations that write the result first; later ones add to it."""

    def lower(self, block: Block) -> None:
        """Adds the loops at the end of `block`."""
        self._run(0, {}, block, None)

    def _run(self, at: int, values: Values, block: Block, sums: Sequence[Sums] | None) -> None:
        """Adds the loops from number `at` on; the enclosing reductions accumulate in `sums`."""
        while at < len(self.levels) and not self.levels[at].is_reduction:
            block = self.levels[at].open(values, block, self.fresh)
            at += 1
        if at < len(self.levels) and self.levels[at].loop.into_result:
            if sums is not None:
                name = self.levels[at].axis.name
                raise self._refusal(f"loop '{name}' adds to the result, but is inside another reduction")
            block = self.levels[at].open(values, block, self.fresh)
            self.first = values[self.levels[at].axis.name]
            self._run(at + 1, values, block, None)
            return
        end = at
        while end < len(self.levels) and self.levels[end].is_reduction:
            end += 1
        if any(level.loop.into_result for level in self.levels[at:end]):
            raise self._refusal("the loop that adds to the result must be the outermost reduction")
        if at == end and (sums is not None or self.first is not None):
            self._add(self._body(values, block), values, block, sums)
            return
        if at == end and all(c.combiner == "none" for c in self.clauses):
            self._write(self._body(values, block), values, block)
            return
        own = [self._sums(k, at, end, values, block) for k in range(len(self.clauses))]
        inner, inside = block, dict(values)
        for level in self.levels[at:end]:
            inner = level.open(inside, inner, self.fresh)
        if at == end:
            self._add(self._body(inside, inner), inside, inner, own)
        else:
            self._run(end, inside, inner, own)
        self._close(own, end, values, block, sums)

    def _sums(self, k: int, at: int, end: int, values: Mapping[str, Expr], block: Block) -> Sums:
        """Allocates a buffer for the sums of a clause over the loops from `at` to `end`, and fills it with the
        identity."""
        inside = self._inside(end)
        dims: list[int] = []
        for first, _ in inside:
            most = first.most()
            if most is None:
                raise self._refusal(
                    f"loop '{first.axis.name}' iterates over {first.axis.extent} elements inside the reduction "
                    f"'{self.levels[at].axis.name}', whose partial sums need a constant size: split it into blocks "
                    "outside the reduction, or give the reduction 'into result'"
                )
            dims.append(most)
        unrolled = all(level.loop.unroll == 0 for level in self.levels[end:] if not level.is_reduction)
        element = element_of(self.nest.outputs[k].type)
        space = "register" if unrolled else "local"
        alloc = AllocOp(self.nest.label, memref_of(element, dims, space))
        zero = identity(self.clauses[k].combiner, element)
        block.add_ops([alloc, zero])
        places: list[Expr] = []
        for (_, last), most in zip(inside, dims, strict=True):
            block = self._plain_loop(last, Expr.of(most), places, block)
        block.add_op(StoreOp(zero.result, alloc.result, places))
        names = tuple(first.axis.name for first, _ in inside)
        return Sums(alloc.result, names, {n: values.get(n, ZERO) for n in names})

    def _inside(self, at: int) -> list[tuple[Level, Level]]:
        """Returns the parallel axes of the loops from `at` on, each with its first and its last loop; the vector is
        last."""
        found: dict[str, tuple[Level, Level]] = {}
        for level in self.levels[at:]:
            if not level.is_reduction:
                name = level.axis.name
                found[name] = (found[name][0] if name in found else level, level)
        return sorted(found.values(), key=lambda pair: pair[1].loop.vector > 0)

    def _plain_loop(self, like: Level, end: Expr, places: list[Expr], block: Block) -> Block:
        """Adds a loop with the directives of another, for the code before or after that loop."""
        name = self.fresh(like.axis.name)
        places.append(Expr.of(name))
        body = Block()
        words = without(carried(like.loop), "threads", "fuse")
        block.add_op(ForOp(name, 0, end, body, words=words))
        return body

    def _close(
        self, own: Sequence[Sums], end: int, values: Mapping[str, Expr], block: Block, sums: Sequence[Sums] | None
    ) -> None:
        """Stores sums in the result, or adds them to the sums of the enclosing loops."""
        inside = self._inside(end)
        for k, mine in enumerate(own):
            places: list[Expr] = []
            inner, here = block, dict(values)
            for first, last in inside:
                inner = self._plain_loop(last, first.extent(values), places, inner)
                here[first.axis.name] = values.get(first.axis.name, ZERO) + places[-1]
            total = LoadOp(mine.buffer, mine.place(here))
            inner.add_op(total)
            self._put(k, total.result, here, inner, sums)

    def _add(
        self,
        mapping: Mapping[SSAValue, SSAValue],
        values: Mapping[str, Expr],
        block: Block,
        sums: Sequence[Sums] | None,
    ) -> None:
        for k, clause in enumerate(self.clauses):
            self._put(k, mapping.get(clause.value, clause.value), values, block, sums)

    def _write(self, mapping: Mapping[SSAValue, SSAValue], values: Mapping[str, Expr], block: Block) -> None:
        for k, clause in enumerate(self.clauses):
            target = [s.substitute(values) for s in clause.subscripts]
            block.add_op(StoreOp(mapping.get(clause.value, clause.value), self.buffers[self.nest.outputs[k]], target))

    def _put(
        self, k: int, value: SSAValue, values: Mapping[str, Expr], block: Block, sums: Sequence[Sums] | None
    ) -> None:
        """Adds a value to the enclosing sums, or to the result, which the first iteration writes."""
        clause = self.clauses[k]
        if sums is not None:
            block.add_op(AccumulateOp(clause.combiner, value, sums[k].buffer, sums[k].place(values)))
            return
        target = [s.substitute(values) for s in clause.subscripts]
        block.add_ops(self.to_result(clause.combiner, value, self.buffers[self.nest.outputs[k]], target))

    def to_result(
        self, combiner: Combiner, value: SSAValue, buffer: SSAValue, target: Sequence[Expr]
    ) -> list[Operation]:
        """Returns the ops that write a value, or add it after the first iteration."""
        if self.first is None:
            return [StoreOp(value, buffer, target)]
        write, add = StoreOp(value, buffer, target), AccumulateOp(combiner, value, buffer, target)
        return [IfOp([-self.first], Block([write])), IfOp([self.first - 1], Block([add]))]

    def _refusal(self, reason: str) -> IgniterError:
        return IgniterError(f"lower-to-loops: nest '{self.nest.label}': {reason}")

    def _body(self, values: Mapping[str, Expr], block: Block) -> dict[SSAValue, SSAValue]:
        mapping: dict[SSAValue, SSAValue] = {}
        ranges = ranges_in(block)
        for op in self.nest.block.ops:
            if not isinstance(op, YieldOp):
                self.copy_op(op, values, block, mapping, ranges)
        return mapping

    def copy_op(
        self,
        op: Operation,
        values: Mapping[str, Expr],
        block: Block,
        mapping: dict[SSAValue, SSAValue],
        ranges: Ranges,
    ) -> None:
        """Adds a copy of an op of the body to a block, and its results to `mapping`. `ranges` are those of the axes
        around the block."""
        copy: Operation
        if isinstance(op, ReadOp):
            # For a blocked axis, quotients by the block size simplify to the index of the block.
            subscripts = [simplify(s.substitute(values), ranges) for s in op.subscripts]
            indices = [mapping[i] for i in op.indices]
            guards = [g.substitute(values) for g in op.guards]
            if op.source in self.ends and not op.indices:
                end, indices = self._row_end(op, values, block, ranges)
                guards.append(end - 1 - subscripts[self.ends[op.source].dim])
            copy = LoadOp(
                self.buffers[op.source],
                subscripts,
                indices=indices,
                guards=guards,
                otherwise=None if op.otherwise is None else mapping[op.otherwise],
            )
        elif isinstance(op, IndexOp):
            copy = IndexOp(op.value.substitute(values))
        else:
            copy = op.clone(mapping)
        copy.location = op.location
        block.add_op(copy)
        for old, new in zip(op.results, copy.results, strict=True):
            new.name_hint = old.name_hint
            mapping[old] = new

    def _row_end(
        self, read: ReadOp, values: Mapping[str, Expr], block: Block, ranges: Ranges
    ) -> tuple[Expr, list[SSAValue]]:
        """Adds ops that find the end of the rows for a read; returns it, with its indirect operands."""
        end = self.ends[read.source]
        mapping: dict[SSAValue, SSAValue] = {}
        at = end.axes_at([s.substitute(values) for s in read.subscripts])
        for op in end.operations:
            copied = NestLoops(end.nest, [], self.buffers, self.fresh)
            copied.copy_op(op, at, block, mapping, ranges)
        return end.row, [mapping.get(i, i) for i in end.indices]


def ranges_in(block: Block) -> Ranges:
    """Returns the ranges of the axes around a block; partial blocks count as whole ones."""
    loop = block.parent_op()
    loops = [*enclosing_loops(loop), loop] if isinstance(loop, ForOp) else []
    return at_most_constants(Ranges({x.axis: loop_range(x) for x in loops}))
