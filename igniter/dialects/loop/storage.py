"""The place of a buffer, from `store` in the schedule of a nest until passes have carried it out.

%b = loop.alloc "exp" store at 1 in stack : memref<64xf32, "scratch">
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from xdsl.ir import Data
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from igniter.dialects.loop.words import known, near

Memory = Literal["", "registers", "stack", "arena"]
MEMORIES = tuple(m for m in get_args(Memory) if m)


@dataclass(frozen=True)
class Storage:
    """The place of a buffer that passes have not carried out yet: `at 1 in stack`."""

    depth: int | None = None
    """The number of loops around it, each iteration of which has its own buffer; None once it is there."""
    memory: Memory = ""

    def __str__(self) -> str:
        return " ".join(
            [*([f"at {self.depth}"] if self.depth is not None else []), *([f"in {self.memory}"] if self.memory else [])]
        )


@irdl_attr_definition
class StorageAttr(Data[Storage]):
    """The place of a buffer: `#loop.storage<at 1 in stack>`."""

    name = "loop.storage"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Storage:
        with parser.in_angle_brackets():
            return parse_storage(parser, "a buffer")

    def print_parameter(self, printer: Printer) -> None:
        with printer.in_angle_brackets():
            printer.print_string(str(self.data))


def parse_storage(parser: AttrParser, where: str) -> Storage:
    """Parses `(at depth)? (in memory)?`; errors begin with `where`."""
    depth: int | None = None
    memory: Memory = ""
    if parser.parse_optional_keyword("at") is not None:
        depth = parser.parse_integer(allow_boolean=False, allow_negative=False)
    if parser.parse_optional_keyword("in") is not None:
        memory = parse_memory(parser, where)
    if depth is None and not memory:
        parser.raise_error(f"{where}: 'store' needs 'at' with a number of loops, or 'in' with a memory")
    return Storage(depth, memory)


def parse_memory(parser: AttrParser, where: str) -> Memory:
    """Parses the name of a memory; errors begin with `where`."""
    name = parser.parse_identifier(" or ".join(MEMORIES))
    for memory in get_args(Memory):
        if name == memory:
            return memory
    parser.raise_error(f"{where}: unknown memory '{name}'{near(name, MEMORIES)}{known(MEMORIES)}")
