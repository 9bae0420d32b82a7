"""Reproducers in `igniter-opt`: the options that write one, and `--run-reproducer`."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, cast

from igniter.context import IgniterContext
from igniter.errors import IgniterError, reproducer_of
from igniter.reproducers import Recorder, Weights, split_reproducer
from igniter.toolbox.reproducing import run_of

if TYPE_CHECKING:
    from xdsl.passes import ModulePass

    from igniter.analysis.machine import MachineModel
    from igniter.tools.igniter_opt import OptOptions


def require_possible(options: OptOptions) -> None:
    """Raises `IgniterError` for options of reproducers without effect, or against each other."""
    if not options.crash_reproducer:
        for flag, given in (
            ("--local-reproducer", options.local_reproducer),
            ("--reproducer-weights", options.reproducer_weights != "auto"),
        ):
            if given:
                raise IgniterError(f"{flag} is about the file of --crash-reproducer: give both, or neither")
    elif not options.crash_reproducer.endswith(".mlir"):
        raise IgniterError(f"a reproducer is IR: name a file *.mlir, not '{options.crash_reproducer}'")
    if options.run_reproducer:
        given = {
            "--passes": bool(options.pipeline),
            "--target": options.target is not None,
            "--machine": bool(options.machine),
            "--sizes": bool(options.sizes),
            "--stop-after": options.stop_after is not None,
            "--split-input-file": options.split_input_file,
        }
        for flag, found in given.items():
            if found:
                raise IgniterError(f"{flag} is given by the file of --run-reproducer: leave one of them out")


def recorder_for(options: OptOptions) -> Recorder | None:
    """Returns the recorder that the options ask for."""
    if not options.crash_reproducer:
        return None
    settings = {"seed": str(options.check_seed), "check_sizes": ";".join(options.check_sizes)}
    return Recorder(
        options.crash_reproducer,
        local=options.local_reproducer,
        weights=cast("Weights", options.reproducer_weights),
        ahead=True,
        settings=settings if "values" in options.check_each else {},
    )


def discard(ctx: IgniterContext, error: Exception | None = None) -> None:
    """Removes the file that was written ahead of a pass, unless an error left it."""
    recorder = ctx.recorder
    if recorder is not None and recorder.wrote and (error is None or not reproducer_of(error)):
        with suppress(FileNotFoundError):
            Path(recorder.file).unlink()


def reproduced(
    options: OptOptions, data: bytes, name: str
) -> tuple[OptOptions, list[MachineModel], tuple[ModulePass, ...]]:
    """Returns the options, machines and passes of a reproducer's run; raises `IgniterError` for any other file."""
    found = split_reproducer(data.decode(), name)[1]
    if found is None:
        raise IgniterError(f"{name} is no reproducer: it has no section 'igniter_reproducer' at its end")
    run, facts = run_of(found), found.facts
    options = replace(
        options,
        pipeline=found.pipeline,
        sizes=",".join(f"{symbol}={size}" for symbol, size in run.sizes.items()),
        verify_each=facts.get("verify_each") != "false",
        check_each=options.check_each or ("values" if run.flags["check_each"] else ""),
        check_seed=run.seed or options.check_seed,
        check_sizes=[text for text in facts.get("check_sizes", "").split(";") if text] or options.check_sizes,
        stop_after=run.stop_after,
        allow_unregistered=options.allow_unregistered or run.flags["allow_unregistered"],
        target=run.machine.name,
        emit=facts.get("emit", options.emit),
    )
    return options, [run.machine], run.passes()
