"""Schedules, profiles and shapes in a notebook: loop trees and tables.

`igniter.toolbox.html` draws modules and artifacts. A table has at most `MOST_ROWS` rows; a last row counts the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import takewhile
from typing import TYPE_CHECKING

from igniter.dialects.loop.schedule import Loop, ScheduleAttr, Step
from igniter.dialects.sym.expr import Expr
from igniter.toolbox.html import table

if TYPE_CHECKING:
    from igniter.toolbox.profile.profile import Profile, Row
    from igniter.toolbox.shapes.shapes import ModelShapes

MOST_ROWS = 60
LONGEST = 60
"""The largest number of characters of an amount with symbols."""


def schedule_html(title: str, nests: Iterable[tuple[str, ScheduleAttr]]) -> str:
    """Returns the loop tree of a kernel: nests in order, below the loops that they share with the nest before."""
    lines: list[str] = [f"<div><b>{escape(title)}</b></div>"]
    before: Sequence[Step] = ()
    depth = 0
    for label, schedule in nests:
        shared = _shared(before, schedule.data)
        lines.append("</ul></li>" * (depth - shared))
        lines += [f"<li><code>{escape(str(step))}</code><ul>" for step in schedule.data[shared:]]
        lines.append(f"<li><b>{escape(label)}</b></li>")
        before, depth = schedule.data, len(schedule.data)
    return f"{lines[0]}<ul>{''.join(lines[1:])}{'</ul></li>' * depth}</ul>"


def _shared(before: Sequence[Step], steps: Sequence[Step]) -> int:
    """Returns the number of outer loops of a nest that are those of the nest before: loops of one fusion group."""
    pairs = zip(before, steps, strict=False)
    return len(list(takewhile(lambda pair: _group(pair[0]) == _group(pair[1]) != "", pairs)))


def _group(step: Step) -> str:
    return step.fuse if isinstance(step, Loop) else ""


def profile_html(profile: Profile) -> str:
    """Returns the cost of a model by op, the largest first, with the total."""
    rows = sorted(profile.by_type(), key=_weight, reverse=True)
    listed = [_cells(row) for row in rows[:MOST_ROWS]]
    head = ("op", "nodes", "MACs", "FLOPs", "parameters", "bytes of weights", "bytes of results")
    symbols = [[name, meaning] for name, meaning in profile.symbols.items()]
    return (
        table([*listed, *_rest(rows), _cells(profile.total)], head)
        + (table(symbols, ("symbol", "meaning")) if symbols else "")
        + "".join(f"<div>{escape(note)}</div>" for note in profile.notes)
    )


def _weight(row: Row) -> tuple[int, int]:
    return row.cost.flops.constant or 0, row.nodes


def _cells(row: Row) -> list[str]:
    cost = row.cost
    return [
        row.op or row.name,
        f"{row.nodes:,}",
        amount(cost.macs),
        amount(cost.flops) + ("?" if row.uncounted else ""),
        f"{row.parameters:,}",
        f"{row.weight_bytes:,}",
        amount(cost.activations),
    ]


def amount(expr: Expr) -> str:
    """Returns an amount: a number, or an expression, which is cut if it is long."""
    if expr.constant is not None:
        return f"{expr.constant:,}"
    text = str(expr)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def shapes_html(shapes: ModelShapes) -> str:
    """Returns the values of a model with their types and shapes; weights are left out."""
    values = [value for value in shapes.values if value.kind != "weight"]
    rows = [
        [v.name, v.type, "?" if v.dims is None else f"[{', '.join(map(str, v.dims))}]", v.op, v.node]
        for v in values[:MOST_ROWS]
    ]
    return table([*rows, *_rest(values)], ("value", "type", "shape", "op", "node"))


def _rest(rows: Sequence[object]) -> list[list[str]]:
    return [[f"{len(rows) - MOST_ROWS} more"]] if len(rows) > MOST_ROWS else []
