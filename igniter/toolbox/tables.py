"""Tables: as CSV, and with many rows on a terminal.

Rich visits each cell some ten times, in 2 ms a row: seconds for a model of 2,000 nodes. A table looks the same with one
row whose cells contain the lines of all rows, and is drawn in a tenth of the time. Long cells are folded before, by
rich if necessary.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.text import Text

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

FEW = 40
"""The number of rows for rich without a delay."""

NARROWEST = 8
"""The least width of a cut column; narrower tables are left to rich."""


def csv_text(columns: Sequence[str], rows: Iterable[Mapping[str, object]]) -> str:
    """Returns a table as CSV: missing values are empty, values of other columns left out."""
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def add_rows(table: Table, rows: Sequence[Sequence[str]], total: Sequence[str], room: int, out: Console) -> None:
    """Adds rows of plain text to a table, and after a line their total if it is not empty. The table has a border and
    may be `room` characters wide on the console."""
    widths = _widths(table, [*rows, total] if total else rows, room) if len(rows) > FEW else None
    if widths is None:
        for row in rows:
            table.add_row(*map(Text, row))
    else:
        for column, width in zip(table.columns, widths, strict=True):
            column.width = width
        lines = [line for row in rows for line in _lines(row, widths, out)]
        table.add_row(*(Text("\n".join(cells), no_wrap=True) for cells in zip(*lines, strict=True)))
    if total:
        if rows:
            table.add_section()
        table.add_row(*map(Text, total))


def _widths(table: Table, rows: Sequence[Sequence[str]], room: int) -> list[int] | None:
    """Returns the widths of the columns, the widest ones cut to fit; `None` if they become too narrow."""
    columns = zip(table.columns, zip(*rows, strict=True), strict=True)
    found = [
        max(cell_len(line) for cell in (str(column.header), *cells) for line in cell.split("\n"))
        for column, cells in columns
    ]
    room -= 3 * len(found) + 1
    most = max(found)
    while sum(min(w, most) for w in found) > room:
        most -= 1
        if most < NARROWEST:
            return None
    return [min(w, most) for w in found]


def _lines(row: Sequence[str], widths: Sequence[int], out: Console) -> list[Sequence[str]]:
    """Returns the lines of a row, each with a text for every column."""
    if all(cell_len(cell) <= width and "\n" not in cell for cell, width in zip(row, widths, strict=True)):
        return [row]
    folded = [
        [line.plain for line in Text(cell).wrap(out, width, overflow="fold")]
        for cell, width in zip(row, widths, strict=True)
    ]
    return list(zip_longest(*folded, fillvalue=""))
