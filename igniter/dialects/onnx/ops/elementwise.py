"""Elementwise ops: arithmetic, functions, comparisons, logic, bits, conversions. Activations are in `activation.py`.

Where ONNX leaves a case undefined, the kernels follow ONNX Runtime on x86-64; tests compare them. A zero integer
divisor of Div or Mod ends the run with an error, even if the result is empty.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import bf16, f16, f32, f64, i1, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.loop import element_bytes, is_float
from igniter.dialects.loop.attrs import SMALL_FLOATS
from igniter.dialects.onnx.base import constant_value
from igniter.dialects.onnx.draws import draws
from igniter.dialects.onnx.lowering.small_floats import encode
from igniter.dialects.onnx.ops.pointwise import (
    EXP,
    broadcast_infer,
    broadcast_legal,
    computed_reason,
    elementwise_flops,
    float_attr,
    pointwise,
    pointwise_with,
    same_as_input,
    scalar_reason,
    ui8,
    variadic,
)
from igniter.dialects.onnx.ops.powers import power
from igniter.dialects.onnx.ops.random import lower_dropout
from igniter.dialects.onnx.ops.remainder import float_remainder
from igniter.dialects.onnx.ops.rules import element_type, input_dims, legal
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.onnx.types import BY_CODE
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.ranges import is_nonneg
from igniter.dialects.sym.requirements import FINE

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
    from igniter.dialects.onnx.lowering.context import ScalarFunction, Subscripts


# -- arithmetic -------------------------------------------------------------------------------------------------------


def _sign(x: Scalar) -> Scalar:
    if x.is_unsigned:
        return x.ne(0).select(1, x)
    # A zero keeps its sign, and NaN stays NaN.
    return (x > 0).select(1, (x < 0).select(-1, x))


def _check_divisor(ctx: Lowering) -> None:
    """Makes a run end with an error if an integer divisor is 0."""
    divisor, constant, values = ctx.required(1), ctx.constant(1), ctx.values(1)
    sure = constant is not None and bool(constant.all())
    if is_float(ctx.element(1)) or sure or (values is not None and all(is_nonneg(v - 1) for v in values)):
        return

    def wrong(nest: Nest, _: Subscripts, at: Subscripts) -> Scalar:
        return nest.read(divisor, at).eq(0).select(nest.const(0, i64), nest.const(FINE, i64))

    over = dims_of(divisor.type)
    ctx.check(
        ctx.generate([], wrong, over=over, combiner="max", element=i64, part="check"), ("cannot divide an integer by")
    )


def _div(ctx: Lowering) -> ScalarFunction:
    _check_divisor(ctx)
    return lambda x, y: x / y


def _mod(ctx: Lowering) -> list[SSAValue]:
    if is_float(ctx.element(0)):
        return [float_remainder(ctx)]
    _check_divisor(ctx)
    return [ctx.map(_integer_remainder(bool(ctx.attr("fmod", 0))))]


def _integer_remainder(truncated: bool) -> ScalarFunction:
    """Returns the remainder with the sign of the dividend, or of the divisor."""

    def floored(x: Scalar, y: Scalar) -> Scalar:
        rest = x.rem(y)
        if x.is_unsigned:
            return rest
        return (rest.ne(0) & ((rest ^ y) < 0)).select(rest + y, rest)

    return (lambda x, y: x.rem(y)) if truncated else floored


def _mod_slow(op: OnnxOp, estimate: Callable[[Expr], int]) -> str | None:
    many = element_of(op.operands[0].type) in (bf16, f32)
    return "an exact remainder takes ten divisions in a kernel, regardless of the quotient" if many else None


def _mod_reason(op: OnnxOp) -> str | None:
    if is_float(element_of(op.operands[0].type)) and not op.attr("fmod", 0) and op.opset < 28:
        return "before opset 28 the remainder of floats needs fmod=1"
    return None


def _bit_shift(ctx: Lowering) -> ScalarFunction:
    if str(ctx.attr("direction")) == "LEFT":
        return lambda x, y: x.shift_left(y)
    return lambda x, y: x.shift_right(y)


def _mean(*xs: Scalar) -> Scalar:
    return reduce(lambda a, b: a + b, xs) / len(xs)


def _function(name: str, cost: int) -> OpSpec:
    """Returns the spec of an op equal to the `math` dialect's function of the same name."""
    return pointwise(name, lambda x: x.math(name.lower()), cost=cost)


# -- tests ------------------------------------------------------------------------------------------------------------


def _is_inf(ctx: Lowering) -> ScalarFunction:
    negative, positive = ctx.attr("detect_negative", 1), ctx.attr("detect_positive", 1)
    infinity = float("inf")
    if negative and positive:
        return lambda x: x.abs().eq(infinity)
    if negative or positive:
        return lambda x: x.eq(infinity if positive else -infinity)
    return lambda x: x.ne(x) & x.eq(x)


# -- conversions ------------------------------------------------------------------------------------------------------


def _cast_infer(ctx: InferContext) -> list[TensorInfo]:
    target = BY_CODE.get(int(ctx.op.attr("to", 0)))
    if target is None:
        raise ValueError(f"unknown element type code {ctx.op.attr('to')}")
    source = ctx.input(0)
    return [TensorInfo(target.attr, None if source is None else source.dims)]


def _cast_like_infer(ctx: InferContext) -> list[TensorInfo]:
    return [TensorInfo(element_type(ctx, 1), input_dims(ctx, 0))]


def _cast(ctx: Lowering) -> list[SSAValue]:
    target = ctx.out_element()
    if target == ctx.element(0):
        return [ctx.view(ctx.required(0), ctx.out_dims())]
    if isinstance(target, SMALL_FLOATS):
        saturate, mode = bool(ctx.attr("saturate", 1)), str(ctx.attr("round_mode", "up"))
        return [ctx.map(lambda x: encode(x.to(f32), target, saturate, mode), ctx.required(0))]
    return [ctx.map(lambda x: x.to(target), ctx.required(0))]


def _bit_cast(ctx: Lowering) -> list[SSAValue]:
    """Bitcasts; a bool is a byte in memory and a bit in a kernel, so any byte other than 0 becomes true."""
    source, target = ctx.element(0), ctx.out_element()
    if target == i1:
        return [ctx.map(lambda x: x.bits(ui8).ne(0), ctx.required(0))]
    if source == i1:
        return [ctx.map(lambda x: x.to(ui8).bits(target), ctx.required(0))]
    return [ctx.map(lambda x: x.bits(target), ctx.required(0))]


def _bit_cast_reason(op: OnnxOp) -> str | None:
    elements = [element_of(v.type) for v in (op.operands[0], op.results[0])]
    sizes = {element_bytes(e) for e in elements}
    return None if len(sizes) == 1 else "its two types have different widths"


def _same_dims(op: OnnxOp) -> str | None:
    if dims_of(op.operands[0].type) == dims_of(op.results[0].type):
        return None
    return "its result is not known to have the dims of its input"


def _where_infer(ctx: InferContext) -> list[TensorInfo]:
    return broadcast_infer("where", element_type(ctx, 1))(ctx)


# -- clip, dropout ----------------------------------------------------------------------------------------------------


def _clip(ctx: Lowering) -> list[SSAValue]:
    x = ctx.required(0)

    def point(nest: Nest, at: Subscripts) -> Scalar:
        value = nest.read(x, at)
        # Not minimum and maximum: a NaN bound has no effect.
        low, high = _bound(ctx, nest, 1, "min"), _bound(ctx, nest, 2, "max")
        value = value if low is None else (value < low).select(low, value)
        return value if high is None else (value > high).select(high, value)

    return [ctx.generate(ctx.out_dims(), point)]


def _bound(ctx: Lowering, nest: Nest, index: int, name: str) -> Scalar | None:
    """Returns a bound, by default the type's least or greatest finite value; None if that has no effect."""
    element = ctx.element(0)
    if ctx.opset < 11 and ctx.attr(name) is not None:
        return nest.const(float_attr(ctx, name), element)
    tensor = ctx.input(index) if ctx.opset >= 11 else None
    if tensor is not None:
        return nest.read(tensor, [0] * len(dims_of(tensor.type)))
    if element not in _GREATEST:
        return None
    return nest.const(_GREATEST[element] if name == "max" else -_GREATEST[element], element)


_GREATEST: dict[Attribute, float] = {
    f16: 65504.0,
    bf16: (2 - 2.0**-7) * 2.0**127,
    f32: (2 - 2.0**-23) * 2.0**127,
    f64: sys.float_info.max,
}


def _clip_reason(op: OnnxOp) -> str | None:
    return scalar_reason(op, 1, "minimum") or scalar_reason(op, 2, "maximum")


def _dropout(ctx: Lowering) -> list[SSAValue | None]:
    if draws(ctx.op):
        return lower_dropout(ctx)
    # Before the input for training existed, ONNX Runtime left the mask zero.
    kept = int(ctx.opset >= 12)
    mask = ctx.splat(kept, ctx.out_dims(1), ctx.out_element(1)) if ctx.wants(1) else None
    return [ctx.view(ctx.required(0), ctx.out_dims()), mask]


def _dropout_infer(ctx: InferContext) -> list[TensorInfo]:
    own = element_type(ctx)
    mask = i1 if ctx.op.opset >= 10 else own
    return [TensorInfo(own, input_dims(ctx, 0)), TensorInfo(mask, input_dims(ctx, 0))]


def _dropout_reason(op: OnnxOp) -> str | None:
    if op.opset < 7:
        return None if int(op.attr("is_test", 0)) == 1 else "it drops values at random, in training"
    inputs = op.inputs
    if draws(op) or len(inputs) < 3 or inputs[2] is None:
        return None
    training = constant_value(inputs[2])
    if training is None:
        return "whether it is in training is known only at run time"
    return "it drops values at random, in training" if training.any() else None


def _identity(ctx: Lowering) -> list[SSAValue]:
    return [ctx.view(ctx.required(0), ctx.out_dims())]


SPECS: list[OpSpec] = [
    # arithmetic
    pointwise("Abs", lambda x: x.abs()),
    pointwise("Add", lambda x, y: x + y),
    pointwise("Ceil", lambda x: x.math("ceil")),
    pointwise_with("Div", _div, cost=4),
    pointwise("Floor", lambda x: x.floor()),
    variadic("Max", lambda ctx: lambda *xs: reduce(lambda a, b: a.maximum(b), xs)),
    variadic("Mean", lambda ctx: _mean, last=4),
    variadic("Min", lambda ctx: lambda *xs: reduce(lambda a, b: a.minimum(b), xs)),
    OpSpec(
        "Mod",
        infer=broadcast_infer("Mod"),
        lower=_mod,
        legal=legal(computed_reason, broadcast_legal, _mod_reason),
        flops=elementwise_flops(8),
        unprofitable=_mod_slow,
        kind="elementwise",
    ),
    pointwise("Mul", lambda x, y: x * y),
    pointwise("Neg", lambda x: -x),
    pointwise("Pow", power, cost=2 * EXP),
    pointwise("Reciprocal", lambda x: 1 / x, cost=4),
    pointwise("Round", lambda x: x.math("roundeven")),
    pointwise("Sign", _sign, cost=2),
    pointwise("Sqrt", lambda x: x.sqrt(), cost=4),
    pointwise("Sub", lambda x, y: x - y),
    variadic("Sum", lambda ctx: lambda *xs: reduce(lambda a, b: a + b, xs)),
    # functions
    *(_function(name, EXP) for name in ("Cos", "Cosh", "Erf", "Exp", "Log", "Sin", "Sinh", "Tan", "Tanh")),
    *(_function(name, 2 * EXP) for name in ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh")),
    # comparisons and logic
    pointwise("And", lambda x, y: x & y),
    pointwise("Equal", lambda x, y: x.eq(y), element=i1),
    pointwise("Greater", lambda x, y: x > y, element=i1),
    pointwise("GreaterOrEqual", lambda x, y: x >= y, element=i1),
    pointwise_with("IsInf", _is_inf, element=i1),
    pointwise("IsNaN", lambda x: x.is_nan(), element=i1),
    pointwise("Less", lambda x, y: x < y, element=i1),
    pointwise("LessOrEqual", lambda x, y: x <= y, element=i1),
    pointwise("Not", lambda x: ~x),
    pointwise("Or", lambda x, y: x | y),
    pointwise("Xor", lambda x, y: x ^ y),
    # bits
    pointwise_with("BitShift", _bit_shift, cost=2),
    pointwise("BitwiseAnd", lambda x, y: x & y),
    pointwise("BitwiseNot", lambda x: ~x),
    pointwise("BitwiseOr", lambda x, y: x | y),
    pointwise("BitwiseXor", lambda x, y: x ^ y),
    # the rest
    OpSpec(
        "BitCast",
        infer=_cast_infer,
        lower=_bit_cast,
        legal=legal(_same_dims, _bit_cast_reason),
        flops=elementwise_flops(0),
        kind="elementwise",
    ),
    OpSpec(
        "Cast",
        infer=_cast_infer,
        lower=_cast,
        legal=legal(_same_dims),
        flops=elementwise_flops(1),
        kind="elementwise",
    ),
    OpSpec(
        "CastLike",
        infer=_cast_like_infer,
        lower=_cast,
        legal=legal(_same_dims),
        flops=elementwise_flops(1),
        kind="elementwise",
    ),
    OpSpec(
        "Clip",
        infer=same_as_input(None),
        lower=_clip,
        legal=legal(computed_reason, _same_dims, _clip_reason),
        flops=elementwise_flops(2),
        kind="elementwise",
    ),
    OpSpec(
        "Dropout",
        infer=_dropout_infer,
        lower=_dropout,
        legal=legal(_same_dims, _dropout_reason),
        flops=elementwise_flops(0),
        kind="elementwise",
    ),
    OpSpec(
        "Identity",
        infer=same_as_input(None),
        lower=_identity,
        legal=legal(_same_dims),
        flops=elementwise_flops(0),
        kind="elementwise",
    ),
    replace(pointwise("Where", lambda c, x, y: c.select(x, y)), infer=_where_infer),
]
