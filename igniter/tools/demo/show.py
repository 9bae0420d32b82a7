"""`igniter demo`: a model made on the spot, compiled, verified and timed beside ONNX Runtime."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import igniter
from igniter.runtime.timing import speedup_line
from igniter.toolbox.bench.show import IGNITER, ORT, time_artifact
from igniter.toolbox.output import console, print_json, progress, progress_bar, verification_table
from igniter.tools.demo_model import Shape, save_demo_model

if TYPE_CHECKING:
    from igniter.tools.demo.request import DemoRequest

NAME = "mobilebert-demo"
SHAPES = ({"batch": 1, "sequence": 1}, {"batch": 1, "sequence": 32}, {"batch": 3, "sequence": 17})


def run(asked: DemoRequest) -> None:
    """Builds, compiles, verifies and times the model, and prints the speedup."""
    with tempfile.TemporaryDirectory(prefix="igniter-demo-") as folder:
        with progress(f"{asked.layers} layers", asked.json) as step:
            step("building the model")
            model = save_demo_model(Path(folder) / "model.onnx", Shape(layers=asked.layers))
            artifact = igniter.compile(
                model, asked.output or Path(folder) / "compiled", shapes=list(SHAPES), progress=step
            )
        verification = artifact.verify(shapes=[{"batch": 1, "sequence": asked.sequence}])
        with progress_bar("timing", asked.rounds, asked.json) as done:
            sizes, timing = time_artifact(
                artifact,
                {"batch": 1, "sequence": asked.sequence},
                threads=asked.threads,
                rounds=asked.rounds,
                progress=done,
            )
        before, after = timing.median(ORT), timing.median(IGNITER)
        report = artifact.report
        result: dict[str, Any] = {
            "model": NAME,
            "shapes": sizes,
            "threads": asked.threads,
            "nodes_before": report["nodes_before"],
            "nodes_after": report["nodes_after"],
            "fused": report["regions"],
            "kernels": report["kernels"],
            "ort_ms": 1000 * before,
            "igniter_ms": 1000 * after,
            "ratio": timing.ratio(IGNITER),
            "noise": timing.noise,
            "seconds": report["seconds"],
            "max_errors": report["verification"]["max_errors"],
        }
        if asked.json:
            print_json(result)
            return
        out = console()
        out.print(verification_table(verification))
        stages = ", ".join(f"{name} {seconds:.2f}" for name, seconds in report["seconds"].items())
        worst = max(report["verification"]["max_errors"].values())
        cases = len(report["verification"]["cases"])
        out.print(f"every output agrees with ONNX Runtime at {cases} shapes; largest relative error {worst:.1e}")
        out.print(f"compile seconds: {stages}")
        out.print(
            f"nodes: {result['nodes_before']} before, {result['nodes_after']} after "
            f"({result['fused']} fused, {result['kernels']} different kernels)"
        )
        out.print(
            f"{asked.threads} thread{'s' if asked.threads != 1 else ''}, "
            + ", ".join(f"{k} {v}" for k, v in sizes.items())
            + f"; the same system twice: {100 * timing.noise:.1f}% apart"
        )
        # Not through the console with its wrapping; other programs read this line.
        print(speedup_line(NAME, before, after))
