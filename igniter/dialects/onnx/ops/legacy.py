"""Former ONNX ops of the first converters; ONNX Runtime still runs them in models before opset 10."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from igniter.dialects.onnx.ops.activation import softplus
from igniter.dialects.onnx.ops.normalization import float_legal
from igniter.dialects.onnx.ops.pointwise import EXP, elementwise_flops, float_attr, pointwise_with, same_as_input
from igniter.dialects.onnx.ops.rules import element_type, infos, input_dims, operand_dims, unknown_rank
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.requirements import Requirement, at_most

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
    from igniter.dialects.onnx.lowering.context import ScalarFunction


def _affine(ctx: Lowering) -> ScalarFunction:
    alpha, beta = float_attr(ctx, "alpha", 1.0), float_attr(ctx, "beta", 0.0)
    return lambda x: x * alpha + beta


def _scale(ctx: Lowering) -> ScalarFunction:
    scale = float_attr(ctx, "scale", 1.0)
    return lambda x: x * scale


def _scaled_tanh(ctx: Lowering) -> ScalarFunction:
    alpha, beta = float_attr(ctx, "alpha"), float_attr(ctx, "beta")
    return lambda x: (x * beta).tanh() * alpha


def _parametric_softplus(ctx: Lowering) -> ScalarFunction:
    alpha, beta = float_attr(ctx, "alpha"), float_attr(ctx, "beta")
    return lambda x: softplus(x * beta) * alpha


def _parameters_reason(op: OnnxOp) -> str | None:
    return "it has no alpha or no beta" if op.attr("alpha") is None or op.attr("beta") is None else None


# -- images -----------------------------------------------------------------------------------------------------------


def _image_scaler(ctx: Lowering) -> list[SSAValue]:
    """Scales all channels by one factor, and adds a bias per channel."""
    x, scale = ctx.required(0), float_attr(ctx, "scale", 1.0)
    biases = [float(v) for v in ctx.attr("bias")]

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        bias = nest.const(biases[0], ctx.wide_element())
        for k, value in enumerate(biases[1:], start=1):
            bias = (nest.index(i[1]) >= k).select(value, bias)
        return nest.read(x, i) * scale + bias

    return [ctx.generate(ctx.out_dims(), point)]


def _image_reason(op: OnnxOp) -> str | None:
    dims = operand_dims(op, 0)
    if len(dims) != 4:
        return "its input is not a 2-D image"
    return None if dims[1] == len(op.attr("bias") or []) else "it has no bias for every channel"


def _infer_crop(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    border: list[int] = ctx.op.attr("border") or []
    if dims is None or len(dims) != 4 or len(border) != 4:
        return unknown_rank(ctx)
    left, top, right, bottom = border
    size: list[int] = ctx.op.attr("scale") or []
    kept = size if len(size) == 2 else [dims[2] - top - bottom, dims[3] - left - right]
    return infos(element_type(ctx), [*dims[:2], *kept])


def _crop(ctx: Lowering) -> list[SSAValue]:
    x, (left, top, *_) = ctx.required(0), [int(v) for v in ctx.attr("border")]
    return [ctx.generate(ctx.out_dims(), lambda nest, i: nest.read(x, [*i[:2], i[2] + top, i[3] + left]))]


def _crop_reason(op: OnnxOp) -> str | None:
    border: list[int] = op.attr("border") or []
    if len(operand_dims(op, 0)) != 4 or len(border) != 4 or min(border) < 0:
        return "its input is not a 2-D image, or its border does not have four sizes"
    size: list[int] = op.attr("scale") or []
    return None if len(size) in (0, 2) else "its scale is not a valid size"


def _crop_requires(op: OnnxOp) -> list[Requirement]:
    (left, top, *_), dims, kept = [int(v) for v in op.attr("border")], operand_dims(op, 0), dims_of(op.results[0].type)
    text = "its border does not fit into its input"
    return [at_most(top + kept[2], dims[2], text), at_most(left + kept[3], dims[3], text)]


SPECS: list[OpSpec] = [
    pointwise_with("Affine", _affine),
    OpSpec(
        "Crop",
        infer=_infer_crop,
        lower=_crop,
        legal=float_legal(_crop_reason),
        requires=_crop_requires,
        kind="movement",
    ),
    OpSpec(
        "ImageScaler",
        infer=same_as_input(None),
        lower=_image_scaler,
        legal=float_legal(_image_reason),
        flops=elementwise_flops(2),
        kind="elementwise",
    ),
    pointwise_with("ParametricSoftplus", _parametric_softplus, cost=2 * EXP, check=_parameters_reason),
    pointwise_with("Scale", _scale),
    pointwise_with("ScaledTanh", _scaled_tanh, cost=EXP, check=_parameters_reason),
]
