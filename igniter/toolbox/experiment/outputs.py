"""A result as CSV, LaTeX, HTML, and as the data of a plot. Pure functions."""

from __future__ import annotations

import html
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from igniter.toolbox.tables import csv_text

if TYPE_CHECKING:
    from igniter.toolbox.experiment.results import ExperimentResult, Mean, Row
    from igniter.toolbox.experiment.statistics import Interval

MEAN = "geometric mean"
"""The place of the means in tables and plots."""

CSV_COLUMNS: dict[str, tuple[str, ...]] = {
    "time": ("ms",),
    "ratio": ("ratio", "ratio_low", "ratio_high", "control"),
    "bytes_saved": ("bytes_saved", "bytes_formula", "bytes_exact"),
}
"""The columns of a metric, where they are not its name alone."""


def sizes_text(sizes: Mapping[str, int]) -> str:
    """Returns sizes as `batch=1,seq=128`."""
    return ",".join(f"{name}={size}" for name, size in sizes.items())


def csv_of(result: ExperimentResult) -> str:
    """Returns the rows as CSV, then the means; missing figures are empty."""
    figures = [column for metric in result.metrics for column in CSV_COLUMNS.get(metric, (metric,))]
    lines = [_csv_line(row) for row in result.rows]
    for mean in result.means:
        said: dict[str, object] = {"model": MEAN, "variant": mean.variant, "status": mean.verdict}
        lines.append({**said, **_interval_cells(mean.ratio), "reason": f"of {mean.comparisons} comparisons"})
    return csv_text(["model", "sizes", "threads", "variant", "status", *figures, "reason"], lines)


def _csv_line(row: Row) -> dict[str, object]:
    numbers: dict[str, object] = {
        "ms": _number(row.ms, "{:.6g}"),
        "control": _number(row.control, "{:.4f}"),
        "compile_seconds": _number(row.compile_seconds, "{:.3f}"),
        **(_interval_cells(row.ratio) if row.ratio is not None else {}),
    }
    plain = ("model", "threads", "variant", "status", "reason", "kernels", "regions", "left", "bytes_saved")
    more = ("bytes_formula", "bytes_exact", "compile_memory", "code_bytes", "peak_memory")
    cells: dict[str, object] = {name: getattr(row, name) for name in (*plain, *more)}
    return {**{k: "" if v is None else v for k, v in cells.items()}, **numbers, "sizes": sizes_text(row.sizes)}


def _interval_cells(ratio: Interval) -> dict[str, object]:
    return {"ratio": f"{ratio.value:.4f}", "ratio_low": f"{ratio.low:.4f}", "ratio_high": f"{ratio.high:.4f}"}


def _number(value: float | None, form: str) -> str:
    return "" if value is None else form.format(value)


# -- tables -----------------------------------------------------------------------------------------------------------

Cell = Callable[["Row"], str]


def _interval(ratio: Interval | None) -> str:
    return "" if ratio is None else f"{ratio.value:.3f} [{ratio.low:.3f}, {ratio.high:.3f}]"


def _megabytes(value: int | None) -> str:
    return "" if value is None else f"{value / 1e6:.3g}"


def _count(value: int | None) -> str:
    return "" if value is None else str(value)


COLUMNS: dict[str, tuple[tuple[str, Cell], ...]] = {
    "time": (("ms", lambda r: _number(r.ms, "{:.4g}")),),
    "ratio": (
        ("time / base", lambda r: _interval(r.ratio)),
        ("A/A", lambda r: _number(r.control, "{:.3f}")),
        ("verdict", lambda r: r.status),
    ),
    "kernels": (("kernels", lambda r: _count(r.kernels)),),
    "regions": (("regions", lambda r: _count(r.regions)),),
    "left": (("left", lambda r: _count(r.left)),),
    "bytes_saved": (("MB saved", lambda r: _megabytes(r.bytes_saved)),),
    "compile_seconds": (("compile s", lambda r: _number(r.compile_seconds, "{:.2f}")),),
    "compile_memory": (("compile MB", lambda r: _megabytes(r.compile_memory)),),
    "code_bytes": (("code KB", lambda r: "" if r.code_bytes is None else f"{r.code_bytes / 1e3:.4g}"),),
    "peak_memory": (("peak MB", lambda r: _megabytes(r.peak_memory)),),
}
"""The columns of tables for people, by metric."""


def table_of(result: ExperimentResult) -> tuple[list[str], list[list[str]]]:
    """Returns the heads and the cells of a table; a comparison is named in the first row of its variants."""
    columns = [column for metric in result.metrics for column in COLUMNS[metric]]
    several = len({row.threads for row in result.rows}) > 1
    heads = ["model", "sizes", *(["threads"] if several else []), "variant", *(head for head, _ in columns)]
    rows: list[list[str]] = []
    before: object = None
    for row in result.rows:
        place = [row.model, sizes_text(row.sizes), *([str(row.threads)] if several else [])]
        rows.append([*(place if row.case != before else [""] * len(place)), row.variant, *_cells(row, columns)])
        before = row.case
    for number, mean in enumerate(result.means):
        place = ["" if number else MEAN, *([""] * (1 + several))]
        rows.append([*place, mean.variant, *_mean_cells(mean, columns)])
    return heads, rows


def _cells(row: Row, columns: Sequence[tuple[str, Cell]]) -> list[str]:
    if row.status in ("failed", "unavailable") and not any(head == "verdict" for head, _ in columns):
        return [row.status, *(cell(row) for _, cell in columns[1:])]
    return [cell(row) for _, cell in columns]


def _mean_cells(mean: Mean, columns: Sequence[tuple[str, Cell]]) -> list[str]:
    said = {"time / base": _interval(mean.ratio), "verdict": mean.verdict}
    return [said.get(head, "") for head, _ in columns]


def notes_of(result: ExperimentResult) -> list[str]:
    """Returns the reasons of rows without figures, and the formulas of the bytes, each once."""
    found = [f"{r.model}, {r.variant}: {r.status}: {r.reason}" for r in result.rows if r.reason]
    if "bytes_saved" in result.metrics:
        found += [
            f"{r.model}, {r.variant}: bytes kept out of memory = {r.bytes_formula}{_assumed(r)}"
            for r in result.rows
            if r.bytes_formula
        ]
    return list(dict.fromkeys(found))


def _assumed(row: Row) -> str:
    return "" if row.bytes_exact else ", where long formulas and sizes that depend on data are assumed"


def summary_of(result: ExperimentResult) -> str:
    """Returns the table as text."""
    heads, rows = table_of(result)
    widths = [max(len(row[k]) for row in (heads, *rows)) for k in range(len(heads))]
    lines = ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in (heads, *rows)]
    return "\n".join([result.title, *lines])


# -- LaTeX ------------------------------------------------------------------------------------------------------------

_SPECIAL = {
    "\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    **{character: f"\\{character}" for character in "&%$#_{}"},
}  # fmt: skip


def latex_of(result: ExperimentResult) -> str:
    """Returns a LaTeX table for the package booktabs. Inconclusive ratios are in italics."""
    heads, rows = table_of(result)
    kinds = "".join("l" if head in ("model", "sizes", "variant", "verdict") else "r" for head in heads)
    lines = [
        f"% {result.title}: times relative to '{result.base}', medians with bootstrap intervals; needs booktabs",
        f"\\begin{{tabular}}{{{kinds}}}",
        r"\toprule",
        " & ".join(map(_escaped, heads)) + r" \\",
    ]
    place = heads.index("verdict") if "verdict" in heads else None
    for row in rows:
        if row[0]:
            lines.append(r"\midrule")
        cells = [_escaped(cell) for cell in row]
        if place is not None and row[place] == "inconclusive" and "time / base" in heads:
            ratio = heads.index("time / base")
            cells[ratio] = f"\\textit{{{cells[ratio]}}}"
        lines.append(" & ".join(cells) + r" \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", ""])


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in text)


# -- HTML and plots ---------------------------------------------------------------------------------------------------

COLOURS = {"faster": "#2a7f3f", "slower": "#b3261e", "failed": "#b3261e"}
"""The colours of statuses in HTML."""


def html_of(result: ExperimentResult) -> str:
    """Returns the table for a notebook."""
    heads, rows = table_of(result)
    place = heads.index("verdict") if "verdict" in heads else -1

    def cell(row: Sequence[str], k: int) -> str:
        colour = COLOURS.get(row[k], "") if k == place else ""
        style = f' style="color:{colour}"' if colour else ""
        return f"<td{style}>{html.escape(row[k])}</td>"

    body = "".join(f"<tr>{''.join(cell(row, k) for k in range(len(row)))}</tr>" for row in rows)
    head = "".join(f"<th>{html.escape(text)}</th>" for text in heads)
    notes = "".join(f"<li>{html.escape(note)}</li>" for note in notes_of(result))
    details = f"<details><summary>notes</summary><ul>{notes}</ul></details>" if notes else ""
    title = f"{result.title}: time relative to '{result.base}'"
    return f"<table><caption>{html.escape(title)}</caption><tr>{head}</tr>{body}</table>{details}"


def figure_of(result: ExperimentResult) -> dict[str, Any]:
    """Returns the plot as data: a group for each comparison and the mean, a series for each variant but the base. A
    missing ratio is `None`."""
    cases = list(dict.fromkeys(row.case for row in result.rows))
    several = {k: len({case[k] for case in cases}) > 1 for k in (1, 2)}
    by_place = {(row.case, row.variant): row for row in result.rows}
    means = {mean.variant: mean for mean in result.means}
    series: list[dict[str, Any]] = []
    for variant in result.variants:
        if variant == result.base:
            continue
        rows = [by_place.get((case, variant)) for case in cases]
        ratios = [None if row is None else row.ratio for row in rows]
        statuses: list[str] = ["missing" if row is None else row.status for row in rows]
        if means:
            mean = means.get(variant)
            ratios.append(None if mean is None else mean.ratio)
            statuses.append("missing" if mean is None else mean.verdict)
        points = {
            "ratio": [None if r is None else r.value for r in ratios],
            "low": [None if r is None else r.low for r in ratios],
            "high": [None if r is None else r.high for r in ratios],
        }
        series.append({"variant": variant, **points, "status": statuses})
    groups = [_label(case, several, len([c for c in cases if c[0] == case[0]]) > 1) for case in cases]
    return {
        "title": result.title,
        "y": f"time relative to '{result.base}'",
        "groups": [*groups, *([MEAN] if means else [])],
        "series": series,
    }


def _label(case: tuple[str, str, int], several: Mapping[int, bool], repeated: bool) -> str:
    model, sizes, threads = case
    parts = [
        model,
        *([sizes] if sizes and repeated and several[1] else []),
        *([f"{threads} threads"] if several[2] else []),
    ]
    return ", ".join(parts)
