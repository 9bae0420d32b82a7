"""`team(runs 64, looks 32768)`: a thread team for a program, from its first kernel to the last.

The program enters the thread pool once, for `runs` runs of one task. One of them leads from kernel to kernel and the
others help; a helper leaves after `looks` unsuccessful polls for work. A program computes the same results without a
team.
"""

from __future__ import annotations

from typing import NamedTuple

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer


class Team(NamedTuple):
    """The maximum number of threads, and the number of polls before one leaves."""

    runs: int
    looks: int


@irdl_attr_definition
class TeamAttr(Data[Team]):
    """The team of a program: `#loop.team<(runs 64, looks 32768)>`."""

    name = "loop.team"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Team:
        with parser.in_angle_brackets():
            return _parse(parser)

    def print_parameter(self, printer: Printer) -> None:
        printer.print_string(f"<{self}>")

    def __str__(self) -> str:
        return f"(runs {self.data.runs}, looks {self.data.looks})"


def parse_team(parser: AttrParser) -> TeamAttr | None:
    """Parses `(team(runs count, looks count))?`."""
    return TeamAttr(_parse(parser)) if parser.parse_optional_keyword("team") is not None else None


def print_team(attr: TeamAttr | None, printer: Printer) -> None:
    """Prints the inverse of `parse_team`."""
    if attr is not None:
        printer.print_string(f" team{attr}")


def _parse(parser: AttrParser) -> Team:
    parser.parse_punctuation("(")
    runs = _count(parser, "runs")
    parser.parse_punctuation(",")
    looks = _count(parser, "looks")
    parser.parse_punctuation(")")
    return Team(runs, looks)


def _count(parser: AttrParser, word: str) -> int:
    parser.parse_keyword(word)
    place = parser.pos
    count = parser.parse_integer(allow_boolean=False, allow_negative=False)
    if count < 1:
        parser.raise_error(f"the {word} of a team must be at least 1", place)
    return count
