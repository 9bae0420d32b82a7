"""`igniter verify`: does a compiled model compute what ONNX Runtime computes on the original?"""

from __future__ import annotations

from pathlib import Path

from igniter.errors import IgniterError
from igniter.tools.cli.output import console, parse_shapes, print_json, progress, verification_table


def run(
    artifact_path: str, reference: str, shapes: tuple[str, ...], rtol: float | None, seed: int, threads: int, json: bool
) -> bool:
    """Verify and print; whether it is right."""
    from igniter.runtime.artifact import Artifact

    if Path(artifact_path).suffix == ".onnx":
        raise IgniterError(f"{artifact_path} is a model: `igniter verify` takes the folder that `igniter compile` made")
    artifact = Artifact.load(artifact_path)
    with progress("verifying", json):
        verification = artifact.verify(
            shapes=parse_shapes(shapes),
            rtol=rtol,
            reference=reference or None,
            seed=seed,
            intra_op_num_threads=threads,
        )
    if json:
        print_json(verification.to_dict())
    else:
        out = console()
        out.print(verification_table(verification))
        out.print("[green]all outputs agree" if verification.ok else "[red]the outputs differ")
    return verification.ok
