"""The fast text form of nodes: the few, repeated types of a model's values are parsed once each, and long texts
(exporters leave whole stack traces on a node) are escaped at once instead of by character.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeVar, cast

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, UnitAttr
from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import ParseError

from igniter.context import IgniterContext

_TENSOR = re.compile(r'tensor<(?:[^<>"]|<[^<>"]*>)*>')


_ESCAPED = re.compile(r"[^ !#-\[\]-~]")

OpT = TypeVar("OpT", bound=Operation)


def parse_node(parser: Parser, cls: type[OpT]) -> OpT:
    """Parses a node in the generic form, from its operands on."""
    operands = parser.parse_op_args_list()
    properties = parser.parse_optional_properties_dict()
    regions = parser.parse_region_list()
    attributes = parser.parse_optional_attr_dict()
    parser.parse_punctuation(":")
    position = parser.pos
    operand_types = parser.parse_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_type(parser))
    parser.parse_punctuation("->")
    result_types = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, lambda: _parse_type(parser))
    if result_types is None:
        result_types = [_parse_type(parser)]
    return cls.create(
        operands=parser.resolve_operands(operands, operand_types, position),
        result_types=result_types,
        properties=properties,
        attributes=attributes,
        regions=regions,
    )


def print_node(printer: Printer, op: Operation) -> None:
    """Prints a node in the generic form, from its operands on; the inverse of `parse_node`."""
    printer.print_operands(op.operands)
    if op.properties:
        printer.print_string(" <")
        _print_attribute(printer, DictionaryAttr(op.properties))
        printer.print_string(">")
    printer.print_regions(op.regions)
    printer.print_op_attributes(op.attributes)
    printer.print_string(" : ")
    printer.print_operation_type(op)


def _print_attribute(printer: Printer, attr: Attribute) -> None:
    if isinstance(attr, StringAttr) and attr.data.isascii():
        printer.print_string(f'"{_ESCAPED.sub(_escape, attr.data)}"')
    elif isinstance(attr, ArrayAttr):
        with printer.in_square_brackets():
            items = cast("ArrayAttr[Attribute]", attr).data
            printer.print_list(items, lambda item: _print_attribute(printer, item))
    elif isinstance(attr, DictionaryAttr):
        with printer.in_braces():
            printer.print_list(attr.data.items(), lambda entry: _print_entry(printer, *entry))
    else:
        printer.print_attribute(attr)


def _print_entry(printer: Printer, name: str, attr: Attribute) -> None:
    printer.print_identifier_or_string_literal(name)
    if not isinstance(attr, UnitAttr):
        printer.print_string(" = ")
        _print_attribute(printer, attr)


def _escape(match: re.Match[str]) -> str:
    return "\\\\" if match.group() == "\\" else f"\\{ord(match.group()):02X}"


def _parse_type(parser: Parser) -> Attribute:
    start = parser.pos
    match = _TENSOR.match(parser.lexer.input.content, start)
    found = _tensor_type(match.group()) if match is not None else None
    if match is None or found is None:
        return parser.parse_type()
    parser._resume_from(match.end())
    return found


@lru_cache(maxsize=8192)
def _tensor_type(text: str) -> Attribute | None:
    """Returns the type in `text`; `None` for invalid text, so that the parser itself reports the position."""
    try:
        return Parser(IgniterContext(), text).parse_type()
    except ParseError:
        return None
