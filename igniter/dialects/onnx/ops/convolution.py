"""Convolutions and pools: shape rules. They run in ORT."""

from __future__ import annotations

from collections.abc import Sequence

from igniter.analysis.expr import Expr, floordiv, minimum
from igniter.dialects.onnx.ops.rules import element_type, input_dims, tidy
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo


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
    OpSpec("Conv", infer=_conv, kind="contraction"),
    *(OpSpec(name, infer=_pool, kind="reduction") for name in ("AveragePool", "LpPool", "MaxPool")),
    *(
        OpSpec(name, infer=_global_pool, kind="reduction")
        for name in ("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool")
    ),
]
