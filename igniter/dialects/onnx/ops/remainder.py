"""The exact remainder of floats: long division, in f64 for 32-bit and 16-bit floats, in integers for 64-bit floats."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import bf16, f16, f32, f64, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.lowering.broadcast import aligned
from igniter.dialects.sym import dims_of

if TYPE_CHECKING:
    from igniter.dialects.onnx.lowering import Lowering, Scalar
    from igniter.dialects.onnx.lowering.procedure import Procedure

QUOTIENT_BITS = 28
_STEPS: dict[Attribute, int] = {f16: 2, bf16: 10, f32: 10}
"""The number of steps of `QUOTIENT_BITS` bits to cover the greatest quotient of two numbers of a type."""


def float_remainder(ctx: Lowering) -> SSAValue:
    """Returns the remainder of the operands with the sign of the dividend, or, without `fmod`, of the divisor."""
    truncated = bool(ctx.attr("fmod", 0))

    def signed(rest: Scalar, y: Scalar) -> Scalar:
        return rest if truncated else _floored(rest, y)

    if ctx.element(0) == f64:
        return _wide(ctx, signed)
    steps = _STEPS[ctx.element(0)]
    return ctx.map(lambda x, y: signed(_narrow(x, y, steps), y))


def _floored(rest: Scalar, y: Scalar) -> Scalar:
    """Converts a remainder with the sign of the dividend to one with the sign of `y`, also for zero."""
    turned = (rest.eq(0) | ((rest < 0) ^ (y < 0)).eq(0)).select(rest, rest + y)
    return turned.eq(0).select(turned.copysign(y), turned)


def _narrow(x: Scalar, y: Scalar, steps: int) -> Scalar:
    """Computes the remainder of numbers with at most 24 bits: divisions by `y` times descending powers of 2, in f64.

    A step's quotient has at most 29 bits, and `y` has 24: their product is exact, and so is its difference from the
    rest, a multiple of the unit of `y` below 2^53 units. A quotient rounded up to an integer is one too large, and is
    corrected.
    """
    rest, size = x.to(f64).abs(), y.to(f64).abs()
    for k in reversed(range(steps)):
        part = size * 2.0 ** (QUOTIENT_BITS * k)
        less = rest - (rest / part).floor() * part
        less = (less < 0).select(less + part, less)
        rest = (rest < part).select(rest, less)
    return rest.copysign(x.to(f64)).to(x.element)


# -- f64 --------------------------------------------------------------------------------------------------------------

FRACTION = 52
"""The bits of the fraction of an f64."""
LEAST = 1075
"""The exponent bias: a number is its significand times 2 to the power of its biased exponent less this."""
SHIFT = 10
"""The spare bits of a 53-bit significand in an i64."""
ROUNDS = 205
"""The number of shifts for the greatest distance of two exponents."""
DOWN = 200


def _wide(ctx: Lowering, signed: Callable[[Scalar, Scalar], Scalar]) -> SSAValue:
    """Computes the remainder of the significands, shifted by the distance of the exponents a few bits at a time."""
    dims = ctx.out_dims()
    p = ctx.procedure([ctx.required(0), ctx.required(1)], [ctx.output_type()])
    at = p.axes(dims)
    values: list[Scalar] = []
    for buffer in p.buffers[:2]:
        subscripts = aligned(dims_of(buffer.type), at, dims)
        if isinstance(subscripts, str):
            raise ctx.fail(subscripts)
        values.append(p.load(buffer, subscripts))
    x, y = values
    (mine, high), (theirs, low) = _parts(x.abs()), _parts(y.abs())
    rest, left = p.variable(mine.rem(theirs), "rest"), p.variable(high - low, "left")
    going = p.variable(left.get() > 0, "going")
    with p.sequential(ROUNDS, going=going):
        by = left.get().minimum(SHIFT)
        rest.set(rest.get().shift_left(by).rem(theirs))
        left.set(left.get() - by)
        going.set(left.get() > 0)
    found = _composed(p, rest.get(), low)
    found = (x.abs() < y.abs()).select(x.abs(), found)
    none = x.is_nan() | y.is_nan() | x.abs().eq(float("inf")) | y.eq(0)
    found = none.select(float("nan"), found)
    p.store(signed(found.copysign(x), y), p.buffers[-1], at)
    return p.end()[0]


def _parts(x: Scalar) -> tuple[Scalar, Scalar]:
    """Returns significand and biased exponent of a non-negative number; a subnormal has the least exponent."""
    bits = x.bits(i64)
    exponent, fraction = bits.shift_right(FRACTION), bits & ((1 << FRACTION) - 1)
    return exponent.eq(0).select(fraction, fraction | (1 << FRACTION)), exponent.maximum(1)


def _composed(p: Procedure, significand: Scalar, exponent: Scalar) -> Scalar:
    """Returns the number, in two steps if the power of 2 alone would be subnormal."""
    power = exponent - LEAST
    deep = power < -1022
    normal = deep.select(power + DOWN, power)
    factor = (normal + 1023).shift_left(FRACTION).bits(f64)
    return significand.to(f64) * factor * deep.select(p.const(2.0**-DOWN, f64), 1.0)
