"""Winograd's convolution: how a Conv that the pass `winograd` has marked is lowered.

    image [n, c, h, w]  ->  padded, channels last    [n, a h', w', c]       one nest, which moves squares in registers
                        ->  B^T d B of every tile    [point, n, i, j, c]    a procedure, vectors along the channels
                        ->  times the weight         [point, tile, o]       one product for each point, by micro-kernels
                        ->  A^T m A of every tile    [n, i, a, j, b, o]     a procedure; as [n, h, w, o] the results
                        ->  results [n, o, h, w]     one nest, with the bias and what follows in the region

The weight comes transformed (`G g G^T`) and in panels, as a table of the node: it is computed when the model is
written. The node stays a Conv with the plain weight, which ONNX Runtime runs where a kernel cannot be made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue

from igniter.dialects.fusion import Layout
from igniter.dialects.loop.panels import panel_lanes
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.minimal_filters import FILTERS, MinimalFilter
from igniter.dialects.onnx.ops.rules import weight_operand
from igniter.dialects.onnx.ops.sliding import Slide
from igniter.dialects.onnx.registry import WINOGRAD_ATTRIBUTE
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import Expr, product

if TYPE_CHECKING:
    import numpy as np

    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.weights import Weight

TABLE = "winograd"
"""What the node's table is called."""


def minimal_filter(op: OnnxOp) -> MinimalFilter | None:
    """What a node is computed by; `None` where it is not marked."""
    mark = op.attributes.get(WINOGRAD_ATTRIBUTE)
    return FILTERS[mark.value.data] if isinstance(mark, IntegerAttr) else None


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
        """The panels, zeros where the last one has no column."""
        import numpy as np

        plain = self.source.array()
        outs, channels = plain.shape[:2]
        points, panels, _, lanes = self.shape
        values = self.filter.weight(plain).reshape(outs, channels, points)
        padded = np.zeros((panels * lanes, channels, points), plain.dtype)
        padded[:outs] = values
        return np.ascontiguousarray(padded.reshape(panels, lanes, channels, points).transpose(3, 0, 2, 1))


def winograd_tables(op: OnnxOp) -> Mapping[str, Weight]:
    """The transformed weight of a marked node."""
    from igniter.dialects.onnx.weights import Weight

    found, plain = minimal_filter(op), weight_operand(op, 1)
    if found is None or plain is None:
        return {}
    derivation = Transformed(plain, found)
    return {TABLE: Weight(derivation.shape, plain.element_type, derivation=derivation)}


# -- nests ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Tiles:
    """The tiles of an image: `[batch, rows, columns]` of them."""

    filter: MinimalFilter
    dims: tuple[Expr, Expr, Expr]

    @property
    def points(self) -> int:
        return self.filter.size**2

    @property
    def image(self) -> tuple[Expr, Expr, Expr]:
        """The results of all tiles, those behind the last row and column that are wanted, too."""
        batch, rows, columns = self.dims
        return batch, rows * self.filter.results, columns * self.filter.results


def convolve_by_tiles(ctx: Lowering, found: MinimalFilter, slides: Sequence[Slide]) -> SSAValue:
    """The convolution of operand 0 with the node's table, channels last: `[n, h, w, o]`, as large as its tiles."""
    out = ctx.out_dims()
    rows, columns = (d.ceildiv(found.results) for d in out[2:])
    tiles = _Tiles(found, (out[0], rows, columns))
    image = _padded(ctx, tiles, slides)
    points = _multiplied(ctx, tiles, _of_input(ctx, tiles, image), out[1])
    return ctx.view(_of_products(ctx, tiles, points), [*tiles.image, out[1]])


def _padded(ctx: Lowering, tiles: _Tiles, slides: Sequence[Slide]) -> SSAValue:
    """The image, its channels last, with its padding and zeros for what the last tiles read behind its end."""
    x, channels = ctx.required(0), ctx.dims(0)[1]
    batch, height, width = tiles.image
    more = tiles.filter.size - tiles.filter.results

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        b, *at, c = i
        return nest.read_inside(x, [b, c, *(p - s.low for p, s in zip(at, slides, strict=True))])

    return ctx.generate((batch, height + more, width + more, channels), point, element=ctx.element(0), part="padded")


def _of_input(ctx: Lowering, tiles: _Tiles, image: SSAValue) -> SSAValue:
    """What every tile has at every point: `[point, batch, row, column, channel]`."""
    channels = dims_of(image.type)[-1]
    step, size = tiles.filter.results, tiles.filter.size
    made = tensor_of(element_of(image.type), [tiles.points, *tiles.dims, channels])
    p = ctx.procedure([image], [made], part="input")
    source, target = p.buffers
    b, i, j = p.axes(tiles.dims)
    with p.loop(channels) as c:
        tile = [[p.load(source, [b, i * step + k, j * step + n, c]) for n in range(size)] for k in range(size)]
        for number, value in enumerate(_both_axes(tile, tiles.filter.of_input)):
            p.store(value, target, [number, b, i, j, c])
    return p.end()[0]


def _multiplied(ctx: Lowering, tiles: _Tiles, values: SSAValue, outs: Expr) -> SSAValue:
    """The products summed over the channels: `[point, batch, row, column, o]`."""
    channels, count = dims_of(values.type)[-1], product(tiles.dims)
    flat = ctx.view(values, [tiles.points, count, channels])
    table = ctx.table(TABLE)
    layout = Layout.panels(3, 2, [1], panel_lanes(element_of(values.type)))

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        where, tile, o = i
        return nest.read(flat, [where, tile, r[0]]) * nest.read(table, layout.subscripts([where, r[0], o]))

    made = ctx.generate((tiles.points, count, outs), point, over=[channels], combiner="add", part="points")
    return ctx.view(made, [tiles.points, *tiles.dims, outs])


def _of_products(ctx: Lowering, tiles: _Tiles, points: SSAValue) -> SSAValue:
    """The results of every tile: `[batch, row, a, column, b, o]`."""
    outs = dims_of(points.type)[-1]
    step, size = tiles.filter.results, tiles.filter.size
    batch, rows, columns = tiles.dims
    made = tensor_of(element_of(points.type), [batch, rows, step, columns, step, outs])
    p = ctx.procedure([points], [made], part="output")
    source, target = p.buffers
    b, i, j = p.axes(tiles.dims)
    with p.loop(outs) as o:
        tile = [[p.load(source, [k * size + n, b, i, j, o]) for n in range(size)] for k in range(size)]
        for number, value in enumerate(_both_axes(tile, tiles.filter.of_products)):
            p.store(value, target, [b, i, number // step, j, number % step, o])
    return p.end()[0]


def _both_axes(tile: Sequence[Sequence[Scalar]], transform: Callable[[Sequence[Scalar]], list[Scalar]]) -> list[Scalar]:
    """A transform of the columns of a tile, then of the rows of what they become, row by row."""
    columns = [transform([row[k] for row in tile]) for k in range(len(tile[0]))]
    return [value for k in range(len(columns[0])) for value in transform([column[k] for column in columns])]
