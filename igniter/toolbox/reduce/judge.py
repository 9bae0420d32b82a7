"""The outcome of a candidate, computed in a process of its own because of crashes."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import igniter
from igniter.analysis.machine import pass_figures
from igniter.context import IgniterContext
from igniter.dialects.onnx.structure import GraphOp
from igniter.frontend import export_model, import_model
from igniter.passes import PassError, parse_passes, run_passes
from igniter.runtime.session import make_session
from igniter.targets import backend_for
from igniter.toolbox.reduce.case import text_of
from igniter.toolbox.reduce.outcome import INVALID, PASSED, REFUSAL, REFUTED, WRONG, CheckRequest, Outcome
from igniter.toolbox.reproducing import ReproducedRun, parse_ir, read_reproducer, run_of
from igniter.transforms.fusion.inline_regions import onnx_level
from igniter.verification.check import ResultChanged, ResultChecker
from igniter.verification.original import unoptimised
from igniter.verification.prove.observer import ProofFailed, Prover

if TYPE_CHECKING:
    from igniter.observation import PassObserver

Say = Callable[[Mapping[str, object]], None]
"""A function for reports of the running pass, and the last rewrite, in case the process ends abruptly."""


def judge(request: CheckRequest, say: Say) -> Outcome:
    """Returns the outcome of a candidate; a crash or a hang of it affects this process."""
    facts = read_reproducer(request.path)
    run = None if facts is None else run_of(facts)
    ctx = IgniterContext() if run is None else run.context()
    made = ctx.rewrites
    made.limit = request.stop_after if run is None or request.stop_after is not None else run.stop_after
    made.at_limit = lambda: say({"rewrites": made.count, "last_rewrite": made.last})
    try:
        module = read(request.path, ctx)
        # A check of results loads the graph before the first pass anyway.
        if request.task == "validate" or (request.validate and not request.check_results):
            load_into_onnxruntime(module)
    except Exception as error:  # any error says that the candidate is no model
        return Outcome(INVALID, _text(error))
    if request.task == "types":
        run_passes(ctx, module, parse_passes("infer-shapes"))
        return Outcome(PASSED, text=text_of(module))
    if request.passes is None:
        return Outcome(PASSED) if request.task == "validate" else _compile(request)
    found = _run_passes(request, ctx, module, say, run)
    if request.task == "lower" and found.kind == PASSED:
        return replace(found, text=text_of(module))
    return replace(found, rewrites=ctx.rewrites.count, last_rewrite=ctx.rewrites.last)


def read(path: str, ctx: IgniterContext) -> ModuleOp:
    """Reads and verifies the module of a file."""
    if path.endswith(".mlir"):
        with open(path, encoding="utf-8") as file:
            module = parse_ir(ctx, file.read(), path)
    else:
        module = import_model(path)
    module.verify()
    return module


def load_into_onnxruntime(module: ModuleOp) -> None:
    """Creates a session of the module's graph, if it has one: ONNX Runtime refuses invalid models."""
    if any(isinstance(op, GraphOp) for op in module.ops):
        data = export_model(onnx_level(module)).SerializeToString()
        make_session(data, graph_optimization_level=unoptimised(), log_severity_level=4)


def _text(error: Exception) -> str:
    return str(error) or type(error).__name__


def _compile(request: CheckRequest) -> Outcome:
    """Runs the whole compile, as `igniter compile` does; the verification is the check."""
    from igniter.api import VerificationFailed

    try:
        # The cache may have code of an earlier version of a pass.
        target = request.target or "native"
        igniter.compile(request.path, target=target, seed=request.seed, strict=request.strict, cache=False)
    except VerificationFailed as error:
        differs = error.verification.status == "differs"
        return Outcome(WRONG, _text(error), changed=differs)
    except PassError as error:
        return Outcome(REFUSAL, str(error), error.pass_name)
    except Exception as error:  # any other error of a compile is a refusal
        return Outcome(REFUSAL, _text(error))
    return Outcome(PASSED)


@dataclass
class _Announcer:
    """An observer that reports and records the running pass."""

    say: Say
    place: int = -1
    name: str = ""

    def before(self, this: ModulePass, module: ModuleOp) -> None:
        self.place, self.name = self.place + 1, this.name
        self.say({"where": self.name, "place": self.place})

    def after(self, this: ModulePass, module: ModuleOp) -> None:
        return


def _run_passes(
    request: CheckRequest, ctx: IgniterContext, module: ModuleOp, say: Say, run: ReproducedRun | None
) -> Outcome:
    figures = None
    if request.target and run is None:
        machine = backend_for(request.target).machine_for(request.target)
        ctx, figures = ctx.on(machine), pass_figures([machine])
    passes = parse_passes(",".join(request.passes or ()), figures)
    here = _Announcer(say)
    observers: list[PassObserver] = [here]
    if request.check_results:
        checker = ResultChecker(ctx, seed=request.seed, log=io.StringIO())
        try:
            if passes:
                checker.before(passes[0], module)
        except Exception as error:  # the reference cannot run: any error
            return Outcome(INVALID, f"it does not run: {_text(error)}")
        # The announcer surrounds the checker.
        observers.append(checker)
    if request.prove:
        observers.append(Prover(log=io.StringIO()))
    try:
        run_passes(ctx, module, passes, observers=tuple(observers))
    except ProofFailed as error:
        return Outcome(REFUTED, str(error), here.name, here.place, changed=True)
    except ResultChanged as error:
        return Outcome(WRONG, str(error), here.name, here.place, changed=True)
    except PassError as error:
        return Outcome(REFUSAL, str(error), error.pass_name, here.place)
    except Exception as error:
        # An error of an observer: the IR after the pass does not run, or reads out of bounds.
        return Outcome(WRONG, f"after pass '{here.name}': {_text(error)}", here.name, here.place)
    return Outcome(PASSED)
