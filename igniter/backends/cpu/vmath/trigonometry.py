"""sin, cos, tan and the inverses, for f64; f32 goes through f64 with shorter polynomials, but asin, acos and atan have
their own code for it.

Arguments are reduced to |r| <= pi/4. While the quotient is small, by Cody-Waite with three 33-bit parts of pi/2 (every
product is exact, so cancellation costs nothing); otherwise by Payne and Hanek's method in integers, lane by lane, in a
function of its own. A vector without a huge lane skips it with one branch.
"""

from __future__ import annotations

from igniter.backends.cpu.builder import Builder, Value, flatten
from igniter.backends.cpu.llvm_types import F64, I1, I64, PTR, Type
from igniter.backends.cpu.vmath import coefficients as table
from igniter.backends.cpu.vmath.num import Num, Pair, fast_two_sum, pair_mul, two_sum

TWO_OVER_PI = 0.6366197723675814
# fdlibm's e_rem_pio2.c: pi/2 in 33-bit parts, and the rest after the third.
PIO2_1 = 1.57079632673412561417e00
PIO2_2 = 6.07710050630396597660e-11
PIO2_3 = 2.02226624871116645580e-21
PIO2_1_REST = 6.07710050650619224932e-11
PIO2_REST = 8.47842766036889956997e-32
PIO2 = (1.5707963267948966, 6.123233995736766e-17)
MAGIC = 6755399441055744.0
HUGE = 1.0e6
"""The limit of |x| above which the quotient has more than 20 bits, so that its product with a 33-bit part is
inexact."""


def _quotient(x: Num) -> tuple[Num, Num]:
    """Returns the nearest integer to x/(pi/2), as a float and, modulo 4, in the low bits."""
    biased = x.fma(TWO_OVER_PI, MAGIC)
    return biased - MAGIC, biased.bits()


def reduce(x: Num) -> tuple[Pair, Num]:
    """Returns ((high, low), q): x = q*pi/2 + high + low, |high| <= pi/4 and a little, for q modulo 4 in the low
    bits."""
    n, q = _quotient(x)
    first = x - n * PIO2_1
    high, low = two_sum(first, -(n * PIO2_2))
    high, more = two_sum(high, -(n * PIO2_3))
    high, low = fast_two_sum(high, low + (more - n * PIO2_REST))
    return _with_huge(x, high, low, q)


def reduce_for32(x: Num) -> tuple[Num, Num]:
    """Returns the same for a float in f64; one number suffices."""
    n, q = _quotient(x)
    r = (x - n * PIO2_1) - n * PIO2_1_REST
    (high, _), q = _with_huge(x, r, None, q)
    return high, q


def _with_huge(x: Num, high: Num, low: Num | None, q: Num) -> tuple[Pair, Num]:
    """Replaces the lanes with |x| > HUGE, infinity or NaN."""
    b = x.b
    huge = ~x.abs().le(HUGE)
    slow, done = b.label("huge"), b.label("reduced")
    before = b.block
    b.branch(huge.any().v, slow, done)
    b.start(slow)
    kept_low = low if low is not None else x.of(0.0)
    fixed = [Num(b, v) for v in _call_fix(b, x.v, high.v, kept_low.v, q.v)]
    inside = b.block
    b.jump(done)
    b.start(done)
    merged = [
        Num(b, b.phi(old.type, [(new.v, inside), (old.v, before)]))
        for new, old in zip(fixed, (high, kept_low, q), strict=True)
    ]
    return (merged[0], merged[1]), merged[2]


def _call_fix(b: Builder, x: Value, high: Value, low: Value, q: Value) -> list[Value]:
    lanes = max(1, x.type.lanes)
    name = f"igniter.huge.{x.type.mangled}"
    results = f"{{ {x.type}, {x.type}, {q.type} }}"
    b.module.add_helper(name, lambda: _fix_function(b, name, x.type, q.type, results, lanes))
    record = b.emit(Type(results), f"call {results} @{name}({x.typed}, {high.typed}, {low.typed}, {q.typed})")
    return [b.emit(t, f"extractvalue {results} {record.text}, {i}") for i, t in enumerate((x.type, x.type, q.type))]


def _fix_function(b: Builder, name: str, t: Type, q: Type, results: str, lanes: int) -> str:
    """Returns a loop over lanes; each huge one gets its parts from `igniter.payne_hanek`."""
    b.module.add_helper("igniter.payne_hanek", lambda: _payne_hanek(b))
    store = [f"  store {u} %{n}, ptr %{n}.at, align 64" for n, u in (("x", t), ("h", t), ("l", t), ("q", q))]
    load = [f"  %{n}.out = load {u}, ptr %{n}.at, align 64" for n, u in (("h", t), ("l", t), ("q", q))]
    return "\n".join(
        [
            f"define internal {results} @{name}({t} %x, {t} %h, {t} %l, {q} %q) noinline cold #0 {{",
            "entry:",
            *[f"  %{n}.at = alloca [{lanes} x double], align 64" for n in "xhlq"],
            *store,
            "  br label %loop",
            "loop:",
            "  %i = phi i64 [ 0, %entry ], [ %i.next, %next ]",
            *[f"  %{n}.i = getelementptr double, ptr %{n}.at, i64 %i" for n in "xhlq"],
            "  %one = load double, ptr %x.i, align 8",
            "  %size = call double @llvm.fabs.f64(double %one)",
            f"  %big = fcmp ugt double %size, {Num(b, Value(F64, '0')).of(HUGE).v.text}",
            "  br i1 %big, label %fix, label %next",
            "fix:",
            "  call void @igniter.payne_hanek(double %one, ptr %h.i, ptr %l.i, ptr %q.i)",
            "  br label %next",
            "next:",
            "  %i.next = add i64 %i, 1",
            f"  %more = icmp ult i64 %i.next, {lanes}",
            "  br i1 %more, label %loop, label %done",
            "done:",
            *load,
            f"  %r0 = insertvalue {results} poison, {t} %h.out, 0",
            f"  %r1 = insertvalue {results} %r0, {t} %l.out, 1",
            f"  %r2 = insertvalue {results} %r1, {q} %q.out, 2",
            f"  ret {results} %r2",
            "}",
            "",
        ]
    )


def _two_over_pi_words() -> list[int]:
    """Returns 64 zero bits, then 1,152 + 64 bits of 2/pi, in words from the front."""
    bits = 1216
    fraction = _two_over_pi(bits)
    return [0] + [(fraction >> (bits - 64 * (k + 1))) & (2**64 - 1) for k in range(bits // 64)]


def _two_over_pi(bits: int) -> int:
    """Returns floor(2/pi * 2^bits)."""
    guard = 128
    one = 1 << (bits + guard)
    return (2 * one * one // _pi_scaled(bits + guard)) >> guard


def _pi_scaled(bits: int) -> int:
    """Returns pi * 2^bits by Machin's formula, in integers."""

    def arctan_inverse(k: int) -> int:
        total = term = (1 << (bits + 32)) // k
        n, sign = 3, -1
        while term:
            term //= k * k
            total += sign * (term // n)
            n, sign = n + 2, -sign
        return total

    return (4 * (4 * arctan_inverse(5) - arctan_inverse(239))) >> 32


def _payne_hanek(b: Builder) -> str:
    """Returns `void (double x, ptr high, ptr low, ptr q)` for |x| > HUGE: x = M*2^e; the 192 bits of 2/pi whose weights
    times 2^e are below 4, times M modulo 2^192, are x*2/pi modulo 4 to 137 bits after the point."""
    words = _two_over_pi_words()
    text = ", ".join(f"i64 {w - (1 << 64) if w >> 63 else w}" for w in words)
    b.module.globals["igniter.two_over_pi"] = (
        f"@igniter.two_over_pi = internal unnamed_addr constant [{len(words)} x i64] [{text}], align 8"
    )
    f = Builder(b.module)
    emit_payne_hanek(f)
    header = "define internal void @igniter.payne_hanek(double %x, ptr %high, ptr %low, ptr %q) noinline cold #0 {"
    return "\n".join([header, "entry:", *flatten(f.lines), "}", ""])


def emit_payne_hanek(f: Builder) -> None:
    """Emits the body of the scalar reduction."""
    wide = Type("i128")

    def c(n: int, t: Type = I64) -> Value:
        return f.const(t, n)

    def op(name: str, x: Value, y: Value | int) -> Value:
        return f.binary(name, x, c(y, x.type) if isinstance(y, int) else y)

    bits = f.bitcast(Value(F64, "%x"), I64)
    exponent = op("and", op("lshr", bits, 52), 0x7FF)
    finite = f.icmp("ne", exponent, c(0x7FF))
    mantissa = op("or", op("and", bits, (1 << 52) - 1), 1 << 52)
    # x = mantissa * 2^e; the first relevant bit of 2/pi has index e - 1, after 64 zero bits e + 62 (from 0).
    start = op("add", op("sub", exponent, 1075), 62)
    start = f.select(finite, start, c(0))
    word, shift = op("lshr", start, 6), op("and", start, 63)
    loaded: list[Value] = []
    for k in range(4):
        place = f.gep(I64, Value(PTR, "@igniter.two_over_pi"), op("add", word, k))
        loaded.append(f.emit(I64, f"load i64, ptr {place.text}, align 8"))
    window = [f.call("llvm.fshl.i64", I64, [loaded[k], loaded[k + 1], shift]) for k in range(3)]
    m = f.cast("zext", mantissa, wide)
    low = op("mul", m, f.cast("zext", window[2], wide))
    middle = op("mul", m, f.cast("zext", window[1], wide))
    middle = op("add", middle, op("lshr", low, 64))
    high = op("mul", mantissa, window[0])
    p2 = op("add", high, f.cast("trunc", op("lshr", middle, 64), I64))
    p1, p0 = f.cast("trunc", middle, I64), f.cast("trunc", low, I64)
    # Two bits before the point, then the fraction, as a signed number in [-1/2, 1/2).
    f2 = f.call("llvm.fshl.i64", I64, [p2, p1, c(2)])
    f1 = f.call("llvm.fshl.i64", I64, [p1, p0, c(2)])
    quotient = op("add", op("lshr", p2, 62), op("lshr", f2, 63))
    signed = op("or", op("shl", f.cast("zext", f2, wide), 64), f.cast("zext", f1, wide))
    negative = f.icmp("slt", f2, c(0))
    size = f.select(negative, op("sub", c(0, wide), signed), signed)
    zeros = f.call("llvm.ctlz.i128", wide, [size, Value(I1, "false")])
    normal = op("shl", size, op("and", zeros, 127))
    top = op("lshr", f.cast("trunc", op("lshr", normal, 64), I64), 11)
    rest = op("and", f.cast("trunc", op("lshr", normal, 22), I64), (1 << 53) - 1)
    # fraction = (top + rest * 2^-53) * 2^-(zeros + 53)
    exponent_bits = op("shl", op("sub", c(1023 - 53), f.cast("trunc", zeros, I64)), 52)
    unit = f.bitcast(exponent_bits, F64)
    a = Num(f, f.cast("uitofp", top, F64)) * Num(f, unit)
    d = Num(f, f.cast("uitofp", rest, F64)) * 2.0**-53 * Num(f, unit)
    r_high, r_low = pair_mul((a, d), (a.of(PIO2[0]), a.of(PIO2[1])))
    sign = Num(f, f.bitcast(op("and", op("xor", bits, f.cast("sext", negative, I64)), 1 << 63), F64))
    is_negative = f.icmp("slt", bits, c(0))
    quotient = f.select(is_negative, op("sub", c(0), quotient), quotient)
    nan = f.const(F64, float("nan"))
    results = [f.select(finite, _xor_sign(r, sign).v, nan) for r in (r_high, r_low)]
    f.raw(f"store double {results[0].text}, ptr %high, align 8")
    f.raw(f"store double {results[1].text}, ptr %low, align 8")
    f.raw(f"store i64 {quotient.text}, ptr %q, align 8")
    f.raw("ret void")


def _xor_sign(x: Num, sign: Num) -> Num:
    return (x.bits() ^ sign.bits()).as_float()


# -- sine and cosine --------------------------------------------------------------------------------------------------


def _sin_polynomial(r: Num, low: Num | None) -> Num:
    z = r * r
    if low is None:
        return (r * z).fma(z.polynomial(table.SIN_FOR32), r)
    # sin(r + low) = sin r + low*cos r
    correction = low.fma(z * -0.5, low)
    return r + (r * z).fma(z.polynomial(table.SIN64), correction)


def _cos_polynomial(r: Num, low: Num | None) -> Num:
    z = r * r
    if low is None:
        return (z * z).fma(z.polynomial(table.COS_FOR32), z.fma(-0.5, 1.0))
    half = z * 0.5
    head = 1.0 - half
    lost = (1.0 - head) - half
    return head + (z * z).fma(z.polynomial(table.COS64), lost - r * low)


def _reduced(x: Num, short: bool) -> tuple[Num, Num | None, Num]:
    if short:
        r, q = reduce_for32(x)
        return r, None, q
    (high, low), q = reduce(x)
    return high, low, q


def _sine_of(r: Num, low: Num | None, q: Num) -> Num:
    """Returns sin(q*pi/2 + r + low)."""
    use_cos = (q & 1).ne(0)
    value = use_cos.where(_cos_polynomial(r, low), _sin_polynomial(r, low))
    return (value.bits() ^ ((q & 2) << 62)).as_float()


def sin(x: Num, short: bool = False) -> Num:
    """f64: 1 ulp, for every argument."""
    r, low, q = _reduced(x, short)
    # sin(-0) is -0; the sums of the reduction lose the sign.
    return x.eq(0.0).where(x, _sine_of(r, low, q))


def cos(x: Num, short: bool = False) -> Num:
    """f64: 1 ulp, for every argument."""
    r, low, q = _reduced(x, short)
    return _sine_of(r, low, q + 1)


def tan(x: Num, short: bool = False) -> Num:
    """Returns sin/cos of the rest, or -cos/sin. f64: 3 ulp."""
    r, low, q = _reduced(x, short)
    s, c = _sin_polynomial(r, low), _cos_polynomial(r, low)
    swap = (q & 1).ne(0)
    value = swap.where(-c, s) / swap.where(s, c)
    return x.eq(0.0).where(x, value)


# -- inverses ---------------------------------------------------------------------------------------------------------


def _atan_unit(t: Num, short: bool, numerator_low: Num | None = None) -> Num:
    """Returns atan t for 0 <= t <= 1: above tan(pi/8) as pi/4 + atan((t-1)/(t+1))."""
    upper = t.gt(0.4142135623730950)
    u = upper.where((t - 1.0) / (t + 1.0), t)
    z = u * u
    tail = u * z * z.polynomial(table.ATAN_FOR32 if short else table.ATAN64)
    return upper.where(0.7853981633974483 + (u + (tail + 3.061616997868383e-17)), u + tail)


def atan(x: Num) -> Num:
    """f64: 2 ulp."""
    size = x.abs()
    inverted = size.gt(1.0)
    t = inverted.where(1.0 / size, size)
    value = _atan_unit(t, short=False)
    return inverted.where((PIO2[0] - value) + PIO2[1], value).with_sign_of(x)


def atan2(y: Num, x: Num, short: bool = False) -> Num:
    """Returns the angle of (x, y); C's cases for zeros and infinities. f64: 3 ulp."""
    ay, ax = y.abs(), x.abs()
    swap = ay.gt(ax)
    small, large = swap.where(ax, ay), swap.where(ay, ax)
    # Ratios of tiny numbers and of infinities.
    shrink = large.lt(2.0**-960).where(small.of(2.0**120), small.of(1.0))
    t = (small * shrink) / (large * shrink)
    t = large.eq(0.0).where(0.0, t)
    t = (small.eq(float("inf")) & large.eq(float("inf"))).where(1.0, t)
    value = _atan_unit(t, short)
    value = swap.where((PIO2[0] - value) + PIO2[1], value)
    left = (x.bits() >> 63).ne(0)
    value = left.where((2 * PIO2[0] - value) + 2 * PIO2[1], value)
    return (x.is_nan() | y.is_nan()).where(x + y, value.with_sign_of(y))


def _asin_small(t: Num) -> Num:
    """Returns asin(t)/t - 1, times t, for |t| <= 1/2."""
    z = t * t
    return t * z * z.polynomial(table.ASIN64)


def _asin_root(size: Num) -> Pair:
    """Returns asin(sqrt((1 - size)/2)) for size >= 1/2, in two parts: fdlibm's trick of splitting the root."""
    w = (1.0 - size) * 0.5
    root = w.sqrt()
    high = (root.bits() & -(1 << 32)).as_float()
    low = (w - high * high) / (root + high)
    low = w.gt(0.0).where(low, 0.0)
    return high, low + root * w * w.polynomial(table.ASIN64)


def asin(x: Num) -> Num:
    """f64: 2 ulp; NaN beyond 1."""
    size = x.abs()
    upper = size.gt(0.5)
    small = size + _asin_small(size)
    high, low = _asin_root(size)
    large = PIO2[0] - ((high + high) + ((low + low) - PIO2[1]))
    return upper.where(large, small).with_sign_of(x)


def acos(x: Num) -> Num:
    """f64: 2 ulp; NaN beyond 1."""
    size = x.abs()
    upper = size.gt(0.5)
    middle = PIO2[0] - (x - (PIO2[1] - _asin_small(x)))
    high, low = _asin_root(size)
    right = (high + high) + (low + low)
    left = 2 * PIO2[0] - (right - 2 * PIO2[1])
    return upper.where((x.lt(0.0)).where(left, right), middle)


# -- inverses of f32 --------------------------------------------------------------------------------------------------

PIO2_32 = (1.5707963705062866, -4.371139000186241e-08)
"""pi/2 in two floats of 32 bits."""


def _asin32_parts(size: Num) -> tuple[Num, Num, Num]:
    """Returns size > 1/2, and asin(t) = t + rest in two parts: t is `size`, or above 1/2 sqrt((1 - size)/2)."""
    upper = size.gt(0.5)
    w = upper.where((1.0 - size) * 0.5, size * size)
    t = upper.where(w.sqrt(), size)
    return upper, t, t * w * w.polynomial(table.ASIN32)


def asin32(x: Num) -> Num:
    """f32: 1.5 ulp; NaN beyond 1."""
    upper, t, rest = _asin32_parts(x.abs())
    high, low = fast_two_sum(x.of(PIO2_32[0]), -(t + t))
    large = high + (low - ((rest + rest) - PIO2_32[1]))
    return upper.where(large, t + rest).with_sign_of(x)


def acos32(x: Num) -> Num:
    """f32: 1.5 ulp; NaN beyond 1."""
    upper, t, rest = _asin32_parts(x.abs())
    middle = PIO2_32[0] - (x - (PIO2_32[1] - rest.with_sign_of(x)))
    right = (t + t) + (rest + rest)
    left = 2 * PIO2_32[0] - (right - 2 * PIO2_32[1])
    return upper.where(x.lt(0.0).where(left, right), middle)


def atan32(x: Num) -> Num:
    """f32: 2 ulp. One polynomial for [0, 1], so that a single division is left."""
    size = x.abs()
    inverted = size.gt(1.0)
    t = inverted.where(1.0 / size, size)
    z = t * t
    value = t + t * z * z.polynomial(table.ATAN32)
    return inverted.where((PIO2_32[0] - value) + PIO2_32[1], value).with_sign_of(x)
