"""Slice, Pad, Range and Col2Im with run-time values (docs/explanation/values.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from igniter.dialects.onnx.bound import BOUND_DOMAIN
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.counts import counted
from igniter.dialects.onnx.ops.pointwise import computed_reason
from igniter.dialects.onnx.ops.rules import (
    element_type,
    infos,
    input_dims,
    known,
    legal,
    operand_dims,
    tidy,
    unknown_rank,
)
from igniter.dialects.onnx.ops.shape import lower_range
from igniter.dialects.onnx.ops.transposed import col2im_axes, lower_col2im
from igniter.dialects.onnx.ops.windows import Sides, pad_slow, padded
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, maximum, minimum, product
from igniter.dialects.sym.requirements import Requirement, at_most, equal

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp


def _lists(values: Dims, count: int) -> list[Dims]:
    """Returns the values of a carrier as `count` lists, with one value for each axis."""
    rank = (len(values) - 1) // count
    return [values[1 + k * rank : 1 + (k + 1) * rank] for k in range(count)]


# -- Slice: first elements, counts, steps forwards, steps backwards ---------------------------------------------------


def _infer_slice(ctx: InferContext) -> list[TensorInfo]:
    values = input_dims(ctx, 5)
    return unknown_rank(ctx) if values is None else infos(element_type(ctx), _lists(values, 4)[1])


def _lower_slice(ctx: Lowering) -> list[SSAValue]:
    x = ctx.required(0)
    first, _, forth, back = _lists(ctx.dims(5), 4)

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        return nest.read_inside(x, [s + e * (f - b) for s, e, f, b in zip(first, i, forth, back, strict=True)])

    return [ctx.generate(ctx.out_dims(), point)]


# -- Pad: what is added in front, taken in front, added behind, taken behind ------------------------------------------


def _sides(values: Dims) -> list[Sides]:
    return [Sides(cut, low, end, high) for low, cut, high, end in zip(*_lists(values, 4), strict=True)]


def _infer_pad(ctx: InferContext) -> list[TensorInfo]:
    dims, values = input_dims(ctx, 0), input_dims(ctx, 4)
    if dims is None or values is None:
        return unknown_rank(ctx)
    pairs = zip(dims, _sides(values), strict=True)
    return infos(element_type(ctx), [tidy(d + s.low + s.high - s.cut_low - s.cut_high) for d, s in pairs])


def _pad_reason(op: OnnxOp) -> str | None:
    mode = op.attr("mode", "constant")
    return None if mode in ("constant", "reflect", "edge", "wrap") else f"unknown mode '{mode}'"


def _pad_requires(op: OnnxOp) -> list[Requirement]:
    """Requires the same as for constant pads; zero pads need no check."""
    dims, mode = operand_dims(op, 0), op.attr("mode", "constant")
    if mode == "constant":
        return []
    required = [at_most(1, d, "a dim of 0 cannot be wrapped") for d in dims] if mode == "wrap" else []
    for dim, side in zip(dims, _sides(operand_dims(op, 4)), strict=True):
        left = dim - side.cut_low - side.cut_high
        changed = side.low + side.high + side.cut_low + side.cut_high
        required.append(at_most(minimum(changed, ONE), left, f"mode '{mode}' cannot pad a dim of 0"))
        if mode == "reflect":
            most = maximum(left - 1, ZERO)
            required += [at_most(p, most, "the dim is too small for reflection") for p in (side.low, side.high)]
    return required


def _lower_pad(ctx: Lowering) -> list[SSAValue]:
    return padded(ctx, _sides(ctx.dims(4)))


# -- Range: how many --------------------------------------------------------------------------------------------------


def _infer_range(ctx: InferContext) -> list[TensorInfo]:
    values = input_dims(ctx, 3)
    return infos(element_type(ctx), None if values is None else values[1:])


# -- Col2Im: channels; the image and the blocks are operands ----------------------------------------------------------


def _infer_col2im(ctx: InferContext) -> list[TensorInfo]:
    dims, image, values = input_dims(ctx, 0), ctx.values(1), input_dims(ctx, 3)
    if dims is None or image is None or values is None:
        return unknown_rank(ctx)
    return infos(element_type(ctx), (dims[0], values[1], *image))


def _col2im_reason(op: OnnxOp) -> str | None:
    given = known(op, 1) is not None and known(op, 2) is not None
    return None if given else "its image_shape and block_shape are known only at run time"


def _col2im_requires(op: OnnxOp) -> list[Requirement]:
    image, block, data = known(op, 1) or (), known(op, 2) or (), operand_dims(op, 0)
    channels = dims_of(op.results[0].type)[1]
    windows = [a.size for a in col2im_axes(op, image, block)]
    return [
        equal(channels * product(block), data[1], "its columns are not a whole number of blocks"),
        *(at_most(1, b, "a block has no elements") for b in block),
        *(at_most(0, w, "a block is larger than the image") for w in windows),
        equal(product(windows), data[2], "its number of columns differs from the number of blocks"),
    ]


SPECS: list[OpSpec] = [
    OpSpec(
        f"{BOUND_DOMAIN}.Col2Im",
        _infer_col2im,
        lower=lower_col2im,
        legal=legal(computed_reason, _col2im_reason),
        requires=_col2im_requires,
        flops=counted("elements of the input", lambda op: product(operand_dims(op, 0))),
        kind="movement",
    ),
    OpSpec(
        f"{BOUND_DOMAIN}.Pad",
        _infer_pad,
        lower=_lower_pad,
        legal=legal(_pad_reason),
        requires=_pad_requires,
        unprofitable=pad_slow,
        kind="movement",
    ),
    OpSpec(f"{BOUND_DOMAIN}.Range", _infer_range, lower=lower_range, legal=legal(), kind="shape"),
    OpSpec(f"{BOUND_DOMAIN}.Slice", _infer_slice, lower=_lower_slice, legal=legal(), kind="movement"),
]
