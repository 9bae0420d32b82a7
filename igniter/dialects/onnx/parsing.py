"""Reading nodes fast: the types of a model's values are few and repeated, so each is parsed once."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TypeVar

from xdsl.ir import Attribute, Operation
from xdsl.parser import Parser
from xdsl.utils.exceptions import ParseError

_TENSOR = re.compile(r'tensor<(?:[^<>"]|<[^<>"]*>)*>')


OpT = TypeVar("OpT", bound=Operation)


def parse_node(parser: Parser, cls: type[OpT]) -> OpT:
    """A node in the generic form, from its operands on."""
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
    """The type that `text` writes; `None` where it is wrong, so that the parser itself says where."""
    from igniter.context import IgniterContext

    try:
        return Parser(IgniterContext(), text).parse_type()
    except ParseError:
        return None
