"""The jobs of an experiment: each function runs in a process of its own (`jobs.py`), on paths and JSON values."""

from __future__ import annotations

import dataclasses
import json
import statistics
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np

import igniter
from igniter.analysis.fusion.summary import FusionSummary
from igniter.api import blaming
from igniter.compiler.artifact import Artifact
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.frontend.ort_values import run, storable, typed
from igniter.runtime.cache import default_cache
from igniter.runtime.files import write_whole
from igniter.runtime.session import make_session, silence
from igniter.toolbox.bench.inputs import inputs_for
from igniter.toolbox.bench.time_profile import symbol_sizes
from igniter.toolbox.compile.levels import emit
from igniter.toolbox.experiment.networks import NETWORKS
from igniter.toolbox.experiment.spec import Variant, digest
from igniter.toolbox.experiment.variants import compile_options
from igniter.toolbox.options import DEFAULT_INPUTS
from igniter.toolbox.tune.request import TuneRequest

HERE = __name__
"""The module of the jobs, for `run_job`."""


def write_network(name: str, path: str) -> dict[str, Any]:
    """Writes a shipped network to a file."""
    write_whole(path, NETWORKS[name]().SerializeToString())
    return {"path": path}


def make_inputs(model: str, sizes: Mapping[str, int], seed: int, path: str) -> dict[str, Any]:
    """Writes inputs of a model at these sizes; missing sizes are chosen. Returns all sizes."""
    silence()
    full, inputs = inputs_for(model, sizes, dataclasses.replace(DEFAULT_INPUTS, seed=seed))
    np.savez(path, **cast("Any", storable(inputs)))
    return {"sizes": full, "shapes": {name: list(value.shape) for name, value in inputs.items()}}


def write_reference(model: str, inputs: str, path: str) -> dict[str, Any]:
    """Writes ONNX Runtime's outputs, which those of peers are compared with."""
    silence()
    session = make_session(model)
    with np.load(inputs) as stored:
        feed = typed(session, {name: stored[name] for name in stored.files})
    np.savez(path, *run(session, feed))
    return {"path": path}


def build(
    model: str, variant: Mapping[str, Any], sizes: Mapping[str, int], folder: str, levels: Sequence[str], compiles: int
) -> dict[str, Any]:
    """Compiles a variant of a model into `folder`: the model, its report, the remarks and its IR. Returns its facts."""
    silence()
    asked, root = Variant(**variant), Path(folder)
    tuned = tune(model, asked, sizes, root / "tuned.sqlite") if asked.tune else ""
    options = compile_options(asked, sizes, tuned)
    seconds: list[float] = []
    with tempfile.TemporaryDirectory(prefix="igniter-build-") as elsewhere:
        for number in range(compiles):
            start = time.perf_counter()
            output = root / "model" if number == 0 else Path(elsewhere) / str(number)
            artifact = igniter.load(model).compile(output, options=options, verify=False, cache=False)
            seconds.append(time.perf_counter() - start)
    artifact = Artifact.load(root / "model")
    report = dict(artifact.report)
    write_whole(root / "remarks.json", json.dumps(report.pop("remarks"), indent=1))
    write_whole(root / "report.json", json.dumps(report, indent=1))
    (root / "ir").mkdir(exist_ok=True)
    for level in levels:
        text = ir_text(model, options, level)
        write_whole(root / "ir" / f"{level}.{'ll' if level == 'llvm' else 'mlir'}", text)
    return _facts(artifact, report, seconds)


def tune(model: str, variant: Variant, sizes: Mapping[str, int], database: Path) -> str:
    """Tunes the kernels of a model for the variant's target; returns the database."""
    text = ",".join(f"{name}={size}" for name, size in sizes.items())
    request = TuneRequest(
        model,
        seconds=variant.tune,
        db=str(database),
        target=variant.target,
        threads=variant.threads or 1,
        sizes=text,
        json=True,
    )
    request.run()
    return str(database)


def ir_text(model: str, options: CompileOptions, level: str) -> str | bytes:
    """Returns the IR of a model at a level."""
    module = igniter.load(model)
    c = Compilation(module.ir, options, module.ctx, cache=default_cache())
    with blaming(module.source):
        return emit(c, level)


def _facts(artifact: Artifact, report: Mapping[str, Any], seconds: Sequence[float]) -> dict[str, Any]:
    left = report["left_to_onnxruntime"]
    steps = [report["programs"], report["nodes_after"], left]
    return {
        "kernels": report["kernels"],
        "regions": sum(len(summary["regions"]) for summary in report["fusion"]),
        "ops": report["regions"],
        "nodes_before": report["nodes_before"],
        "nodes_after": report["nodes_after"],
        "left": len(left),
        "failed": [node for node in left if node["kind"] == "failed"],
        "compile_seconds": statistics.median(seconds),
        "compile_times": list(seconds),
        "compile_memory": max(report["peak_memory"].values(), default=0),
        "code_bytes": sum(path.stat().st_size for path in artifact.libraries),
        "libraries": [path.name for path in artifact.libraries],
        "code": digest([report["kernel_digest"], steps]),
        "options": report["options"],
    }


def check(folder: str, model: str, inputs: str, verify: bool) -> dict[str, Any]:
    """Compares a compiled model with ONNX Runtime on the inputs of a run, and returns what depends on their sizes: the
    bytes that fusion keeps out of memory, and their formula."""
    silence()
    artifact = Artifact.load(folder)
    with np.load(inputs) as stored:
        given = {name: stored[name] for name in stored.files}
    found: dict[str, Any] = {"verified": "not asked"}
    if verify:
        outcome = artifact.verify(given, reference=model, budget=0.0)
        found = {"verified": outcome.status, "max_errors": dict(outcome.max_errors), "reasons": list(outcome.reasons)}
        if outcome.status == "differs":
            found["error"] = f"its outputs differ from ONNX Runtime's: {'; '.join(outcome.failures[:3])}"
    sizes = symbol_sizes(artifact, given)
    summaries = [
        FusionSummary.from_dict({k: v for k, v in s.items() if k != "text"}) for s in artifact.report["fusion"]
    ]
    known = frozenset[str]().union(*(s.symbols for s in summaries)) <= sizes.keys()
    return {
        **found,
        "symbols": sizes,
        "bytes_saved": sum(s.at(sizes).bytes_saved for s in summaries),
        "bytes_formula": " + ".join(f for s in summaries if (f := s.formula) not in ("", "0")),
        "bytes_exact": known and all(s.formula for s in summaries),
    }
