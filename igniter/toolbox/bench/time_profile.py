"""The distribution of a compiled model's time, step by step.

A model compiled with `CompileOptions(profile=True)` has one more output for each of its programs: the CPU's time stamp
counter before the first kernel and after each. Ticks are converted to seconds with the clock around the runs: the ticks
between the first stamps of two runs are the seconds between their starts. A step's time is the median over the runs,
and so is the time of the rest, which is ONNX Runtime's: its nodes, and the call from Python. Their sum is an
uninterrupted run; on a busy machine the median run takes longer.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from igniter.dialects.ort import STAMPS
from igniter.dialects.sym.bind_symbols import Bind, Solve, bind_symbols
from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.frontend.ort_values import run

if TYPE_CHECKING:
    from igniter.compiler.artifact import Artifact


@dataclass(frozen=True)
class StepTime:
    """One call of a kernel: `ms` is the median over the runs, `start` the begin of the step in the typical run."""

    program: str
    region: str
    kernel: str
    what: str
    start: float
    ms: float
    share: float
    """The share of an uninterrupted run."""
    flops: int | None
    bytes: int | None
    """The bytes and operations; both are `None` if a dim depends on the data."""
    ops: tuple[str, ...] = ()
    """The names of the ops in the kernel."""

    @property
    def gflops(self) -> float | None:
        """The rate in 10^9 operations a second."""
        return _rate(self.flops, self.ms)

    @property
    def gbytes(self) -> float | None:
        """The rate in 10^9 bytes a second."""
        return _rate(self.bytes, self.ms)


@dataclass(frozen=True)
class Profile:
    """The steps of all programs in execution order, in milliseconds."""

    steps: tuple[StepTime, ...]
    rest_ms: float
    """The part of a run outside all steps."""
    measured_ms: float
    """The median run."""
    runs: int

    @property
    def run_ms(self) -> float:
        """The duration of an uninterrupted run: all steps and the rest."""
        return self.rest_ms + sum(step.ms for step in self.steps)

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        steps = [{**asdict(s), "gflops": s.gflops, "gbytes": s.gbytes} for s in self.steps]
        return {
            "run_ms": self.run_ms,
            "rest_ms": self.rest_ms,
            "measured_ms": self.measured_ms,
            "runs": self.runs,
            "steps": steps,
        }

    def to_trace(self) -> dict[str, Any]:
        """Returns the steps as a trace for Chrome (chrome://tracing) and Perfetto; times are in microseconds."""
        events: list[dict[str, Any]] = [
            {"ph": "M", "pid": 1, "tid": 1, "name": "thread_name", "args": {"name": "programs"}}
        ]
        for step in self.steps:
            facts = {k: v for k, v in asdict(step).items() if k not in ("start", "ms", "what") and v is not None}
            events.append(
                {
                    "ph": "X",
                    "pid": 1,
                    "tid": 1,
                    "name": step.what,
                    "cat": step.kernel,
                    "ts": 1000 * step.start,
                    "dur": 1000 * step.ms,
                    "args": {**facts, "gflops": step.gflops, "gbytes": step.gbytes},
                }
            )
        return {"traceEvents": events, "displayTimeUnit": "ms"}


def profile_artifact(
    artifact: Artifact,
    inputs: Mapping[str, Any],
    *,
    threads: int = 1,
    spinning: bool = False,
    runs: int = 20,
    seconds: float = 0.5,
    progress: Callable[[int], None] = lambda _: None,
) -> Profile:
    """Runs a model compiled for a profile at least `runs` times and for `seconds`, on `inputs`."""
    programs: list[dict[str, Any]] = artifact.report.get("programs", [])
    session: Any = artifact.session(
        intra_op_num_threads=threads,
        inter_op_num_threads=1,
        config={"session.intra_op.allow_spinning": "1" if spinning else "0"},
    )
    outputs = [o.name for o in session.get_outputs()]
    wanted = [STAMPS + p["program"] for p in programs]
    if not programs:
        raise IgniterError("nothing of the model is compiled, so there is nothing to profile; --explain says why")
    if not set(wanted) <= set(outputs):
        raise IgniterError("the model is not compiled for a profile: compile it with CompileOptions(profile=True)")
    places = [outputs.index(name) for name in wanted]
    starts, lengths, stamps = _measure(session, inputs, places, runs, seconds, progress)
    rate = (starts[-1] - starts[0]) / max(1, stamps[-1][0][0] - stamps[0][0][0])
    return _profile(programs, symbol_sizes(artifact, inputs), lengths, stamps, 1000 * rate)


def _measure(
    session: Any,
    inputs: Mapping[str, Any],
    places: Sequence[int],
    runs: int,
    seconds: float,
    progress: Callable[[int], None],
) -> tuple[list[float], list[float], list[list[list[int]]]]:
    """Returns the start and the duration of each run, and the stamps of every program."""
    feed = dict(inputs)
    for _ in range(3):
        run(session, feed)
    starts: list[float] = []
    lengths: list[float] = []
    stamps: list[list[list[int]]] = []
    while len(starts) < runs or starts[-1] - starts[0] < seconds:
        start = time.perf_counter()
        results = run(session, feed)
        starts.append(start)
        lengths.append(time.perf_counter() - start)
        stamps.append([[int(t) for t in results[place]] for place in places])
        progress(len(starts))
    return starts, lengths, stamps


def _profile(
    programs: Sequence[Mapping[str, Any]],
    sizes: Mapping[str, int],
    lengths: Sequence[float],
    stamps: Sequence[list[list[int]]],
    ms: float,
) -> Profile:
    inside = [ms * sum(program[-1] - program[0] for program in run) for run in stamps]
    rest = statistics.median(max(0.0, 1000 * run - own) for run, own in zip(lengths, inside, strict=True))
    # Kernels of a program are consecutive: a step starts at the end of the one before, despite interruptions of runs.
    times = [
        [ms * statistics.median(run[k][i + 1] - run[k][i] for run in stamps) for i in range(len(program["steps"]))]
        for k, program in enumerate(programs)
    ]
    first = [min(program[0] for program in run) for run in stamps]
    whole = rest + sum(map(sum, times))
    steps: list[StepTime] = []
    for k, program in enumerate(programs):
        start = ms * statistics.median(run[k][0] - zero for run, zero in zip(stamps, first, strict=True))
        for step, took in zip(program["steps"], times[k], strict=True):
            flops, moved = _value(step["flops"], sizes), _value(step["bytes"], sizes)
            what = f"{'+'.join(step['ops'])} ({step['nodes'][0]})"
            names = (program["program"], step["region"], step["kernel"], what)
            steps.append(StepTime(*names, start, took, took / whole, flops, moved, tuple(step["ops"])))
            start += took
    return Profile(tuple(steps), rest, 1000 * statistics.median(lengths), len(lengths))


def symbol_sizes(artifact: Artifact, inputs: Mapping[str, Any]) -> dict[str, int]:
    """Returns the values of the symbols, from the dims of the inputs."""
    said: dict[str, list[str]] = artifact.report.get("inputs", {})
    known = {name: [Expr.parse(d) for d in dims] for name, dims in said.items() if name in inputs}
    shapes = [inputs[name].shape for name in known]
    sizes: dict[str, int] = {}
    for step in bind_symbols([(dims, True) for dims in known.values()]).steps:
        if isinstance(step, Bind):
            sizes.setdefault(step.symbol, shapes[step.input][step.axis])
        elif isinstance(step, Solve):
            sizes[step.symbol] = (shapes[step.input][step.axis] - step.rest.evaluate(sizes)) // step.coefficient
    return sizes


def _value(text: str, sizes: Mapping[str, int]) -> int | None:
    expr = Expr.parse(text)
    return expr.evaluate(dict(sizes)) if expr.symbols <= sizes.keys() else None


def _rate(amount: int | None, ms: float) -> float | None:
    return amount / ms / 1e6 if amount is not None and ms > 0 else None
