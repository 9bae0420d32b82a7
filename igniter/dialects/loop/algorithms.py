"""The algorithms of procedures: what a procedure computes, for backends with another way to compute it.

    #loop.prefix<add>                       y[r, t, c] = x[r, 0, c] + .. + x[r, t, c]
    #loop.prefix<add, exclusive, reverse>   y[r, t, c] = x[r, t + 1, c] + .. + x[r, n - 1, c]
    #loop.top<largest>                      the elements along the second dim, in their order, and their places

The body of a procedure is one way, step by step; it defines the results. An algorithm is a fact about the body, stated
by the lowering that wrote it: a backend whose machine prefers another way takes the algorithm instead. The operand and
the results have three dims: `rows`, the dim of the algorithm, and `columns`. Schedules for such a backend name the dims
of the algorithm instead of the axes of the procedure.

The order of `top` is descending, or ascending for `smallest`; a NaN is greater than every number, and of equal elements
the one with the lower place is first. The results have as many of the first elements as their second dim says.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias, cast

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from igniter.dialects.loop.attrs import Combiner
from igniter.dialects.sym import dims_of, element_of

ROWS, COLUMNS = "rows", "columns"
"""The dims of every algorithm around its own."""


def _words(parser: AttrParser) -> list[str]:
    """Parses `<word, ...>`."""
    return parser.parse_comma_separated_list(parser.Delimiter.ANGLE, parser.parse_identifier)


@irdl_attr_definition
class PrefixAttr(Data[tuple[str, ...]]):
    """Running sums or products along a dim: `#loop.prefix<add, exclusive, reverse>`."""

    name = "loop.prefix"
    dims = (ROWS, "steps", COLUMNS)

    def __init__(self, words: Sequence[str]):
        super().__init__(tuple(words))

    @classmethod
    def of(cls, combiner: Combiner, *, exclusive: bool, reverse: bool) -> PrefixAttr:
        """Returns the attribute of a scan."""
        return cls([combiner, *(["exclusive"] if exclusive else []), *(["reverse"] if reverse else [])])

    @property
    def combiner(self) -> Combiner:
        """The combiner of two elements."""
        return cast("Combiner", self.data[0])

    @property
    def exclusive(self) -> bool:
        """True if an element has no part in its own result."""
        return "exclusive" in self.data[1:]

    @property
    def reverse(self) -> bool:
        """True if the scan begins at the last element."""
        return "reverse" in self.data[1:]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[str, ...]:
        words = _words(parser)
        if words[:1] not in (["add"], ["mul"]) or not set(words[1:]) <= {"exclusive", "reverse"}:
            parser.raise_error("a prefix is 'add' or 'mul', then perhaps 'exclusive' and 'reverse'")
        return tuple(words)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{', '.join(self.data)}>")

    def reason(self, inputs: Sequence[Attribute], results: Sequence[Attribute]) -> str | None:
        """Returns the reason why a procedure of these types computes no scan; None if it may."""
        if len(inputs) != 1 or len(results) != 1 or inputs[0] != results[0] or len(dims_of(inputs[0])) != 3:
            return "a prefix takes a tensor of three dims, and gives one of the same type"
        return None


@irdl_attr_definition
class TopAttr(Data[str]):
    """The first elements in order along a dim, and their places: `#loop.top<largest>`."""

    name = "loop.top"
    dims = (ROWS, "ranked", "others", COLUMNS, "steps")

    @property
    def largest(self) -> bool:
        """True if the order is descending."""
        return self.data == "largest"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> str:
        words = _words(parser)
        if words not in (["largest"], ["smallest"]):
            parser.raise_error("the first elements are the 'largest' or the 'smallest'")
        return words[0]

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data}>")

    def reason(self, inputs: Sequence[Attribute], results: Sequence[Attribute]) -> str | None:
        """Returns the reason why a procedure of these types computes no order; None if it may."""
        if len(inputs) != 1 or len(results) != 2 or any(len(dims_of(t)) != 3 for t in (*inputs, *results)):
            return "'top' takes a tensor of three dims, and gives elements and their places"
        of, elements, places = inputs[0], results[0], results[1]
        if element_of(of) != element_of(elements) or element_of(places) != i64 or dims_of(elements) != dims_of(places):
            return "'top' gives elements of the operand's type and as many places, of i64"
        if dims_of(of)[::2] != dims_of(elements)[::2]:
            return "'top' keeps the first and the last dim of its operand"
        return None


Algorithm: TypeAlias = PrefixAttr | TopAttr
"""What a procedure computes."""

ALGORITHMS = (PrefixAttr, TopAttr)
