"""Long tables look as rich draws them row by row."""

from __future__ import annotations

import io

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from igniter.toolbox.tables import FEW, NARROWEST, add_rows

ROWS = [[f"node_{k}[a]", "", f"{k * k * k:,}", "" if k % 3 else f"{k}*batch*seq + 1", "ü名"] for k in range(FEW + 9)]
TOTAL = ["Total", "", "1,000,000,000", "", ""]


def _drawn(rows: list[list[str]], total: list[str], room: int, ours: bool) -> str:
    out = Console(file=io.StringIO(), width=room, highlight=False)
    table = Table()
    for name, justify in (("Name", "left"), ("", "left"), ("Amount", "right"), ("Of", "right"), ("In", "left")):
        table.add_column(name, justify=justify, overflow="fold")  # pyright: ignore[reportArgumentType]
    if ours:
        add_rows(table, rows, total, room, out)
    else:
        for row in rows:
            table.add_row(*map(Text, row))
        if total:
            table.add_section()
            table.add_row(*map(Text, total))
    out.print(table)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


@pytest.mark.parametrize("room", [200, 66, 20])
@pytest.mark.parametrize("total", [TOTAL, []])
def test_tables_are_those_of_rich(room: int, total: list[str]) -> None:
    assert _drawn(ROWS, total, room, True) == _drawn(ROWS, total, room, False)
    assert _drawn(ROWS[:2], total, room, True) == _drawn(ROWS[:2], total, room, False)


def test_cells_with_lines_of_their_own() -> None:
    rows = [["two\nlines", *row[1:]] for row in ROWS]
    assert _drawn(rows, TOTAL, 120, True) == _drawn(rows, TOTAL, 120, False)


def test_what_does_not_fit_is_folded() -> None:
    rows = [["a_name_that_is_long" * 3, *row[1:]] for row in ROWS]
    for room in (52, 70):
        text = _drawn(rows, TOTAL, room, True)
        assert max(map(len, text.splitlines())) <= room
    assert text.count("a_name_that_is_long"[:NARROWEST]) >= len(rows)
