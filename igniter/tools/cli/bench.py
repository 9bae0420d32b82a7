"""`igniter bench`: a model in ONNX Runtime before and after, timed in turns."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.errors import IgniterError
from igniter.tools.cli.output import console, parse_shapes, print_json, progress, progress_bar

if TYPE_CHECKING:
    from igniter.runtime.artifact import Artifact
    from igniter.runtime.timing import Timing

ORT, IGNITER = "onnxruntime", "igniter"


def run(
    path: str,
    reference: str,
    shapes: tuple[str, ...],
    threads: int,
    rounds: int,
    target: str,
    spinning: bool,
    json: bool,
) -> None:
    """Time and print."""
    import igniter
    from igniter.runtime.artifact import Artifact

    with tempfile.TemporaryDirectory(prefix="igniter-bench-") as folder:
        if Path(path).is_dir():
            artifact = Artifact.load(path)
        else:
            with progress("compiling", json) as step:
                artifact = igniter.compile(path, Path(folder) / "model.igniter", target=target, progress=step)
        rows: list[dict[str, Any]] = []
        for case in parse_shapes(shapes) or [{}]:
            with progress_bar("timing", rounds, json) as done:
                sizes, timing = time_artifact(
                    artifact,
                    case,
                    reference=reference,
                    threads=threads,
                    rounds=rounds,
                    spinning=spinning,
                    progress=done,
                )
            rows.append({"shapes": sizes, "threads": threads, "noise": timing.noise, **timing.to_dict()})
    if json:
        print_json(rows)
    else:
        _print(rows)


def time_artifact(
    artifact: Artifact,
    case: Mapping[str, int],
    *,
    reference: str = "",
    threads: int = 1,
    **options: Any,
) -> tuple[dict[str, int], Timing]:
    """The original and the compiled model at one choice of sizes (what `case` leaves out is chosen); the sizes too."""
    from igniter.runtime.timing import time_models

    original = reference or artifact.source
    if original is None:
        raise IgniterError(f"the original model of {artifact.folder} is not known or has changed: give --reference")
    sizes, inputs = inputs_for(artifact, original, case)
    models = {ORT: (original, ()), IGNITER: (artifact.model_path, artifact.libraries)}
    return sizes, time_models(models, inputs, threads=threads, **options)


def inputs_for(
    artifact: Artifact, original: str | bytes, case: Mapping[str, int]
) -> tuple[dict[str, int], dict[str, Any]]:
    """Sizes for all symbolic dims (what `case` leaves out is chosen), and random inputs of these sizes."""
    from igniter.frontend import import_model
    from igniter.runtime.random_inputs import default_shapes, index_limits, random_inputs, specs_of

    specs = specs_of(artifact.session(intra_op_num_threads=1))
    known = {symbol for spec in specs for symbol in spec.symbols()}
    unknown = sorted(set(case) - known)
    if unknown:
        raise IgniterError(
            f"the model has no dim {', '.join(unknown)}; its dims are {', '.join(sorted(known)) or 'fixed'}"
        )
    sizes = {**_longest(default_shapes(specs)), **case}
    return sizes, random_inputs(specs, sizes, index_limits(import_model(original)))


def _longest(cases: list[dict[str, int]]) -> dict[str, int]:
    return max(cases, key=lambda case: sum(case.values()))


def _print(rows: list[dict[str, Any]]) -> None:
    from rich.table import Table

    table = Table("shapes", "threads", "onnxruntime ms", "igniter ms", "speedup", "noise")
    for row in rows:
        shapes = ", ".join(f"{k}={v}" for k, v in row["shapes"].items()) or "as in the model"
        speedup = 1 / row[IGNITER]["ratio"]
        colour = "green" if speedup > 1 + row["noise"] else "red" if speedup < 1 - row["noise"] else "yellow"
        table.add_row(
            shapes,
            str(row["threads"]),
            f"{row[ORT]['ms']:.4g}",
            f"{row[IGNITER]['ms']:.4g}",
            f"[{colour}]{speedup:.2f}x",
            f"{100 * row['noise']:.1f}%",
        )
    console().print(table)
