"""Rounding to integers, 16-bit floats, fused multiply-add: operations missing as instructions on some targets."""

from __future__ import annotations

from igniter.backends.cpu.builder import Builder, Value
from igniter.backends.cpu.llvm_types import Type
from igniter.backends.cpu.vmath.num import Num, two_product, two_sum


def round_even(x: Num) -> Num:
    """Rounds to the nearest integer, ties to even."""
    if x.b.target.has_rounding:
        return Num(x.b, x.b.unary_intrinsic("roundeven", x.v))
    big = 2.0**23 if x.type.bits == 32 else 2.0**52
    size = x.abs()
    return size.lt(big).where((size + big) - big, size).with_sign_of(x)


def _directed(x: Num, name: str) -> Num:
    if x.b.target.has_rounding:
        return Num(x.b, x.b.unary_intrinsic(name, x.v))
    if name == "trunc":
        size = x.abs()
        nearest = round_even(size)
        return nearest.gt(size).where(nearest - 1.0, nearest).with_sign_of(x)
    nearest = round_even(x)
    if name == "floor":
        result = nearest.gt(x).where(nearest - 1.0, nearest)
    else:
        result = nearest.lt(x).where(nearest + 1.0, nearest)
    return result.with_sign_of(x)


def floor(x: Num) -> Num:
    return _directed(x, "floor")


def ceil(x: Num) -> Num:
    return _directed(x, "ceil")


def trunc(x: Num) -> Num:
    return _directed(x, "trunc")


def round_away(x: Num) -> Num:
    """Rounds to the nearest integer, ties away from zero."""
    below_half = 0.49999997 if x.type.bits == 32 else 0.49999999999999994
    return trunc(x + x.of(below_half).with_sign_of(x))


def fma(x: Num, y: Num, z: Num) -> Num:
    """Returns x*y + z rounded once. Without FMA: f32 through f64 (a double rounding in about one case of 2^29), f64
    through pairs (correct but for double rounding, and for overflow within 2^27 of the largest number)."""
    b = x.b
    if b.target.has_fma:
        return Num(b, b.call(f"llvm.fma.{x.type.mangled}", x.type, [x.v, y.v, z.v]))
    if x.type.bits == 32:
        wide = [v.cast("fpext", "double") for v in (x, y, z)]
        return (wide[0] * wide[1] + wide[2]).cast("fptrunc", "float")
    product, lost = two_product(x, y)
    total, more = two_sum(product, z)
    finite = total.abs().lt(float("inf"))
    return finite.where(total + (lost + more), x * y + z)


def extend(b: Builder, x: Value, t: Type) -> Value:
    """Converts a float to a wider one."""
    if x.type == t:
        return x
    if x.type.bits != 16:
        return b.cast("fpext", x, t)
    return b.cast("fpext", _to_single(b, x), t)


def _to_single(b: Builder, x: Value) -> Value:
    single = x.type.with_element("float")
    if x.type.element == "half" and b.target.has_half:
        return b.cast("fpext", b.bitcast(x, x.type.with_element("native half")), single)
    bits = Num(b, b.cast("zext", x, x.type.with_element("i32")))
    if x.type.element == "bfloat":
        return (bits << 16).as_float().v
    # A multiplication rebiases the exponent. A subnormal f16 is converted as an integer: its bits would make a
    # subnormal f32, which counts as 0 in threads with that mode.
    size = ((bits & 0x7FFF) << 13).as_float() * 2.0**112
    size = (bits & 0x7C00).eq(0).where((bits & 0x03FF).cast("sitofp", "float") * 2.0**-24, size)
    special = (bits & 0x7C00).eq(0x7C00)
    result = special.where(size.bits() | 0x7F800000, size.bits()) | ((bits & 0x8000) << 16)
    return result.as_float().v


def truncate(b: Builder, x: Value, t: Type) -> Value:
    """Converts a float to a narrower one, to nearest even."""
    if x.type == t:
        return x
    if t.bits != 16:
        return b.cast("fptrunc", x, t)
    single = Num(b, x)
    if x.type.bits == 64:
        single = _round_to_odd(single)
    elif x.type.bits == 16:
        single = Num(b, _to_single(b, x))
    if t.element == "half" and b.target.has_half:
        return b.bitcast(b.cast("fptrunc", single.v, t.with_element("native half")), t)
    bits = _to_bfloat(single) if t.element == "bfloat" else _to_half(single)
    return b.cast("trunc", bits.v, t)


def _round_to_odd(x: Num) -> Num:
    """Rounds f64 to f32 so that a second rounding, to 16 bits, gives the result of a single rounding."""
    nearest = x.cast("fptrunc", "float")
    back = nearest.cast("fpext", "double")
    inexact = Num(x.b, x.b.cast("zext", back.ne(x).v, nearest.bits().type))
    too_far = Num(x.b, x.b.cast("zext", back.abs().gt(x.abs()).v, nearest.bits().type))
    odd = ((nearest.bits() - too_far) | inexact).as_float()
    return (x.is_nan()).where(nearest, odd)


def _to_bfloat(x: Num) -> Num:
    bits = x.bits()
    rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) >> 16
    return x.is_nan().where((bits >> 16) | 0x40, rounded)


def _to_half(x: Num) -> Num:
    """Converts to f16, after F. Giesen's float_to_half_fast3_rtne (public domain)."""
    sign = x.bits() & -0x80000000
    size = x.bits() ^ sign
    special = size.gt(0x7F800000).where(size.of(0x7E00), size.of(0x7C00))
    shift = 0x3F000000
    subnormal = (size.as_float() + size.of(shift).as_float()).bits() - shift
    odd = (size >> 13) & 1
    normal = (size + (-(112 << 23) + 0xFFF) + odd) >> 13
    result = size.lt(113 << 23).where(subnormal, normal)
    result = size.ge((127 + 16) << 23).where(special, result)
    return result | (sign >> 16)
