"""`igniter reduce`: a failing model, region, kernel or pipeline, shrunk while it still fails in the same way."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.toolbox.output import console, print_json, printable, progress
from igniter.toolbox.reduce.reducer import reduce

if TYPE_CHECKING:
    from igniter.toolbox.reduce.outcome import Outcome
    from igniter.toolbox.reduce.reducer import Reduced
    from igniter.toolbox.reduce.request import ReduceOptions, ReduceRequest
    from igniter.toolbox.reduce.search import Step


def run(asked: ReduceRequest) -> None:
    """Reduces and prints."""
    where = asked.output or default_output(asked.model, asked.options.at_pass)
    shown = console()

    with progress("reducing", asked.json) as spin:

        def start(outcome: Outcome, size: str) -> None:
            if not asked.json:
                shown.print(f"{asked.model}: {size}", markup=False, soft_wrap=True)
                shown.print(f"it fails: {printable(str(outcome))}", markup=False, soft_wrap=True)

        def say(step: Step) -> None:
            spin(str(step))
            if not asked.json:
                shown.print(f"  {step}", markup=False, soft_wrap=True)

        found = reduce(asked.model, where, asked.options, start=start, say=say)
    if asked.json:
        print_json(_described(asked.model, where, found))
        return
    end = "interrupted, " if found.interrupted else ""
    shown.print(
        f"{where}: {found.after}; {end}{found.tried} candidates in {found.seconds:.1f} s", markup=False, soft_wrap=True
    )
    if found.rewrite is not None:
        shown.print(str(found.rewrite), markup=False, soft_wrap=True)
    shown.print(f"again: {again(where, found, asked.options)}", markup=False, soft_wrap=True)


def default_output(path: str, at_pass: bool) -> str:
    """Returns `model.reduced.onnx` in the current directory."""
    given = Path(path)
    suffix = ".mlir" if at_pass or given.suffix == ".mlir" else ".onnx"
    return f"{given.stem}.reduced{suffix}"


def again(where: str, found: Reduced, options: ReduceOptions) -> str:
    """Returns the command to reproduce the failure of the reduced case."""
    if options.command:
        quoted = shlex.quote(where)
        return options.command.replace("{}", quoted) if "{}" in options.command else f"{options.command} {quoted}"
    if options.check_with:
        seed = f" --check-seed={options.seed}" if options.seed else ""
        return f"igniter-opt {shlex.quote(where)} --check-with={shlex.quote(options.check_with)}{seed} --emit=none"
    if found.case.reproducer is not None:
        return f"igniter-opt {shlex.quote(where)} --run-reproducer --emit=none"
    if found.case.passes is None:
        strict = " --strict" if options.strict else ""
        return f"igniter compile {shlex.quote(where)}{strict} --no-cache"
    target = f" --target={options.target}" if options.target else ""
    check = {"wrong": " --check-each", "refuted": " --check-each=prove"}.get(found.outcome.kind, "")
    seed = f" --check-seed={options.seed}" if found.outcome.kind == "wrong" and options.seed else ""
    passes = shlex.quote(",".join(found.case.passes))
    return f"igniter-opt {shlex.quote(where)} -p {passes}{target}{check}{seed} --emit=none"


def _described(path: str, where: str, found: Reduced) -> dict[str, Any]:
    return {
        "input": path,
        "output": where,
        "failure": found.outcome.to_dict(),
        "before": found.before,
        "after": found.after,
        "size": asdict(found.case.size),
        "passes": found.case.passes,
        "candidates": found.tried,
        "seconds": found.seconds,
        "interrupted": found.interrupted,
        "steps": [asdict(step) for step in found.steps],
        "rewrite": None if found.rewrite is None else asdict(found.rewrite),
    }
