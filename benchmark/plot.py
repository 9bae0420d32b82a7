"""Draws a table of times relative to ONNX Runtime (ORT) as an SVG: `python -m benchmark.plot README.md
docs/figures.svg`. `python -m benchmark.performance --write` does so for the table that it writes.

The first argument is a page. Its first table with the columns `model`, `batch`, `threads`, `ORT, ms` and `ORT again`
gives the rows; the columns between the last two are the systems, as multiples of ORT's time. Each row has a bar for
each system. A line marks ORT's own time, and a band around it, from `ORT again`, the difference between two
measurements of ORT.

It needs no package, so that the plot of a page is drawn wherever its figures are changed.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

FIRST, CONTROL = ("model", "batch", "threads", "ORT, ms"), "ORT again"
COLOURS, NOISE = ("#1f6feb", "#f0883e", "#3fb950", "#a371f7"), "#8b949e"
LEFT, WIDTH, RIGHT = 250, 430, 50
BAR, GAP, TOP, BOTTOM = 11, 9, 34, 30


@dataclass(frozen=True)
class Row:
    """A model at a batch and a number of threads: ORT's time in ms, and the time of each system, and of ORT again, as a
    multiple of it."""

    model: str
    batch: int
    threads: int
    milliseconds: float
    ratios: tuple[float, ...]
    again: float


@dataclass(frozen=True)
class Table:
    """The rows of a page's table, and the names of the systems."""

    systems: tuple[str, ...]
    rows: tuple[Row, ...]


def table_of(page: str) -> Table:
    """Returns the first table of times on a page; raises `ValueError` if the page has none."""
    lines = page.splitlines()
    for number, line in enumerate(lines):
        head = _cells(line)
        if tuple(head[: len(FIRST)]) == FIRST and head[-1] == CONTROL:
            body = [_cells(each) for each in lines[number + 2 :]]
            stop = next((k for k, cells in enumerate(body) if len(cells) != len(head)), len(body))
            return Table(tuple(head[len(FIRST) : -1]), tuple(_row(cells) for cells in body[:stop]))
    raise ValueError(f"there is no table with the columns {', '.join(FIRST)}, ..., {CONTROL}")


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []


def _row(cells: Sequence[str]) -> Row:
    model, batch, threads, *numbers = cells
    milliseconds, *ratios, again = (float(number) for number in numbers)
    return Row(model, int(batch), int(threads), milliseconds, tuple(ratios), again)


def svg(table: Table) -> str:
    """Returns the plot. Text and axes are legible on light and dark pages."""
    most = max(1.0, *(ratio for row in table.rows for ratio in (*row.ratios, row.again)))
    step = BAR * len(table.systems) + GAP
    height = TOP + step * len(table.rows) + BOTTOM
    bottom = height - BOTTOM

    def x(ratio: float) -> float:
        return LEFT + WIDTH * ratio / most

    parts = [_legend(table.systems)]
    for tick in (k / 4 for k in range(int(4 * most) + 1)):
        parts += [_line(x(tick), TOP, bottom, "0.25"), _text(x(tick), height - 14, f"{tick:g}", "middle")]
    for k, row in enumerate(table.rows):
        y = TOP + k * step
        low, high = sorted((1.0, row.again))
        parts.append(_bar(x(low), y, x(high) - x(low), step - GAP, NOISE, "0.45"))
        parts.append(_text(LEFT - 8, y + (step - GAP) / 2 + 4, _label(row), "end"))
        for n, ratio in enumerate(row.ratios):
            place = y + n * BAR
            parts.append(_bar(LEFT, place, x(ratio) - LEFT, BAR - 1, COLOURS[n % len(COLOURS)], "1"))
            parts.append(_text(x(ratio) + 4, place + BAR - 2, f"{ratio:.2f}", "start", 9))
    parts.append(_line(x(1), TOP - 4, bottom, "1"))
    return _document(LEFT + WIDTH + RIGHT, height, parts)


def _label(row: Row) -> str:
    return f"{row.model}, batch {row.batch}, {row.threads} thread{'s' * (row.threads > 1)}"


def _legend(systems: Sequence[str]) -> str:
    parts: list[str] = []
    place = LEFT
    for n, name in enumerate(systems):
        parts += [_bar(place, 8, BAR, BAR, COLOURS[n % len(COLOURS)], "1"), _text(place + 16, 18, name, "start")]
        place += 30 + 7 * len(name)
    parts += [_bar(place, 8, BAR, BAR, NOISE, "0.45"), _text(place + 16, 18, "ORT, measured twice", "start")]
    return "\n".join(parts)


def _bar(x: float, y: float, width: float, height: float, colour: str, opacity: str) -> str:
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" fill="{colour}" '
        f'fill-opacity="{opacity}"/>'
    )


def _line(x: float, top: float, bottom: float, opacity: str) -> str:
    return (
        f'<line x1="{x:.1f}" y1="{top:.1f}" x2="{x:.1f}" y2="{bottom:.1f}" stroke="#808080" '
        f'stroke-opacity="{opacity}"/>'
    )


def _text(x: float, y: float, text: str, anchor: str, size: int = 11) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}">{escape(text)}</text>'


def _document(width: int, height: int, parts: Iterable[str]) -> str:
    return "\n".join(
        (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
            'font-family="sans-serif" fill="#808080">',
            "<title>Time as a multiple of ONNX Runtime's; lower is faster</title>",
            *parts,
            "</svg>",
            "",
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmark.plot", description=re.split(r"\n\n", __doc__ or "")[0])
    parser.add_argument("page", type=Path, help="a page with the table")
    parser.add_argument("svg", type=Path, help="the file to write")
    given = parser.parse_args()
    given.svg.write_text(svg(table_of(given.page.read_text(encoding="utf-8"))), encoding="utf-8")


if __name__ == "__main__":
    main()
