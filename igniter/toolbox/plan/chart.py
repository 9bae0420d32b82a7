"""Memory over steps as a picture: buffers as boxes in an SVG, and the bytes in use as text for a terminal."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from igniter.dialects.sym.expr import Expr

if TYPE_CHECKING:
    from igniter.toolbox.plan.compiled import ArenaPlan
    from igniter.toolbox.plan.plan import MemoryPlan

COLORS = {"result": "#7fb2d9", "output": "#8cc58c", "input": "#d9c27f", "carried": "#c79bd1", "arena": "#e3a08a"}
"""The colours of boxes, by the kind of their content."""

GRID, AXIS, LIMIT = 'class="grid" stroke="#e4e4e4"', 'class="axis" fill="#555"', 'class="limit" stroke="#b03030"'
"""The looks of lines and texts in charts; a page changes them by their classes for its dark scheme."""

WIDTH, HEIGHT = 1120, 420
LEFT, RIGHT, TOP, BOTTOM = 84, 16, 34, 46
LABELLED = 60
"""The least width of a box with a name, in points."""


@dataclass(frozen=True)
class Box:
    """A buffer at given sizes."""

    name: str
    kind: str
    offset: int
    size: int
    first: int
    last: int


@dataclass(frozen=True)
class Chart:
    """Boxes over steps: `live` bytes are in use in each step, of an arena of `total`."""

    title: str
    boxes: tuple[Box, ...]
    steps: tuple[str, ...]
    live: tuple[int, ...]
    total: int
    unit: str = "step"
    """The name of a step."""

    @staticmethod
    def of(plan: MemoryPlan, title: str) -> Chart:
        """Returns the chart of a plan, at its typical sizes."""
        kinds = {a.buffer: a.kind for a in reversed(plan.activations)}
        boxes = [
            Box(_names(b.values), kinds[k], plan.value(b.offset), plan.value(b.size), b.first, b.last)
            for k, b in enumerate(plan.buffers)
        ]
        steps = tuple(f"{s.graph}: {s.name} ({s.op})" if s.graph else f"{s.name} ({s.op})" for s in plan.steps)
        live = tuple(plan.value(s.live) for s in plan.steps)
        return Chart(title, tuple(boxes), steps, live, plan.value(plan.total))

    @staticmethod
    def of_arena(arena: ArenaPlan, title: str, value: Callable[[Expr], int]) -> Chart:
        """Returns the chart of a program's arena; `value` evaluates sizes."""
        boxes = [
            Box(_names(b.values), "result", value(b.offset), value(b.size), b.first, b.last) for b in arena.buffers
        ]
        steps = tuple(f"{call.kernel}: {', '.join(call.nodes)}" for call in arena.calls)
        return Chart(title, tuple(boxes), steps, tuple(map(value, arena.live())), value(arena.total))

    def svg(self) -> str:
        """Returns the chart as a self-contained SVG."""
        return _svg(self)

    def page(self) -> str:
        """Returns the chart as a page."""
        return PAGE.format(title=html.escape(self.title), body=self.svg())

    def text(self, columns: int = 72, rows: int = 8) -> list[str]:
        """Returns the bytes in use over steps, in lines: each column is the maximum of its steps."""
        return _text(self.live, columns, rows)


def bytes_text(count: int) -> str:
    """Returns a number of bytes in the largest unit with a nonzero integer part."""
    size, unit = float(count), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if abs(size) < 1024:
            break
        size, unit = size / 1024, larger
    return f"{count} B" if unit == "B" else f"{size:.2f} {unit}"


def _names(values: Sequence[str]) -> str:
    return values[0] if len(values) == 1 else f"{values[0]} and {len(values) - 1} more: {', '.join(values[1:])}"


# -- text -------------------------------------------------------------------------------------------------------------

BLOCKS = " ▁▂▃▄▅▆▇█"


def _text(live: Sequence[int], columns: int, rows: int) -> list[str]:
    if not live or not max(live):
        return []
    # Few steps are drawn wide, many together.
    count = len(live) * (columns // len(live)) if len(live) <= columns else columns
    edges = [k * len(live) // count for k in range(count + 1)]
    heights = [max(live[first : max(first + 1, end)]) for first, end in pairwise(edges)]
    top = max(heights)
    eighths = [-(-h * rows * 8 // top) for h in heights]
    lines: list[str] = []
    for row in reversed(range(rows)):
        bar = "".join(BLOCKS[max(0, min(8, e - 8 * row))] for e in eighths)
        label = bytes_text(top) if row == rows - 1 else bytes_text(top // 2) if row == rows // 2 - 1 else ""
        lines.append(f"{label:>11} │{bar}")
    end = f"step {len(live) - 1}"
    lines.append(f"{'':>11} └{'─' * count}")
    lines.append(f"{'':>13}{'step 0':<{max(7, count - len(end))}}{end if len(live) > 1 else ''}".rstrip())
    return lines


# -- SVG --------------------------------------------------------------------------------------------------------------


def _svg(chart: Chart) -> str:
    steps = max(1, len(chart.steps))
    top = max(1, chart.total, *chart.live)
    wide, tall = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM

    def x(step: float) -> float:
        return LEFT + step * wide / steps

    def y(size: float) -> float:
        return TOP + tall - size * tall / top

    parts = [
        f'<svg class="memory" xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" '
        f'font-family="system-ui, sans-serif" font-size="12" role="img"><title>{_summary(chart)}</title>',
        f'<text x="{LEFT}" y="18" font-size="13" font-weight="600">{html.escape(chart.title)}</text>',
    ]
    parts += _axes(chart, x, y, top)
    parts += [_box(box, chart, x, y) for box in chart.boxes if box.size]
    path = "".join(
        f"{'L' if k else 'M'}{x(k):.1f},{y(n):.1f}L{x(k + 1):.1f},{y(n):.1f}" for k, n in enumerate(chart.live)
    )
    if path:
        parts.append(
            f'<path d="{path}" class="live" fill="none" stroke="#222" stroke-width="1.4" pointer-events="none"/>'
        )
    parts.append(
        f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(chart.total):.1f}" y2="{y(chart.total):.1f}" {LIMIT} '
        'stroke-dasharray="5 3"/>'
    )
    return "".join([*parts, *_legend(chart), "</svg>"])


def _summary(chart: Chart) -> str:
    """Returns the chart in a sentence, for readers who do not see it."""
    count = sum(bool(box.size) for box in chart.boxes)
    most = bytes_text(max(chart.live, default=0))
    return html.escape(
        f"{chart.title}: {count} buffers over {len(chart.steps)} {chart.unit}s in {bytes_text(chart.total)}; at most "
        f"{most} are in use at once"
    )


def _axes(chart: Chart, x: Callable[[float], float], y: Callable[[float], float], top: int) -> list[str]:
    parts: list[str] = []
    for k in range(5):
        size = top * k / 4
        parts.append(
            f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y(size):.1f}" y2="{y(size):.1f}" {GRID}/>'
            f'<text x="{LEFT - 6}" y="{y(size) + 4:.1f}" text-anchor="end" {AXIS}>{bytes_text(round(size))}</text>'
        )
    steps = len(chart.steps)
    for step in sorted({round(k * max(0, steps - 1) / 8) for k in range(9)}):
        parts.append(
            f'<text x="{x(step + 0.5):.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle" {AXIS}>{step}</text>'
        )
    parts.append(f'<text x="{WIDTH / 2}" y="{HEIGHT - 10}" text-anchor="middle" {AXIS}>{chart.unit}</text>')
    return parts


def _box(box: Box, chart: Chart, x: Callable[[float], float], y: Callable[[float], float]) -> str:
    left, right, upper, lower = x(box.first), x(box.last + 1), y(box.offset + box.size), y(box.offset)
    first, last = (chart.steps[k] if k < len(chart.steps) else "" for k in (box.first, box.last))
    told = (
        f"{box.name}\n{box.kind}, {box.size:,} bytes at {box.offset:,}\n"
        f"from {chart.unit} {box.first}: {first}\nto {chart.unit} {box.last}: {last}"
    )
    size = f'width="{max(0.6, right - left):.2f}" height="{max(0.6, lower - upper):.2f}"'
    style = f'fill="{COLORS.get(box.kind, "#bbb")}" fill-opacity="0.75" stroke="#46637a" stroke-width="0.8"'
    rect = f'<rect x="{left:.2f}" y="{upper:.2f}" {size} {style}><title>{html.escape(told)}</title></rect>'
    if right - left < LABELLED or lower - upper < 13:
        return rect
    most = int((right - left) / 6.8)
    name = box.name if len(box.name) <= most else f"{box.name[: most - 1]}…"
    middle = (upper + lower) / 2 + 4
    at = f'x="{left + 4:.1f}" y="{middle:.1f}"'
    return f'{rect}<text {at} class="on-box" pointer-events="none">{html.escape(name)}</text>'


def _legend(chart: Chart) -> list[str]:
    kinds = [k for k in COLORS if any(b.kind == k for b in chart.boxes)]
    parts: list[str] = []
    at = WIDTH - RIGHT - 92 * len(kinds) - 240
    for kind in kinds:
        parts.append(f'<rect x="{at}" y="9" width="11" height="11" fill="{COLORS[kind]}"/>')
        parts.append(f'<text x="{at + 15}" y="18">{kind}</text>')
        at += 92
    parts.append(
        f'<line x1="{at}" x2="{at + 18}" y1="14" y2="14" class="live" stroke="#222" stroke-width="1.6"/>'
        f'<text x="{at + 22}" y="18">bytes in use</text>'
        f'<line x1="{at + 108}" x2="{at + 126}" y1="14" y2="14" {LIMIT} stroke-dasharray="5 3"/>'
        f'<text x="{at + 130}" y="18">memory: {bytes_text(chart.total)}</text>'
    )
    return parts


PAGE = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>{title}</title><style>
body {{ font-family: system-ui, sans-serif; margin: 2em; }}
rect:hover {{ fill-opacity: 1; stroke: #000; }}
</style></head><body>
{body}
</body></html>
"""
