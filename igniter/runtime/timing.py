"""Timing of systems beside each other: each in its own process, in turns, with a control.

Absolute times drift with the machine's load and clock, so systems are compared only within one interleaved run: A, B,
C, A, B, C, ... The figure of a system is the median over all its runs, and a ratio is the median over the rounds of the
ratio within the round. The first system is run a second time as a control; the distance of the two is the smallest
significant difference.
"""

from __future__ import annotations

import pickle
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any, Protocol, cast

import numpy as np

from igniter.errors import IgniterError
from igniter.frontend.ort_values import storable

CONTROL = "control"

PEAK_MEMORY, OUTPUTS = "peak memory", "outputs"
"""Requests to the process of a system, besides a number of runs."""


@dataclass(frozen=True)
class System:
    """A system to time: a model with its libraries, on the inputs in an `.npz` file."""

    name: str
    model: str
    inputs: str
    libraries: tuple[str, ...] = ()
    threads: int = 1
    spinning: bool = False
    entry: str = ""
    """`MODULE:FUNCTION` of a system other than ONNX Runtime: called with this object, returns a `Runnable`."""
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """Options of ONNX Runtime's session by name, or data for `entry`."""


CLOSING = 10.0
"""The seconds for a process to end by itself."""


class Runnable(Protocol):
    """A loaded model: runs it once, and returns the outputs of a run in the model's order."""

    @property
    def run(self) -> Callable[[], object]: ...

    @property
    def outputs(self) -> Callable[[], list[Any]]: ...


@dataclass
class Timing:
    """The seconds of each system's runs, round by round; `names[0]` is the reference."""

    names: tuple[str, ...]
    rounds: dict[str, list[list[float]]] = field(default_factory=dict[str, list[list[float]]])

    def median(self, name: str) -> float:
        """Returns the median of all runs, in seconds."""
        return statistics.median(s for runs in self.rounds[name] for s in runs)

    def ratio(self, name: str) -> float:
        """Returns the time of `name` relative to the first system's: the median over the rounds."""
        pairs = zip(self.rounds[name], self.rounds[self.names[0]], strict=True)
        return statistics.median(statistics.median(a) / statistics.median(b) for a, b in pairs)

    @property
    def noise(self) -> float:
        """The distance of the control's ratio from 1; 0 without a control."""
        return abs(self.ratio(CONTROL) - 1) if CONTROL in self.rounds else 0.0

    def to_dict(self) -> dict[str, Any]:
        return {
            name: {"ms": 1000 * self.median(name), "ratio": self.ratio(name), "rounds": len(self.rounds[name])}
            for name in self.rounds
        }


class TimedProcess:
    """The process of one system: loads the model, runs it once, and waits for turns.

    `environment` replaces this process's own. A request without an answer after `limit` seconds ends the process.
    Raises `IgniterError` for a system that does not run, and for a process that ended; the process is gone then.
    """

    def __init__(self, system: System, environment: Mapping[str, str] | None = None, limit: float | None = None):
        self.name = system.name
        self._limit = limit
        command = [sys.executable, "-m", "igniter.runtime.timing_worker"]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        self._ask(system)

    def run(self, runs: int) -> list[float]:
        """Returns the seconds of this many runs, after one that does not count."""
        return cast("list[float]", self._ask(runs))

    def peak_memory(self) -> int:
        """Returns the largest resident memory of the process so far, in bytes; 0 where the system does not tell."""
        return cast("int", self._ask(PEAK_MEMORY))

    def outputs(self) -> list[Any]:
        """Returns the outputs of a run."""
        return cast("list[Any]", self._ask(OUTPUTS))

    def close(self) -> None:
        """Ends the process."""
        with suppress(BrokenPipeError):
            cast("IO[bytes]", self._process.stdin).close()
        try:
            self._process.wait(CLOSING)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        cast("IO[bytes]", self._process.stdout).close()

    def _ask(self, request: object) -> object:
        timer = None if self._limit is None else threading.Timer(self._limit, self._process.kill)
        if timer is not None:
            timer.start()
        try:
            stream = cast("IO[bytes]", self._process.stdin)
            pickle.dump(request, stream)
            stream.flush()
            answer: object = pickle.load(cast("IO[bytes]", self._process.stdout))
        except (EOFError, BrokenPipeError):
            late = timer is not None and timer.finished.is_set()
            status = self._process.wait()
            self.close()
            why = f"was not done in {self._limit:g} seconds" if late else f"ended (status {status})"
            raise IgniterError(f"the process that timed '{self.name}' {why}") from None
        finally:
            if timer is not None:
                timer.cancel()
        if isinstance(answer, RuntimeError):
            self.close()
            raise IgniterError(f"'{self.name}' does not run: {answer}")
        return answer


def time_systems(
    systems: Sequence[System],
    *,
    rounds: int = 7,
    seconds: float = 0.3,
    control: bool = True,
    progress: Callable[[int], None] = lambda _: None,
) -> Timing:
    """Times `systems` in turns for `rounds` rounds, each with as many runs a turn as fit into `seconds`."""
    entries = list(systems)
    if control:
        first = systems[0]
        entries.append(replace(first, name=CONTROL))
    timing = Timing(tuple(s.name for s in entries), {s.name: [] for s in entries})
    with ExitStack() as stack:
        workers: list[TimedProcess] = []
        for system in entries:
            worker = TimedProcess(system)
            stack.callback(worker.close)
            workers.append(worker)
        # The same number of runs for all: otherwise the fastest one would be the warmest.
        slowest = max(min(w.run(2)) for w in workers)
        runs = max(1, min(200, int(seconds / slowest)))
        for index in range(rounds):
            # The order rotates with the rounds, so that no system always follows the same one.
            for worker in workers[index % len(workers) :] + workers[: index % len(workers)]:
                time.sleep(0.02)
                timing.rounds[worker.name].append(worker.run(runs))
            progress(index + 1)
    return timing


def time_models(
    models: Mapping[str, tuple[str | Path | bytes, Sequence[str | Path]]],
    inputs: Mapping[str, np.ndarray[Any, Any]],
    *,
    threads: int = 1,
    spinning: bool = False,
    **options: Any,
) -> Timing:
    """Calls `time_systems` for models, each with its libraries, all on the same inputs."""
    with tempfile.TemporaryDirectory(prefix="igniter-timing-") as folder:
        stored = Path(folder) / "inputs.npz"
        np.savez(stored, **cast("Any", storable(inputs)))
        systems: list[System] = []
        for name, (model, libraries) in models.items():
            path = model
            if isinstance(model, bytes):
                path = Path(folder) / f"{len(systems)}.onnx"
                path.write_bytes(model)
            systems.append(System(name, str(path), str(stored), tuple(map(str, libraries)), threads, spinning))
        return time_systems(systems, **options)


def speedup_line(name: str, before: float, after: float) -> str:
    """Returns a benchmark's line for a model; times are in seconds."""
    gain = 100 * (1 - after / before)
    return (
        f"benchmark model: >>> {name} >>> : time-cost changes from {1000 * before:.6g}ms to {1000 * after:.6g}ms, "
        f"speedup: {gain:.2f}%"
    )
