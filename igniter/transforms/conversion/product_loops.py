"""Makes the loops of a contraction around a micro-kernel: a part of `lower-to-loops`.

A contraction whose schedule has a `product` becomes a micro-kernel for each tile:

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

from xdsl.ir import Block, SSAValue

from igniter.analysis.structured.contractions import Contraction, contraction_of, offset_of, product_reason
from igniter.analysis.structured.guarded_sums import Spans, bounds
from igniter.analysis.structured.nest_bodies import tensor_behind
from igniter.analysis.structured.updates import UpdateEnd
from igniter.analysis.structured.visible_keys import keys_of_scores, keys_of_weights, last_row
from igniter.dialects.loop import AllocOp, ForOp, IfOp, LoadOp, NestOp, ReadOp, StoreOp, TileProductOp
from igniter.dialects.loop.attrs import INDIRECT_PREFIX
from igniter.dialects.loop.combiners import identity
from igniter.dialects.loop.panels import group_of, panel_lanes
from igniter.dialects.loop.schedule import Loop, Product
from igniter.dialects.loop.words import NO_WORDS
from igniter.dialects.sym import dims_of, element_of, memref_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, maximum, minimum
from igniter.dialects.sym.ranges import Ranges, simplify
from igniter.transforms.conversion.nest_loops import Level, NestLoops, Values, ranges_in


def loops_of(
    nest: NestOp,
    levels: Sequence[Level],
    buffers: Mapping[SSAValue, SSAValue],
    fresh: Callable[[str], str],
    ends: Mapping[SSAValue, UpdateEnd],
) -> NestLoops:
    """Returns the loops of a nest, around a micro-kernel if its schedule has a `product`."""
    product = nest.schedule.product if nest.schedule is not None else None
    if product is None:
        return NestLoops(nest, levels, buffers, fresh, ends)
    return ProductLoops(product, nest, levels, buffers, fresh, ends)


class ProductLoops(NestLoops):
    """Lowers one contraction by a micro-kernel."""

    def __init__(
        self,
        product: Product,
        nest: NestOp,
        levels: Sequence[Level],
        buffers: Mapping[SSAValue, SSAValue],
        fresh: Callable[[str], str],
        ends: Mapping[SSAValue, UpdateEnd],
    ):
        super().__init__(nest, levels, buffers, fresh, ends)
        self.product = product

    def lower(self, block: Block) -> None:
        """Adds a micro-kernel for every tile, and loops that copy the tile to the result, at the end of `block`."""
        product = self.product
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
        if not (adds or own_sum or guarded):
            inner = self._to_visible_keys(contraction, product, {**values, **tile_at}, extents, inner)
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

    def _to_visible_keys(
        self, contraction: Contraction, product: Product, values: Mapping[str, Expr], extents: list[Expr], block: Block
    ) -> Block:
        """Limits the `extents` of the scores or of the weighted values of an attention to the keys that the last row of
        a tile sees; returns the block in which they hold."""
        scores, weights = keys_of_scores(self.nest), keys_of_weights(contraction.a.source)
        clause = self.clauses[0]
        for keys, places, along in (
            (scores, clause.subscripts, product.columns),
            (weights, contraction.a.subscripts, product.depth),
        ):
            if keys is None or not keys.sources <= self.buffers.keys():
                continue
            if places[keys.row] != Expr.of(product.rows or "") or places[keys.key] != Expr.of(along):
                continue
            first = values.get(along, ZERO)
            at = last_row(keys, [s.substitute({**values, along: first}) for s in places], extents[0])
            mapping: dict[SSAValue, SSAValue] = {}
            for op in keys.operations:
                copied = NestLoops(keys.nest, [], self.buffers, self.fresh)
                copied.copy_op(op, at, block, mapping, ranges_in(block))
            last, body, name = Expr.of(f"{INDIRECT_PREFIX}0"), Block(), self.fresh("seen")
            block.add_op(ForOp(name, last + 1, last + 2, body, indices=[mapping[keys.bound]]))
            seen = maximum(ZERO, Expr.of(name) - first)
            if along == product.depth:
                extents[3] = minimum(extents[3], seen)
            else:
                extents[1] = minimum(extents[1], seen.ceildiv(extents[2]))
            block = body
        return block

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
