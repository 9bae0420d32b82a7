"""Types of values on the scheduled level: scalars, and vectors of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

from xdsl.dialects.builtin import (
    AnyFloat,
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    VectorType,
)
from xdsl.ir import Attribute

from igniter.backends.mlir.text import Writer, number_text, type_text

_FLOATS: dict[str, tuple[AnyFloat, int]] = {
    "f16": (Float16Type(), 16),
    "bf16": (BFloat16Type(), 16),
    "f32": (Float32Type(), 32),
    "f64": (Float64Type(), 64),
}


@dataclass(frozen=True)
class Kind:
    """A scalar type, or a vector of `lanes` of it."""

    element: str
    lanes: int = 0

    def __str__(self) -> str:
        return f"vector<{self.lanes}x{self.element}>" if self.lanes else self.element

    @property
    def is_float(self) -> bool:
        return self.element in _FLOATS

    @property
    def is_narrow(self) -> bool:
        """True for a float of 16 bits: ops compute it in f32 and round."""
        return self.is_float and self.bits == 16

    @property
    def bits(self) -> int:
        return _FLOATS[self.element][1] if self.is_float else int(self.element[1:])

    @property
    def scalar(self) -> Kind:
        return Kind(self.element)

    def of(self, element: str) -> Kind:
        """Returns the type with other elements and as many lanes."""
        return Kind(element, self.lanes)

    def with_lanes(self, lanes: int) -> Kind:
        return Kind(self.element, lanes)


I1 = Kind("i1")
INDEX = Kind("index")


def kind_of(value_type: Attribute) -> Kind:
    """Returns the type of a value."""
    if isinstance(value_type, VectorType):
        vector = cast("VectorType[Attribute]", value_type)
        return Kind(type_text(vector.element_type), vector.get_shape()[0])
    return Kind(type_text(value_type))


def literal(kind: Kind, number: float) -> str:
    """Returns a number of an element type, without the type."""
    if kind.element == "index":
        return str(int(number))
    if kind.is_float:
        return number_text(FloatAttr(float(number), _FLOATS[kind.element][0])).partition(" : ")[0]
    return number_text(IntegerAttr(int(number), IntegerType(kind.bits), truncate_bits=True)).partition(" : ")[0]


def constant(writer: Writer, kind: Kind, number: float) -> str:
    """Writes a constant; every lane of a vector has the number."""
    text = literal(kind, number)
    if kind.lanes:
        return writer.let("c", f"arith.constant dense<{text}> : {kind}")
    return writer.let("c", f"arith.constant {text}" if kind == I1 else f"arith.constant {text} : {kind}")


def broadcast(writer: Writer, value: str, have: Kind, lanes: int) -> str:
    """Writes a vector with the value in every lane; a vector stays as it is."""
    if have.lanes or not lanes:
        return value
    return writer.let("v", f"vector.broadcast {value} : {have} to {have.with_lanes(lanes)}")
