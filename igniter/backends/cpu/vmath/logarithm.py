"""log, log2, log10, log1p, asinh, acosh, atanh and pow.

x = 2^e * m with m in [sqrt(1/2), sqrt(2)); log m from f = m - 1. In f64 through s = f/(2+f), as in fdlibm's e_log.c;
where more than 53 bits are needed (log2, log10, pow) the leading terms are kept as pairs.
"""

from __future__ import annotations

from igniter.backends.cpu.vmath import coefficients as table
from igniter.backends.cpu.vmath.exponential import DOUBLE, SINGLE, Format, format_of, reduce_by_ln2, scale
from igniter.backends.cpu.vmath.num import Num, Pair, fast_two_sum, pair_add, pair_mul, two_product, two_sum

INF = float("inf")
NAN = float("nan")
SQRT_HALF = {32: 0x3F3504F3, 64: 0x3FE6A09E667F3BCD}
LN2_PAIR = (0.6931471805599453, 2.3190468138462996e-17)
LOG2E_PAIR = (1.4426950408889634, 2.0355273740931033e-17)
LOG10E_PAIR = (0.4342944819032518, 1.098319650216765e-17)
LOG10_2_PAIR = (0.30102999566398120, -2.8037281277851704e-18)


def decompose(x: Num, subnormals: bool = True) -> tuple[Num, Num, Num]:
    """Returns (e as a float, m, the biased exponent as an integer), for finite x > 0."""
    f = format_of(x)
    width = x.type.bits
    correction: Num | float = float(f.bias)
    if subnormals:
        # A subnormal number is its bits, times the least one. Integers hold in threads that take it for 0, too.
        tiny = x.bits().lt(1 << f.mantissa)
        x = tiny.where(_to_float(x.bits(), f), x)
        correction = tiny.where(x.of(2 * f.bias - 1 + f.mantissa), x.of(f.bias))
    one = f.bias << f.mantissa
    shifted = x.bits() + (one - SQRT_HALF[width])
    biased = shifted >> f.mantissa
    m = ((shifted & ((1 << f.mantissa) - 1)) + SQRT_HALF[width]).as_float()
    return _to_float(biased, f) - correction, m, biased


def _to_float(k: Num, f: Format) -> Num:
    """Converts a small non-negative integer to a float of the same width; AVX2 cannot convert 64-bit integers."""
    if f is SINGLE:
        return k.cast("sitofp", "float")
    return (k | 0x4330000000000000).as_float() - 4503599627370496.0


def finish(x: Num, result: Num) -> Num:
    """Returns `result` for finite x > 0, and otherwise the logarithm of 0, negatives, infinity and NaN."""
    special = x.lt(0.0).where(NAN, x)
    special = x.eq(0.0).where(-INF, special)
    # By the bits: in a thread that takes subnormal numbers for 0, LLVM's comparison and `x` itself could disagree.
    regular = x.bits().gt(0) & x.bits().lt(x.of(INF).bits())
    return regular.where(result, special)


def log(x: Num) -> Num:
    """f32: 1 ulp, f64: 1 ulp."""
    e, m, _ = decompose(x)
    f = m - 1.0
    result = _log32(e, f) if x.type.bits == 32 else _log64(e, f)
    return finish(x, result)


def _log32(e: Num, f: Num) -> Num:
    square = f * f
    q = f.polynomial(table.LOG32).fma(f, -0.5)
    r = e.fma(SINGLE.ln2_low, square * q) + f
    return e.fma(SINGLE.ln2_high, r)


def _log64(e: Num, f: Num) -> Num:
    """Returns log(2^e * (1 + f))."""
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    rest = z * z.polynomial(table.LOG64)
    inner = s.fma(half_square + rest, e * DOUBLE.ln2_low)
    return e.fma(DOUBLE.ln2_high, f - (half_square - inner))


def _log_for32(e: Num, f: Num) -> Num:
    """Returns the logarithm in f64, to 40 bits: enough for f32."""
    s = f / (f + 2.0)
    z = s * s
    return e.fma(DOUBLE.ln2, s * z.polynomial((2.0, *table.LOG_FOR32)))


def _log_pair(f: Num) -> Pair:
    """Returns log(1 + f) to some 60 bits."""
    s = f / (f + 2.0)
    z = s * s
    half_square = f * f * 0.5
    rest = z * z.polynomial(table.LOG64)
    high = f - half_square
    low = ((f - high) - half_square) + s * (half_square + rest)
    return high, low


def _log_in_base(x: Num, per_e: tuple[float, float], scale_pair: tuple[float, float]) -> Num:
    e, m, _ = decompose(x)
    high, low = _log_pair(m - 1.0)
    factor = (high.of(scale_pair[0]), high.of(scale_pair[1]))
    product, error = two_product(high, factor[0])
    error = error + high.fma(factor[1], low * factor[0])
    whole, lost = two_product(e, e.of(per_e[0])) if per_e[1] else (e * per_e[0], e * 0.0)
    total, more = two_sum(whole, product)
    return finish(x, total + (more + (error + e.fma(per_e[1], lost))))


def log2(x: Num) -> Num:
    """f64: 1 ulp."""
    return _log_in_base(x, (1.0, 0.0), LOG2E_PAIR)


def log10(x: Num) -> Num:
    """f64: 1 ulp."""
    return _log_in_base(x, LOG10_2_PAIR, LOG10E_PAIR)


def log1p(x: Num) -> Num:
    """f64: 2 ulp. The rounding error of 1 + x is added to f."""
    u = x + 1.0
    lost = x.gt(1.0).where(1.0 - (u - x), x - (u - 1.0))
    e, m, biased = decompose(u, subnormals=False)
    inverse = ((2 * DOUBLE.bias - biased) << DOUBLE.mantissa).as_float()
    f = lost.fma(inverse, m - 1.0)
    return finish(u, _log64(e, f)).with_sign_of(x.lt(-1.0).where(u, x))


def asinh(x: Num) -> Num:
    """Returns log1p(|x| + x^2/(1 + sqrt(x^2 + 1))). f64: 3 ulp."""
    a = x.abs()
    huge = a.gt(2.0**28)
    y = huge.where(a.of(1.0), a)
    square = y * y
    small = log1p(y + square / ((square + 1.0).sqrt() + 1.0))
    return huge.where(log(a) + LN2_PAIR[0], small).with_sign_of(x)


def acosh(x: Num) -> Num:
    """Returns log1p(t + sqrt(2t + t^2)), t = x - 1. f64: 3 ulp; NaN below 1."""
    huge = x.gt(2.0**28)
    t = huge.where(x.of(1.0), x) - 1.0
    small = log1p(t + t.fma(t, t + t).sqrt())
    return x.lt(1.0).where(NAN, huge.where(log(x) + LN2_PAIR[0], small))


def atanh(x: Num) -> Num:
    """Returns log1p(2|x|/(1 - |x|))/2. f64: 3 ulp; NaN beyond 1."""
    a = x.abs()
    return (log1p((a + a) / (1.0 - a)) * 0.5).with_sign_of(x)


def pow_for32(x: Num, y: Num) -> Num:
    """Returns pow of floats, computed in f64: the result rounded to float is within 0.51 ulp."""
    e, m, _ = decompose(x.abs(), subnormals=False)
    size = x.abs()
    logarithm = _special_log(size, _log_for32(e, m - 1.0))
    f = DOUBLE
    product = (y * logarithm).at_most(f.exp_range[1]).at_least(f.exp_range[0])
    n, biased, r = reduce_by_ln2(product, f)
    power = scale(r.polynomial((1.0, 1.0, *table.EXP_FOR32)), n, biased, f)
    return _pow_cases(x, y, power)


def pow64(x: Num, y: Num) -> Num:
    """Returns pow of doubles with a logarithm of some 64 bits. 2 ulp."""
    size = x.abs()
    e, m, _ = decompose(size)
    high, low = pair_add(_scaled_ln2(e), _log_exact(m))
    regular = size.gt(0.0) & size.lt(INF)
    special = _special_log(size, high)
    # Beyond the range of exp the pair's low part is noise, and its product may be infinite: leave it out.
    product, error = two_product(high, y)
    low_part = error + y * low
    plain = special * y
    inside = regular & plain.abs().lt(1e3)
    product = inside.where(product, plain)
    low_part = inside.where(low_part, 0.0)
    f = DOUBLE
    clamped = product.at_most(f.exp_range[1]).at_least(f.exp_range[0])
    n, biased, r = reduce_by_ln2(clamped, f)
    r, rest = fast_two_sum(r, low_part)
    p = r.polynomial((1.0, 1.0, *f.exp))
    return _pow_cases(x, y, scale(p.fma(rest, p), n, biased, f))


def _scaled_ln2(e: Num) -> Pair:
    product, error = two_product(e, e.of(LN2_PAIR[0]))
    return product, e.fma(LN2_PAIR[1], error)


def _log_exact(m: Num) -> Pair:
    """Returns log m as a pair: 2s + (2/3)s^3 + s^5 P(s^2), s = (m-1)/(m+1), the first two terms in pairs."""
    top = m - 1.0
    bottom, bottom_low = two_sum(m, m.of(1.0))
    s = top / bottom
    product, error = two_product(s, bottom)
    s_low = (((top - product) - error) - s * bottom_low) / bottom
    z, z_low = two_product(s, s)
    z_low = z_low + (s + s) * s_low
    third = (m.of(0.6666666666666666), m.of(3.700743415417188e-17))
    cube = pair_mul((z, z_low), third)
    fifth = z * z * z.polynomial(table.LOG64_FIFTH)
    inner = pair_add(cube, (fifth, m.of(0.0)))
    outer = pair_mul((s, s_low), inner)
    return pair_add((s + s, s_low + s_low), outer)


def _special_log(size: Num, result: Num) -> Num:
    """Corrects the logarithm of 0 and infinity; NaN stays."""
    special = size.eq(0.0).where(-INF, size)
    return (size.gt(0.0) & size.lt(INF)).where(result, special)


def _pow_cases(x: Num, y: Num, power: Num) -> Num:
    """Applies IEEE 754's special cases, given |x|^y."""
    size = y.abs()
    # Adding and subtracting 2^52 rounds smaller numbers to integers.
    big = 2.0**52
    whole = size.ge(big) | ((size + big) - big).eq(size)
    half_y = size * 0.5
    odd = whole & ~(size.ge(2 * big) | ((half_y + big) - big).eq(half_y))
    negative = (x.bits() >> 63).ne(0)
    # x < 0: the sign for odd y, NaN for non-integer y (except for -0, -inf and infinite y).
    result = (negative & odd).where(-power, power)
    invalid = x.lt(0.0) & x.gt(-INF) & ~whole
    result = invalid.where(NAN, result)
    one = x.eq(1.0) | y.eq(0.0) | (x.eq(-1.0) & size.eq(INF))
    return one.where(1.0, result)
