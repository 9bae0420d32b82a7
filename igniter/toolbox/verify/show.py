"""`igniter verify`: compares a compiled model with ONNX Runtime on the original."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from igniter.compiler.artifact import Artifact
from igniter.errors import IgniterError
from igniter.runtime.digests import folder_digest, require_digest
from igniter.runtime.session import silence
from igniter.toolbox.output import (
    console,
    inexact_lines,
    print_json,
    progress,
    subnormal_lines,
    verification_lines,
    verification_table,
)
from igniter.toolbox.verify.request import PRINT, VerifyRequest
from igniter.verification.report import sizes_text

if TYPE_CHECKING:
    from igniter.verification.regions import ValuesResult
    from igniter.verification.report import Status

EXIT_CODES: dict[Status, int] = {"passed": 0, "differs": 1, "not verified": 3}
"""2 is a wrong command line or an internal error."""


def run(asked: VerifyRequest) -> int:
    """Verifies and prints; returns the exit status."""
    if asked.digest is not None:
        _digest(asked)
        return 0
    return EXIT_CODES[(_every_value if asked.every_value else _outputs)(asked)]


def _digest(asked: VerifyRequest) -> None:
    """Prints the digest of a folder, or compares it with the one of the request; no file is executed."""
    if asked != VerifyRequest(asked.artifact, digest=asked.digest, json=asked.json):
        raise IgniterError("--digest compares the bytes of a folder and runs nothing: give no option of a run besides")
    # Reports a folder that is not whole.
    Artifact.load(asked.artifact)
    found, files = folder_digest(asked.artifact)
    if asked.digest not in (None, PRINT):
        require_digest(asked.artifact, asked.digest)
    if asked.json:
        print_json({"digest": found, "files": files})
    elif asked.digest == PRINT:
        print(found)
    else:
        console().print(f"[green]{len(files)} files have the digest {found}", highlight=False, soft_wrap=True)


def _outputs(asked: VerifyRequest) -> Status:
    """Verifies the outputs and prints; returns the outcome."""
    if Path(asked.artifact).suffix == ".onnx":
        raise IgniterError(
            f"{asked.artifact} is a model: `igniter verify` takes the folder that `igniter compile` made"
        )
    artifact = Artifact.load(asked.artifact)
    silence()
    with progress("verifying", asked.json):
        options: dict[str, Any] = asked.given.for_verify()
        if asked.threads:
            options["intra_op_num_threads"] = asked.threads
        verification = artifact.verify(**options, reference=asked.reference or None)
    if asked.json:
        print_json(verification.to_dict())
        return verification.status
    out = console()
    if verification.cases:
        out.print(verification_table(verification))
    if verification.status == "not verified":
        for line in verification_lines(verification.to_dict()):
            out.print(line)
    else:
        out.print("[green]all outputs agree" if verification.ok else "[red]the outputs differ")
        for line in (*inexact_lines(verification.to_dict()), *subnormal_lines(artifact.report)):
            out.print(line)
    return verification.status


def _every_value(asked: VerifyRequest) -> Status:
    """Verifies region by region and prints; returns the outcome. `threads` must be 0: ONNX Runtime chooses here."""
    if asked.threads:
        raise IgniterError("--threads has no effect with --every-value: leave one of them out")
    cases = asked.given.for_verify()
    if len(cases["shapes"] or ()) > 1:
        raise IgniterError("--every-value is for one choice of sizes: give --shape once")
    artifact = Artifact.load(asked.artifact)
    silence()
    with progress("verifying", asked.json):
        options: dict[str, Any] = {**cases, "shapes": (cases["shapes"] or [None])[0]}
        found = artifact.verify_every_value(**options, reference=asked.reference or None)
    if asked.json:
        print_json(found.to_dict())
        return found.status
    out = console()
    out.print(_regions_table(found))
    if found.message:
        out.print(f"[red]{'' if found.status == 'differs' else 'not verified: '}", end="")
        out.print(found.message, markup=False)
    else:
        out.print(f"[green]all {len(found.regions)} agree at {sizes_text(found.shapes) or 'the sizes in the model'}")
    return found.status


def _regions_table(found: ValuesResult) -> Any:
    table = Table("region", "kernel", "nodes", "value", "shape", "largest error", "noise", "")
    for region in found.regions:
        label, kernel, nodes = region.region, region.kernel, str(len(region.nodes) or "")
        for o in region.outputs:
            noise = "" if o.noise is None else f"{o.noise:.1e}"
            verdict = f"[green]ok[/]{': ' * bool(o.note)}{o.note}" if o.ok else f"[red]{o.reason}"
            table.add_row(
                label, kernel, nodes, o.name, "x".join(map(str, o.shape)), f"{o.max_error:.2e}", noise, verdict
            )
            label = kernel = nodes = ""
    return table
