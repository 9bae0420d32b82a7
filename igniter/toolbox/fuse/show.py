"""`igniter fuse`: the instances of a pattern replaced, and verified."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.markup import escape

from igniter.api import load
from igniter.errors import IgniterError
from igniter.toolbox.options import DEFAULT_INPUTS
from igniter.toolbox.output import console, print_json, verification_lines
from igniter.toolbox.verified_save import save_verified

if TYPE_CHECKING:
    from igniter.toolbox.fuse.request import FuseRequest


def run(asked: FuseRequest) -> None:
    """Replaces, verifies, writes and prints."""
    if asked.given != DEFAULT_INPUTS and not asked.verify:
        raise IgniterError(
            "--shape, --inputs, --rtol, --atol, --seed and --budget are for verifying: leave out --no-verify"
        )
    module = load(asked.model).fuse(asked.pattern, asked.into)
    verification = save_verified(
        module, asked.model, asked.output, asked.given if asked.verify else None, "the fused model", asked.json
    )
    said = [r for r in module.remarks if r.pass_name == "fuse-pattern"]
    applied = [{"node": r.node, "what": r.message} for r in said if r.kind == "applied"]
    nearest = [{"node": r.node, "why": r.message, **r.details} for r in said if r.kind == "missed"]
    if asked.json:
        print_json({"model": asked.output, "applied": applied, "nearest": nearest, "verification": verification})
        return
    _print(asked.output, applied, nearest, verification)


def _print(output: str, applied: list[Any], nearest: list[Any], verification: dict[str, Any] | None) -> None:
    out = console()
    for one in applied:
        out.print(escape(f"'{one['node']}': {one['what']}"))
    for one in nearest:
        out.print(escape(f"not '{one['node']}': {one['why']}"))
    if verification is not None:
        for line in verification_lines(verification):
            out.print(line)
    out.print(escape(f"wrote {output}: {len(applied)} instance{'s' * (len(applied) != 1)} replaced"))
