"""Powers of floats and of integers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f64

from igniter.dialects.onnx.lowering.scalar import int_bits

if TYPE_CHECKING:
    from igniter.dialects.onnx.lowering import Scalar


def power(x: Scalar, y: Scalar) -> Scalar:
    """Returns the power as in ONNX Runtime: `x*x` and `x*x*x` for these exponents, and mixed types in f64. Powers of
    integers are exact and wrap, unlike ONNX Runtime's."""
    exponent = y.number
    if exponent == 2:
        return x * x
    if exponent == 3:
        return x * x * x
    if x.is_float:
        if exponent is not None:
            return _pow_constant(x, float(exponent))
        if y.element == x.element:
            return x.pow(y)
    elif not y.is_float:
        return integer_power(x, y)
    return x.to(f64).pow(y.to(f64)).to(x.element)


def integer_power(x: Scalar, y: Scalar) -> Scalar:
    """Returns `x**y` of integers, by repeated squaring with wrapping.

    A negative exponent gives the quotient 1 / x**n, rounded towards zero, and 0 for x = 0, as in PyTorch.
    """
    bits, exponent = int_bits(x.element), y.number
    if exponent is not None and exponent >= 0:
        return _power(x, int(exponent))
    made, base = x.nest.const(1, x.element), x
    for k in range(min(bits, int_bits(y.element))):
        odd = (y.shift_right(k) & 1).ne(0)
        made, base = odd.select(made * base, made), base * base
    if int_bits(y.element) > bits:
        # The power of an odd base repeats with a period of 2**(bits - 2); that of an even one is 0.
        made = (y.shift_right(bits).ne(0) & (x & 1).eq(0)).select(0, made)
    if y.is_unsigned:
        return made
    inverse = x.eq(1).select(x, x.nest.const(0, x.element))
    if not x.is_unsigned:
        odd = (y & 1).ne(0)
        inverse = x.eq(-1).select(odd.select(x, x.nest.const(1, x.element)), inverse)
    return (y < 0).select(inverse, made)


def _power(x: Scalar, exponent: int) -> Scalar:
    """Returns a power with a known, non-negative exponent."""
    made, base = x.nest.const(1, x.element), x
    while exponent:
        if exponent & 1:
            made = made * base
        exponent >>= 1
        base = base * base
    return made


def _pow_constant(x: Scalar, exponent: float) -> Scalar:
    wide = x.widened()
    if exponent == 1:
        return x
    if exponent == -1:
        return 1 / wide
    if exponent in (0.5, -0.5):
        # Unlike a square root, pow(-0, 0.5) is +0 and pow(-inf, 0.5) is +inf.
        root = wide.eq(float("-inf")).select(float("inf"), (wide + 0.0).sqrt())
        return root if exponent > 0 else 1 / root
    return wide.pow(exponent)
