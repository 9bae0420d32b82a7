"""The algorithms of procedures: what a procedure computes, for backends with another way to compute it.

    #loop.prefix<add>                       y[r, t, c] = x[r, 0, c] + .. + x[r, t, c]
    #loop.prefix<add, exclusive, reverse>   y[r, t, c] = x[r, t + 1, c] + .. + x[r, n - 1, c]
    #loop.top<largest>                      the elements along the second dim, in their order, and their places
    #loop.scatter<along, 1>                 the first operand, with updates at indices along its dim 1
    #loop.scatter<positions, 2>             the first operand, with updates at positions along its first 2 dims

The body of a procedure is one way, step by step; it defines the results. An algorithm is a fact about the body, stated
by the lowering that wrote it: a backend whose machine prefers another way takes the algorithm instead. Schedules for
such a backend name the dims of the algorithm instead of the axes of the procedure. The operand and the results of
`prefix` and `top` have three dims: `rows`, the dim of the algorithm, and `columns`.

The order of `top` is descending, or ascending for `smallest`; a NaN is greater than every number, and of equal elements
the one with the lower place is first. The results have as many of the first elements as their second dim says.

The operands of `scatter` are the data, the indices and the updates. The last one of several updates of one element, in
row-major order, counts. Negative indices count from the end, and an update out of bounds is left out. With `along`, the
indices have the dims of the updates. With `positions`, the last dim of the indices has the coordinates of one position,
and an update is the rest of the data there.
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
"""The dims around that of a scan or an order."""


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


@irdl_attr_definition
class ScatterAttr(Data[tuple[str, int]]):
    """The data with updates at indices: `#loop.scatter<along, 1>`, `#loop.scatter<positions, 2>`."""

    name = "loop.scatter"
    dims = ("positions", "updates", "elements")

    @property
    def axis(self) -> int | None:
        """The dim that the indices are along; None if they are positions."""
        return self.data[1] if self.data[0] == "along" else None

    @property
    def depth(self) -> int:
        """The number of coordinates of a position."""
        return self.data[1]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[str, int]:
        parser.parse_characters("<")
        how = parser.parse_identifier()
        if how not in ("along", "positions"):
            parser.raise_error("a scatter is 'along' a dim or at 'positions'")
        parser.parse_characters(",")
        number = parser.parse_integer(allow_boolean=False, allow_negative=False)
        parser.parse_characters(">")
        return how, number

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self.data[0]}, {self.data[1]}>")

    def reason(self, inputs: Sequence[Attribute], results: Sequence[Attribute]) -> str | None:
        """Returns the reason why a procedure of these types computes no scatter; None if it may."""
        if len(inputs) != 3 or len(results) != 1 or results[0] != inputs[0]:
            return "a scatter takes data, indices and updates, and gives a tensor of the type of the data"
        data, indices, updates = (dims_of(t) for t in inputs)
        if self.axis is not None:
            fits = len(data) == len(indices) == len(updates) and self.axis < len(data)
        else:
            fits = bool(indices) and indices[-1].constant == self.depth <= len(data)
            fits = fits and len(updates) == len(indices) - 1 + len(data) - self.depth
        return None if fits else "the dims of its indices or its updates do not fit its data"


Algorithm: TypeAlias = PrefixAttr | ScatterAttr | TopAttr
"""What a procedure computes."""

ALGORITHMS = (PrefixAttr, ScatterAttr, TopAttr)
