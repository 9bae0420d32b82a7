"""`igniter compress`: weights in fewer bits, with a table of the effects on size, error and speed."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

import igniter
from igniter.errors import IgniterError
from igniter.frontend import save_model
from igniter.registry import load
from igniter.runtime.files import write_whole
from igniter.runtime.session import make_session
from igniter.runtime.timing import time_models
from igniter.toolbox.output import console, parse_shapes, print_json, progress
from igniter.toolbox.tables import csv_text
from igniter.verification.given import read_inputs
from igniter.verification.graph_facts import model_facts
from igniter.verification.original import Original

if TYPE_CHECKING:
    from igniter.api import Module
    from igniter.toolbox.compress.request import CompressRequest

ORIGINAL, COMPRESSED, COMPILED = "onnxruntime, original", "onnxruntime, compressed", "igniter, compressed"
SHOWN = 12
"""The number of rows of the printed table: the largest weights."""


def run(request: CompressRequest) -> None:
    """Compresses, writes, compares and prints."""
    if Path(request.output).exists() and Path(request.output).samefile(request.model):
        raise IgniterError(f"{request.output} is the model itself: write to another file")
    with progress("compressing", request.json) as step:
        module = igniter.load(request.model)
        before = file_bytes(request.model, module.external)
        module.compress(
            request.weights,
            request.granularity,
            symmetric=request.symmetric,
            only=request.only,
            leave=request.leave,
            min_elements=request.min_elements,
            standard=request.standard,
            accuracy_level=request.accuracy_level,
            correct=request.correct,
            data=_samples(request),
            progress=step,
        )
        step("writing")
        write(module, request.output)
        found: dict[str, Any] = {"model": request.model, "output": request.output, **_weights(module)}
        found["bytes"] = {"before": before, "after": file_bytes(request.output, beside(request.output))}
        if request.compare or request.time:
            step("comparing")
            _compare(request, found)
    if request.csv:
        write_whole(request.csv, csv_text(COLUMNS, _cells(found["weights"])))
    if request.json:
        print_json(found)
    else:
        _print(found)


def _samples(request: CompressRequest) -> Any:
    """Returns the samples of a correction; `None` for none."""
    if (request.correct == "none") != (not request.data):
        raise IgniterError("--data has the samples of --correct: give both, or neither")
    if not request.data.endswith(".txt"):
        return request.data or None
    make: Any = load("igniter.toolbox.generate.samples:text_samples")
    return make(request.model, request.data, length=request.sample_tokens, count=request.samples)


def write(module: Module, output: str) -> None:
    """Writes a model, with its weights in an external file if the original's were: then they are never all in
    memory."""
    save_model(module.ir, output, external_data_threshold=1024 if module.external else None)


def beside(path: str) -> set[str]:
    """Returns the file of weights beside a model, if it exists."""
    data = f"{path}.data"
    return {data} if Path(data).exists() else set()


def file_bytes(path: str, external: set[str]) -> int:
    """Returns the total size in bytes of a model and of its files of weights."""
    return sum(Path(p).stat().st_size for p in {str(path), *external})


def _weights(module: Module) -> dict[str, Any]:
    remarks = module.remarks.of("compress-weights")
    done = [r.details for r in remarks if r.kind == "applied"]
    left = [{"weight": r.node, "reason": r.message.partition(": ")[2]} for r in remarks if r.kind == "missed"]
    return {"weights": sorted(done, key=lambda w: -w["before"]), "left": left}


def _compare(request: CompressRequest, found: dict[str, Any]) -> None:
    """Runs both models on the same inputs, and times them on request."""
    from igniter.verification.verify import typical_inputs

    source = Original(request.model, options={"intra_op_num_threads": 1})
    cases: list[tuple[dict[str, int], dict[str, Any]]] = []
    if request.given.inputs:
        names = [value.name for value in source.session.get_inputs()]
        cases = [({}, feed) for feed in read_inputs(request.given.inputs, names)]
    else:
        facts = model_facts(request.model)
        for case in parse_shapes(request.given.shapes) or [{}]:
            cases.append(typical_inputs(source, facts, case, request.given.seed))
    if source.random_values is None or source.random_values:
        found["not_compared"] = "random nodes are in the model, so that two runs differ by themselves"
    else:
        _errors(source, request.output, cases, found)
    if request.time:
        found["times"] = [_time(request, sizes, feed) for sizes, feed in cases]


def _errors(
    source: Original, output: str, cases: Sequence[tuple[dict[str, int], dict[str, Any]]], found: dict[str, Any]
) -> None:
    """Adds the errors between the outputs of the two models to `found`."""
    names = [value.name for value in source.session.get_outputs()]
    other: Any = make_session(output, intra_op_num_threads=1)
    found["outputs"] = []
    for sizes, feed in cases:
        expected = source.session.run(None, feed)
        try:
            got = other.run(None, feed)
        except Exception as error:  # ONNX Runtime's errors have no common base
            raise IgniterError(f"ONNX Runtime does not run {output}: {error}") from error
        pairs = zip(names, expected, got, strict=True)
        errors = [output_error(name, a, b) for name, a, b in pairs]
        found["outputs"].append({"sizes": sizes, "errors": [e for e in errors if e is not None]})


def output_error(name: str, expected: Any, got: Any) -> dict[str, Any] | None:
    """Returns the largest and the mean error of an output, relative to its largest and its mean magnitude; `None` for
    outputs that are not floats."""
    if getattr(getattr(expected, "dtype", None), "kind", "") != "f" or expected.size == 0:
        return None
    if expected.shape != got.shape:
        return {"output": name, "shape": list(expected.shape), "note": f"has another shape, {list(got.shape)}"}
    exact: Any = expected.astype(np.float64)
    off: Any = exact - got.astype(np.float64)
    size, square, error = float(abs(exact).max()), float((exact * exact).sum()), float((off * off).sum())
    largest = float(abs(off).max())
    return {
        "output": name,
        "largest": largest / size if size else largest,
        "mean": (error / square) ** 0.5 if square else largest,
    }


def _time(request: CompressRequest, sizes: dict[str, int], feed: dict[str, Any]) -> dict[str, Any]:
    """Times the three systems in turns; the compiled and the compressed model are compared first."""
    with tempfile.TemporaryDirectory(prefix="igniter-compress-") as folder:
        artifact = igniter.compile(
            request.output, Path(folder) / "model.igniter", sizes=sizes, inputs=feed, budget=15.0
        )
        models = {
            ORIGINAL: (request.model, ()),
            COMPRESSED: (request.output, ()),
            COMPILED: (artifact.model_path, artifact.libraries),
        }
        timing = time_models(models, feed, threads=request.threads, rounds=request.rounds)
        size = sum(p.stat().st_size for p in Path(artifact.folder).iterdir() if p.name != "report.json")
    return {"sizes": sizes, "noise": timing.noise, "compiled_bytes": size, **timing.to_dict()}


COLUMNS = ("weight", "shape", "form", "before", "after", "error", "mean_error", "readers")


def _cells(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Returns the table of weights with texts for shapes and readers."""
    return [{**row, "shape": "x".join(map(str, row["shape"])), "readers": "; ".join(row["readers"])} for row in rows]


def _print(found: dict[str, Any]) -> None:
    out = console()
    table = Table("weight", "shape", "stored for", "before", "after", "largest error", "mean error")
    rows = found["weights"]
    for row in rows[:SHOWN]:
        table.add_row(row["weight"], "x".join(map(str, row["shape"])), row["form"], *_figures(row))
    if len(rows) > SHOWN:
        table.add_row(f"and {len(rows) - SHOWN} more", "", "", *_figures(_total(rows[SHOWN:])))
    table.add_section()
    table.add_row(f"{len(rows)} weights", "", "", *_figures(_total(rows)))
    out.print(table)
    reasons: dict[str, int] = {}
    for left in found["left"]:
        reasons[left["reason"]] = reasons.get(left["reason"], 0) + 1
    for reason, count in reasons.items():
        out.print(f"{count} left: {reason}")
    corrected = [w for w in found["weights"] if w.get("corrected")]
    if corrected:
        out.print(f"{len(corrected)} weights corrected by samples")
    for reason, count in Counter(w["uncorrected"] for w in found["weights"] if "uncorrected" in w).items():
        out.print(f"{count} rounded to nearest: {reason}", markup=False)
    size = found["bytes"]
    share = 100 * size["after"] / size["before"]
    out.print(f"{found['output']}: {bytes_text(size['after'])}, {share:.3g}% of {bytes_text(size['before'])}")
    if "not_compared" in found:
        out.print(f"not compared: {found['not_compared']}", markup=False)
    for case in found.get("outputs", ()):
        _print_errors(case)
    for timed in found.get("times", ()):
        _print_times(timed)


def _print_errors(case: dict[str, Any]) -> None:
    errors = [e for e in case["errors"] if "note" not in e]
    where = ", ".join(f"{k}={v}" for k, v in case["sizes"].items()) or "as given"
    if not errors:
        console().print(f"{where}: no output of floats to compare")
        return
    worst = max(errors, key=lambda e: e["largest"])
    mean = max(e["mean"] for e in errors)
    console().print(
        f"{where}: error of {len(errors)} outputs in ONNX Runtime: largest {worst['largest']:.1e} ({worst['output']}), "
        f"mean {mean:.1e}"
    )


def _print_times(timed: dict[str, Any]) -> None:
    table = Table("system", "ms", "speedup")
    for name in (ORIGINAL, COMPRESSED, COMPILED):
        table.add_row(name, f"{timed[name]['ms']:.4g}", f"{1 / timed[name]['ratio']:.2f}x")
    console().print(table)
    console().print(f"noise {100 * timed['noise']:.1f}%; the compiled model has {bytes_text(timed['compiled_bytes'])}")


def bytes_text(size: float) -> str:
    """Returns a size in bytes with three digits, in a suitable unit."""
    for unit, least in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if size >= least:
            return f"{size / least:.3g} {unit}"
    return f"{size:.0f} B"


def _figures(row: dict[str, Any]) -> tuple[str, ...]:
    return bytes_text(row["before"]), bytes_text(row["after"]), f"{row['error']:.1e}", f"{row['mean_error']:.1e}"


def _total(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Returns the sums of bytes and the worst errors."""
    sums = {key: sum(row[key] for row in rows) for key in ("before", "after")}
    return {**sums, **{key: max((row[key] for row in rows), default=0.0) for key in ("error", "mean_error")}}
