"""Launches that were measured to be faster than the author's choice: data that comes with the package.

A row is for one kind of launch at one bucket of sizes, each rounded up to a power of two as in the database of `igniter
tune`. It has the blocks and the launch's parameters, their time, and that of the author's in the same run. The author
takes a row only if all sizes are known, and the launch is the measured one: a product alone, an attention without a
mask.
"""

from __future__ import annotations

import csv
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path


@dataclass(frozen=True)
class MeasuredLaunch:
    """The blocks and the parameters of a launch."""

    rows: int
    columns: int
    """Of an attention: the keys."""
    depth: int
    """Of an attention: the features of a key, all of them."""
    warps: int
    stages: int
    descriptors: bool
    seconds: float
    author_seconds: float
    """The time of the author's blocks, in the same run."""


def measured_launch(gpu: str, kind: str, sizes: Sequence[int], element_bytes: int) -> MeasuredLaunch | None:
    """Returns the launch measured on `sm_90` and the like for a `product` or an `attention`; `sizes` are the number of
    products or heads, the rows, the columns or keys, and the depth."""
    return _all().get((gpu, kind, *map(_bucket, sizes), element_bytes))


@cache
def _all() -> dict[tuple[str | int, ...], MeasuredLaunch]:
    lines = Path(__file__).with_suffix(".csv").read_text(encoding="utf-8").splitlines()
    found: dict[tuple[str | int, ...], MeasuredLaunch] = {}
    for row in csv.DictReader(line for line in lines if not line.startswith("#")):
        sizes = (_bucket(int(row[name])) for name in ("count", "rows", "columns", "depth"))
        found[row["gpu"], row["kind"], *sizes, int(row["bytes"])] = MeasuredLaunch(
            int(row["block_rows"]),
            int(row["block_columns"]),
            int(row["block_depth"]),
            int(row["warps"]),
            int(row["stages"]),
            bool(int(row["descriptors"])),
            float(row["ms"]) * 1e-3,
            float(row["author_ms"]) * 1e-3,
        )
    return found


def _bucket(size: int) -> int:
    return 1 << max(0, size - 1).bit_length()
