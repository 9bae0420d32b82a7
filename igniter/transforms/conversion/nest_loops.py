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
nests of a group are fused, and `sink-loops` moves the loop inside a block to its place. A contraction whose schedule
has a `product` becomes a micro-kernel for each tile:

    loop.nest "matmul" [i: parallel m, j: parallel 3072, k: reduction 768] schedule [
      j by 48, i by 8, product(i, j, k) tile [8, 3], i, j vector 16] ...
becomes
    loop.for j = 0 to 64 {
      loop.for i = 0 to (m + 7) floordiv 8 {
        %t = loop.alloc "matmul" : memref<8x48xf32, "local">
        loop.tile_product %t[r, 16*p + l] = %a[8*i + r, k] * %b[3*j + p, k, l] over r = .., p = 3, ..
        loop.for i1 = 0 to min(8, m - 8*i) { loop.for j1 = 0 to 48 { %v = loop.load %t[i1, j1] .. } }
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from xdsl.ir import Block, Operation, SSAValue

from igniter.analysis.scheduled.loop_accesses import at_most_constants, enclosing_loops, loop_range
from igniter.analysis.structured.contractions import Contraction, contraction_of, offset_of, product_reason
from igniter.analysis.structured.guarded_sums import Spans, bounds
from igniter.analysis.structured.nest_bodies import tensor_behind
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
    TileProductOp,
    YieldOp,
)
from igniter.dialects.loop.combiners import identity
from igniter.dialects.loop.panels import group_of, panel_lanes
from igniter.dialects.loop.schedule import Loop, Product
from igniter.dialects.loop.words import NO_WORDS, LoopWords, carried, without
from igniter.dialects.sym import dims_of, element_of, memref_of
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
        product = self.nest.schedule.product if self.nest.schedule is not None else None
        if product is not None:
            self._product(product, block)
        else:
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

    # -- micro-kernels ------------------------------------------------------------------------------------------------

    def _product(self, product: Product, block: Block) -> None:
        """Adds a micro-kernel for every tile of a contraction, and loops that copy the tile to the result."""
        nest, contraction = self.nest, contraction_of(self.nest, kernel=product.kernel)
        place = next((k for k, x in enumerate(self.levels) if x.axis.name in product.axes and x.loop.by == 1), None)
        outside = self.levels if place is None else self.levels[:place]
        sizes = {x.axis.name: x.loop.by for x in outside}
        reason = product_reason(nest, product, sizes)
        if reason is not None or isinstance(contraction, str):
            raise self._refusal(f"it has a schedule for a product, but {reason}")
        # Reductions directly around the micro-kernel add to its tile, outer ones to the result.
        around = len(outside)
        while around and outside[around - 1].is_reduction and not outside[around - 1].loop.into_result:
            around -= 1
        values: Values = {}
        for level in outside[:around]:
            block = level.open(values, block, self.fresh)
            if level.is_reduction:
                self._open_sum(level, values, product, contraction.guarded)
        result = nest.outputs[0]
        lanes = panel_lanes(element_of(result.type))
        height, panels = product.tile
        tile = AllocOp(nest.label, memref_of(element_of(result.type), [height, panels * lanes], "local"))
        tile.result.name_hint = result.name_hint
        block.add_op(tile)
        # The innermost is the micro-kernel's own outer sum, if both factors have constant strides along it.
        last = outside[-1].axis.name if around < len(outside) else ""
        guarded = contraction.guarded
        own_sum = last if last not in {"", *guarded} and _sums_in_rounds(nest, contraction, outside[-1]) else ""
        whole = len(outside) - bool(own_sum)
        inside, inner = dict(values), block
        adds = around < whole or product.rows in guarded
        if adds:
            self._clear(tile, self.levels[len(outside) :], block)
        in_tile: dict[str, tuple[Expr, Expr]] = {}
        if product.rows in guarded:
            first_row = values[product.rows]
            in_tile[product.rows] = first_row, first_row + self._left(product.rows, sizes[product.rows], values, 1) - 1
        for k, level in enumerate(outside[around:whole], around):
            within = None
            if level.axis.name in guarded:
                within = self._within(level, outside[k + 1 : whole], contraction.a.guards, inside, in_tile)
            inner = level.open(inside, inner, self.fresh, within)
        left = {n: self._left(n, sizes[n], inside, group_of(contraction.kind)) for n in product.axes if n in sizes}
        names = [self.fresh(n) for n in ("r", "p", "l", "k", *("s" * bool(own_sum)))]
        row, panel, lane, depth = map(Expr.of, names[:4])
        rows = left.get(product.rows, ONE)
        if product.rows in guarded:
            of_rows = {**inside, product.rows: inside[product.rows] + row}
            first_row, end = bounds([g.substitute(of_rows) for g in contraction.a.guards], names[0], rows, {})
            row, rows, some = row + first_row, end - first_row, Block()
            inner.add_op(IfOp([rows - 1], some))
            inner = some
        at: Values = {**inside, product.depth: inside.get(product.depth, ZERO) + depth}
        tile_at = {n: values.get(n, ZERO) for n in (product.rows, product.columns)}
        at[product.columns] = tile_at[product.columns] + panel * lanes + lane
        if product.rows:
            at[product.rows] = tile_at[product.rows] + row
        if own_sum:
            at[own_sum] = Expr.of(names[4])
        deep = left.get(product.depth, nest.axis(product.depth).extent)
        extents = [rows, left[product.columns].ceildiv(lanes), Expr.of(lanes), deep]
        extents += [nest.axis(own_sum).extent] if own_sum else []
        own = {n: (ZERO, e) for n, e in zip(names, extents, strict=True)}
        ranges = Ranges({**nest.axes_attr.ranges.axes, **own})
        subscripts: list[list[Expr]] = [[row, panel * lanes + lane]]
        for read in (contraction.a, contraction.b):
            subscripts.append([simplify(s.substitute(at), ranges) for s in read.subscripts])
        buffers = [tile.result, *(self.buffers[r.source] for r in (contraction.a, contraction.b))]
        first = {**values, own_sum: ZERO} if own_sum else values
        fetch = self._next_panels(contraction, product, outside[:whole], first, sizes)
        if contraction.b.source in self.ends:
            inner, extents[3] = self._to_row_end(contraction.b, at, deep, values.get(product.depth, ZERO), inner)
        inner.add_op(
            TileProductOp(
                buffers,
                subscripts,
                names,
                extents,
                product.tile,
                add=adds,
                fetch=fetch,
                kernel=product.kernel,
            )
        )
        for level in self.levels[len(outside) :]:
            block = level.open(values, block, self.fresh)
        value = LoadOp(tile.result, [values.get(n, ZERO) - tile_at[n] for n in (product.rows, product.columns)])
        target = [s.substitute(values) for s in self.clauses[0].subscripts]
        combiner = self.clauses[0].combiner
        block.add_ops([value, *self.to_result(combiner, value.result, self.buffers[result], target)])

    def _to_row_end(self, read: ReadOp, at: Values, depth: Expr, first: Expr, block: Block) -> tuple[Block, Expr]:
        """Returns a block, inside a loop of one iteration whose axis is the end of the rows, and the depth of a product
        that ends there. `first` is the row where the product begins."""
        end, indices = self._row_end(read, at, block, ranges_in(block))
        body, name = Block(), self.fresh("end")
        block.add_op(ForOp(name, end, end + 1, body, indices=indices))
        return body, minimum(depth, maximum(ZERO, Expr.of(name) - first))

    def _within(
        self,
        level: Level,
        inner: Sequence[Level],
        guards: Sequence[Expr],
        values: Mapping[str, Expr],
        in_tile: Spans,
    ) -> tuple[Expr, Expr]:
        """Returns the range of a reduction around a micro-kernel in which the guards of the left factor can hold for
        one of the rows `in_tile`. `inner` are the loops inside."""
        name = level.axis.name
        if level.loop != Loop(name) or level.around is not None:
            raise self._refusal(f"loop '{name}' has guards, so it must be a plain loop over the whole axis")
        spans = {x.axis.name: (ZERO, x.axis.extent - 1) for x in inner}
        own = [g.substitute({n: v for n, v in values.items() if n not in in_tile}) for g in guards]
        return bounds(own, name, level.axis.extent, {**spans, **in_tile})

    def _open_sum(self, level: Level, values: Mapping[str, Expr], product: Product, guarded: Collection[str]) -> None:
        """Starts a reduction around the tiles of a product: the sum of each of its iterations is added to the
        result."""
        name = level.axis.name
        if name in guarded:
            raise self._refusal(f"loop '{name}' has guards, so it cannot add to the result")
        if not level.loop.into_result:
            what = (
                "splits the depth of a product"
                if name == product.depth
                else ("is a reduction around the tiles of a product")
            )
            raise self._refusal(
                f"loop '{name}' {what}, so tiles must be added to the result: give it 'into result', or put it "
                "directly before the product, where its iterations add to the tile"
            )
        self.first = values[name]

    def _clear(self, tile: AllocOp, moves: Sequence[Level], block: Block) -> None:
        """Adds loops that fill a tile with the identity; its columns have the words of the loops that copy them."""
        element = element_of(tile.result.type)
        zero = identity(self.clauses[0].combiner, element)
        block.add_op(zero)
        like = next((level.words for level in moves if level.loop.vector), NO_WORDS)
        places: list[Expr] = []
        for k, dim in enumerate(dims_of(tile.result.type)):
            places.append(Expr.of(self.fresh("c")))
            body = Block()
            block.add_op(ForOp(str(places[-1]), 0, dim, body, words=like if k else NO_WORDS))
            block = body
        block.add_op(StoreOp(zero.result, tile.result, places))

    def _left(self, name: str, size: int, values: Mapping[str, Expr], group: int) -> Expr:
        """Returns the elements of a block of an axis; `group` steps of depth are multiplied at a time."""
        extent = self.nest.axis(name).extent
        if self.nest.axis(name).kind == "reduction" and size % group:
            raise self._refusal(
                f"a micro-kernel takes {group} depth steps at a time, and blocks of {size} are not a multiple of that"
            )
        if extent.constant is not None and extent.constant % size == 0:
            return Expr.of(size)
        return minimum(Expr.of(size), extent - values[name])

    def _next_panels(
        self,
        contraction: Contraction,
        product: Product,
        outside: Sequence[Level],
        values: Mapping[str, Expr],
        sizes: Mapping[str, int],
    ) -> list[Expr] | None:
        """Returns the place of the panels for the next tile of columns: the first tiles of rows prefetch one each. None
        if there is no prefetch."""
        if not product.rows or [x.axis.name for x in outside[-2:]] != [product.columns, product.rows]:
            return None
        if _is_made_beside(contraction):
            return None
        number = minimum(values[product.rows] // sizes[product.rows], Expr.of(product.tile[1] - 1))
        lanes = sizes[product.columns] // product.tile[1]
        column = values[product.columns] + sizes[product.columns] + number * lanes
        at = {**values, product.columns: column, product.depth: values.get(product.depth, ZERO)}
        return [s.substitute(at) for s in contraction.b.subscripts]


def _is_made_beside(contraction: Contraction) -> bool:
    """True if a nest computes the right factor inside the contraction's loops: the next tile's panels do not exist
    yet."""
    nest, maker = contraction.b.parent_op(), tensor_behind(contraction.b.source).owner
    if not isinstance(nest, NestOp) or not isinstance(maker, NestOp):
        return False
    ours, theirs = (
        {loop.fuse for loop in each.schedule.loops if loop.fuse} if each.schedule is not None else set[str]()
        for each in (nest, maker)
    )
    return not ours.isdisjoint(theirs)


def _sums_in_rounds(nest: NestOp, contraction: Contraction, level: Level) -> bool:
    """True if a reduction directly around a micro-kernel can be its outer sum: a plain loop over a whole axis, along
    which both factors have constant strides."""
    if level.loop != Loop(level.axis.name) or level.around is not None:
        return False
    factors, ranges = (contraction.a, contraction.b), nest.axes_attr.ranges
    return all(offset_of(nest, read, {}, ranges).coefficient(level.axis.name) is not None for read in factors)


def ranges_in(block: Block) -> Ranges:
    """Returns the ranges of the axes around a block; partial blocks count as whole ones."""
    loop = block.parent_op()
    loops = [*enclosing_loops(loop), loop] if isinstance(loop, ForOp) else []
    return at_most_constants(Ranges({x.axis: loop_range(x) for x in loops}))
