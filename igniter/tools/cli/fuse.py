"""`igniter fuse`: the instances of a pattern replaced, and verified."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from igniter.errors import IgniterError
from igniter.tools.cli.output import InputRequest, console, print_json, progress, verification_lines


def run(path: str, pattern: str, output: str, into: str, verify: bool, asked: InputRequest, as_json: bool) -> None:
    """Replace, verify, write and print."""
    from igniter.api import load

    if asked != InputRequest() and not verify:
        raise IgniterError(
            "--shape, --inputs, --rtol, --atol, --seed and --budget are for verifying: leave out --no-verify"
        )
    module = load(path).fuse(pattern, into)
    target = Path(output)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as scratch:
        made = Path(scratch) / target.name
        module.save(made)
        verification = _verified(path, made, asked, as_json) if verify else None
        if verification is not None and verification["status"] == "differs":
            failures = "; ".join(verification["failures"][:3])
            raise IgniterError(
                f"the fused model does not compute what {path} computes, so {output} is not written: {failures}"
            )
        # The weights first: a model without them cannot be read.
        for file in sorted(os.listdir(scratch), key=lambda name: name == target.name):
            os.replace(os.path.join(scratch, file), target.parent / file)
    said = [r for r in module.remarks if r.pass_name == "fuse-pattern"]
    applied = [{"node": r.node, "what": r.message} for r in said if r.kind == "applied"]
    nearest = [{"node": r.node, "why": r.message, **r.details} for r in said if r.kind == "missed"]
    if as_json:
        print_json({"model": output, "applied": applied, "nearest": nearest, "verification": verification})
        return
    _print(output, applied, nearest, verification)


def _verified(path: str, made: Path, asked: InputRequest, quiet: bool) -> dict[str, Any]:
    from igniter.runtime.compare_models import compare_models
    from igniter.runtime.session import silence

    silence()
    original: str | bytes = path
    if path.endswith(".mlir"):
        from igniter.api import load

        original = load(path).to_onnx().SerializeToString()
    with progress("verifying", quiet):
        found = compare_models(original, made, **asked.for_verify())
    return {**found.to_dict(), "failures": list(found.failures)}


def _print(output: str, applied: list[Any], nearest: list[Any], verification: dict[str, Any] | None) -> None:
    from rich.markup import escape

    out = console()
    for one in applied:
        out.print(escape(f"'{one['node']}': {one['what']}"))
    for one in nearest:
        out.print(escape(f"not '{one['node']}': {one['why']}"))
    if verification is not None:
        for line in verification_lines(verification):
            out.print(line)
    out.print(escape(f"wrote {output}: {len(applied)} instance{'s' * (len(applied) != 1)} replaced"))
