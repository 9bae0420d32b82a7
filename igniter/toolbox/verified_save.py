"""Saves a changed model after verification against its original."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.api import load
from igniter.errors import IgniterError
from igniter.runtime.session import SessionError, silence
from igniter.toolbox.options import InputRequest
from igniter.toolbox.output import progress
from igniter.verification.report import Verification

if TYPE_CHECKING:
    from igniter.api import Module


def save_verified(
    module: Module, original: str, output: str, asked: InputRequest | None, what: str, quiet: bool
) -> dict[str, Any] | None:
    """Writes `module` to `output` if its outputs agree with those of the model at `original`; returns the outcome of
    the verification, or `None` if `asked` is `None`. `IgniterError` names the differing output, and then `output` is
    unchanged."""
    target = Path(output)
    if not target.parent.is_dir():
        raise IgniterError(f"there is no folder {target.parent} to write {target.name} to")
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch:
        made = Path(scratch) / target.name
        module.save(made)
        verification = _verified(original, made, asked, quiet) if asked is not None else None
        if verification is not None and verification["status"] == "differs":
            failures = "; ".join(verification["failures"][:3])
            raise IgniterError(f"{what} does not compute what {original} does, so {output} is not written: {failures}")
        # The weights first: a model without them cannot be read.
        for file in sorted(os.listdir(scratch), key=lambda name: name == target.name):
            os.replace(os.path.join(scratch, file), target.parent / file)
    return verification


def _verified(path: str, made: Path, asked: InputRequest, quiet: bool) -> dict[str, Any]:
    from igniter.toolbox.diff.results import compare_models

    silence()
    original: str | bytes = path
    if path.endswith(".mlir"):
        original = load(path).to_onnx().SerializeToString()
    try:
        with progress("verifying", quiet):
            found = compare_models(original, made, **asked.for_verify())
    except SessionError as error:
        if str(made) in error.message:
            raise
        # A custom op, or one without a kernel in ONNX Runtime, is not an error of the change.
        found = Verification((), cannot=f"the original does not run: {error.message}")
    return {**found.to_dict(), "failures": list(found.failures)}
