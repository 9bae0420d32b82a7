"""Floats of eight bits: bodies hold them as bits, and compute with them in f32.

Conversions follow ONNX (the tables of the Cast op): round to nearest, ties to even. Values that overflow, including
infinities, become the largest number; with `saturate` off, the format's infinity, or NaN if it has none. E8M0 is a
scale: a power of two without a sign.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerType, Signedness, f8E4M3FN, f8E4M3FNUZ, f8E5M2, f8E5M2FNUZ, f8E8M0FNU, f32, i32
from xdsl.ir import Attribute

from igniter.dialects.onnx.ops.pointwise import ui8

if TYPE_CHECKING:
    from igniter.dialects.onnx.lowering.scalar import Scalar


@dataclass(frozen=True)
class Format:
    """A format with a sign, an exponent and `mantissa` bits; codes exclude the sign."""

    mantissa: int
    bias: int
    greatest: int
    """The code of the largest number."""
    nan: int
    """The code of NaN; includes the sign in formats without a negative zero."""
    infinity: int | None = None

    @property
    def unsigned_zero(self) -> bool:
        """True if the code of -0 is NaN."""
        return self.nan == 0x80


FORMATS: dict[Attribute, Format] = {
    f8E4M3FN: Format(3, 7, 0x7E, 0x7F),
    f8E4M3FNUZ: Format(3, 8, 0x7F, 0x80),
    f8E5M2: Format(2, 15, 0x7B, 0x7F, 0x7C),
    f8E5M2FNUZ: Format(2, 16, 0x7F, 0x80),
}


def decode(x: Scalar) -> Scalar:
    """Returns the f32 value of the bits `x` of an 8-bit float."""
    code = _integer(x)
    if x.element == f8E8M0FNU:
        # 2^-127 is a subnormal f32.
        bits = code.eq(0).select(1 << 22, code.shift_left(23))
        return code.eq(0xFF).select(float("nan"), bits.bits(f32))
    form = FORMATS[x.element]
    size = code & 0x7F
    # A multiplication rebiases the exponent. A subnormal number is converted as an integer: its bits would make a
    # subnormal f32, which counts as 0 in threads with that mode.
    value = size.shift_left(23 - form.mantissa).bits(f32) * 2.0 ** (127 - form.bias)
    least = size.to(f32) * 2.0 ** (1 - form.bias - form.mantissa)
    value = (size > (1 << form.mantissa) - 1).select(value, least)
    if form.infinity is not None:
        value = size.eq(form.infinity).select(float("inf"), value)
        value = (size > form.infinity).select(float("nan"), value)
    else:
        value = (code if form.unsigned_zero else size).eq(form.nan).select(float("nan"), value)
    sign = (code & 0x80).shift_left(24)
    return (value.bits(i32) | sign).bits(f32)


def encode(x: Scalar, element: Attribute, saturate: bool = True, round_mode: str = "up") -> Scalar:
    """Returns an f32 as the bits of an 8-bit float. `round_mode` (up, down or nearest) applies only to E8M0."""
    if element == f8E8M0FNU:
        return _narrow(_power(x, saturate, round_mode), element)
    form = FORMATS[element]
    bits = x.bits(i32)
    size = bits & 0x7FFFFFFF
    shift = 23 - form.mantissa
    odd = _unsigned_shift(size, shift) & 1
    normal = _unsigned_shift(size + odd + ((1 << (shift - 1)) - 1), shift) - ((127 - form.bias) << form.mantissa)
    # Below the smallest normal number the unit is constant: adding a number with that unit rounds to it.
    adder = 2.0 ** (24 - form.bias - form.mantissa)
    small = (size.bits(f32) + adder).bits(i32) - _bits_of(adder)
    code = (size < ((128 - form.bias) << 23)).select(small, normal)
    over = form.greatest if saturate else form.nan if form.infinity is None else form.infinity
    code = (code > form.greatest).select(over, code)
    sign = _unsigned_shift(bits, 24) & 0x80
    if form.unsigned_zero:
        # Neither zero nor NaN (already 0x80) has a separate sign.
        sign = (code.eq(0) | code.eq(form.nan)).select(0, sign)
    signed = code | sign
    signed = (size > 0x7F800000).select(form.nan if form.unsigned_zero else sign | form.nan, signed)
    return _narrow(signed, element)


def _power(x: Scalar, saturate: bool, round_mode: str) -> Scalar:
    """Returns the exponent of `x` rounded to a power of two, as the code of E8M0."""
    bits = x.bits(i32)
    exponent, fraction = _unsigned_shift(bits, 23) & 0xFF, bits & 0x7FFFFF
    special = exponent.eq(0xFF)
    if round_mode == "up":
        more = fraction.ne(0)
    elif round_mode == "nearest":
        # Ties round up, except at the least exponent.
        more = (fraction > 0x400000) | (fraction.eq(0x400000) & exponent.ne(0))
    else:
        return exponent
    if saturate:
        more = more & exponent.ne(0xFE)
    return special.select(0xFF, exponent + more.to(i32))


def _integer(x: Scalar) -> Scalar:
    """Returns the code as an i32."""
    return _as(x, ui8).to(i32)


def _narrow(code: Scalar, element: Attribute) -> Scalar:
    return _as(code.to(ui8), element)


def _unsigned_shift(x: Scalar, by: int) -> Scalar:
    """Returns the logical shift of an i32."""
    return _as(_as(x, IntegerType(32, Signedness.UNSIGNED)).shift_right(by), i32)


def _as(x: Scalar, element: Attribute) -> Scalar:
    """Returns the same bits as a scalar of another type."""
    from igniter.dialects.onnx.lowering.scalar import Scalar

    return Scalar(x.nest, x.value, element)


def _bits_of(value: float) -> int:
    return struct.unpack("<i", struct.pack("<f", value))[0]
