"""Activations of ONNX and of ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32, f64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.ops.pointwise import (
    EXP,
    also,
    computed_reason,
    elementwise_flops,
    float_attr,
    pointwise,
    pointwise_with,
)
from igniter.dialects.onnx.ops.rules import element_type, input_dims, legal, operand_dims, tidy
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, Expr, floordiv, product
from igniter.dialects.sym.requirements import Requirement, at_most, equal

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
    from igniter.dialects.onnx.lowering.context import ScalarFunction

SQRT_HALF = 0.7071067811865476
SQRT_2_OVER_PI = 0.7978845608028654
SIXTH = 0.1666666716337204
"""The f32 value of 1/6: HardSwish is defined with a HardSigmoid, whose attributes are f32 for every type."""


def sigmoid(x: Scalar) -> Scalar:
    return 1 / ((-x).exp(saturating=True) + 1)


def softplus(x: Scalar) -> Scalar:
    """Returns `log(1 + exp(x))`, in a form whose exponential neither overflows nor is lost beside 1."""
    return (x < 0).select(0, x) + (-x.abs()).exp().math("log1p")


def gelu(x: Scalar) -> Scalar:
    return 0.5 * x * ((x * SQRT_HALF).erf() + 1)


def tanh_gelu(x: Scalar) -> Scalar:
    return 0.5 * x * ((SQRT_2_OVER_PI * (x + 0.044715 * (x * x * x))).tanh() + 1)


def unit_clip(x: Scalar) -> Scalar:
    """Returns `x` clamped to [0, 1]; NaN stays NaN."""
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
    """Returns the sum of two halves, as in ONNX's definition: for an alpha of 0 or infinity, both may be NaN."""
    alpha = float_attr(ctx, "alpha", 1.0)

    def celu(x: Scalar) -> Scalar:
        below = ((x / alpha).exp() - 1) * alpha
        return (x > 0).select(x, 0) + (below > 0).select(0, below)

    return celu


def _selu(ctx: Lowering) -> ScalarFunction:
    alpha, gamma = float_attr(ctx, "alpha", 1.6732632), float_attr(ctx, "gamma", 1.050701)
    return lambda x: (x > 0).select(x * gamma, (x.exp() - 1) * alpha * gamma)


def _thresholded_relu(ctx: Lowering) -> ScalarFunction:
    alpha = float_attr(ctx, "alpha", 1.0)
    return lambda x: (x > alpha).select(x, 0)


def _shrink(ctx: Lowering) -> ScalarFunction:
    bias, lambd = float_attr(ctx, "bias", 0.0), float_attr(ctx, "lambd", 0.5)

    def shrink(x: Scalar) -> Scalar:
        # Integers are compared with the float parameters in f32, and converted back at the end.
        wide = x if x.is_float else x.to(f32)
        return (wide < -lambd).select(wide + bias, (wide > lambd).select(wide - bias, 0)).to(x.element)

    return shrink


NAMED: dict[str, tuple[float, float, float]] = {
    "Elu": (1.0, 0.0, 0.0),
    "HardSigmoid": (0.2, 0.5, 0.0),
    "LeakyRelu": (0.01, 0.0, 0.0),
    "Relu": (0.0, 0.0, 0.0),
    "Selu": (1.6732632, 0.0, 1.050701),
    "Sigmoid": (0.0, 0.0, 0.0),
    "Softplus": (0.0, 0.0, 0.0),
    "Softsign": (0.0, 0.0, 0.0),
    "Tanh": (0.0, 0.0, 0.0),
    "ThresholdedRelu": (1.0, 0.0, 0.0),
}
"""The activations of a FusedGemm, with the defaults of alpha, beta and gamma."""


def named_activation(ctx: Lowering) -> Callable[[Scalar], Scalar] | None:
    """Returns the activation named by a node's attribute, with its parameters; None if it names none."""
    name = str(ctx.attr("activation", ""))
    if not name:
        return None
    alpha, beta, gamma = (
        float_attr(ctx, f"activation_{k}", v) for k, v in zip(("alpha", "beta", "gamma"), NAMED[name], strict=True)
    )
    rules: dict[str, Callable[[Scalar], Scalar]] = {
        "Elu": lambda x: (x < 0).select((x.exp() - 1) * alpha, x),
        "HardSigmoid": lambda x: unit_clip(x * alpha + beta),
        "LeakyRelu": lambda x: (x < 0).select(x * alpha, x),
        "Relu": lambda x: (x < 0).select(0, x),
        "Selu": lambda x: (x > 0).select(x * gamma, (x.exp() - 1) * alpha * gamma),
        "Sigmoid": sigmoid,
        "Softplus": softplus,
        "Softsign": lambda x: x / (x.abs() + 1),
        "Tanh": lambda x: x.tanh(),
        "ThresholdedRelu": lambda x: (x > alpha).select(x, 0),
    }
    return rules[name]


def _swish(ctx: Lowering) -> ScalarFunction:
    alpha = float_attr(ctx, "alpha", 1.0)
    return (lambda x: x * sigmoid(x)) if alpha == 1 else (lambda x: x * sigmoid(x * alpha))


def _quick_gelu(ctx: Lowering) -> ScalarFunction:
    alpha = float_attr(ctx, "alpha", 1.702)
    return lambda x: x * sigmoid(x * alpha)


def _gelu(ctx: Lowering) -> ScalarFunction:
    if str(ctx.attr("approximate", "none")) != "tanh":
        return gelu
    return _gelu_of_f64 if ctx.out_element() == f64 else tanh_gelu


def _gelu_of_f64(x: Scalar) -> Scalar:
    """Returns the tanh form of Gelu with the constants of its function body, which ONNX Runtime runs: 2/pi (before its
    root) and 0.044715, both rounded to f32."""
    return 0.5 * x * ((0.7978845447087116 * (x + 0.044714998453855515 * (x * x * x))).tanh() + 1)


def _fast_gelu(ctx: Lowering) -> ScalarFunction:
    gelu = _fast_gelu_of_f64 if ctx.out_element() == f64 else tanh_gelu
    return (lambda x: gelu(x)) if len(ctx.inputs) == 1 else (lambda x, bias: gelu(x + bias))


def _fast_gelu_of_f64(x: Scalar) -> Scalar:
    """Returns FastGelu with the six-digit constants of its function body, which ONNX Runtime runs."""
    return x * (0.5 + 0.5 * (x * (0.035677 * x * x + 0.797885)).tanh())


def _scaled_silu(ctx: Lowering) -> ScalarFunction:
    """Returns the SiLU of a scaled value, with each step rounded to the type of the elements."""
    alpha = float_attr(ctx, "alpha", 1.0)

    def silu(x: Scalar, product: Scalar) -> Scalar:
        scaled = product.to(x.element)
        return scaled * sigmoid(scaled).to(x.element)

    if len(ctx.inputs) == 1:
        return lambda x: silu(x, x * alpha)
    return lambda x, scale: silu(x, x * scale)


def _swiglu(ctx: Lowering) -> ScalarFunction:
    alpha = float_attr(ctx, "alpha", 1.0)
    # As in the op's function body: Swish of the gate is rounded before the product.
    return lambda a, b: (a * sigmoid(a * alpha)).to(a.element) * b


def _same_shape(op: OnnxOp) -> list[Requirement]:
    """Requires equal shapes of all operands, because these ops do not broadcast."""
    first, *others = (operand_dims(op, k) for k in range(len(op.inputs)))
    text = "its operands do not have the same shape"
    found = [equal(len(first), len(other), text) for other in others]
    return found + [equal(a, b, text) for other in others for a, b in zip(first, other, strict=False)]


def _gated_add(x: Scalar, y: Scalar, gate: Scalar) -> Scalar:
    return x + (y * gate).to(x.element)


def _rows_reason(op: OnnxOp) -> str | None:
    return None if operand_dims(op, 0) else "it has no rows"


def _gate_requires(op: OnnxOp) -> list[Requirement]:
    dims = operand_dims(op, 0)
    text = "its gate does not have one element per row"
    wanted = (dims, (*dims[:-1], ONE))
    return [at_most(1, dims[-1], "its rows have no elements")] + [
        each
        for index, want in enumerate(wanted, start=1)
        for each in (
            equal(len(operand_dims(op, index)), len(want), text),
            *(equal(a, b, text) for a, b in zip(operand_dims(op, index), want, strict=False)),
        )
    ]


def _scalar_scale(op: OnnxOp) -> str | None:
    return "its scale is not a scalar" if len(op.inputs) > 1 and operand_dims(op, 1) != () else None


def _bias_split_gelu(ctx: Lowering) -> list[SSAValue]:
    """Computes the first half of the features times the GELU of the second half, after adding a bias to both."""
    x, bias, half = ctx.required(0), ctx.required(1), ctx.out_dims()[-1]

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        left, right = (nest.read(x, [*i[:-1], at]) + nest.read(bias, [at]) for at in (i[-1], i[-1] + half))
        return left * gelu(right)

    return [ctx.generate(ctx.out_dims(), point)]


def _infer_split(ctx: InferContext) -> list[TensorInfo]:
    dims, bias = input_dims(ctx, 0), input_dims(ctx, 1)
    if dims is None:
        return [TensorInfo(element_type(ctx), None)]
    if bias:
        ctx.equate(dims[-1], bias[0])
    return [TensorInfo(element_type(ctx), (*dims[:-1], tidy(floordiv(dims[-1], Expr.of(2)))))]


def _split_requires(op: OnnxOp) -> list[Requirement]:
    dims, text = operand_dims(op, 0), "its features are not two halves with one bias each"
    return [equal(dims[-1], 2 * dims_of(op.results[0].type)[-1], text), equal(dims[-1], operand_dims(op, 1)[0], text)]


def _split_reason(op: OnnxOp) -> str | None:
    return None if operand_dims(op, 0) and len(operand_dims(op, 1)) == 1 else "it has no features, or no bias of rank 1"


def _prelu_reason(op: OnnxOp) -> str | None:
    if op.opset < 7 and product(dims_of(op.operands[1].type)) != 1:
        return "before opset 7 its slopes belong to channels; convert the model to opset 7 or later"
    return None


def _bias_requires(op: OnnxOp) -> list[Requirement]:
    """Requires a bias as long as a row; broadcasting it is not allowed."""
    if len(op.inputs) < 2 or op.inputs[1] is None:
        return []
    return [equal(operand_dims(op, 1)[-1], operand_dims(op, 0)[-1], "its bias does not have the length of a row")]


def _fast_bias_requires(op: OnnxOp) -> list[Requirement]:
    """Requires a full bias for f32, for which ONNX Runtime has a kernel; for other types it adds the bias as the op's
    function does."""
    return _bias_requires(op) if element_of(op.operands[0].type) == f32 else []


SPECS: list[OpSpec] = [
    pointwise_with("Celu", _celu, cost=EXP),
    pointwise_with("Elu", _elu, cost=EXP),
    pointwise_with("Gelu", _gelu, cost=EXP),
    pointwise_with("HardSigmoid", _hard_sigmoid, cost=4),
    pointwise("HardSwish", lambda x: x * unit_clip(x * SIXTH + 0.5), cost=5),
    pointwise_with("LeakyRelu", _leaky_relu, cost=2),
    pointwise("Mish", lambda x: x * softplus(x).tanh(), cost=3 * EXP),
    pointwise("PRelu", lambda x, slope: (x < 0).select(x * slope, x), cost=2, check=_prelu_reason),
    pointwise("Relu", lambda x: (x < 0).select(0, x)),
    pointwise_with("Selu", _selu, cost=EXP),
    pointwise_with("Shrink", _shrink, cost=4),
    pointwise("Sigmoid", sigmoid, cost=EXP),
    pointwise("Softplus", softplus, cost=2 * EXP),
    pointwise("Softsign", lambda x: x / (x.abs() + 1), cost=4),
    pointwise_with("Swish", _swish, cost=EXP),
    pointwise_with("ThresholdedRelu", _thresholded_relu, cost=2),
    also(pointwise_with("SwiGLU", _swiglu, cost=EXP), _same_shape),
    pointwise("com.microsoft.BiasAdd", lambda x, bias, skip: x + bias + skip, cost=2),
    also(pointwise("com.microsoft.BiasGelu", lambda x, bias: gelu(x + bias), cost=EXP), _bias_requires),
    OpSpec(
        "com.microsoft.BiasSplitGelu",
        infer=_infer_split,
        lower=_bias_split_gelu,
        legal=legal(computed_reason, _split_reason),
        requires=_split_requires,
        flops=elementwise_flops(EXP),
        kind="elementwise",
    ),
    also(pointwise_with("com.microsoft.FastGelu", _fast_gelu, cost=EXP), _fast_bias_requires),
    also(pointwise("com.microsoft.GatedAdd", _gated_add, cost=2, check=_rows_reason), _gate_requires),
    pointwise("com.microsoft.Gelu", gelu, cost=EXP),
    pointwise_with("com.microsoft.QuickGelu", _quick_gelu, cost=EXP),
    pointwise_with("com.microsoft.ScaledSiLU", _scaled_silu, cost=EXP, check=_scalar_scale),
]
