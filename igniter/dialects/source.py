"""A parser that records where each op of a text begins, and keeps the blobs of the text apart from other texts'.

xDSL gives an op a location only where the text has `loc(...)`. Passes over parsed IR name an op by its line, so every
other op gets the file, line and column of its text. xDSL keeps the blobs of `dialect_resources` in one table for the
process: the second text with the same key loses its blob. Here a key has the blob of its own text.
"""

from __future__ import annotations

from bisect import bisect_right

from xdsl.context import Context
from xdsl.dialect_interfaces.op_asm import OpAsmDialectInterface
from xdsl.dialects.builtin import Builtin, DenseResourceAttr, FileLineColLoc, IntAttr, StringAttr, UnknownLoc
from xdsl.ir import Operation

from igniter.dialects.generic_text import IrParser


class SourceParser(IrParser):
    """An xDSL parser with locations."""

    def __init__(self, ctx: Context, text: str, name: str = "<unknown>", first_line: int = 1):
        super().__init__(ctx, text, name)
        self._name = StringAttr(name)
        self._first = first_line
        self._starts = [0, *(k + 1 for k, c in enumerate(text) if c == "\n")]
        self._keys: dict[tuple[str, str], str] = {}

    def parse_operation(self) -> Operation:
        position = self.pos
        op = super().parse_operation()
        if isinstance(op.location, UnknownLoc):
            line = bisect_right(self._starts, position) - 1
            column = position - self._starts[line] + 1
            op.location = FileLineColLoc(self._name, IntAttr(line + self._first), IntAttr(column))
        return op

    def _parse_dialect_resource_handle(self, dialect_name: str, interface: OpAsmDialectInterface) -> str:
        key = self.parse_identifier(" for resource handle")
        place = (dialect_name, key)
        if place not in self._keys:
            self._keys[place] = interface.declare_resource(key)
            self.dialect_resources.add((dialect_name, self._keys[place]))
        return self._keys[place]


def line_of(op: Operation) -> str:
    """Returns `FILE:LINE` of an op; "" if it is unknown."""
    found = op.location
    return f"{found.filename.data}:{found.line.data}" if isinstance(found, FileLineColLoc) else ""


def blob_of(attr: DenseResourceAttr) -> bytes | None:
    """Returns the bytes of a resource, without the alignment in front; None if its text has no such blob."""
    interface = Builtin.get_interface(OpAsmDialectInterface)
    text = None if interface is None else interface.lookup(attr.resource_handle.data)
    return bytes.fromhex(text[2:])[4:] if text else None
