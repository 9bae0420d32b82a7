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
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

import numpy as np

from igniter.errors import IgniterError
from igniter.frontend.ort_values import storable

CONTROL = "control"


@dataclass(frozen=True)
class System:
    """A system to time: a model with its libraries, on the inputs in an `.npz` file."""

    name: str
    model: str
    inputs: str
    libraries: tuple[str, ...] = ()
    threads: int = 1
    spinning: bool = False


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


class _Worker:
    def __init__(self, system: System):
        self.name = system.name
        self._process = subprocess.Popen(
            [sys.executable, "-m", "igniter.runtime.timing_worker"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._send(system)
        self._receive()

    def run(self, runs: int) -> list[float]:
        self._send(runs)
        return cast("list[float]", self._receive())

    def close(self) -> None:
        cast("IO[bytes]", self._process.stdin).close()
        self._process.wait()
        cast("IO[bytes]", self._process.stdout).close()

    def _send(self, value: object) -> None:
        stream = cast("IO[bytes]", self._process.stdin)
        pickle.dump(value, stream)
        stream.flush()

    def _receive(self) -> object:
        try:
            answer: object = pickle.load(cast("IO[bytes]", self._process.stdout))
        except EOFError:
            raise IgniterError(f"the process that timed '{self.name}' ended (status {self._process.wait()})") from None
        if isinstance(answer, RuntimeError):
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
        entries.append(System(CONTROL, first.model, first.inputs, first.libraries, first.threads, first.spinning))
    timing = Timing(tuple(s.name for s in entries), {s.name: [] for s in entries})
    with ExitStack() as stack:
        workers: list[_Worker] = []
        for system in entries:
            worker = _Worker(system)
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
