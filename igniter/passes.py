"""Passes from text, and their runs: `"infer-shapes,form-fusion-regions{max-nodes=32},cpu-loop"` is a list of passes.

`igniter.pipeline_text` describes the grammar. `run_passes` is the only place where passes run: tools observe it
(`igniter.observation`).
"""

from __future__ import annotations

import dataclasses
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec
from xdsl.utils.exceptions import DiagnosticException, VerifyException

from igniter.activity import doing
from igniter.context import IgniterContext
from igniter.crashes import crash_text, is_outside
from igniter.errors import IgniterError
from igniter.observation import PassObserver, PassWatcher, Unit
from igniter.observation.logs import log_run
from igniter.observation.units import symbol_of
from igniter.pipeline_text import Element, PipelineError, expand
from igniter.registry import load_pass
from igniter.reproducers import recording

_log = logging.getLogger(__name__)

PLUGIN_FAILED = 4
"""The exit status after a plug-in that raised."""

LEVELS = {"onnx.graph": ("onnx", "fusion"), "loop.kernel": ("structured",), "loop.func": ("scheduled",)}
"""The levels of passes (`igniter.transforms.LEVEL`) that find ops in a module with a single op of a kind."""
OPS_OF = {"onnx": "onnx.graph", "fusion": "onnx.graph", "structured": "loop.kernel", "scheduled": "loop.func"}
"""The op of a module that passes of a level work on."""

REFUSALS = (ValueError, DiagnosticException, VerifyException)
"""The errors by which Igniter's and xDSL's own passes refuse IR; in a plug-in they count as crashes."""


class PassError(IgniterError):
    """Raised when a pass fails or leaves invalid IR; the cause is chained."""

    code = "IGN0102"

    def __init__(self, pass_name: str, message: str):
        # A refusal may name its pass itself, because tools show it without this error around it.
        super().__init__(f"pass '{pass_name}': {message.removeprefix(f'{pass_name}: ')}")
        self.pass_name = pass_name


@dataclass(frozen=True)
class NestedPasses(ModulePass):
    """Runs passes on each op of one kind, alone in a module: the `loop.kernel(a,b)` of a pipeline.

    The ops are those of the module's own body. Whatever the passes make of an op takes its place.
    """

    name = "nested-passes"

    anchor: str
    """The name of the ops, or `any` for all."""
    passes: tuple[ModulePass, ...]

    def __post_init__(self) -> None:
        # Each nested pipeline has a name of its own in dumps, times and errors.
        object.__setattr__(self, "name", f"{self.anchor}({','.join(this.name for this in self.passes)})")

    def spec(self, *, include_default: bool = False) -> ArgSpec:
        inner = ",".join(str(this.spec(include_default=include_default)) for this in self.passes)
        return ArgSpec(f"{self.anchor}({inner})", {})

    def inner_passes(self, ctx: Context) -> Sequence[ModulePass]:
        """Returns the passes."""
        return self.passes

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        found = [each for each in op.ops if self.anchor in ("any", each.name)]
        if not found:
            self._refuse_inner(op)
            there = sorted({each.name for each in op.ops})
            has = f"; it has {', '.join(there)}" if there else ""
            _log.warning(f"no pass of '{self.name}' ran: the module has no {self.anchor}{has}")
        for each in found:
            self._run_alone(ctx, op, each)

    def _refuse_inner(self, module: ModuleOp) -> None:
        around = next((each.parent_op() for each in module.walk() if each.name == self.anchor), None)
        if around is not None and around is not module:
            raise IgniterError(
                f"'{self.anchor}' is inside of '{around.name}' here, and a nested pipeline runs on ops of the module's "
                f"own body: {', '.join(sorted({each.name for each in module.ops}))}"
            )

    def _run_alone(self, ctx: Context, module: ModuleOp, op: Operation) -> None:
        unit = Unit(op.name, symbol_of(op))
        verify_each = bool(getattr(ctx, "verify_each", True))
        if isinstance(op, ModuleOp):
            run_passes(ctx, op, self.passes, verify_each=verify_each, unit=unit)
            return
        mark = ModuleOp([])
        module.body.block.insert_op_before(mark, op)
        op.detach()
        alone = ModuleOp([op], dict(module.attributes))
        try:
            run_passes(ctx, alone, self.passes, verify_each=verify_each, unit=unit)
        finally:
            # After a failure too: the module is whole in the dump of the failed pass.
            for each in list(alone.ops):
                each.detach()
                module.body.block.insert_op_before(each, mark)
            mark.detach()


def flat_passes(text: str) -> tuple[str, ...]:
    """Returns the passes of a pipeline one by one, as text, with named pipelines expanded and edits made."""
    return tuple(map(str, expand(text).elements))


def parse_passes(text: str, figures: Mapping[str, object] | None = None) -> tuple[ModulePass, ...]:
    """Parses a pipeline, with named pipelines expanded; `PipelineError` names the error in the text.

    `figures` of a machine (`vector_bytes`, `registers`, ...) are defaults for the options of these names.
    """
    return tuple(_pass_of(element, figures or {}) for element in expand(text).elements)


def _pass_of(element: Element, figures: Mapping[str, object]) -> ModulePass:
    spec = element.spec
    if element.inner is not None:
        inner = tuple(_pass_of(each, figures) for each in element.inner)
        _require_level(spec.name, inner)
        return NestedPasses(spec.name, inner)
    pass_type = load_pass(spec.name)
    try:
        this = pass_type.from_spec(spec)
    except ValueError as error:
        raise PipelineError(f"pass '{spec.name}': {error}") from error
    said = {name.replace("-", "_") for name in spec.parameters}
    options = {f.name for f in dataclasses.fields(this)} - said
    fitting = {name: value for name, value in figures.items() if name in options}
    return dataclasses.replace(this, **fitting) if fitting else this


def _require_level(anchor: str, passes: Iterable[ModulePass]) -> None:
    """Raises `PipelineError` for a nested pass of another level than its op, unless a pass before it may change the
    level: a conversion, one that makes kernels of a graph's assumptions, or a pass of another package."""
    levels = LEVELS.get(anchor)
    if levels is None:
        return
    for this in passes:
        package, _, rest = type(this).__module__.partition(".transforms.")
        level = rest.partition(".")[0]
        if package != "igniter" or level not in OPS_OF or this.name == "guard-assumptions":
            return
        if level not in levels:
            raise PipelineError(
                f"pass '{this.name}' would find nothing in '{anchor}({this.name})': it works on {OPS_OF[level]}, which "
                f"is no part of {anchor}; write {OPS_OF[level]}({this.name}), or {this.name} alone"
            )


def with_options(passes: Iterable[ModulePass], name: str, /, **options: object) -> tuple[ModulePass, ...]:
    """Returns the passes, with the options that are not `None` set on those called `name`, nested ones included."""
    given = {option: value for option, value in options.items() if value is not None}
    return tuple(_with_options(this, name, given) for this in passes)


def _with_options(this: ModulePass, name: str, given: Mapping[str, object]) -> ModulePass:
    if isinstance(this, NestedPasses):
        return NestedPasses(this.anchor, with_options(this.passes, name, **given))
    return dataclasses.replace(this, **given) if this.name == name and given else this


def run_passes(
    ctx: Context,
    module: ModuleOp,
    passes: tuple[ModulePass, ...],
    *,
    verify_each: bool = True,
    observers: tuple[PassObserver, ...] = (),
    unit: Unit | None = None,
) -> None:
    """Runs `passes` over `module` in place.

    With `verify_each`, invalid IR after a pass is a failure of this pass. A failure is a `PassError` with the pass's
    name. A pass that runs further passes over a module of a single op says so with `unit`: the watchers of the outer
    run, which the context holds, observe this run as well.
    """
    outer = ctx.watchers if unit is not None and isinstance(ctx, IgniterContext) else ()
    everyone: tuple[PassObserver, ...] = (*outer, *observers)
    watchers = tuple(o for o in everyone if isinstance(o, PassWatcher))
    if isinstance(ctx, IgniterContext) and (
        watchers or ctx.watchers or unit is not None or any(hasattr(this, "inner_passes") for this in passes)
    ):
        ctx = ctx.observed(watchers, unit)
        ctx.verify_each = verify_each
    checks = any(getattr(observer, "checks_results", False) for observer in observers)
    if unit is not None:
        for watcher in watchers:
            watcher.enter(unit)
    try:
        for place, this in enumerate(passes):
            with recording(ctx, module, passes[place:], verify_each=verify_each, check_each=checks):
                for observer in everyone:
                    observer.before(this, module)
                _run_one(ctx, module, this, verify_each, watchers)
                for observer in everyone:
                    observer.after(this, module)
    finally:
        if unit is not None:
            for watcher in watchers:
                watcher.leave(unit)


def _run_one(
    ctx: Context, module: ModuleOp, this: ModulePass, verify_each: bool, watchers: tuple[PassWatcher, ...]
) -> None:
    """Runs one pass and verifies its result; tells `watchers` the times, or the failure."""
    try:
        start = time.perf_counter()
        _apply(ctx, module, this)
        applied = time.perf_counter()
        if verify_each:
            _verify(module, this)
        seconds, verify_seconds = applied - start, time.perf_counter() - applied
    except Exception as error:  # watchers see any failure; raised again
        for watcher in watchers:
            watcher.failed(this, module, error)
        raise
    log_run(this.name, getattr(ctx, "unit", None), seconds)
    for watcher in watchers:
        watcher.ran(this, seconds, verify_seconds if verify_each else 0.0)


def _apply(ctx: Context, module: ModuleOp, this: ModulePass) -> None:
    try:
        with doing(f"the pass {this.name} ran"):
            this.apply(ctx, module)
    except PassError:
        raise
    except Exception as error:  # any failure names its pass
        failed = PassError(this.name, _failure(error))
        failed.exit_status = getattr(error, "exit_status", PLUGIN_FAILED if is_outside(error) else failed.exit_status)
        raise failed from error


def _verify(module: ModuleOp, this: ModulePass) -> None:
    try:
        module.verify()
    except Exception as error:  # xDSL's verifiers raise errors of several classes
        raise PassError(this.name, f"left IR that does not verify: {error}") from error


def _failure(error: Exception) -> str:
    """Returns the text of a failure: the message of a refusal, or the type, the message and the place of a crash."""
    refused = isinstance(error, IgniterError)
    if not refused and (is_outside(error) or not isinstance(error, REFUSALS)):
        return crash_text(error)
    return str(error) or type(error).__name__


def run_pipeline(
    ctx: Context,
    module: ModuleOp,
    pipeline: str,
    *,
    figures: Mapping[str, object] | None = None,
    verify_each: bool = True,
    observers: tuple[PassObserver, ...] = (),
) -> None:
    """Calls `run_passes` with the passes of a pipeline given as text; `parse_passes` describes `figures`."""
    run_passes(ctx, module, parse_passes(pipeline, figures), verify_each=verify_each, observers=observers)
