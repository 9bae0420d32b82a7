"""erf and cbrt."""

from __future__ import annotations

from igniter.backends.cpu.vmath import coefficients as table
from igniter.backends.cpu.vmath.exponential import DOUBLE, LOG2E, SINGLE, power_of_two, reduce_by_ln2, scale
from igniter.backends.cpu.vmath.num import Num, two_product


def erf(x: Num) -> Num:
    """f32: 2 ulp, f64: 2 ulp."""
    return _erf32(x) if x.type.bits == 32 else _erf64(x)


def _erf32(x: Num) -> Num:
    """Returns -expm1(-L) with L = -log(erfc |x|), a polynomial: one path for the whole line."""
    f = SINGLE
    y = x.abs().at_most(3.95)
    exponent = y.fma(y.polynomial(table.ERF32), y)
    # n is minus the usual one: 2^n = s. One constant for ln2 does, as in tanh.
    biased = exponent.fma(-LOG2E, f.magic)
    n = biased - f.magic
    r = n.fma(-f.ln2, -exponent)
    e = (r * r).fma(r.polynomial(f.exp), r)
    s = power_of_two(biased, f)
    return (-s).fma(e, 1.0 - s).with_sign_of(x)


def _erf64(x: Num) -> Num:
    """Evaluates a polynomial in x^2 below 1; above, 1 - e^(-x^2) * erfcx(x), rounded to 1 from 6 on."""
    size = x.abs()
    small = size.at_most(1.0)
    inner = small.fma((small * small).polynomial(table.ERF64), small)
    y = size.at_most(6.0)
    t = (y - 2.0) / (y + 2.0)
    square, lost = two_product(y, y)
    f = DOUBLE
    n, biased, r = reduce_by_ln2(-square, f)
    power = scale((r - lost).polynomial((1.0, 1.0, *f.exp)), n, biased, f)
    outer = 1.0 - power * t.polynomial(table.ERFC64)
    return size.gt(1.0).where(outer, inner).with_sign_of(x)


def cbrt(x: Num) -> Num:
    """fdlibm's s_cbrt.c: a guess of 5 bits from the exponent, a polynomial to 23, a Newton step. f64: 1 ulp."""
    size = x.abs()
    tiny = size.lt(2.2250738585072014e-308)
    scaled = tiny.where(size * 2.0**54, size)
    bias = tiny.where(scaled.bits().of(696219795 << 32), scaled.bits().of(715094163 << 32))
    # A third of the exponent; the product with 2^32/3 is exact enough for 31 bits.
    high = (((scaled.bits() >> 32) * 0x55555556) >> 32) << 32
    t = (high + bias).as_float()
    r = (t * t) * (t / size)
    t = t * (
        (1.87595182427177009643 + r * (-1.88497979543377169875 + r * 1.621429720105354466140))
        + ((r * r) * r) * (-0.758397934778766047437 + r * 0.145996192886612446982)
    )
    t = ((t.bits() + 0x80000000) & -(1 << 30)).as_float()
    quotient = size / (t * t)
    t = t.fma((quotient - t) / (t + t + quotient), t)
    # `scaled` is 0, too, for a subnormal number in a thread that takes it for 0.
    special = scaled.eq(0.0) | ~size.lt(float("inf"))
    return special.where(x, t.with_sign_of(x))
