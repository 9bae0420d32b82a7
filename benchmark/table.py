"""Tables for a terminal, a line at a time as the rows are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Column:
    """A heading and its width; the first column of a table is set to the left, the others to the right."""

    name: str
    width: int


def line(columns: Sequence[Column], cells: Sequence[str]) -> str:
    """One line; a cell that is too long pushes the others to the right."""
    parts = [
        f"{cell:>{c.width}}" if k else f"{cell:<{c.width}}"
        for k, (c, cell) in enumerate(zip(columns, cells, strict=True))
    ]
    return " ".join(parts).rstrip()


def show(columns: Sequence[Column], silent: bool, cells: Sequence[str] | None = None) -> None:
    """Print a row, or without cells the headings."""
    if not silent:
        print(line(columns, [c.name for c in columns] if cells is None else cells), flush=True)
