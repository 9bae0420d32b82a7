"""`igniter.bench`: the times of a model before and after compilation, from Python."""

from __future__ import annotations

import html
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from igniter.compiler.arguments import require_shapes
from igniter.compiler.artifact import Artifact, require_model_or_folder
from igniter.toolbox.bench.request import BenchRequest
from igniter.toolbox.bench.show import IGNITER, ORT, bench_rows
from igniter.toolbox.options import InputRequest
from igniter.toolbox.tables import csv_text


@dataclass(frozen=True)
class BenchRow:
    """One choice of sizes; times are medians in milliseconds."""

    sizes: Mapping[str, int]
    threads: int
    onnxruntime_ms: float | None = None
    igniter_ms: float | None = None
    speedup: float | None = None
    """ONNX Runtime's time over Igniter's, the median over the rounds."""
    noise: float | None = None
    """The distance of ONNX Runtime from itself (A/A): smaller differences mean nothing."""
    error: str = ""
    """Why there are no times."""


@dataclass(frozen=True)
class BenchResult:
    """The times of a model. In a notebook it shows as a table; `figure` has its plot as data."""

    model: str
    rows: tuple[BenchRow, ...]

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        return asdict(self)

    def to_csv(self) -> str:
        """Returns the rows as CSV, a column for each dim."""
        dims = list(dict.fromkeys(name for row in self.rows for name in row.sizes))
        figures = ("threads", "onnxruntime_ms", "igniter_ms", "speedup", "noise", "error")
        return csv_text([*dims, *figures], ({**row.sizes, **asdict(row)} for row in self.rows))

    def figure(self) -> dict[str, Any]:
        """Returns the plot as data: a group for each choice of sizes, and the times of the two systems."""
        systems = {ORT: "onnxruntime_ms", IGNITER: "igniter_ms"}
        series = [{"system": name, "ms": [getattr(r, key) for r in self.rows]} for name, key in systems.items()]
        return {"title": self.model, "y": "ms", "groups": [_sizes(row) for row in self.rows], "series": series}

    def __repr__(self) -> str:
        return f"<igniter bench of {self.model}: {len(self.rows)} rows>"

    def _repr_html_(self) -> str:
        heads = ("sizes", "threads", "onnxruntime ms", "igniter ms", "speedup", "noise")
        head = "".join(f"<th>{text}</th>" for text in heads)
        body = "".join(f"<tr>{''.join(f'<td>{html.escape(c)}</td>' for c in _cells(row))}</tr>" for row in self.rows)
        return f"<table><caption>{html.escape(self.model)}</caption><tr>{head}</tr>{body}</table>"


def _sizes(row: BenchRow) -> str:
    return ", ".join(f"{name}={size}" for name, size in row.sizes.items()) or "as in the model"


def _cells(row: BenchRow) -> list[str]:
    if row.error:
        return [_sizes(row), str(row.threads), row.error, "", "", ""]
    times = [f"{value:.4g}" for value in (row.onnxruntime_ms, row.igniter_ms) if value is not None]
    return [_sizes(row), str(row.threads), *times, f"{row.speedup:.2f}x", f"{100 * (row.noise or 0):.1f}%"]


def bench(
    model: str | PathLike[str] | Artifact,
    *,
    shapes: Sequence[Mapping[str, int]] = (),
    sweep: Mapping[str, Sequence[int]] | None = None,
    threads: int = 1,
    rounds: int = 7,
    target: str = "native",
    spinning: bool = False,
    reference: str = "",
) -> BenchResult:
    """Times a model in ONNX Runtime before and after compilation, in turns, like `igniter bench`.

    `model` is an ONNX file, a folder of a compiled model, or an `Artifact`. `shapes` are choices of sizes; `sweep` has
    lists of sizes by dim, whose combinations are all timed. Raises `IgniterError` if the two models differ, except in a
    sweep, where such a row has the reason.
    """
    require_shapes("bench", shapes)
    where = str(model.folder) if isinstance(model, Artifact) else str(model)
    require_model_or_folder(where)
    given = [",".join(f"{name}={size}" for name, size in case.items()) for case in shapes]
    swept = [f"{name}={','.join(map(str, sizes))}" for name, sizes in (sweep or {}).items()]
    request = BenchRequest(
        where,
        reference=reference,
        given=InputRequest(shapes=tuple(given)),
        threads=threads,
        rounds=rounds,
        sweep=tuple(swept),
        target=target,
        spinning=spinning,
        json=True,
    )
    with tempfile.TemporaryDirectory(prefix="igniter-bench-") as folder:
        rows, _ = bench_rows(request, Path(folder))
    return BenchResult(where, tuple(_row(row) for row in rows))


def _row(row: Mapping[str, Any]) -> BenchRow:
    if "error" in row:
        return BenchRow(row["shapes"], row["threads"], error=row["error"])
    times = row[ORT]["ms"], row[IGNITER]["ms"]
    return BenchRow(row["shapes"], row["threads"], *times, 1 / row[IGNITER]["ratio"], row["noise"])
