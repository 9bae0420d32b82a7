"""The rows of a sweep: stored as JSON lines, and as a table by group with the list of the slow graphs."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from pathlib import Path

from benchmark.sweep.measure import FAILED, OK, Row
from benchmark.table import Column, line

AHEAD, BEHIND = 0.95, 1.10
FIGURES = ("ratio", "least_ratio")
"""Ratios of medians and of minima."""
CONTROLS = {"ratio": "control", "least_ratio": "least_control"}
COLUMNS = [
    Column("group", 12),
    Column("graphs", 7),
    Column("ahead", 6),
    Column("level", 6),
    Column("behind", 7),
    Column("failed", 7),
    Column("mean", 6),
    Column("A/A", 5),
    Column("compile s", 10),
]
WIDE = [
    Column("ratio", 6),
    Column("A/A", 5),
    Column("igniter us", 11),
    Column("ort us", 10),
    Column("left", 5),
    Column("form", 9),
]

Key = tuple[str, str, str, int, int, bool, bool]


def key(row: Row) -> Key:
    """Identifies a measurement: two rows with the same key measure the same."""
    return (
        row["name"],
        row["form"],
        row["target"],
        row["threads"],
        row["seed"],
        row.get("kernels", False),
        row.get("measured", False),
    )


def read(path: Path) -> list[Row]:
    """Reads the rows of a file.

    A graph that began and did not end is `FAILED` if its process is no more; one that another process measures at
    this moment has no row.
    """
    found: dict[Key, Row] = {}
    for text in path.read_text().splitlines():
        try:
            row = json.loads(text)
        except json.JSONDecodeError:
            # The last line of a run that was ended while it wrote.
            continue
        if row.get("status") == "begun":
            if _runs(row.get("process")):
                continue
            row |= {"status": FAILED, "reason": "the process ended while this graph was compiled or run"}
        found[key(row)] = row
    return list(found.values())


def _runs(process: int | None) -> bool:
    """True if another process of this number runs."""
    if process is None or process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except OSError as error:
        # Without permission to signal it, it is there.
        return isinstance(error, PermissionError)
    return True


def is_behind(row: Row, figure: str = "ratio") -> bool:
    """True if a graph is slower than ONNX Runtime by more than 10% beyond the difference of its two runs."""
    return row[figure] > BEHIND + noise(row, figure)


def noise(row: Row, figure: str = "ratio") -> float:
    """The difference of ONNX Runtime's two runs, relative to the first."""
    return abs(row[CONTROLS[figure]] - 1)


def mean(rows: Sequence[Row], figure: str = "ratio") -> float:
    """The geometric mean of the ratios; not a number without rows."""
    return math.exp(sum(math.log(r[figure]) for r in rows) / len(rows)) if rows else math.nan


def report(rows: Sequence[Row], figure: str = "ratio") -> str:
    """Returns the table of the groups, the graphs behind by their ratio, and the failures with their reasons."""
    lines = [line(COLUMNS, [c.name for c in COLUMNS])]
    for group in dict.fromkeys(row["group"] for row in rows):
        lines.append(_counted(group, [r for r in rows if r["group"] == group], figure))
    lines.append(_counted("all", rows, figure))
    behind = [r for r in rows if r["status"] == OK and is_behind(r, figure)]
    if behind:
        lines += ["", line(WIDE, [c.name for c in WIDE]) + "  graph"]
        lines += [_slow(row, figure) for row in sorted(behind, key=lambda r: -r[figure])]
    failed = [r for r in rows if r["status"] != OK]
    if failed:
        lines += ["", *(f"{r['status']} {r['name']}, {r['form']}: {r.get('reason', '')}" for r in failed)]
    unclear = [r for r in rows if "unclear" in r]
    if unclear:
        lines += ["", *(f"inconclusive {r['name']}, {r['form']}: {r['unclear']}" for r in unclear)]
    return "\n".join(lines) + "\n"


def _counted(group: str, rows: Sequence[Row], figure: str) -> str:
    good = [r for r in rows if r["status"] == OK]
    ahead = sum(r[figure] < AHEAD for r in good)
    behind = sum(is_behind(r, figure) for r in good)
    failed = sum(r["status"] == FAILED for r in rows)
    noises = sorted(noise(r, figure) for r in good)
    cells = [
        group, len(rows), ahead, len(good) - ahead - behind, behind, failed, f"{mean(good, figure):.2f}",
        f"{noises[len(noises) // 2]:.0%}" if noises else "-", f"{sum(r.get('compile_seconds', 0) for r in rows):.0f}",
    ]  # fmt: skip
    return line(COLUMNS, [str(c) for c in cells])


def _slow(row: Row, figure: str) -> str:
    suffix = "_least_us" if figure == "least_ratio" else "_us"
    ratios = [f"{row[name]:.2f}" for name in (figure, CONTROLS[figure])]
    micros = [f"{row[system + suffix]:.1f}" for system in ("igniter", "ort")]
    cells = [*ratios, *micros, str(row["left"]), row["form"]]
    return line(WIDE, cells) + "  " + row["name"]
