"""Attributes and names shared by the two levels of the `loop` dialect."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Literal, cast, get_args

from xdsl.dialects.builtin import (
    I64,
    BFloat16Type,
    Float8E4M3FNType,
    Float8E4M3FNUZType,
    Float8E5M2FNUZType,
    Float8E5M2Type,
    Float8E8M0FNUType,
    Float16Type,
    Float32Type,
    Float64Type,
    IntegerAttr,
    IntegerType,
    Signedness,
    i8,
    i64,
)
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from igniter.dialects.sym import axis_ranges, dims_of, element_of, parse_expr_here
from igniter.dialects.sym.expr import Expr, product
from igniter.dialects.sym.ranges import Ranges

AxisKind = Literal["parallel", "reduction"]
Combiner = Literal["none", "add", "mul", "max", "min", "and", "or", "xor"]

COMBINERS: frozenset[str] = frozenset(get_args(Combiner))
"""The combiners, which fold the values written to one element. `max` and `min` propagate NaN; `none` allows one value
per element."""

INDIRECT_PREFIX = "_"
"""The prefix of indirect operands in subscripts: `_k` is the k-th one of the access."""


@dataclass(frozen=True)
class Axis:
    """One axis of an iteration domain, from 0 to `extent`, exclusive."""

    name: str
    extent: Expr
    kind: AxisKind


@irdl_attr_definition
class AxesAttr(Data[tuple[Axis, ...]]):
    """The iteration domain of a nest: `#loop.axes<i: parallel batch, k: reduction 768>`."""

    name = "loop.axes"

    def __init__(self, axes: Iterable[Axis]):
        super().__init__(tuple(axes))

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Axis, ...]:
        return parse_axes(parser, "<", ">")

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{render_axes(self.data)}>")

    def __iter__(self) -> Iterator[Axis]:
        return iter(self.data)

    @property
    def ranges(self) -> Ranges:
        return axis_ranges((a.name, a.extent) for a in self.data)


def render_axes(axes: Iterable[Axis]) -> str:
    return ", ".join(f"{a.name}: {a.kind} {a.extent}" for a in axes)


def parse_axes(parser: AttrParser, opening: str = "[", closing: str = "]") -> tuple[Axis, ...]:
    """Parses `[i: parallel batch, k: reduction 768]`."""
    parser.parse_characters(opening)
    axes: list[Axis] = []
    if parser.parse_optional_characters(closing) is not None:
        return ()
    while True:
        name = parser.parse_identifier("axis name")
        parser.parse_characters(":")
        kind = parser.parse_identifier("'parallel' or 'reduction'")
        if kind != "parallel" and kind != "reduction":
            parser.raise_error(f"an axis must be 'parallel' or 'reduction', not '{kind}'")
        axes.append(Axis(name, parse_expr_here(parser), kind))
        if parser.parse_optional_characters(",") is None:
            break
    parser.parse_characters(closing)
    return tuple(axes)


@cache
def number_attr(number: int) -> IntegerAttr[I64]:
    """Returns a number as a property of an op."""
    return IntegerAttr(number, i64)


def as_integer(element: Attribute) -> IntegerType[int, Signedness] | None:
    """Returns `element` if it is an integer type; else None."""
    return cast("IntegerType[int, Signedness]", element) if isinstance(element, IntegerType) else None


SMALL_FLOATS = (Float8E4M3FNType, Float8E4M3FNUZType, Float8E5M2Type, Float8E5M2FNUZType, Float8E8M0FNUType)


def is_storable(element: Attribute) -> bool:
    """True if tensors of kernels can have elements of this type."""
    integer = as_integer(element)
    if integer is not None:
        return integer.width.data in (1, 8, 16, 32, 64)
    return is_float(element) or isinstance(element, SMALL_FLOATS)


def scalar_type(element: Attribute) -> Attribute:
    """Returns the type of an element in a body: integers lose their signedness (the ops carry it), and 8-bit floats are
    raw bits (`i8`)."""
    if isinstance(element, SMALL_FLOATS):
        return i8
    integer = as_integer(element)
    if integer is not None and integer.signedness.data != Signedness.SIGNLESS:
        return IntegerType(integer.width.data)
    return element


def is_float(element: Attribute) -> bool:
    return isinstance(element, (Float16Type, BFloat16Type, Float32Type, Float64Type))


def is_unsigned(element: Attribute) -> bool:
    integer = as_integer(element)
    return integer is not None and integer.signedness.data == Signedness.UNSIGNED


def element_bytes(element: Attribute) -> int:
    """Returns the size of an element in memory, in bytes; a bool takes one byte."""
    integer = as_integer(element)
    if integer is not None:
        return max(1, integer.width.data // 8)
    if isinstance(element, SMALL_FLOATS):
        return 1
    if isinstance(element, (Float16Type, BFloat16Type)):
        return 2
    if isinstance(element, Float32Type):
        return 4
    if isinstance(element, Float64Type):
        return 8
    raise ValueError(f"no memory layout for elements of type {element}")


def stored_bytes(shaped: Attribute) -> Expr:
    """Returns the bytes of a tensor or memref of a kernel in memory; raises `ValueError` for an unknown size."""
    return product(dims_of(shaped)) * element_bytes(element_of(shaped))
