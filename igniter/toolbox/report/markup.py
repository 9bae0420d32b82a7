"""Pieces of a report as HTML: tables, tiles and figures, whose texts are escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence


def text(value: object) -> str:
    """Returns a text without markup."""
    return html.escape(str(value))


def table(head: Sequence[str], rows: Iterable[Sequence[str]], title: str, kind: str = "") -> str:
    """Returns a table of cells with markup, in a box that scrolls, also by keys. The first cell of a row names the row.

    `title` is the caption; columns with a leading dot are numbers.
    """
    titles = "".join(f'<th scope="col"{_kind(name)}>{name.lstrip(".")}</th>' for name in head)
    lines = "".join(f"<tr>{''.join(_cells(head, row))}</tr>" for row in rows)
    body = f"<caption>{text(title)}</caption><thead><tr>{titles}</tr></thead><tbody>{lines}</tbody>"
    return (
        f'<div class="scroll" tabindex="0" role="group" aria-label="{text(title)}"><table class="{kind}">{body}'
        "</table></div>"
    )


def _kind(column: str) -> str:
    return ' class="number"' if column.startswith(".") else ""


def _cells(head: Sequence[str], row: Sequence[str]) -> list[str]:
    (first, cell), *others = zip(head, row, strict=True)
    return [f'<th scope="row"{_kind(first)}>{cell}</th>', *(f"<td{_kind(name)}>{cell}</td>" for name, cell in others)]


def tile(figure: str, what: str, more: str = "", mood: str = "") -> str:
    """Returns a card: a figure, its meaning, and small print."""
    small = f"<small>{text(more)}</small>" if more else ""
    return f'<div class="tile {mood}"><strong>{text(figure)}</strong><span>{text(what)}</span>{small}</div>'


def bar(share: float, widest: float) -> str:
    """Returns a share of a run in percent above a bar, which is relative to the widest one."""
    width = 100 * share / widest if widest else 0.0
    return f'{share:.1%}<span class="bar" style="width:{width:.1f}%"></span>'


def clipped(value: str) -> str:
    """Returns a text that a narrow column cuts off; the pointer and the keyboard's focus show it whole."""
    return f'<span class="clip" title="{text(value)}">{text(value)}</span>'


def link(name: str, kind: str) -> str:
    """Returns a button that shows a kernel or a node in the graph."""
    return f'<button class="link" data-{kind}="{text(name)}">{text(name)}</button>'


def sizes_text(sizes: dict[str, int]) -> str:
    """Returns sizes of dims: `batch=1, seq=128`."""
    return ", ".join(f"{name}={size}" for name, size in sizes.items()) or "the sizes in the model"


def threads_text(threads: int) -> str:
    """Returns a number of threads."""
    return f"{threads} thread{'s' * (threads != 1)}"


def figure_text(value: float | None, digits: int = 3) -> str:
    """Returns a figure; "" if it is unknown."""
    return "" if value is None else f"{value:.{digits}g}"


def count_text(value: int | None) -> str:
    """Returns a number of operations or bytes in thousands; "" if it is unknown."""
    if value is None:
        return ""
    size, unit = float(value), ""
    for larger in ("k", "M", "G", "T"):
        if size < 1000:
            break
        size, unit = size / 1000, f" {larger}"
    return f"{size:.3g}{unit}"
