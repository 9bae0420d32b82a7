"""Activations, ONNX's and those that ONNX Runtime adds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from igniter.analysis.expr import product
from igniter.dialects.onnx.ops.pointwise import EXP, float_attr, pointwise, pointwise_with
from igniter.dialects.onnx.registry import OpSpec
from igniter.dialects.sym import dims_of

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.transforms.lowering import Lowering, Scalar
    from igniter.transforms.lowering.context import ScalarFunction

SQRT_HALF = 0.7071067811865476
SQRT_2_OVER_PI = 0.7978845608028654


def sigmoid(x: Scalar) -> Scalar:
    return 1 / ((-x).exp() + 1)


def softplus(x: Scalar) -> Scalar:
    """`log(1 + exp(x))`, where the exponential cannot overflow, nor be lost beside 1."""
    return (x < 0).select(0, x) + (-x.abs()).exp().math("log1p")


def gelu(x: Scalar) -> Scalar:
    return 0.5 * x * ((x * SQRT_HALF).erf() + 1)


def tanh_gelu(x: Scalar) -> Scalar:
    return 0.5 * x * ((SQRT_2_OVER_PI * (x + 0.044715 * (x * x * x))).tanh() + 1)


def unit_clip(x: Scalar) -> Scalar:
    """`x` brought into [0, 1]; NaN stays."""
    low = (x < 0).select(0, x)
    return (low > 1).select(1, low)


def _hard_sigmoid(ctx: Lowering) -> ScalarFunction:
    alpha, beta = float_attr(ctx, "alpha", 0.2), float_attr(ctx, "beta", 0.5)
    return lambda x: unit_clip(x * alpha + beta)


def _leaky_relu(ctx: Lowering) -> ScalarFunction:
    alpha = float_attr(ctx, "alpha", 0.01)
    return lambda x: (x < 0).select(x * alpha, x)


def _elu(ctx: Lowering) -> ScalarFunction:
    alpha = float_attr(ctx, "alpha", 1.0)
    return lambda x: (x < 0).select((x.exp() - 1) * alpha, x)


def _celu(ctx: Lowering) -> ScalarFunction:
    alpha = float_attr(ctx, "alpha", 1.0)
    return lambda x: (x < 0).select(((x / alpha).exp() - 1) * alpha, x)


def _selu(ctx: Lowering) -> ScalarFunction:
    alpha, gamma = float_attr(ctx, "alpha", 1.6732632), float_attr(ctx, "gamma", 1.050701)
    return lambda x: (x > 0).select(x * gamma, (x.exp() - 1) * alpha * gamma)


def _thresholded_relu(ctx: Lowering) -> ScalarFunction:
    alpha = float_attr(ctx, "alpha", 1.0)
    return lambda x: (x > alpha).select(x, 0)


def _shrink(ctx: Lowering) -> ScalarFunction:
    bias, lambd = float_attr(ctx, "bias", 0.0), float_attr(ctx, "lambd", 0.5)
    return lambda x: (x < -lambd).select(x + bias, (x > lambd).select(x - bias, 0))


def _float_reason(op: OnnxOp) -> str | None:
    from igniter.dialects.loop import is_float
    from igniter.dialects.sym import element_of

    if is_float(element_of(op.operands[0].type)):
        return None
    return "it is lowered for floats only"


def _swish(ctx: Lowering) -> ScalarFunction:
    alpha = float_attr(ctx, "alpha", 1.0)
    return (lambda x: x * sigmoid(x)) if alpha == 1 else (lambda x: x * sigmoid(x * alpha))


def _quick_gelu(ctx: Lowering) -> ScalarFunction:
    alpha = float_attr(ctx, "alpha", 1.702)
    return lambda x: x * sigmoid(x * alpha)


def _gelu(ctx: Lowering) -> ScalarFunction:
    return tanh_gelu if str(ctx.attr("approximate", "none")) == "tanh" else gelu


def _fast_gelu(ctx: Lowering) -> ScalarFunction:
    return (lambda x: tanh_gelu(x)) if len(ctx.inputs) == 1 else (lambda x, bias: tanh_gelu(x + bias))


def _prelu_reason(op: OnnxOp) -> str | None:
    if op.opset < 7 and product(dims_of(op.operands[1].type)) != 1:
        return "before opset 7 its slopes belong to channels; convert the model to opset 7 or later"
    return None


SPECS: list[OpSpec] = [
    pointwise_with("Celu", _celu, cost=EXP),
    pointwise_with("Elu", _elu, cost=EXP),
    pointwise_with("Gelu", _gelu, cost=EXP),
    pointwise_with("HardSigmoid", _hard_sigmoid, cost=4),
    pointwise("HardSwish", lambda x: x * unit_clip(x * (1 / 6) + 0.5), cost=5),
    pointwise_with("LeakyRelu", _leaky_relu, cost=2),
    pointwise("Mish", lambda x: x * softplus(x).tanh(), cost=3 * EXP),
    pointwise("PRelu", lambda x, slope: (x < 0).select(x * slope, x), cost=2, check=_prelu_reason),
    pointwise("Relu", lambda x: (x < 0).select(0, x)),
    pointwise_with("Selu", _selu, cost=EXP),
    pointwise_with("Shrink", _shrink, cost=4, check=_float_reason),
    pointwise("Sigmoid", sigmoid, cost=EXP),
    pointwise("Softplus", softplus, cost=2 * EXP),
    pointwise("Softsign", lambda x: x / (x.abs() + 1), cost=4),
    pointwise_with("Swish", _swish, cost=EXP),
    pointwise_with("ThresholdedRelu", _thresholded_relu, cost=2),
    pointwise("com.microsoft.BiasGelu", lambda x, bias: gelu(x + bias), cost=EXP),
    pointwise_with("com.microsoft.FastGelu", _fast_gelu, cost=EXP),
    pointwise("com.microsoft.Gelu", gelu, cost=EXP),
    pointwise_with("com.microsoft.QuickGelu", _quick_gelu, cost=EXP),
]
