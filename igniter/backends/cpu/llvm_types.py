"""LLVM types and constants as text, and how the types of the IR map to them."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import cast

from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute

_SPELLINGS = {"half": "i16", "bfloat": "i16", "native half": "half"}
FLOAT_BITS = {"half": 16, "bfloat": 16, "float": 32, "double": 64}


@dataclass(frozen=True)
class Type:
    """A first-class LLVM type: a scalar (`lanes` = 0) or a vector of `lanes` elements.

    The 16-bit floats `half` and `bfloat` are spelled i16: they are moved as bits and computed in f32. With their own
    types LLVM calls a library if the target lacks an instruction. `native half` is LLVM's own.
    """

    element: str
    lanes: int = 0

    def __str__(self) -> str:
        return _text(self)

    @property
    def scalar(self) -> Type:
        return Type(self.element) if self.lanes else self

    @property
    def is_vector(self) -> bool:
        return self.lanes > 0

    @property
    def is_float(self) -> bool:
        return self.element in FLOAT_BITS

    @property
    def bits(self) -> int:
        """The width of an element in bits."""
        return FLOAT_BITS.get(self.element) or int(self.element[1:])

    @property
    def spelled(self) -> str:
        """The element in LLVM IR."""
        return _SPELLINGS.get(self.element, self.element)

    @property
    def mangled(self) -> str:
        """The suffix of an overloaded intrinsic: `v16f32`."""
        if self.element == "ptr":
            element = "p0"
        else:
            element = f"{'f' if self.spelled in ('float', 'double') else 'i'}{self.bits}"
        return f"v{self.lanes}{element}" if self.lanes else element

    def with_element(self, element: str) -> Type:
        return Type(element, self.lanes)

    def with_lanes(self, lanes: int) -> Type:
        return Type(self.element, lanes)


@lru_cache(maxsize=1024)
def _text(t: Type) -> str:
    return f"<{t.lanes} x {t.spelled}>" if t.lanes else t.spelled


PTR = Type("ptr")
I1 = Type("i1")
I8 = Type("i8")
I32 = Type("i32")
I64 = Type("i64")
F32 = Type("float")
F64 = Type("double")


class UnsupportedType(ValueError):
    """A type without a representation in registers."""


def llvm_type(attribute: Attribute) -> Type:
    """Returns the register type of a value of the IR."""
    if isinstance(attribute, VectorType):
        vector = cast("VectorType[Attribute]", attribute)
        shape = vector.get_shape()
        if len(shape) != 1:
            raise UnsupportedType(f"{attribute}: only vectors of rank 1 have a register")
        return Type(llvm_type(vector.element_type).element, shape[0])
    if isinstance(attribute, IntegerType):
        return Type(f"i{attribute.width.data}")
    if isinstance(attribute, IndexType):
        return I64
    for kind, name in _FLOATS.items():
        if isinstance(attribute, kind):
            return Type(name)
    raise UnsupportedType(f"no register type for {attribute}")


_FLOATS: dict[type[Attribute], str] = {
    Float16Type: "half",
    BFloat16Type: "bfloat",
    Float32Type: "float",
    Float64Type: "double",
}


def memory_type(t: Type) -> Type:
    """Returns the memory type of a register type: a bool takes a byte."""
    return t.with_element("i8") if t.element == "i1" else t


def literal(t: Type, value: float) -> str:
    """Returns a constant of `t` (every lane the same), rounded to nearest."""
    text = float_literal(t.element, float(value)) if t.is_float else int_literal(t.element, int(value))
    return f"splat ({t.spelled} {text})" if t.lanes else text


def bits_literal(t: Type, bits: int) -> str:
    """Returns the float constant of `t` with the given representation in bits."""
    return literal(t, _from_bits(t.element, bits))


def int_literal(element: str, value: int) -> str:
    width = int(element[1:])
    if width == 1:
        return "true" if value & 1 else "false"
    value &= (1 << width) - 1
    return str(value - (1 << width) if value >> (width - 1) else value)


def float_literal(element: str, value: float) -> str:
    """Returns a float in LLVM's syntax, the bits of a double; the 16-bit floats are integers here."""
    return _float_literal(element, struct.pack("<d", value))


@lru_cache(maxsize=4096)
def _float_literal(element: str, double: bytes) -> str:
    # The key is the bits: 0.0 and -0.0 are equal as numbers, and one would be given the other's text.
    (value,) = struct.unpack("<d", double)
    if element in ("half", "bfloat"):
        return str(_to_bits(element, value))
    if element == "float":
        value = _from_bits("float", _to_bits("float", value))
    (bits,) = struct.unpack("<Q", struct.pack("<d", value))
    return f"0x{bits:016X}"


def _to_bits(element: str, value: float) -> int:
    if element == "half":
        try:
            return struct.unpack("<H", struct.pack("<e", value))[0]
        except OverflowError:
            return 0x7C00 if value > 0 else 0xFC00
    if element == "bfloat":
        bits = _to_bits("float", value)
        if value != value:
            return (bits >> 16) | 0x40
        # Round to nearest even. Double rounding (double to float to bfloat) matters only for constants with more digits
        # than a float has.
        return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16
    if element == "float":
        try:
            return struct.unpack("<I", struct.pack("<f", value))[0]
        except OverflowError:
            return 0x7F800000 if value > 0 else 0xFF800000
    return struct.unpack("<Q", struct.pack("<d", value))[0]


def _from_bits(element: str, bits: int) -> float:
    if element == "half":
        return struct.unpack("<e", struct.pack("<H", bits))[0]
    if element == "bfloat":
        return struct.unpack("<f", struct.pack("<I", bits << 16))[0]
    if element == "float":
        return struct.unpack("<f", struct.pack("<I", bits))[0]
    return struct.unpack("<d", struct.pack("<Q", bits))[0]
