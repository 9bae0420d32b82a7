"""`igniter bench`: a model in ONNX Runtime before and after, timed in turns."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.errors import IgniterError
from igniter.tools.cli.output import InputRequest, console, parse_shapes, print_json, progress, progress_bar

if TYPE_CHECKING:
    from igniter.runtime.artifact import Artifact
    from igniter.runtime.timing import Timing

ORT, IGNITER = "onnxruntime", "igniter"


def run(
    path: str,
    reference: str,
    asked: InputRequest,
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
                artifact = igniter.compile(
                    path, Path(folder) / "model.igniter", target=target, progress=step, **asked.for_verify()
                )
        rows: list[dict[str, Any]] = []
        for case in parse_shapes(asked.shapes) or [{}]:
            with progress_bar("timing", rounds, json) as done:
                sizes, timing = time_artifact(
                    artifact,
                    case,
                    asked=asked,
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
    asked: InputRequest | None = None,
    reference: str = "",
    threads: int = 1,
    **options: Any,
) -> tuple[dict[str, int], Timing]:
    """The original and the compiled model at one choice of sizes (what `case` leaves out is chosen); the sizes too.
    `IgniterError` where they do not agree on what is timed."""
    from igniter.runtime.timing import time_models

    given = asked or InputRequest()
    original = reference or artifact.source
    if original is None:
        raise IgniterError(f"the original model of {artifact.folder} is not known or has changed: give --reference")
    sizes, inputs = inputs_for(artifact, original, case, given)
    found = artifact.verify(inputs, rtol=given.rtol, atol=given.atol, reference=original, budget=0.0)
    if found.status == "differs":
        raise IgniterError(f"the two models do not agree on what is timed: {'; '.join(found.failures[:3])}")
    models = {ORT: (original, ()), IGNITER: (artifact.model_path, artifact.libraries)}
    return sizes, time_models(models, inputs, threads=threads, **options)


def inputs_for(
    artifact: Artifact, original: str | bytes, case: Mapping[str, int], asked: InputRequest
) -> tuple[dict[str, int], dict[str, Any]]:
    """Sizes for all symbolic dims (what `case` leaves out is chosen), and inputs of these sizes; those of a file have
    the sizes that they have."""
    from igniter.runtime.artifact import model_facts
    from igniter.runtime.verification.given import read_inputs
    from igniter.runtime.verification.original import Original
    from igniter.runtime.verify import typical_inputs

    source = Original(original, options={"intra_op_num_threads": 1})
    if asked.inputs:
        return {}, read_inputs(asked.inputs, [value.name for value in source.session.get_inputs()])[0]
    return typical_inputs(source, model_facts(original), case, asked.seed)


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
