"""The enumerations in attributes of `linalg`: `#linalg.type_fn<cast_unsigned>`, `#linalg.elementwise_kind<add>`."""

from __future__ import annotations

from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


class _Word(Data[str]):
    """The base of an attribute of one word."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        with parser.in_angle_brackets():
            return parser.parse_identifier()

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(self.data)


@irdl_attr_definition
class TypeFnAttr(_Word):
    """The conversion of operands to the type of the accumulator: `cast_signed` or `cast_unsigned`."""

    name = "linalg.type_fn"


@irdl_attr_definition
class UnaryFnAttr(_Word):
    """The function of `linalg.elemwise_unary`."""

    name = "linalg.unary_fn"


@irdl_attr_definition
class BinaryFnAttr(_Word):
    """The function of `linalg.elemwise_binary`."""

    name = "linalg.binary_fn"


@irdl_attr_definition
class ElementwiseKindAttr(_Word):
    """The function of `linalg.elementwise`."""

    name = "linalg.elementwise_kind"


ENUMS: list[type[Attribute]] = [TypeFnAttr, UnaryFnAttr, BinaryFnAttr, ElementwiseKindAttr]


def word_of(attr: Attribute | None) -> str:
    """Returns the word of an enumeration; "" if the attribute is absent or of another kind."""
    return attr.data if isinstance(attr, _Word) else ""
