"""Winograd's convolution: the lowering of a Conv marked by the pass `winograd`.

    image [n, c, h, w]  ->  channels last, with zeros around   [n, h', w', c]            no nest, if it is stored so
                        ->  B^T d B of every tile of a band    [n, i, j, point, tile, c] a procedure
                        ->  times the weight                   [n, i, j, point, tile, o] products, by micro-kernels
                        ->  A^T m A of every tile              [n, i, j, p, q, a, b, o]  a procedure
                            or, where that is not finite, the sums of its windows
                        ->  results                            [n, o, h, w]              a nest, with the bias

A *band* is a block of `rows` x `columns` tiles, or of `rows` full rows of tiles; `i`, `j` count bands. All intermediate
values of a band can stay in the cache until its results are complete, because all four steps iterate over bands first
(`igniter/schedules/bands.py`). Vectors run along the channels. The last bands may extend past the image, with tiles
of zeros whose results are unused.

A transform mixes the elements of a tile, so a non-finite element reaches results whose windows do not contain it, and
sums may overflow that would not in a direct sum. A non-finite element in a tile always makes some result of the tile
non-finite: for each window that contains the element, one of its points contributes, and no weight cancels an infinity.
A tile with finite results only is therefore correct; the results of any other tile are recomputed as sums over their
windows.

The weight comes transformed (`G g G^T`) and in panels, as a table of the node, computed when a session is created
(`make-at-load`) or when the model is written. The node stays a Conv with the plain weight: ONNX Runtime runs it if no
kernel can be made, and a kernel reads that weight for the recomputed sums, with output channels last (`pack-weights`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import DenseArrayBase, i64
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.fusion import UnpackOp
from igniter.dialects.layouts import Layout, Part
from igniter.dialects.loop.attrs import element_bytes
from igniter.dialects.loop.panels import panel_lanes
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.made_weights import Recipe
from igniter.dialects.onnx.names import op_name
from igniter.dialects.onnx.ops.minimal_filters import FILTERS, TAPS, MinimalFilter, both_axes
from igniter.dialects.onnx.ops.rules import weight_operand
from igniter.dialects.onnx.ops.sliding import Slide
from igniter.dialects.onnx.ops.tile_weights import transform_kernel
from igniter.dialects.onnx.registry import PADDING_ATTRIBUTE, WINOGRAD_ATTRIBUTE
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, mod, product
from igniter.dialects.sym.proofs import proven
from igniter.dialects.sym.ranges import NO_RANGES

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

TABLE = "winograd"
"""The name of the node's table."""

LAST_CHANNELS = (2, 3, 1, 0)
"""The order of the dims of the plain weight for sums over windows, with vectors along the channels."""


@dataclass(frozen=True)
class Tiling:
    """The algorithm of a marked node: a filter, and the tiles of a band."""

    filter: MinimalFilter
    rows: int
    columns: int
    """The tiles across a band; 0: all tiles in a row of the image."""

    @property
    def step(self) -> tuple[int, int]:
        """The results of a band along each axis; across a band as wide as the image, those of one tile."""
        return self.rows * self.filter.results, max(1, self.columns) * self.filter.results

    @property
    def is_whole(self) -> bool:
        """True if a band is as wide as the image."""
        return not self.columns

    def across(self, results: Expr) -> Expr:
        """Returns the tiles across a band, for `results` results in a row of the image."""
        return results.ceildiv(self.filter.results) if self.is_whole else Expr.of(self.columns)

    def bands(self, axis: int, results: Expr) -> Expr:
        """Returns the number of bands along an axis of `results` results."""
        return ONE if axis == 1 and self.is_whole else results.ceildiv(self.step[axis])

    def reach(self, axis: int, results: Expr) -> Expr:
        """Returns the extent of an image read by all tiles along an axis of `results` results."""
        return results.ceildiv(self.step[axis]) * self.step[axis] + (TAPS - 1)

    def behind(self, axis: int, slide: Slide) -> Expr:
        """Returns the padding after an image along an axis that keeps all tiles in bounds; for a size known only at run
        time, its constant maximum."""
        exact = self.reach(axis, slide.count) - slide.size - slide.low
        return exact if exact.constant is not None else slide.high + (self.step[axis] - 1)

    def to_attr(self) -> Attribute:
        """Returns the attribute that marks the node."""
        return DenseArrayBase.from_list(i64, [self.filter.results, self.rows, self.columns])


def tiling_of(op: OnnxOp) -> Tiling | None:
    """Returns the tiling of a node; `None` if it is not marked."""
    mark = op.attributes.get(WINOGRAD_ATTRIBUTE)
    if not isinstance(mark, DenseArrayBase):
        return None
    results, rows, columns = (int(v) for v in mark.get_values())
    return Tiling(FILTERS[results], rows, columns)


# -- the weight -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Transformed:
    """The values of a weight `[o, c, 3, 3]` at the points of a filter, in panels: `[point, panel, c, lane]`."""

    source: Weight
    filter: MinimalFilter

    @property
    def lanes(self) -> int:
        return panel_lanes(self.source.element_type)

    @property
    def shape(self) -> tuple[int, ...]:
        outs, channels = self.source.shape[:2]
        return (self.filter.size**2, -(-outs // self.lanes), channels, self.lanes)

    def compute(self) -> np.ndarray[Any, Any]:
        """Returns the panels, with zeros for missing columns of the last one."""
        plain = self.source.array()
        _, panels, _, lanes = self.shape
        made = np.zeros(self.shape, plain.dtype)
        least = float(np.finfo(plain.dtype).tiny)
        # Panel by panel: all values in f64 at once would take eight times the memory of the weight.
        for panel in range(panels):
            columns = plain[panel * lanes : (panel + 1) * lanes]
            taps = np.ascontiguousarray(columns.transpose(LAST_CHANNELS), dtype=np.float64)
            for point, values in enumerate(self.filter.at_points(taps, least)):
                made[point, panel, :, : len(columns)] = values
        return made

    def recipe(self) -> Recipe:
        """Returns the computation of the same panels by a kernel, from the weight with output channels last."""
        element, outs = self.source.element_type, self.source.shape[0]
        full = outs % self.lanes == 0
        name = f"tile_weights_{self.filter.results}_{element}{'' if full else '_part'}"
        build = partial(transform_kernel, name, self.filter, element, self.lanes, full)
        return Recipe(self.source, Layout(tuple(map(Part, LAST_CHANNELS))), name, build)


def winograd_tables(op: OnnxOp) -> Mapping[str, Weight]:
    """Returns the transformed weight of a marked node."""
    found, plain = tiling_of(op), weight_operand(op, 1)
    if found is None or plain is None:
        return {}
    derivation = Transformed(plain, found.filter)
    return {TABLE: Weight(derivation.shape, plain.element_type, derivation=derivation)}


def tile_weight_bytes(op: OnnxOp) -> int:
    """Returns the bytes of the transformed weight of a marked node; 0 if its size is unknown."""
    found, weight = tiling_of(op), op.operands[1].type
    pairs = product(dims_of(weight)[:2]).constant
    return 0 if found is None or pairs is None else found.filter.size**2 * pairs * element_bytes(element_of(weight))


# -- nests ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Bands:
    """The bands of an image: `[batch, down, across]`, each with the same number of tiles."""

    tiling: Tiling
    dims: tuple[Expr, Expr, Expr]
    columns: Expr

    @property
    def tiles(self) -> Expr:
        return self.columns * self.tiling.rows

    @property
    def points(self) -> int:
        return self.tiling.filter.size**2


def convolve_by_tiles(ctx: Lowering, tiling: Tiling, slides: Sequence[Slide]) -> SSAValue:
    """Returns the convolution of operand 0 with the node's table, plus the bias, operand 2, as an image."""
    out = ctx.out_dims()
    down, across = (tiling.bands(axis, size) for axis, size in enumerate(out[2:]))
    bands = _Bands(tiling, (out[0], down, across), tiling.across(out[3]))
    image, offsets = _image(ctx, tiling, slides)
    values = _of_input(ctx, bands, image, offsets)
    return _results(ctx, bands, _of_products(ctx, bands, _multiplied(ctx, bands, values, out[1]), image, offsets))


def _image(ctx: Lowering, tiling: Tiling, slides: Sequence[Slide]) -> tuple[SSAValue, tuple[Expr, ...]]:
    """Returns the image, channels last, zero-padded to everything read by tiles, and the offset of the first tile in
    it. An image already stored with enough padding (`choose-layouts`) is used directly: the nest is then a copy,
    removed by `canonicalize-loop`."""
    source = _Source.of(ctx, slides)
    batch, channels, *sizes = source.dims
    dims, first, shift = list[Expr](), list[Expr](), list[Expr]()
    for axis, (slide, size, more) in enumerate(zip(slides, sizes, source.before, strict=True)):
        reach, low = tiling.reach(axis, slide.count), slide.low - more
        inside = all(proven(e, NO_RANGES) for e in (-low, size + low - reach))
        dims.append(size if inside else reach)
        first.append(-low if inside else ZERO)
        shift.append(ZERO if inside else low)

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        b, *at, c = i
        return source.read(nest, [b, c, *(p - s for p, s in zip(at, shift, strict=True))])

    made = ctx.generate((batch, *dims, channels), point, element=ctx.element(0), part="padded")
    return made, tuple(first)


@dataclass(frozen=True)
class _Source:
    """The image before its padding was cropped."""

    tensor: SSAValue
    is_last: bool
    """True if its channels are last."""
    before: Sequence[int]
    """The additional zeros at the beginning of each spatial axis."""

    @staticmethod
    def of(ctx: Lowering, slides: Sequence[Slide]) -> _Source:
        """Returns the source of a node; if `choose-layouts` left zeros around it, the tensor before the Transpose and
        the Slice that it added."""
        mark, moved = ctx.op.attributes.get(PADDING_ATTRIBUTE), ctx.op.operands[0].owner
        cut = moved.operands[0].owner if isinstance(moved, Operation) and op_name(moved) == "Transpose" else None
        if not isinstance(mark, DenseArrayBase) or not isinstance(cut, Operation) or op_name(cut) != "Slice":
            return _Source(ctx.required(0), False, [0] * len(slides))
        more = [int(v) for v in mark.get_values()]
        return _Source(ctx.lowered(cut.operands[0]), True, more[: len(slides)])

    @property
    def dims(self) -> tuple[Expr, ...]:
        """The dims, channels first."""
        found = dims_of(self.tensor.type)
        return (found[0], found[-1], *found[1:-1]) if self.is_last else found

    def read(self, nest: Nest, at: Sequence[Expr]) -> Scalar:
        """Reads the element at a place, channels first; 0 outside."""
        b, c, *places = at
        return nest.read_inside(self.tensor, [b, *places, c] if self.is_last else [b, c, *places])


def _of_input(ctx: Lowering, bands: _Bands, image: SSAValue, first: Sequence[Expr]) -> SSAValue:
    """Returns the values of every tile at every point: `[*bands, point, tile, channel]`."""
    channels, tiling = dims_of(image.type)[-1], bands.tiling
    size, step = tiling.filter.size, tiling.filter.results
    made = tensor_of(element_of(image.type), [*bands.dims, bands.points, bands.tiles, channels])
    p = ctx.procedure([image], [made], part="input")
    source, target = p.buffers
    b, i, j = p.axes(bands.dims)
    with p.over([tiling.rows, bands.columns]) as (row, column), p.loop(channels) as c:
        top = (i * tiling.rows + row) * step + first[0]
        left = (j * bands.columns + column) * step + first[1]
        tile = [[p.load(source, [b, top + k, left + n, c]) for n in range(size)] for k in range(size)]
        for number, value in enumerate(both_axes(tile, tiling.filter.of_input)):
            p.store(value, target, [b, i, j, number, row * bands.columns + column, c])
    return p.end()[0]


def _multiplied(ctx: Lowering, bands: _Bands, values: SSAValue, outs: Expr) -> SSAValue:
    """Returns the products summed over the channels: `[*bands, point, tile, o]`."""
    *outer, channels = dims_of(values.type)
    table = ctx.table(TABLE)
    layout = Layout.panels(3, 2, [1], panel_lanes(element_of(values.type)))

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        *band, where, tile, o = i
        return nest.read(values, [*band, where, tile, r[0]]) * nest.read(table, layout.subscripts([where, r[0], o]))

    return ctx.generate((*outer, outs), point, over=[channels], combiner="add", part="points")


def _of_products(ctx: Lowering, bands: _Bands, points: SSAValue, image: SSAValue, first: Sequence[Expr]) -> SSAValue:
    """Returns the results of every tile: `[*bands, row, column, a, b, o]`."""
    outs, tiling = dims_of(points.type)[-1], bands.tiling
    step, size = tiling.filter.results, tiling.filter.size
    dims = (*bands.dims, Expr.of(tiling.rows), bands.columns)
    element = element_of(points.type)
    result = tensor_of(element, [*dims, step, step, outs])
    plain, layout = _plain_weight(ctx)
    p = ctx.procedure([points, image, plain], [result], part="output")
    source, pixels, weight, target = p.buffers
    *at, row, column = p.axes(dims)
    place = row * bands.columns + column
    zeros = p.local(element, [outs], "zeros")
    with p.loop(outs) as o:
        tile = [[p.load(source, [*at, k * size + n, place, o]) for n in range(size)] for k in range(size)]
        values = both_axes(tile, tiling.filter.of_products)
        for number, value in enumerate(values):
            p.store(value, target, [*at, row, column, number // step, number % step, o])
        p.store(_times_zero(values), zeros, [o])
    all_zeros = p.variable(p.const(0.0, element), "all_zeros")
    with p.fold(outs) as o:
        p.accumulate("add", p.load(zeros, [o]), all_zeros.buffer, [])
    with p.when(all_zeros.get().ne(0.0)):
        top, left = (
            (b * n + k) * step + f
            for b, n, k, f in zip(at[1:], (Expr.of(tiling.rows), bands.columns), (row, column), first, strict=True)
        )
        with p.loop(step) as a, p.loop(outs) as o:
            # The results of a row share the loads of the weight.
            sums = [p.variable(p.const(0.0, element)) for _ in range(step)]
            with p.in_order([TAPS, TAPS, dims_of(image.type)[-1]]) as (k, n, c):
                factor = p.load(weight, layout.subscripts([o, c, k, n]))
                for b, total in enumerate(sums):
                    total.set(total.get() + p.load(pixels, [at[0], top + a + k, left + b + n, c]) * factor)
            for b, total in enumerate(sums):
                p.store(total.get(), target, [*at, row, column, a, b, o])
    return p.end()[0]


def _plain_weight(ctx: Lowering) -> tuple[SSAValue, Layout]:
    """Returns the weight of the node as stored, and its layout."""
    unpack = ctx.op.operands[1].owner
    if isinstance(unpack, UnpackOp):
        return ctx.lowered(unpack.source), unpack.layout
    return ctx.required(1), Layout(tuple(map(Part, range(4))))


def _times_zero(values: Sequence[Scalar]) -> Scalar:
    """Returns 0 if all values are finite, else NaN."""
    first, *rest = values
    total = first * 0.0
    for value in rest:
        total = total + value * 0.0
    return total


def _results(ctx: Lowering, bands: _Bands, made: SSAValue) -> SSAValue:
    """Returns the results of tiles in the order of an image, plus the bias."""
    bias, tiling = ctx.input(2), bands.tiling

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        b, o, *at = i
        step = Expr.of(tiling.filter.results)
        band = [floordiv(x, Expr.of(each)) for x, each in zip(at, tiling.step, strict=True)]
        row, column = (floordiv(x, step) for x in at)
        tile = [mod(row, Expr.of(tiling.rows)), mod(column, bands.columns)]
        if tiling.is_whole:
            band[1], tile[1] = ZERO, column
        value = nest.read(made, [b, *band, *tile, *(mod(x, step) for x in at), o])
        return value if bias is None else value + nest.read(bias, [o])

    return ctx.generate(ctx.out_dims(), point, element=element_of(made.type), part="image")
