"""Convolutions and pools: shape rules.

A convolution along one dim with windows of one element is a contraction: the weight of each group times a matrix of
channels and places. All others run in ORT.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from igniter.analysis.expr import ONE, ZERO, Expr, floordiv, minimum, product
from igniter.dialects.onnx.ops.rules import element_type, input_dims, legal, operand_dims, tidy
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of
from igniter.transforms.lowering import Lowering, Nest, Scalar

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp


def _window(ctx: InferContext, size: Expr, axis: int, kernel: int, rank: int) -> Expr:
    """The dim that a window of `kernel` elements leaves of `size`, along spatial axis `axis` of `rank`."""
    op = ctx.op
    stride = (op.attr("strides") or [1] * rank)[axis]
    dilation = (op.attr("dilations") or [1] * rank)[axis]
    padding = op.attr("auto_pad", "NOTSET")
    reach = dilation * (kernel - 1) + 1
    if padding in ("SAME_UPPER", "SAME_LOWER"):
        return tidy(size.ceildiv(stride))
    pads: Sequence[int] = op.attr("pads") or [0] * (2 * rank)
    added = 0 if padding == "VALID" else pads[axis] + pads[axis + rank]
    free = size + (added - reach)
    if op.attr("ceil_mode", 0):
        # The last window has to begin inside the input or its padding on the left.
        windows = free.ceildiv(stride) + 1
        inside = floordiv(size + (pads[axis] - 1), Expr.of(stride)) + 1
        return tidy(windows if stride == 1 or (added == 0 and reach >= stride) else minimum(windows, inside))
    return tidy(floordiv(free, Expr.of(stride)) + 1)


def _conv(ctx: InferContext) -> list[TensorInfo]:
    data, weight = input_dims(ctx, 0), input_dims(ctx, 1)
    if data is None or weight is None:
        return [TensorInfo(element_type(ctx), None)]
    rank = len(data) - 2
    kernel = ctx.op.attr("kernel_shape") or [d.constant for d in weight[2:]]
    group = ctx.op.attr("group", 1)
    ctx.equate(data[1], weight[1] * group)
    spatial: list[Expr] = []
    for i in range(rank):
        size = kernel[i]
        spatial.append(ctx.fresh(f"conv_{i + 2}") if size is None else _window(ctx, data[i + 2], i, size, rank))
    return [TensorInfo(element_type(ctx), (data[0], weight[0], *spatial))]


SEQUENCE_RANK = 3


def pointwise_reason(op: OnnxOp) -> str | None:
    """Why a convolution is not a product of matrices that kernels compute; None when it is."""
    data, weight = operand_dims(op, 0), operand_dims(op, 1)
    if len(data) != SEQUENCE_RANK:
        return "convolutions of images run in ONNX Runtime"
    plain = op.attr("auto_pad", "NOTSET") in ("NOTSET", "VALID") and not any(op.attr("pads") or [0])
    if weight[2] != ONE or not plain or any(s != 1 for s in op.attr("strides") or [1]):
        return "its window is not one element, moved by one, without padding"
    group = op.attr("group", 1)
    if data[1] != weight[1] * group or weight[0].constant is None or weight[0].constant % group:
        return "that its groups divide the channels is not known"
    return None


def _lower_pointwise(ctx: Lowering) -> list[SSAValue]:
    x, w, bias = ctx.required(0), ctx.required(1), ctx.input(2)
    (batch, _, places), weight = ctx.dims(0), ctx.dims(1)
    group: int = ctx.attr("group", 1)
    size = Expr.of((weight[0].constant or 0) // group)
    depth = weight[1]

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        b, g, o, s = i
        return nest.read(w, [g * size + o, r[0], ZERO]) * nest.read(x, [b, g * depth + r[0], s])

    dims = (batch, Expr.of(group), size, places)
    made = ctx.view(ctx.generate(dims, point, over=[depth], combiner="add"), ctx.out_dims())
    if bias is None:
        return [made]
    channels = bias

    def biased(nest: Nest, at: Sequence[Expr]) -> Scalar:
        return nest.read(made, at) + nest.read(channels, [at[1]])

    return [ctx.generate(ctx.out_dims(), biased, part="bias")]


def _conv_flops(op: OnnxOp) -> Expr:
    weight = operand_dims(op, 1)
    return 2 * product(dims_of(op.results[0].type)) * product(weight[1:])


def _pool(ctx: InferContext) -> list[TensorInfo]:
    data = input_dims(ctx, 0)
    dims: Dims | None = None
    if data is not None:
        kernel: Sequence[int] = ctx.op.attr("kernel_shape")
        spatial = (_window(ctx, data[i + 2], i, k, len(kernel)) for i, k in enumerate(kernel))
        dims = (*data[:2], *spatial)
    first = TensorInfo(element_type(ctx), dims)
    if len(ctx.op.results) == 1:
        return [first]
    from igniter.dialects.onnx.types import BY_NAME

    return [first, TensorInfo(BY_NAME["int64"].attr, dims)]


def _global_pool(ctx: InferContext) -> list[TensorInfo]:
    data = input_dims(ctx, 0)
    dims = None if data is None else (*data[:2], *(Expr.of(1) for _ in data[2:]))
    return [TensorInfo(element_type(ctx), dims)]


SPECS: list[OpSpec] = [
    OpSpec(
        "Conv",
        infer=_conv,
        lower=_lower_pointwise,
        legal=legal(pointwise_reason),
        flops=_conv_flops,
        kind="contraction",
    ),
    *(OpSpec(name, infer=_pool, kind="reduction") for name in ("AveragePool", "LpPool", "MaxPool")),
    *(
        OpSpec(name, infer=_global_pool, kind="reduction")
        for name in ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
    ),
]
