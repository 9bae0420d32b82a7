"""Ops that sample an image between its elements: GridSample, AffineGrid, DeformConv.

Data-dependent coordinates become, for every place of the result and every axis, a few elements to read and their
weights: two small nests, independent of the channel. The nest over the result then sums over all combinations.

A deformable convolution does the same for each element of a window, followed by a contraction:

    image   [n, h + 2, w + 2, c]        channels last, with zeros around          a nest
    places  [n, y, group, ky, kx, x]    the first of four elements, two weights   a nest, with vectors along x
    patches [n, y, x, part, k, c]       what the windows see                      a procedure, with vectors along c
    result  [n, o, y, x]                patches * weight                          a contraction

If one of the four elements around a place is in the image, all four are in the padded image, so reads need no bounds
checks. If none is, ONNX Runtime multiplies the first element of the image by 0, giving NaN if the element is not
finite; here the result is 0, as in ONNX's own evaluator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product as combinations
from math import lcm
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.loop import Combiner
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.convolution import (
    add_channels,
    conv_macs,
    has_panels,
    has_small_groups,
    infer_conv,
    slides_of,
)
from igniter.dialects.onnx.ops.counts import twice
from igniter.dialects.onnx.ops.normalization import float_legal
from igniter.dialects.onnx.ops.pointwise import elementwise_flops
from igniter.dialects.onnx.ops.resize_weights import cubic
from igniter.dialects.onnx.ops.rules import element_type, infos, input_dims, known, operand_dims, unknown_rank
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, product
from igniter.dialects.sym.requirements import Requirement, at_most

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

Point = Sequence[Expr]
CoordinateRule = Callable[[Nest, Point], Scalar]
Border = Callable[[Scalar, Scalar, Attribute], Scalar]
"""A function from an element, possibly out of bounds, and the size of its axis to the element to
read, or -1 for none."""


# -- reading between elements -----------------------------------------------------------------------------------------


def between(x: Scalar, tap: Scalar, taps: int) -> tuple[Scalar, Scalar]:
    """Returns, for coordinate `x`, the element of tap number `tap` of `taps` (1, 2 or 4), and its weight."""
    if taps == 1:
        return x.math("roundeven").to(i64), x - x + 1
    below = x.floor()
    offset = tap.to(x.element)
    near = x - below
    if taps == 2:
        return below.to(i64) + tap, tap.eq(0).select(1 - near, near)
    return below.to(i64) + tap - 1, cubic(near + 1 - offset, -0.75)


def tables(
    ctx: Lowering, dims: Sequence[Expr], sizes: Sequence[Expr], taps: int, coordinate: CoordinateRule, border: Border
) -> tuple[SSAValue, SSAValue | None]:
    """Returns the elements `[*dims, axis, tap]` and their weights for coordinates `[*dims, axis]` in axes of `sizes`;
    no weights for a single tap. An element placed outside the axis by `border` is -1, with weight 0."""
    shape, wide = [*dims, Expr.of(len(sizes)), Expr.of(taps)], ctx.wide_element()

    def size_of(nest: Nest, axis: Expr) -> Scalar:
        value = nest.index(sizes[0])
        for k, size in enumerate(sizes):
            if k and size != sizes[k - 1]:
                value = (nest.index(axis) >= k).select(nest.index(size), value)
        return value

    def found(nest: Nest, at: Point) -> tuple[Scalar, Scalar]:
        place, weight = between(coordinate(nest, at[:-1]), nest.index(at[-1]), taps)
        return border(place, size_of(nest, at[-2]), wide), weight

    def weight(nest: Nest, at: Point) -> Scalar:
        place, value = found(nest, at)
        return (place >= 0).select(value, 0.0)

    places = ctx.generate(shape, lambda nest, at: found(nest, at)[0], element=i64, part="places")
    weights = None if taps == 1 else ctx.generate(shape, weight, element=wide, part="weights")
    return places, weights


def sampled(
    nest: Nest, x: SSAValue, lead: Sequence[Expr], table: tuple[SSAValue, SSAValue | None], at: Point, wide: Attribute
) -> Scalar:
    """Returns the weighted sum of the elements `[*lead, *places]` of `x` listed in row `at` of the tables."""
    places, weights = table
    axes, taps = (d.constant or 0 for d in dims_of(places.type)[-2:])
    total: Scalar | None = None
    for choice in combinations(range(taps), repeat=axes):
        chosen = [nest.read(places, [*at, Expr.of(k), Expr.of(t)]) for k, t in enumerate(choice)]
        value = nest.read_inside(x, [*lead, *chosen]).to(wide)
        if weights is not None:
            weight = nest.read(weights, [*at, ZERO, Expr.of(choice[0])])
            for k, t in enumerate(choice[1:], start=1):
                weight = weight * nest.read(weights, [*at, Expr.of(k), Expr.of(t)])
            value = value * weight
        total = value if total is None else total + value
    assert total is not None
    return total


def zeros(place: Scalar, size: Scalar, wide: Attribute) -> Scalar:
    return ((place >= 0) & (place < size)).select(place, -1)


def clamped(place: Scalar, size: Scalar, wide: Attribute) -> Scalar:
    return place.minimum(size - 1).maximum(0)


def reflected(low: float, inner: float) -> Border:
    """Returns the reflection of elements between `low` and `size - inner`."""

    def rule(place: Scalar, size: Scalar, wide: Attribute) -> Scalar:
        x, least, greatest = place.to(wide), low, size.to(wide) - inner
        span = greatest - least
        under = x < least
        distance = under.select(least - x, x - greatest)
        turns = (distance / span).to(i32)
        rest = distance - turns.to(wide) * span
        forth = (turns & 1).eq(0)
        back = forth.select(rest, span - rest)
        made = under.select(back + least, greatest - back)
        kept = (under | (x > greatest)).select(made, x).to(i64)
        return clamped(kept, size, wide)

    return rule


# -- GridSample -------------------------------------------------------------------------------------------------------

TAPS = {"nearest": 1, "linear": 2, "bilinear": 2, "cubic": 4, "bicubic": 4}


def _infer_grid_sample(ctx: InferContext) -> list[TensorInfo]:
    dims, grid = input_dims(ctx, 0), input_dims(ctx, 1)
    if dims is None or grid is None:
        return unknown_rank(ctx)
    ctx.equate(dims[0], grid[0])
    ctx.equate(grid[-1], Expr.of(len(dims) - 2))
    return infos(element_type(ctx), [*dims[:2], *grid[1:-1]])


def _grid_sample_reason(op: OnnxOp) -> str | None:
    dims, grid = operand_dims(op, 0), operand_dims(op, 1)
    if len(dims) != len(grid) or grid[-1].constant != len(dims) - 2 or dims[0] != grid[0]:
        return "its grid is not known to have one coordinate for each axis of its input"
    mode, padding = _modes(op)
    if mode not in TAPS or padding not in ("zeros", "border", "reflection"):
        return f"unknown mode '{mode}' with padding '{padding}'"
    return None


def _modes(op: OnnxOp) -> tuple[str, str]:
    return str(op.attr("mode", "bilinear")), str(op.attr("padding_mode", "zeros"))


def _grid_sample_requires(op: OnnxOp) -> list[Requirement]:
    return [at_most(1, dim, "an axis to sample along is empty") for dim in operand_dims(op, 0)[2:]]


def _grid_sample(ctx: Lowering) -> list[SSAValue]:
    x, grid, dims, wide = ctx.required(0), ctx.required(1), ctx.dims(0), ctx.wide_element()
    rank, corners = len(dims) - 2, bool(ctx.attr("align_corners", 0))
    sizes, out = dims[2:], ctx.out_dims()
    borders = {
        "zeros": zeros,
        "border": clamped,
        "reflection": reflected(0.0, 1.0) if corners else reflected(-0.5, 0.5),
    }

    def coordinate(nest: Nest, at: Point) -> Scalar:
        # The last coordinate of a grid belongs to the first axis.
        share = nest.read(grid, [*at[:-1], rank - 1 - at[-1]]).to(wide) + 1
        size = nest.index(sizes[0])
        for k in range(1, rank):
            size = (nest.index(at[-1]) >= k).select(nest.index(sizes[k]), size)
        return share / 2 * (size - 1).to(wide) if corners else (share * size.to(wide) - 1) / 2

    mode, padding = _modes(ctx.op)
    table = tables(ctx, (out[0], *out[2:]), sizes, TAPS[mode], coordinate, borders[padding])

    def point(nest: Nest, i: Point) -> Scalar:
        return sampled(nest, x, i[:2], table, [i[0], *i[2:]], wide)

    return [ctx.generate(out, point)]


# -- AffineGrid -------------------------------------------------------------------------------------------------------


def _infer_affine_grid(ctx: InferContext) -> list[TensorInfo]:
    size = ctx.values(1)
    if size is None:
        return unknown_rank(ctx)
    return infos(element_type(ctx), [size[0], *size[2:], len(size) - 2])


def _affine_grid_reason(op: OnnxOp) -> str | None:
    size, theta = known(op, 1), operand_dims(op, 0)
    if size is None:
        return "its size is known only at run time"
    if theta[1:] != (Expr.of(len(size) - 2), Expr.of(len(size) - 1)) or theta[0] != size[0]:
        return "its matrices are not known to match its size"
    return None


def _affine_grid(ctx: Lowering) -> list[SSAValue]:
    theta, out, wide, corners = ctx.required(0), ctx.out_dims(), ctx.wide_element(), bool(ctx.attr("align_corners", 0))
    rank = len(out) - 2

    def share(nest: Nest, place: Expr, size: Expr) -> Scalar:
        """Returns the coordinate of `place`, from -1 to 1 along its axis."""
        if corners:
            step = (nest.index(size) - 1).maximum(1).to(wide)
            return nest.index(place).to(wide) * 2 / step - 1
        return (nest.index(place).to(wide) * 2 + 1) / nest.index(size).to(wide) - 1

    def point(nest: Nest, i: Point) -> Scalar:
        total = nest.read(theta, [i[0], i[-1], Expr.of(rank)]).to(wide)
        for k in range(rank):
            place = share(nest, i[1 + k], out[1 + k])
            total = total + nest.read(theta, [i[0], i[-1], Expr.of(rank - 1 - k)]).to(wide) * place
        return total

    return [ctx.generate(out, point)]


# -- DeformConv -------------------------------------------------------------------------------------------------------

FEW = 8
"""The minimum channels and results of a group to fill vectors, unless several groups share a vector."""


def _infer_deform(ctx: InferContext) -> list[TensorInfo]:
    found, data, weight = infer_conv(ctx), input_dims(ctx, 0), input_dims(ctx, 1)
    dims = found[0].dims
    if dims is not None and data is not None and weight is not None:
        taps = product(weight[2:]) * int(ctx.op.attr("offset_group", 1))
        for index, count in ((2, 2 * taps), (4, taps)):
            for have, want in zip(input_dims(ctx, index) or (), (data[0], count, *dims[2:]), strict=False):
                ctx.equate(have, want)
    return found


def _deform_reason(op: OnnxOp) -> str | None:
    data, weight, offset = operand_dims(op, 0), operand_dims(op, 1), operand_dims(op, 2)
    group, groups = int(op.attr("group", 1)), int(op.attr("offset_group", 1))
    out, taps = dims_of(op.results[0].type), weight[2] * weight[3] if len(weight) == 4 else ZERO
    if len(data) != 4 or len(weight) != 4:
        return "only 2-D images are supported"
    if data[1] != weight[1] * group:
        return "its groups are not known to divide the channels"
    for size, parts in ((weight[0], group), (data[1], group), (data[1], groups)):
        if parts != 1 and (size.constant is None or size.constant % parts):
            return f"its groups are not known to divide {size} channels"
    if offset != (data[0], 2 * groups * taps, *out[2:]):
        return "it is not known to have an offset for every element of a window"
    mask = op.inputs[4] if len(op.inputs) > 4 else None
    if mask is not None and dims_of(mask.type) != (data[0], groups * taps, *out[2:]):
        return "it is not known to have a mask for every element of a window"
    return None


def _deform_conv(ctx: Lowering) -> list[SSAValue]:
    """Computes the inputs of each window, then the convolution as a contraction of them."""
    weight, out, wide = ctx.dims(1), ctx.out_dims(), ctx.wide_element()
    group, w = int(ctx.attr("group", 1)), ctx.required(1)
    size, depth = weight[0] // group, weight[1]
    # As in a convolution, groups of one channel, or of a few, are no axis.
    several = group != 1 and size != ONE and not has_small_groups(ctx.op)
    parts = group if several else 1
    patches = ctx.view(_patches(ctx, parts), (out[0], *out[2:], parts, *weight[2:], depth * (group // parts)))

    def point(nest: Nest, i: Point, r: Point) -> Scalar:
        b, *groups, o, y, x = i
        part = groups[0] if groups else ZERO
        g = ZERO if several or group == 1 else floordiv(o, size)
        return nest.read(w, [part * size + o, *r]).to(wide) * nest.read(
            patches, [b, y, x, part, *r[1:], g * depth + r[0]]
        )

    dims = (out[0], Expr.of(group), size, *out[2:]) if several else out
    sums = ctx.generate(dims, point, over=weight[1:], combiner="add")
    return [ctx.rounded(add_channels(ctx, ctx.view(sums, out), ctx.input(3)))]


def _patches(ctx: Lowering, parts: int) -> SSAValue:
    """Returns the inputs of each window, `[batch, y, x, part, element of the window, block, channel]`: the channels in
    `parts`, each in blocks of one offset group."""
    mask, element, image = ctx.input(4), ctx.wide_element(), _rimmed(ctx)
    out, (rows, columns), groups = ctx.out_dims(), ctx.dims(1)[2:], int(ctx.attr("offset_group", 1))
    count = lcm(parts, groups)
    blocks, channels = count // parts, ctx.dims(0)[1] // count
    made = tensor_of(element, (out[0], *out[2:], parts, rows * columns, blocks, channels))
    p = ctx.procedure([image, *_places(ctx), *([] if mask is None else [mask])], [made], part="patches")
    source, *tables = p.buffers[:5]
    masks, target = p.buffers[5:-1], p.buffers[-1]
    b, y = p.axes((out[0], out[2]))
    # The tables have places last, for the vectors that compute them, but row by row: the tables of a row stay in the
    # cache.
    with p.over([out[3], parts, rows, columns, blocks]) as (x, part, ky, kx, block):
        number, tap = part * blocks + block, ky * columns + kx
        g = floordiv(number, Expr.of(count // groups))
        row, column, below, right = (p.load(table, [b, y, g, ky, kx, x]) for table in tables)
        factor = p.load(masks[0], [b, g * rows * columns + tap, y, x]).to(element) if masks else None
        corners = [(low, low + 1) for low in (row.to(i64), column.to(i64))]
        weights = [v * h for v in (1 - below, below) for h in (1 - right, right)]
        limits = [(place, dim) for pair, dim in zip(corners, dims_of(image.type)[1:3], strict=True) for place in pair]
        at = [b, y, x, part, tap, block]
        with p.within(*limits), p.loop(channels) as c:
            total: Scalar | None = None
            for (top, left), weight in zip(combinations(*corners), weights, strict=True):
                value = p.load(source, [b, top, left, number * channels + c]).to(element) * weight
                total = value if total is None else total + value
            assert total is not None
            p.store(total if factor is None else total * factor, target, [*at, c])
        with p.when(row < 0), p.loop(channels) as c:
            p.store(p.const(0.0, element) if factor is None else 0.0 * factor, target, [*at, c])
    return p.end()[0]


def _places(ctx: Lowering) -> tuple[SSAValue, ...]:
    """Returns, for each element of each window, `[batch, y, offset group, ky, kx, x]`: the row and the column of the
    first of the four elements around its place, counted in the padded image, and the distances of the place below and
    right of it. A place far from all elements has -1 for both."""
    offset, element = ctx.required(2), ctx.wide_element()
    out, sizes, window = ctx.out_dims(), ctx.dims(0)[2:], ctx.dims(1)[2:]
    dims = (out[0], out[2], Expr.of(int(ctx.attr("offset_group", 1))), *window, out[3])
    nest = ctx.nest("places")
    axes = b, y, g, ky, kx, x = nest.axes(dims)
    plane = g * product(window) + ky * window[1] + kx
    places = [
        nest.index(slide.at(at, k)).to(element) + nest.read(offset, [b, 2 * plane + axis, y, x]).to(element)
        for axis, (slide, at, k) in enumerate(zip(slides_of(ctx.op), (y, x), (ky, kx), strict=True))
    ]
    near = [(p > -1.0) & (p < nest.index(size).to(element)) for p, size in zip(places, sizes, strict=True)]
    inside = near[0] & near[1]
    lows = [p.floor() for p in places]
    firsts = [inside.select(low + 1, -1.0).to(i32) for low in lows]
    rests = [inside.select(p - low, 0.0) for p, low in zip(places, lows, strict=True)]
    clauses: list[tuple[Combiner, Scalar, Point, Attribute]] = [
        ("none", value, axes, tensor_of(value.element, dims)) for value in (*firsts, *rests)
    ]
    return nest.finish(*clauses)


def _rimmed(ctx: Lowering) -> SSAValue:
    """Returns the image with channels last and a border of zeros."""
    x, (batch, channels, *sizes) = ctx.required(0), ctx.dims(0)

    def point(nest: Nest, i: Point) -> Scalar:
        b, row, column, c = i
        return nest.read_inside(x, [b, c, row - 1, column - 1])

    return ctx.generate((batch, *(s + 2 for s in sizes), channels), point, element=ctx.element(0), part="image")


def _deform_packs(op: OnnxOp) -> dict[int, tuple[int, ...]]:
    """Returns the weight, with the elements of a window and then its channels as the depth."""
    return {1: (0, 2, 3, 1)} if has_panels(op) else {}


def _deform_orders(op: OnnxOp) -> dict[int, tuple[int, ...]]:
    """Returns the weight of groups without full panels: the channels are contiguous for each element of the window."""
    return {} if has_panels(op) else {1: (2, 3, 1, 0)}


def _deform_slow(op: OnnxOp, estimate: Callable[[Expr], int]) -> str | None:
    """Returns a reason for groups that neither fill nor share vectors: those of 3 channels take 1.8 of ONNX Runtime's
    time, those of 5 1.2, those of 7 the same, all others less."""
    group, (channels, depth) = int(op.attr("group", 1)), (d.constant for d in operand_dims(op, 1)[:2])
    if group == 1 or channels is None or depth is None or has_small_groups(op):
        return None
    if 1 < channels // group < FEW and depth < FEW:
        return f"its groups of {depth} channels and {channels // group} results do not fill vectors"
    return None


# -- tables -----------------------------------------------------------------------------------------------------------


def _element(op: OnnxOp) -> str | None:
    return (
        None
        if element_of(op.operands[1].type) == element_of(op.operands[0].type)
        else ("its grid has a different type than its input")
    )


def _deform_samples(op: OnnxOp) -> Expr:
    """Returns the operations for samples: four elements each, weighted and summed, for each place of every window and
    channel."""
    batch, channels = operand_dims(op, 0)[:2]
    return 8 * product((batch, channels, *operand_dims(op, 1)[2:], *dims_of(op.results[0].type)[2:]))


SPECS: list[OpSpec] = [
    OpSpec(
        "AffineGrid",
        infer=_infer_affine_grid,
        lower=_affine_grid,
        legal=float_legal(_affine_grid_reason),
        flops=elementwise_flops(12),
        kind="other",
    ),
    OpSpec(
        "DeformConv",
        infer=_infer_deform,
        lower=_deform_conv,
        legal=float_legal(_deform_reason),
        packs=_deform_packs,
        orders=_deform_orders,
        macs=conv_macs,
        flops=twice(conv_macs, "8 × samples between elements", _deform_samples),
        unprofitable=_deform_slow,
        unprofitable_when_small=True,
        kind="contraction",
    ),
    *(
        OpSpec(
            name,
            infer=_infer_grid_sample,
            lower=_grid_sample,
            legal=float_legal(_element, _grid_sample_reason),
            requires=_grid_sample_requires,
            flops=elementwise_flops(16),
            kind="other",
        )
        for name in ("GridSample", "com.microsoft.GridSample")
    ),
]
