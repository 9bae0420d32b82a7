"""One candidate: scheduled, compiled, checked, and timed in turns with the best so far.

`measure` runs in a process of its own (`executors.py`): a crash of a candidate costs only that process.
"""

from __future__ import annotations

import hashlib
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from xdsl.utils.exceptions import VerifyException

from igniter.analysis.machine import pass_figures
from igniter.api import parse
from igniter.context import IgniterContext
from igniter.dialects.loop import FuncOp, KernelOp
from igniter.errors import IgniterError
from igniter.passes import PassError, parse_passes, run_passes
from igniter.schedules.cost_features import features_of
from igniter.schedules.loop_cost import body_cycles
from igniter.targets import backend_for
from igniter.toolbox.kernel.workbench import (
    first_run,
    inputs_for,
    interleaved,
    largest_error,
    long_enough,
    median_ratio,
    operations_of,
)
from igniter.verification.interp.structured import run_kernel

if TYPE_CHECKING:
    import numpy as np
    from xdsl.dialects.builtin import ModuleOp

    from igniter.targets import Target

    Array: TypeAlias = np.ndarray[Any, Any]

Outcome = Literal["timed", "ranked", "same", "refused", "wrong", "late", "crashed", "failed"]
"""The outcome of a candidate: `same` is code tried before, `refused` a schedule rejected by the language or a pass,
`late` a timeout."""

FAR = 3.0
"""The ratio to the best time above which a candidate is not timed in further rounds."""

INTERPRETED = 3e7
"""The limit of operations for the interpreter as reference of a kernel's results; above, the default schedule is it."""


@dataclass(frozen=True)
class Job:
    """The work on a candidate."""

    candidate: str
    """IR of the structured kernel with its schedules."""
    baseline: str
    """The best so far, in the same form; "" to rank the candidate by the cost model without running it."""
    target: str
    target_key: str
    sizes: dict[str, int]
    threads: int = 1
    seed: int = 0
    rounds: int = 9
    seconds: float = 2.0
    """The seconds for the rounds of the comparison."""
    limit: float = 60.0
    """The seconds for all of it."""
    expected: Sequence[Any] | None = None
    """The expected results; `None`: those of the baseline."""
    known: frozenset[str] = field(default_factory=frozenset[str])
    """The digests of code with a known time."""
    device: str = ""
    """The device that must time it (`Backend.timed_on`)."""


@dataclass(frozen=True)
class Measurement:
    """The measurement of a candidate."""

    outcome: Outcome
    reason: str = ""
    cost: float = 0.0
    """The cycles by the cost model, or the expected seconds on a GPU."""
    digest: str = ""
    """The digest of the scheduled kernel."""
    seconds: float = 0.0
    baseline_seconds: float = 0.0
    ratio: float = 0.0
    """The ratio of its time to the baseline's: the median over the rounds."""
    noise: float = 0.0
    """The distance of the baseline from itself in the same rounds."""
    features: Mapping[str, float] = field(default_factory=dict[str, float])
    """The features of the scheduled kernel (`igniter/schedules/cost_features.py`); empty on a GPU."""


def measure(job: Job) -> Measurement:
    """Runs a job; an error of the candidate is an outcome."""
    target = backend_for(job.target).target_of(job.target)
    if target.key != job.target_key:
        return Measurement("failed", f"this machine is {target.key}, and the kernel is tuned for {job.target_key}")
    if job.baseline and (device := backend_for(job.target).timed_on(target)) != job.device:
        return Measurement("failed", f"the GPU here is '{device}', and the kernel is tuned for '{job.device}'")
    try:
        kernel, func = scheduled(job.candidate, target)
    except (PassError, VerifyException, IgniterError) as error:
        return Measurement("refused", str(error))
    # Kernels of a GPU are beside the func that launches them.
    digest = hashlib.sha256(str(func.parent_op()).encode()).hexdigest()[:16]
    features = _features(kernel, func, job.sizes, target)
    found = Measurement("ranked", cost=_cost(func, job.sizes, target), digest=digest, features=features)
    if not job.baseline:
        return found
    if digest in job.known:
        return replace(found, outcome="same", reason="it is the same code as a candidate before")
    return replace(_timed(job, kernel, func, target, found), features=features)


def scheduled(text: str, target: Target) -> tuple[KernelOp, FuncOp]:
    """Returns a structured kernel with its schedules, and the result of the passes after `choose-schedule`."""
    module = parsed(text)
    kernel = next(op for op in module.ops if isinstance(op, KernelOp)).clone()
    run_for(module, backend_for(target.name).around_schedules()[1], target)
    return kernel, next(op for op in module.ops if isinstance(op, FuncOp))


def parsed(text: str) -> ModuleOp:
    """Parses and verifies IR."""
    module = parse(text, "<candidate>").ir
    module.verify()
    return module


def run_for(module: ModuleOp, pipeline: str, target: Target) -> None:
    """Runs passes for a target over IR, in place."""
    machine = backend_for(target.name).machine_for(target)
    run_passes(IgniterContext().on(machine), module, parse_passes(pipeline, pass_figures([machine])))


def expected_of(kernel: KernelOp, sizes: dict[str, int], seed: int) -> list[Array] | None:
    """Returns the kernel's results in the interpreter of the structured level; `None` if that would take too long."""
    if operations_of(kernel, sizes) > INTERPRETED:
        return None
    return run_kernel(kernel, inputs_for(kernel, sizes, seed), sizes)


def _cost(func: FuncOp, sizes: dict[str, int], target: Target) -> float:
    """Returns the cycles of a scheduled kernel by the cost model, or its expected seconds."""
    seconds = backend_for(target.name).expected_seconds(func, sizes, target)
    if seconds is not None:
        return seconds
    cycles = body_cycles(func.block, backend_for(target.name).machine_for(target))
    return float(max(0, cycles.evaluate({**dict.fromkeys(cycles.symbols, 0), **sizes})))


def _features(kernel: KernelOp, func: FuncOp, sizes: dict[str, int], target: Target) -> dict[str, float]:
    """Returns the features of a kernel scheduled for a CPU."""
    backend = backend_for(target.name)
    return {} if backend.provider else features_of(kernel, func, backend.machine_for(target), sizes)


def _timed(job: Job, kernel: KernelOp, func: FuncOp, target: Target, found: Measurement) -> Measurement:
    """Checks the candidate, and times it in turns with the baseline, which has two turns a round."""

    def prepared(of: FuncOp) -> tuple[Callable[[], object], list[Array]]:
        compiled, outputs = first_run("the candidate", of, target, inputs, job.sizes, job.threads)
        symbols = {name: job.sizes[name] for name in of.symbol_names}
        run = compiled.prepared([*inputs, *outputs], symbols, job.threads)
        return run, outputs[: len(outputs) - len(of.checks)]

    inputs = inputs_for(kernel, job.sizes, job.seed)
    _, other = scheduled(job.baseline, target)
    run_other, wanted = prepared(other)
    try:
        run, outputs = prepared(func)
    except IgniterError as error:
        return Measurement("refused", str(error), found.cost, found.digest)
    try:
        largest_error("the candidate", wanted if job.expected is None else job.expected, outputs)
    except IgniterError as error:
        return Measurement("wrong", str(error), found.cost, found.digest)
    turns = [long_enough(each) for each in (run, run_other, run_other)]
    once = [turn() for turn, _ in turns]
    far = once[0] / turns[0][1] > FAR * once[1] / turns[1][1]
    rounds = max(3, min(job.rounds, int(job.seconds / max(1e-9, sum(once)))))
    times = interleaved([turn for turn, _ in turns], 3 if far else rounds)
    own, first, again = ([t / n for t in each] for each, (_, n) in zip(times, turns, strict=True))
    return Measurement(
        "timed",
        "",
        found.cost,
        found.digest,
        statistics.median(own),
        statistics.median(first),
        median_ratio(own, first),
        abs(median_ratio(again, first) - 1),
    )
