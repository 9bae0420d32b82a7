"""`igniter bench`: a model in ONNX Runtime before and after, timed in turns."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.markup import escape
from rich.table import Table

import igniter
from igniter.compiler.artifact import Artifact, require_model_or_folder
from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.runtime.timing import time_models
from igniter.toolbox.bench.inputs import inputs_for
from igniter.toolbox.bench.load import OPENVINO, PERCENTILES, measure_load
from igniter.toolbox.bench.show_profile import run as run_profile
from igniter.toolbox.bench.sweep import parse_sweep, sweep_points
from igniter.toolbox.options import DEFAULT_INPUTS, InputRequest
from igniter.toolbox.output import (
    console,
    parse_shapes,
    print_json,
    printable,
    progress,
    progress_bar,
    subnormal_lines,
)
from igniter.toolbox.tables import csv_text
from igniter.verification.original import Original
from igniter.verification.specs import checked_shapes

if TYPE_CHECKING:
    from igniter.runtime.timing import Timing
    from igniter.toolbox.bench.request import BenchRequest

ORT, IGNITER = "onnxruntime", "igniter"


def run(request: BenchRequest) -> int:
    """Times and prints; returns the exit status, 1 if a choice of sizes has no time."""
    if request.profile or request.trace:
        if request.sessions:
            raise IgniterError("--sessions measures whole models under load: leave out --profile and --trace")
        if request.sweep or request.csv:
            raise IgniterError("--sweep and --csv are for times of whole models: leave out --profile and --trace")
        run_profile(request)
        return 0
    if request.sessions:
        run_load(request)
        return 0
    with tempfile.TemporaryDirectory(prefix="igniter-bench-") as folder:
        rows, artifact = bench_rows(request, Path(folder))
    if request.csv:
        write_whole(request.csv, _csv(rows))
    if request.json:
        print_json(rows)
    else:
        _print(rows)
        for line in subnormal_lines(artifact.report):
            console().print(line)
        if request.csv:
            console().print(request.csv, style="bold", markup=False)
    return 1 if any("error" in row for row in rows) else 0


def bench_rows(request: BenchRequest, folder: Path) -> tuple[list[dict[str, Any]], Artifact]:
    """Returns the times at all sizes, and the compiled model, which is made in `folder` if the request has none."""
    cases = _cases(request)
    artifact = _compiled(request, folder, cases)
    rows: list[dict[str, Any]] = []
    with progress_bar("timing", request.rounds * len(cases), request.json) as done:
        for index, case in enumerate(cases):
            before = index * request.rounds
            try:
                sizes, timing = time_artifact(
                    artifact,
                    case,
                    asked=request.given,
                    reference=request.reference,
                    threads=request.threads,
                    rounds=request.rounds,
                    spinning=request.spinning,
                    progress=partial(_advance, done, before),
                )
            except IgniterError as error:
                # A sweep continues after a failure: a size too large for the model ends one row.
                if not request.sweep:
                    raise
                rows.append({"shapes": case, "threads": request.threads, "error": error.message})
                continue
            rows.append({"shapes": sizes, "threads": request.threads, "noise": timing.noise, **timing.to_dict()})
    subnormal = artifact.report.get("subnormal_weights")
    return [{**row, "subnormal_weights": subnormal} if subnormal else row for row in rows], artifact


def run_load(request: BenchRequest) -> None:
    """Measures under load, and prints."""
    cases = _cases(request)
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="igniter-bench-") as folder:
        artifact = _compiled(request, Path(folder), cases)
        with progress_bar("timing", request.rounds * len(cases), request.json) as done:
            for index, case in enumerate(cases):
                sizes, models, inputs = _compared(artifact, case, request.given, request.reference)
                found = measure_load(
                    models,
                    inputs,
                    request.sessions,
                    threads=request.threads,
                    rounds=request.rounds,
                    spinning=request.spinning,
                    progress=partial(_advance, done, index * request.rounds),
                )
                row = {"shapes": sizes, "threads": request.threads, "sessions": request.sessions}
                rows.append({**row, **{name: load.to_dict() for name, load in found.items()}})
    if request.csv:
        write_whole(request.csv, _load_csv(rows))
    if request.json:
        print_json(rows)
        return
    _print_load(rows)
    if request.csv:
        console().print(request.csv, style="bold", markup=False)


def _loaded(row: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, float]]]:
    """Yields the systems of a row with their figures."""
    yield from ((name, row[name]) for name in (ORT, IGNITER, OPENVINO) if name in row)


def _print_load(rows: list[dict[str, Any]]) -> None:
    table = Table("shapes", "sessions", "threads", "system", "calls/s", "p50 ms", "p90 ms", "p99 ms")
    for row in rows:
        shapes = ", ".join(f"{k}={v}" for k, v in row["shapes"].items()) or "as in the model"
        for name, found in _loaded(row):
            times = (f"{found[f'p{p}_ms']:.4g}" for p in PERCENTILES)
            per_second = f"{found['per_second']:,.1f}"
            table.add_row(escape(shapes), str(row["sessions"]), str(row["threads"]), name, per_second, *times)
    console().print(table)


def _load_csv(rows: list[dict[str, Any]]) -> str:
    """Returns CSV text with a column for each dim, and a line for each system."""
    dims = list(dict.fromkeys(name for row in rows for name in row["shapes"]))
    figures = ["per_second", *(f"p{p}_ms" for p in PERCENTILES)]
    lines = [
        {**row["shapes"], "sessions": row["sessions"], "threads": row["threads"], "system": name}
        | {figure: f"{found[figure]:.6g}" for figure in figures}
        for row in rows
        for name, found in _loaded(row)
    ]
    return csv_text([*dims, "sessions", "threads", "system", *figures], lines)


def _compiled(request: BenchRequest, folder: Path, cases: list[dict[str, int]]) -> Artifact:
    """Returns the compiled model, which is made in `folder` if the request has none."""
    asked, json = request.given, request.json
    require_model_or_folder(request.model)
    if Path(request.model).is_dir():
        artifact = Artifact.load(request.model)
        _require_dims(_original(artifact, request.reference), cases)
    else:
        _require_dims(request.model, cases)
        with progress("compiling", json) as step:
            artifact = igniter.compile(
                request.model, folder / "model.igniter", target=request.target, progress=step, **asked.for_verify()
            )
    return artifact


def _advance(done: Callable[[int], None], before: int, rounds: int) -> None:
    done(before + rounds)


def _require_dims(original: str | Path | bytes, cases: list[dict[str, int]]) -> None:
    """Raises `IgniterError` for a dim that the model does not have, before anything is compiled or timed."""
    if not any(cases):
        return
    source = Original(original if isinstance(original, bytes) else str(original))
    for case in cases:
        checked_shapes(source.specs, case)


def time_artifact(
    artifact: Artifact,
    case: Mapping[str, int],
    *,
    asked: InputRequest | None = None,
    reference: str = "",
    threads: int = 1,
    **options: Any,
) -> tuple[dict[str, int], Timing]:
    """Times the original and the compiled model at one choice of sizes (sizes missing in `case` are chosen); returns
    the sizes too. Raises `IgniterError` if the outputs of the two differ."""
    sizes, models, inputs = _compared(artifact, case, asked or DEFAULT_INPUTS, reference)
    return sizes, time_models(models, inputs, threads=threads, **options)


def _compared(
    artifact: Artifact, case: Mapping[str, int], given: InputRequest, reference: str
) -> tuple[dict[str, int], dict[str, tuple[str | Path | bytes, Sequence[Path]]], dict[str, Any]]:
    """Returns the sizes, the two models with their libraries, and inputs on which they agree; raises `IgniterError` if
    they differ."""
    original = _original(artifact, reference)
    sizes, inputs = inputs_for(original, case, given)
    found = artifact.verify(inputs, rtol=given.rtol, atol=given.atol, reference=original, budget=0.0)
    if found.status == "differs":
        raise IgniterError(f"the two models do not agree on what is timed: {'; '.join(found.failures[:3])}")
    return sizes, {ORT: (original, ()), IGNITER: (artifact.model_path, artifact.libraries)}, inputs


def _original(artifact: Artifact, reference: str) -> str | bytes:
    """Returns the model that an artifact was compiled from."""
    original = reference or artifact.source
    if original is None:
        raise IgniterError(f"the original model of {artifact.folder} is not known or has changed: give --reference")
    return original


def _speedup(row: dict[str, Any]) -> float:
    """Returns the speed relative to ONNX Runtime: the median over the rounds."""
    return 1 / row[IGNITER]["ratio"]


def _csv(rows: list[dict[str, Any]]) -> str:
    """Returns CSV text with a column for each dim, and the figures."""
    dims = list(dict.fromkeys(name for row in rows for name in row["shapes"]))
    figures = ("threads", "onnxruntime_ms", "igniter_ms", "speedup", "noise", "error")
    lines: list[dict[str, object]] = []
    for row in rows:
        line = {**row["shapes"], "threads": row["threads"], "error": row.get("error", "")}
        if "error" not in row:
            line |= {"onnxruntime_ms": f"{row[ORT]['ms']:.6g}", "igniter_ms": f"{row[IGNITER]['ms']:.6g}"}
            line |= {"speedup": f"{_speedup(row):.4f}", "noise": f"{row['noise']:.4f}"}
        lines.append(line)
    return csv_text([*dims, *figures], lines)


def _print(rows: list[dict[str, Any]]) -> None:
    table = Table("shapes", "threads", "onnxruntime ms", "igniter ms", "speedup", "noise")
    for row in rows:
        shapes = ", ".join(f"{k}={v}" for k, v in row["shapes"].items()) or "as in the model"
        if "error" in row:
            table.add_row(escape(shapes), str(row["threads"]), "[yellow]not timed", "", "", "")
            continue
        speedup = _speedup(row)
        colour = "green" if speedup > 1 + row["noise"] else "red" if speedup < 1 - row["noise"] else "yellow"
        table.add_row(
            escape(shapes),
            str(row["threads"]),
            f"{row[ORT]['ms']:.4g}",
            f"{row[IGNITER]['ms']:.4g}",
            f"[{colour}]{speedup:.2f}x",
            f"{100 * row['noise']:.1f}%",
        )
    console().print(table)
    for row in (row for row in rows if "error" in row):
        shapes = ", ".join(f"{k}={v}" for k, v in row["shapes"].items())
        console().print(f"{shapes}: {printable(row['error'])}", style="yellow", markup=False)


def _cases(request: BenchRequest) -> list[dict[str, int]]:
    """Returns the sizes to time, one choice at a time; missing sizes are chosen."""
    given = parse_shapes(request.given.shapes) or []
    if not request.sweep:
        return given or [{}]
    if request.given.inputs:
        raise IgniterError("--inputs gives the sizes of what is in the file, and --sweep others: choose one")
    return sweep_points(parse_sweep(request.sweep), given)
