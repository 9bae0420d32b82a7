"""Pipelines from text: `"infer-shapes,form-fusion-regions{max-nodes=32},cpu-loop"` becomes a list of passes.

The grammar is xDSL's; the name of a pipeline expands to its passes. `run_pipeline` is the only place where passes run:
tools observe it through a `PassObserver`.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from functools import lru_cache

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass
from xdsl.utils.arg_spec import ArgSpec, parse_pipeline
from xdsl.utils.exceptions import ArgSpecParseError

from igniter.activity import doing
from igniter.context import IgniterContext
from igniter.errors import IgniterError
from igniter.observation import PassObserver, PassWatcher, Unit
from igniter.observation.logs import log_run
from igniter.pipelines import PIPELINES, find_pipeline
from igniter.registry import UnknownName, all_passes, load_pass, where_pass


class PipelineError(IgniterError):
    """Raised for a pipeline with an unknown name, or with an unknown option of a pass."""


class PassError(IgniterError):
    """Raised when a pass fails or leaves invalid IR; the cause is chained."""

    def __init__(self, pass_name: str, message: str):
        super().__init__(f"pass '{pass_name}': {message}")
        self.pass_name = pass_name


def _expand(spec: ArgSpec, seen: tuple[str, ...]) -> list[ArgSpec]:
    if where_pass(spec.name) is not None:
        return [spec]
    elements = find_pipeline(spec.name)
    if elements is None:
        raise PipelineError(str(UnknownName("pass or pipeline", spec.name, {**all_passes(), **PIPELINES})))
    if spec.name in seen:
        raise PipelineError(f"the pipeline '{spec.name}' contains itself")
    if spec.parameters:
        raise PipelineError(f"'{spec.name}' is a pipeline and takes no options; give them to one of its passes")
    return [inner for element in elements for inner in _specs(element, (*seen, spec.name))]


def _specs(text: str, seen: tuple[str, ...] = ()) -> list[ArgSpec]:
    return [spec for element in _parsed(text) for spec in _expand(element, seen)]


@lru_cache(maxsize=256)
def _parsed(text: str) -> tuple[ArgSpec, ...]:
    """Parses a pipeline; cached, because every kernel has the same one."""
    try:
        return tuple(parse_pipeline(text))
    except ArgSpecParseError as error:
        raise PipelineError(f"cannot read the pipeline '{text}': {error}") from error


def flat_passes(text: str) -> tuple[str, ...]:
    """Returns the passes of a pipeline one by one, as text, with named pipelines expanded."""
    return tuple(str(spec) for spec in _specs(text))


def parse_passes(text: str, figures: Mapping[str, object] | None = None) -> tuple[ModulePass, ...]:
    """Parses a pipeline, with named pipelines expanded; `PipelineError` names the error in the text.

    `figures` of a machine (`vector_bytes`, `registers`, ...) are defaults for the options of these names.
    """
    passes: list[ModulePass] = []
    for spec in _specs(text):
        pass_type = load_pass(spec.name)
        try:
            this = pass_type.from_spec(spec)
        except ValueError as error:
            raise PipelineError(f"pass '{spec.name}': {error}") from error
        said = {name.replace("-", "_") for name in spec.parameters}
        options = {f.name for f in dataclasses.fields(this)} - said
        fitting = {name: value for name, value in (figures or {}).items() if name in options}
        passes.append(dataclasses.replace(this, **fitting) if fitting else this)
    return tuple(passes)


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
    if isinstance(ctx, IgniterContext) and (watchers or ctx.watchers or unit is not None):
        ctx = ctx.observed(watchers, unit)
    if unit is not None:
        for watcher in watchers:
            watcher.enter(unit)
    try:
        for this in passes:
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
    except Exception as error:
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
    except Exception as error:
        raise PassError(this.name, str(error) or type(error).__name__) from error


def _verify(module: ModuleOp, this: ModulePass) -> None:
    try:
        module.verify()
    except Exception as error:
        raise PassError(this.name, f"left IR that does not verify: {error}") from error


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
