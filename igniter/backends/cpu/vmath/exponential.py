"""exp, exp2, expm1, tanh, sinh, cosh for f32 and f64.

Cody-Waite: x = n*ln2 + r, |r| <= ln2/2, e^x = 2^n * e^r, with e^r a polynomial whose leading terms are exact.
Adding 1.5*2^(p-1) rounds to an integer and leaves n in the low bits, ready to become an exponent.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from igniter.backends.cpu.builder import Value
from igniter.backends.cpu.llvm_types import Type
from igniter.backends.cpu.vmath import coefficients as table
from igniter.backends.cpu.vmath.num import Num

LOG2E = 1.4426950408889634


@dataclass(frozen=True)
class Format:
    """The parameters of a binary format for the algorithms."""

    mantissa: int
    bias: int
    magic: float
    magic_bits: int
    ln2_high: float
    """The high part of ln2, short enough for an exact product with an exponent, without FMA too."""
    ln2_low: float
    ln2: float
    exp_range: tuple[float, float]
    exp2_range: tuple[float, float]
    expm1_range: tuple[float, float]
    vanishing: float
    """An argument just below those with normal results: 2^n with the bits of its exponent is 0."""
    sinh_limit: float
    tanh_limit: float
    exp: tuple[float, ...]
    expm1: tuple[float, ...]
    exp2: tuple[float, ...]


SINGLE = Format(
    mantissa=23,
    bias=127,
    magic=12582912.0,
    magic_bits=0x4B400000,
    ln2_high=0.693359375,
    ln2_low=-2.12194440054690583e-4,
    ln2=0.6931471805599453,
    exp_range=(-104.0, 89.0),
    exp2_range=(-151.0, 129.0),
    expm1_range=(-18.0, 89.0),
    vanishing=-88.0,
    sinh_limit=89.5,
    tanh_limit=9.02,
    exp=table.EXP32,
    expm1=table.EXPM1_32,
    exp2=table.EXP2_32,
)
DOUBLE = Format(
    mantissa=52,
    bias=1023,
    magic=6755399441055744.0,
    magic_bits=struct.unpack("<Q", struct.pack("<d", 6755399441055744.0))[0],
    ln2_high=6.93147180369123816490e-01,
    ln2_low=1.90821492927058770002e-10,
    ln2=0.6931471805599453,
    exp_range=(-746.0, 710.0),
    exp2_range=(-1076.0, 1025.0),
    expm1_range=(-40.0, 710.0),
    vanishing=-709.0,
    sinh_limit=710.6,
    tanh_limit=19.1,
    exp=table.EXP64,
    expm1=table.EXPM1_64,
    exp2=table.EXP2_64,
)


def format_of(x: Num) -> Format:
    return SINGLE if x.type.bits == 32 else DOUBLE


def reduce_by_ln2(x: Num, f: Format) -> tuple[Num, Num, Num]:
    """Returns (n, n + magic, x - n*ln2)."""
    biased = x.fma(LOG2E, f.magic)
    n = biased - f.magic
    r = n.fma(-f.ln2_high, x)
    return n, biased, n.fma(-f.ln2_low, r)


def power_of_two(biased: Num, f: Format, offset: int = 0) -> Num:
    """Returns 2^(n + offset) from n + magic, for a normal result."""
    return ((biased.bits() + (f.bias + offset - f.magic_bits)) << f.mantissa).as_float()


def scale(p: Num, n: Num, biased: Num, f: Format) -> Num:
    """Returns p * 2^n with p near 1, rounded once, for any n of the clamped range: subnormal results, too."""
    scalef = _scalef(p, n)
    if scalef is not None:
        return scalef
    # 2^n in two normal factors. Multiplication preserves NaN; addition to the exponent would not.
    exponent = biased.bits() + (2 * f.bias - f.magic_bits)
    half = exponent >> 1
    rest = exponent - half
    return p * (half << f.mantissa).as_float() * (rest << f.mantissa).as_float()


def _scalef(p: Num, n: Num) -> Num | None:
    """Returns p * 2^n in AVX-512's instruction, with the right rounding and overflow; None on other targets."""
    t = p.type
    if p.b.target.vector_bytes != 64 or t.lanes * t.bits != 512:
        return None
    name = "llvm.x86.avx512.mask.scalef.p" + ("s.512" if t.bits == 32 else "d.512")
    mask = Value(Type("i16" if t.bits == 32 else "i8"), "-1")
    current_rounding = Value(Type("i32"), "4")
    return Num(p.b, p.b.call(name, t, [p.v, n.v, p.of(0.0).v, mask, current_rounding]))


def exp(x: Num) -> Num:
    """f32: 1 ulp, f64: 1 ulp (1.1 without FMA)."""
    f = format_of(x)
    x = x.at_most(f.exp_range[1]).at_least(f.exp_range[0])
    n, biased, r = reduce_by_ln2(x, f)
    return scale(r.polynomial((1.0, 1.0, *f.exp)), n, biased, f)


def exp_nonpositive(x: Num) -> Num:
    """Returns e^x for x up to 0, and a little above: f32: 1 ulp, f64: 1 ulp, but 0 in the place of most subnormals.

    One factor scales the polynomial. The magic number includes the bias of exponents, so the low bits of the sum are
    the exponent of the factor, and those of the least argument make it 0.
    """
    f = format_of(x)
    x = x.at_least(f.vanishing)
    magic = f.magic + f.bias
    biased = x.fma(LOG2E, magic)
    n = biased - magic
    p = n.fma(-f.ln2_low, n.fma(-f.ln2_high, x)).polynomial((1.0, 1.0, *f.exp))
    # AVX-512's scalef would round the least arguments, -inf among them, to a subnormal number.
    return p * (biased.bits() << f.mantissa).as_float()


def exp_saturating(x: Num) -> Num:
    """Returns e^x as `exp_nonpositive` does, for any x: infinity from 2^127.5 on (f64: 2^1023.5)."""
    return exp_nonpositive(x.at_most(format_of(x).exp_range[1]))


def exp2(x: Num) -> Num:
    """f32: 1 ulp, f64: 1 ulp."""
    f = format_of(x)
    x = x.at_most(f.exp2_range[1]).at_least(f.exp2_range[0])
    biased = x + f.magic
    n = biased - f.magic
    r = x - n
    return scale(r.fma(r.polynomial(f.exp2), 1.0), n, biased, f)


def _expm1_of_rest(r: Num, f: Format) -> Num:
    """Returns e^r - 1 for |r| <= ln2/2."""
    return (r * r).fma(r.polynomial(f.expm1), r)


def expm1(x: Num) -> Num:
    """f32: 2 ulp, f64: 2 ulp; relative to the small result near 0."""
    f = format_of(x)
    clamped = x.at_most(f.expm1_range[1]).at_least(f.expm1_range[0])
    _, biased, r = reduce_by_ln2(clamped, f)
    # Half the result, so that 2^(n-1) never overflows.
    s = power_of_two(biased, f, -1)
    half = s.fma(_expm1_of_rest(r, f), s - 0.5)
    return (half + half).with_sign_of(x)


def tanh(x: Num) -> Num:
    """Returns t/(t+2) with t = e^(2|x|) - 1. f32: 2 ulp, f64: 2 ulp; never beyond 1."""
    f = format_of(x)
    y = x.abs().at_most(f.tanh_limit)
    # With the bias of exponents in the magic number, the low bits of the sum are the exponent of 2^n.
    magic = f.magic + f.bias
    biased = y.fma(2 * LOG2E, magic)
    n = biased - magic
    # One constant for ln2 does: its error counts for n >= 1 only, where the quotient hardly feels it.
    r = n.fma(-f.ln2, y + y)
    e = _expm1_of_rest(r, f)
    s = (biased.bits() << f.mantissa).as_float()
    t, t_and_2 = s.fma(e, s - 1.0), s.fma(e, s + 1.0)
    # Above 1/2, 1 - 2/(t+2) is equal, and the rounding errors of t and t+2 are negligible.
    upper = y.gt(0.5493061443340548)
    quotient = upper.where(-2.0, t) / t_and_2
    return upper.where(quotient + 1.0, quotient).with_sign_of(x)


def _quarter_exp(x: Num, f: Format) -> tuple[Num, Num]:
    """Returns ((e^x - 1)/4, e^x/4) for x >= 0, up to the overflow of sinh."""
    _, biased, r = reduce_by_ln2(x.at_most(f.sinh_limit), f)
    s = power_of_two(biased, f, -2)
    e = _expm1_of_rest(r, f)
    return s.fma(e, s - 0.25), s.fma(e, s)


def sinh(x: Num) -> Num:
    """Returns t/2 + t/(2(t+1)) with t = e^|x| - 1. 2 ulp."""
    t, e = _quarter_exp(x.abs(), format_of(x))
    half = (t / e).fma(0.25, t)
    return (half + half).with_sign_of(x)


def cosh(x: Num) -> Num:
    """Returns (e^|x| + e^-|x|)/2. 2 ulp."""
    _, e = _quarter_exp(x.abs(), format_of(x))
    half = e + 0.0625 / e
    return half + half
