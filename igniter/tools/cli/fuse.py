"""`igniter fuse`: the instances of a pattern replaced, and verified."""

from __future__ import annotations

from typing import Any

from igniter.errors import IgniterError
from igniter.tools.cli.output import InputRequest, console, print_json, verification_lines
from igniter.tools.cli.verified_save import save_verified


def run(path: str, pattern: str, output: str, into: str, verify: bool, asked: InputRequest, as_json: bool) -> None:
    """Replaces, verifies, writes and prints."""
    from igniter.api import load

    if asked != InputRequest() and not verify:
        raise IgniterError(
            "--shape, --inputs, --rtol, --atol, --seed and --budget are for verifying: leave out --no-verify"
        )
    module = load(path).fuse(pattern, into)
    verification = save_verified(module, path, output, asked if verify else None, "the fused model", as_json)
    said = [r for r in module.remarks if r.pass_name == "fuse-pattern"]
    applied = [{"node": r.node, "what": r.message} for r in said if r.kind == "applied"]
    nearest = [{"node": r.node, "why": r.message, **r.details} for r in said if r.kind == "missed"]
    if as_json:
        print_json({"model": output, "applied": applied, "nearest": nearest, "verification": verification})
        return
    _print(output, applied, nearest, verification)


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
