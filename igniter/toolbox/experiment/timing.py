"""The times of one launch: every system in two processes, all in turns, each round in a random order of its own."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from igniter.errors import IgniterError
from igniter.runtime.timing import System, TimedProcess
from igniter.toolbox.experiment import peers
from igniter.toolbox.experiment.spec import Measure

COPIES = ("first", "second")
GAP = 0.02
"""The idle seconds before each turn."""
MOST_RUNS = 200
"""The most runs of a turn."""


@dataclass(frozen=True)
class Entry:
    """A variant as a system to time."""

    system: System
    environment: Mapping[str, str] | None = None
    is_peer: bool = False


class Launch:
    """The processes of a launch. A system whose process fails leaves the launch, with the reason."""

    def __init__(self, measure: Measure, reference: str):
        self.measure, self.reference = measure, reference
        self.processes: dict[tuple[str, str], TimedProcess] = {}
        self.failed: dict[str, str] = {}
        self.stack = ExitStack()

    def start(self, entry: Entry) -> None:
        """Starts both copies of a system; the first of a peer is compared with the reference."""
        name = entry.system.name
        for copy in COPIES:
            if name in self.failed:
                return
            try:
                process = TimedProcess(entry.system, entry.environment, self.measure.limit)
            except IgniterError as error:
                self.fail(name, error.message)
                return
            self.stack.callback(process.close)
            self.processes[name, copy] = process
            if entry.is_peer and copy == COPIES[0] and self.measure.verify:
                self._compare(name, process)

    def _compare(self, name: str, process: TimedProcess) -> None:
        with np.load(self.reference) as stored:
            expected = [stored[key] for key in stored.files]
        try:
            error = peers.largest_error(expected, process.outputs())
        except IgniterError as failure:
            self.fail(name, failure.message)
            return
        if not error <= peers.TOLERANCE:
            self.fail(name, f"its outputs differ from ONNX Runtime's by {error:.1e} of the largest value")

    def fail(self, name: str, reason: str) -> None:
        """Removes a system from the launch."""
        self.failed[name] = reason
        for copy in COPIES:
            self.processes.pop((name, copy), None)

    def turn(self, key: tuple[str, str], runs: int) -> list[float]:
        """Returns the times of one turn; none if the process fails."""
        try:
            return self.processes[key].run(runs)
        except IgniterError as error:
            self.fail(key[0], error.message)
            return []

    def memory(self, name: str) -> int:
        """Returns the peak memory of a system's process; the smaller one of its two copies."""
        try:
            return min(self.processes[name, copy].peak_memory() for copy in COPIES)
        except IgniterError as error:
            self.fail(name, error.message)
            return 0


def time_launch(entries: Sequence[Entry], measure: Measure, seed: str, reference: str = "") -> dict[str, Any]:
    """Starts the processes, takes turns, and returns the record of a launch: seconds by system, copy, round and run.

    All processes make the same number of runs in a turn, because the one with the most would be the warmest. The order
    of a round is random; `seed` and the seed of the experiment determine it.
    """
    launch = Launch(measure, reference)
    with launch.stack:
        for entry in entries:
            launch.start(entry)
        slowest = max((min(found) for key in list(launch.processes) if (found := _try(launch, key, 2))), default=1.0)
        runs = max(1, min(MOST_RUNS, int(measure.seconds / slowest)))
        times: dict[str, dict[str, list[list[float]]]] = {e.system.name: {copy: [] for copy in COPIES} for e in entries}
        rng = np.random.default_rng([measure.seed, int(seed, 16)])
        for _ in range(measure.rounds):
            keys = list(launch.processes)
            for key in [keys[int(place)] for place in rng.permutation(len(keys))]:
                found = _try(launch, key, runs)
                if found:
                    times[key[0]][key[1]].append(found)
        memory = {name: launch.memory(name) for name in times if name not in launch.failed}
    done = {name: copies for name, copies in times.items() if name not in launch.failed}
    return {"times": done, "failed": launch.failed, "memory": memory, "runs": runs}


def _try(launch: Launch, key: tuple[str, str], runs: int) -> list[float]:
    if key not in launch.processes:
        return []
    time.sleep(GAP)
    return launch.turn(key, runs)
