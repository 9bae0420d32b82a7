"""Regions of interest: RoiAlign, MaxRoiPool, CropAndResize, which read an image at data-dependent places.

The points of the pools are the bins of the regions: the samples of a bin are located once, for all channels. The number
of samples of a bin depends on its size unless a ratio is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i32, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.normalization import float_legal
from igniter.dialects.onnx.ops.pointwise import float_attr
from igniter.dialects.onnx.ops.pooling import LEAST
from igniter.dialects.onnx.ops.rules import element_type, infos, input_dims, known, operand_dims, unknown_rank
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ZERO, Expr, product
from igniter.dialects.sym.requirements import Requirement, at_most, equal

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering.procedure import Procedure

BATCH_TEXT = "the batch index of a region is out of range"


# -- RoiAlign ---------------------------------------------------------------------------------------------------------


def _infer_align(ctx: InferContext) -> list[TensorInfo]:
    dims, rois = input_dims(ctx, 0), input_dims(ctx, 1)
    if dims is None or rois is None:
        return unknown_rank(ctx)
    height, width = (int(ctx.op.attr(name, 1)) for name in ("output_height", "output_width"))
    return infos(element_type(ctx), [rois[0], dims[1], height, width])


def _align_reason(op: OnnxOp) -> str | None:
    if len(operand_dims(op, 0)) != 4 or len(operand_dims(op, 1)) != 2 or len(operand_dims(op, 2)) != 1:
        return "its input is not a 2-D image, or its regions are not a list of boxes"
    if element_of(op.operands[1].type) != element_of(op.operands[0].type):
        return "its regions and its image have different types"
    if str(op.attr("mode", "avg")) not in ("avg", "max") or int(op.attr("sampling_ratio", 0)) < 0:
        return f"unknown mode '{op.attr('mode')}'"
    if min(int(op.attr(name, 1)) for name in ("output_height", "output_width")) < 1:
        return "its result has no bins"
    return None


def _align_requires(op: OnnxOp) -> list[Requirement]:
    rois, batches = operand_dims(op, 1), operand_dims(op, 2)
    return [
        equal(rois[1], 4, "a region must have four numbers"),
        equal(rois[0], batches[0], "it does not have one batch index for each region"),
    ]


def _align(ctx: Lowering) -> list[SSAValue]:
    dims, out, wide = ctx.dims(0), ctx.out_dims(), ctx.wide_element()
    half = ctx.opset >= 16 and str(ctx.attr("coordinate_transformation_mode", "half_pixel")) == "half_pixel"
    ctx.check_indices(ctx.required(2), dims[0], BATCH_TEXT, negative=False)
    p = ctx.procedure([ctx.required(k) for k in range(3)], [ctx.output_type()])
    _, rois, batches, _ = p.buffers
    at = [p.parallel(out[k]) for k in (0, 2, 3)]
    scale, offset = float_attr(ctx, "spatial_scale", 1.0), 0.5 if half else 0.0
    ratio = int(ctx.attr("sampling_ratio", 0))

    def axis(first: int, k: int) -> tuple[Scalar, Scalar, Scalar]:
        """Returns the start of the bin along an axis, its size, and its number of samples there."""
        low, high = (p.load(rois, [at[0], Expr.of(n)]).to(wide) * scale - offset for n in (first, first + 2))
        size = high - low if half else _larger(high - low, p.const(1, wide))
        count = out[k + 1].constant or 1
        bin_size = size / count
        samples = p.const(ratio, i64) if ratio else _up(bin_size)
        return low + p.index(at[k]).to(wide) * bin_size, bin_size, samples

    (top, tall, rows), (left, broad, columns) = axis(1, 1), axis(0, 2)
    _bin(ctx, p, p.load(batches, [at[0]]).to(i64), at, (top, tall, rows), (left, broad, columns))
    return list(p.end())


def _bin(
    ctx: Lowering,
    p: Procedure,
    batch: Scalar,
    at: Sequence[Expr],
    along_y: tuple[Scalar, Scalar, Scalar],
    along_x: tuple[Scalar, Scalar, Scalar],
) -> None:
    """Computes one bin of every channel: the mean of its samples, or their maximum."""
    source, target = p.buffers[0], p.buffers[-1]
    dims, wide, largest = ctx.dims(0), ctx.wide_element(), str(ctx.attr("mode", "avg")) == "max"
    totals = p.local(wide, [dims[1]], "totals")
    (top, tall, rows), (left, broad, columns) = along_y, along_x
    with p.loop(dims[1]) as c:
        p.store(0.0, totals, [c])
    with p.sequential(rows) as iy, p.sequential(columns) as ix:
        y = top + (p.index(iy).to(wide) + 0.5) * tall / rows.to(wide)
        x = left + (p.index(ix).to(wide) + 0.5) * broad / columns.to(wide)
        height, width = (p.index(d).to(wide) for d in dims[2:])
        outside = (y < -1.0) | (y > height) | (x < -1.0) | (x > width)
        ys, xs = _neighbours(y, dims[2], outside), _neighbours(x, dims[3], outside)
        with p.loop(dims[1]) as c:
            values = [
                p.load(source, [batch, c, row, column]).to(wide) * (above * before)
                for row, above in ys
                for column, before in xs
            ]
            old = p.load(totals, [c])
            if largest:
                best = values[0]
                for each in values[1:]:
                    best = _larger(best, each)
                first = p.index(iy).eq(0) & p.index(ix).eq(0)
                p.store(first.select(best, _larger(old, best)), totals, [c])
            else:
                p.store(old + (values[0] + values[1] + values[2] + values[3]), totals, [c])
    with p.loop(dims[1]) as c:
        value = p.load(totals, [c])
        if not largest:
            value = value / (rows * columns).maximum(1).to(wide)
        p.store(value, target, [at[0], c, *at[1:]])


def _neighbours(x: Scalar, dim: Expr, outside: Scalar) -> list[tuple[Scalar, Scalar]]:
    """Returns the two elements beside a coordinate with their weights; for a sample outside,
    element 0 with weight 0."""
    nest = x.nest
    inside = (x <= 0).select(0, x)
    low, last = inside.to(i64), nest.index(dim - 1)
    over = low >= last
    below = over.select(last, low)
    far = over.select(0.0, inside - low.to(x.element))
    pairs = [(below, 1 - far), (over.select(last, below + 1), far)]
    return [(outside.select(0, place), outside.select(0.0, weight)) for place, weight in pairs]


def _larger(a: Scalar, b: Scalar) -> Scalar:
    """Returns `a` unless it is less than `b`, as `std::max` does."""
    return (a < b).select(b, a)


def _up(x: Scalar) -> Scalar:
    """Returns `x` rounded up, as an i64."""
    return x.math("ceil").to(i32).to(i64)


# -- MaxRoiPool -------------------------------------------------------------------------------------------------------


def _infer_pool(ctx: InferContext) -> list[TensorInfo]:
    dims, rois, shape = input_dims(ctx, 0), input_dims(ctx, 1), ctx.op.attr("pooled_shape")
    if dims is None or rois is None or shape is None:
        return unknown_rank(ctx)
    return infos(element_type(ctx), [rois[0], dims[1], *(int(n) for n in shape)])


def _pool_reason(op: OnnxOp) -> str | None:
    if len(operand_dims(op, 0)) != 4 or len(operand_dims(op, 1)) != 2:
        return "its input is not a 2-D image, or its regions are not a list of boxes"
    shape: list[int] = op.attr("pooled_shape") or []
    return None if len(shape) == 2 and min(shape) > 0 else "its result has no bins"


def _pool_requires(op: OnnxOp) -> list[Requirement]:
    return [equal(operand_dims(op, 1)[1], 5, "a region must have a batch index and four numbers")]


def _rounded(x: Scalar) -> Scalar:
    """Returns `x` as an i64, with halves rounded away from zero."""
    size = x.abs()
    whole = size.floor()
    up = (size - whole >= 0.5).select(whole + 1, whole)
    return (x < 0).select(-up, up).to(i32).to(i64)


def _max_roi_pool(ctx: Lowering) -> list[SSAValue]:
    dims, out, wide = ctx.dims(0), ctx.out_dims(), ctx.wide_element()
    rois, scale = ctx.required(1), float_attr(ctx, "spatial_scale", 1.0)
    batches = ctx.generate([out[0]], lambda nest, i: nest.read(rois, [i[0], ZERO]).to(i64), element=i64, part="batch")
    ctx.check_indices(batches, dims[0], BATCH_TEXT, negative=False)
    p = ctx.procedure([ctx.required(0), rois, batches], [ctx.output_type()])
    source, boxes, images, target = p.buffers
    r, ph, pw = (p.parallel(out[k]) for k in (0, 2, 3))
    best = p.local(wide, [dims[1]], "best")

    def window(first: int, place: Expr, bins: Expr, dim: Expr) -> tuple[Scalar, Scalar]:
        low, high = (_rounded(p.load(boxes, [r, Expr.of(n)]).to(wide) * scale) for n in (first, first + 2))
        size = (high - low + 1).maximum(1).to(wide) / (bins.constant or 1)
        at, last = p.index(place).to(wide), p.index(dim)
        start = (at * size).floor().to(i64) + low
        end = ((at + 1) * size).math("ceil").to(i64) + low
        return start.maximum(0).minimum(last), end.maximum(0).minimum(last)

    (top, bottom), (left, right) = window(2, ph, out[2], dims[2]), window(1, pw, out[3], dims[3])
    empty = (bottom <= top) | (right <= left)
    first, image = empty.select(p.const(0.0, wide), _lowest(wide)), p.load(images, [r])
    with p.loop(dims[1]) as c:
        p.store(first, best, [c])
    with p.sequential(bottom, top) as y, p.sequential(right, left) as x, p.loop(dims[1]) as c:
        value = p.load(source, [image, c, p.index(y), p.index(x)]).to(wide)
        p.store(_larger(p.load(best, [c]), value), best, [c])
    with p.loop(dims[1]) as c:
        p.store(p.load(best, [c]), target, [r, c, ph, pw])
    return list(p.end())


def _lowest(element: Attribute) -> float:
    return LEAST[element]


# -- CropAndResize ----------------------------------------------------------------------------------------------------


def _infer_crop(ctx: InferContext) -> list[TensorInfo]:
    dims, rois, size = input_dims(ctx, 0), input_dims(ctx, 1), ctx.values(3)
    if dims is None or rois is None:
        return unknown_rank(ctx)
    height, width = size if size is not None and len(size) == 2 else (ctx.fresh("height"), ctx.fresh("width"))
    return infos(element_type(ctx), [rois[0], dims[1], height, width])


def _crop_reason(op: OnnxOp) -> str | None:
    if len(operand_dims(op, 0)) != 4 or len(operand_dims(op, 1)) != 2 or len(operand_dims(op, 2)) != 1:
        return "its input is not a 2-D image, or its regions are not a list of boxes"
    size = known(op, 3)
    if size is None or len(size) != 2:
        return "its size is known only at run time"
    known_mode = str(op.attr("mode", "bilinear")) in ("bilinear", "nearest")
    return None if known_mode else f"unknown mode '{op.attr('mode')}'"


def _crop_requires(op: OnnxOp) -> list[Requirement]:
    size = known(op, 3) or ()
    return [*_align_requires(op), *(at_most(1, s, "the size of its crops is not positive") for s in size)]


def _crop(ctx: Lowering) -> list[SSAValue]:
    """Samples from corner to corner, with a fixed value outside the image."""
    x, rois, batches = (ctx.required(k) for k in range(3))
    dims, out, wide = ctx.dims(0), ctx.out_dims(), ctx.wide_element()
    outside_value, nearest = float_attr(ctx, "extrapolation_value", 0.0), str(ctx.attr("mode", "bilinear")) == "nearest"
    ctx.check_indices(batches, dims[0], BATCH_TEXT, negative=False)

    def coordinate(nest: Nest, i: Sequence[Expr], k: int) -> Scalar:
        low, high = (nest.read(rois, [i[0], Expr.of(n)]).to(wide) for n in (k, k + 2))
        last, count = nest.index(dims[2 + k] - 1).to(wide), nest.index(out[2 + k] - 1)
        step = (high - low) * last / count.maximum(1).to(wide)
        many = low * last + nest.index(i[2 + k]).to(wide) * step
        return (count > 0).select(many, 0.5 * (low + high) * last)

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        y, z = coordinate(nest, i, 0), coordinate(nest, i, 1)
        inside = [(at >= 0) & (at <= nest.index(d - 1).to(wide)) for at, d in zip((y, z), dims[2:], strict=True)]
        image = nest.read(batches, [i[0]])

        def read(row: Scalar, column: Scalar) -> Scalar:
            return nest.read_inside(x, [image, i[1], row.to(i64), column.to(i64)]).to(wide)

        if nearest:
            made = read(_rounded(y), _rounded(z))
        else:
            top, left = y.floor(), z.floor()
            down, right = y.math("ceil"), z.math("ceil")
            upper = read(top, left) + (read(top, right) - read(top, left)) * (z - left)
            lower = read(down, left) + (read(down, right) - read(down, left)) * (z - left)
            made = upper + (lower - upper) * (y - top)
        return (inside[0] & inside[1]).select(made, outside_value)

    return [ctx.generate(out, point)]


def _flops(op: OnnxOp) -> Expr:
    """40 × elements of the result: samples of a bin"""
    return product(dims_of(op.results[0].type)) * 40


SPECS: list[OpSpec] = [
    OpSpec(
        "MaxRoiPool",
        infer=_infer_pool,
        lower=_max_roi_pool,
        legal=float_legal(_pool_reason),
        requires=_pool_requires,
        flops=_flops,
        unprofitable=lambda op, estimate: (
            "ONNX Runtime goes channel by channel, in four fifths of the time of a kernel"
        ),
        kind="other",
    ),
    OpSpec(
        "RoiAlign",
        infer=_infer_align,
        lower=_align,
        legal=float_legal(_align_reason),
        requires=_align_requires,
        flops=_flops,
        kind="other",
    ),
    OpSpec(
        "com.microsoft.CropAndResize",
        infer=_infer_crop,
        lower=_crop,
        legal=float_legal(_crop_reason),
        requires=_crop_requires,
        flops=_flops,
        unprofitable=lambda op, estimate: (
            "ONNX Runtime locates each row of samples once; a kernel does so for every element"
        ),
        kind="other",
    ),
]
