"""The parts of the text that `linalg` ops share: operands, results, maps, regions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from xdsl.dialects.builtin import AffineMapAttr, ArrayAttr
from xdsl.ir import Attribute, Block, Region, SSAValue
from xdsl.parser import Parser
from xdsl.printer import Printer

from igniter.dialects.linalg.structure import maps_in


def parse_group(parser: Parser, keyword: str) -> list[SSAValue]:
    """Parses `keyword(%v, ... : type, ...)`; returns no values if it is absent."""
    if parser.parse_optional_keyword(keyword) is None:
        return []
    parser.parse_punctuation("(")
    position = parser.pos
    if parser.parse_optional_punctuation(")") is not None:
        return []
    names = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_unresolved_operand)
    parser.parse_punctuation(":")
    types = parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type)
    parser.parse_punctuation(")")
    return list(parser.resolve_operands(names, types, position))


def parse_results(parser: Parser) -> list[Attribute]:
    """Parses `(-> type | -> (type, ...))?`."""
    if parser.parse_optional_punctuation("->") is None:
        return []
    several = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, parser.parse_type)
    if several is not None:
        return list(several)
    return list(parser.parse_comma_separated_list(parser.Delimiter.NONE, parser.parse_type))


def parse_maps(parser: Parser) -> ArrayAttr[AffineMapAttr] | None:
    """Parses `(indexing_maps = [map, ...])?`."""
    if parser.parse_optional_keyword("indexing_maps") is None:
        return None
    parser.parse_punctuation("=")
    position = parser.pos
    found = maps_in(parser.parse_attribute())
    if found is None:
        parser.raise_error("the indexing maps must be a list of affine maps", position)
    return ArrayAttr(found)


def parse_integers(parser: Parser, keyword: str) -> list[int]:
    """Parses `keyword = [integer, ...]`."""
    parser.parse_keyword(keyword)
    parser.parse_punctuation("=")
    return parser.parse_comma_separated_list(parser.Delimiter.SQUARE, parser.parse_integer)


def print_group(printer: Printer, keyword: str, values: Sequence[SSAValue]) -> None:
    """Prints the inverse of `parse_group`."""
    if values:
        printer.print_string(f" {keyword}(")
        printer.print_list(values, printer.print_ssa_value)
        printer.print_string(" : ")
        printer.print_list([v.type for v in values], printer.print_attribute)
        printer.print_string(")")


def print_results(printer: Printer, types: Sequence[Attribute]) -> None:
    """Prints the inverse of `parse_results`."""
    if not types:
        return
    printer.print_string(" -> ")
    if len(types) == 1:
        printer.print_attribute(types[0])
        return
    with printer.in_parens():
        printer.print_list(types, printer.print_attribute)


def print_dict(printer: Printer, attributes: Mapping[str, Attribute]) -> None:
    """Prints ` {key = value, ...}`; nothing for no attributes."""
    if attributes:
        printer.print_op_attributes(dict(attributes))


def print_integers(printer: Printer, keyword: str, values: Iterable[int]) -> None:
    """Prints the inverse of `parse_integers`."""
    printer.print_string(f" {keyword} = [{', '.join(map(str, values))}] ")


def parse_body(parser: Parser) -> Region:
    """Parses `(%a: type, ...) { op* }`."""
    arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
    return parser.parse_region(arguments)


def print_body(printer: Printer, block: Block) -> None:
    """Prints the inverse of `parse_body`."""
    printer.print_string(" (")
    printer.print_list(block.args, printer.print_block_argument)
    printer.print_string(") ")
    region = block.parent_region()
    assert region is not None
    printer.print_region(region, print_entry_block_args=False)
