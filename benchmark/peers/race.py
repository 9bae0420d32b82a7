"""Systems taking turns, each in a process of its own that waits while another runs.

A round runs every system once, in an order of its own, with an idle gap before each turn. All systems make the same
number of runs a turn. What a turn found is the median of its runs; a system's figure is the median over the rounds,
with the quartiles as its spread, and a ratio is the median over the rounds of the ratio within the round. One system
runs twice: how far the two are apart says how much a difference must be to mean anything.
"""

from __future__ import annotations

import os
import pickle
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import IO, Any, cast

import numpy as np

from benchmark.peers.protocol import Failed, Load, Loaded, Run, Task, Unavailable

REFERENCE, CONTROL = "ort", "ort again"
"""The labels of the system that the others are held against, and of its second process."""


class Worker:
    """The process of one peer, which loads one model after another with the same number of threads."""

    def __init__(self, peer: str, threads: int, spinning: bool = False):
        self.peer = peer
        self._environment = environment(threads, spinning)
        self._process = self._start()

    def load(self, task: Task, limit: float) -> Loaded:
        """Load a model in at most `limit` seconds; `Unavailable` says why not, and a peer that hangs is ended."""
        if self._process.poll() is not None:
            self._process = self._start()
        return cast("Loaded", self._ask(Load(task), limit))

    def run(self, times: int) -> list[float]:
        """Seconds of so many runs."""
        return cast("list[float]", self._ask(Run(times), None))

    def close(self) -> None:
        """End the process; one that has died already is no error."""
        with suppress(BrokenPipeError):
            cast("IO[bytes]", self._process.stdin).close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        cast("IO[bytes]", self._process.stdout).close()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "benchmark.peers.worker", self.peer]
        pipe, none = subprocess.PIPE, subprocess.DEVNULL
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=none, env=self._environment)

    def _ask(self, request: object, limit: float | None) -> object:
        timer = threading.Timer(limit, self._process.kill) if limit is not None else None
        if timer is not None:
            timer.start()
        try:
            pickle.dump(request, cast("IO[bytes]", self._process.stdin))
            cast("IO[bytes]", self._process.stdin).flush()
            answer = pickle.load(cast("IO[bytes]", self._process.stdout))
        except (EOFError, BrokenPipeError):
            expired = timer is not None and timer.finished.is_set()
            status = self._process.wait()
            raise Unavailable(f"not ready after {limit:.0f} s" if expired else f"its process ended with {status}")
        finally:
            if timer is not None:
                timer.cancel()
        if isinstance(answer, Failed):
            raise Unavailable(answer.reason)
        return answer


def labelled(peers: Sequence[str]) -> dict[str, str]:
    """The peers of a race by label: the reference first, its second process last."""
    return {REFERENCE: REFERENCE, **{p: p for p in peers if p != REFERENCE}, CONTROL: REFERENCE}


def environment(threads: int, spinning: bool) -> dict[str, str]:
    """The process's environment: the number of threads for what only reads it there, and no waiting in loops."""
    count = str(threads)
    made = {**os.environ, "OMP_NUM_THREADS": count, "MKL_NUM_THREADS": count, "TVM_NUM_THREADS": count}
    if not spinning:
        made |= {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}
    return made


@dataclass(frozen=True)
class Entry:
    """A system in a race: a peer's process, the model as it gets it, and its name in the results."""

    label: str
    worker: Worker
    task: Task


@dataclass
class Result:
    """What a race found of one system; `reason` says why there are no times where there are none."""

    label: str
    peer: str
    reason: str = ""
    version: str = ""
    note: str = ""
    build_seconds: float = 0.0
    error: float = 0.0
    """The largest difference from the first system's outputs, relative to the output's largest magnitude."""
    turns: list[float] = field(default_factory=list[float])
    """The median seconds of each round."""

    @property
    def median(self) -> float:
        return statistics.median(self.turns)

    @property
    def quartiles(self) -> tuple[float, float]:
        if len(self.turns) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.turns, n=4, method="inclusive")
        return low, high

    def ratio(self, other: Result) -> float:
        """This system's time as a multiple of the other's."""
        return statistics.median(a / b for a, b in zip(self.turns, other.turns, strict=True))

    def to_dict(self) -> dict[str, Any]:
        found: dict[str, Any] = {"label": self.label, "peer": self.peer, "version": self.version}
        if self.reason:
            return {**found, "reason": self.reason}
        low, high = self.quartiles
        times = {"median_ms": 1e3 * self.median, "quartiles_ms": [1e3 * low, 1e3 * high]}
        return {
            **found,
            **times,
            "error": self.error,
            "build_seconds": round(self.build_seconds, 2),
            "note": self.note,
            "turns_ms": [1e3 * t for t in self.turns],
        }


def race(
    entries: Sequence[Entry],
    *,
    rounds: int,
    seconds: float = 0.2,
    gap: float = 0.05,
    limit: float = 900.0,
    tolerance: float = 1e-3,
    seed: int = 0,
    between: Callable[[], object] = lambda: None,
    say: Callable[[str], object] = lambda _: None,
) -> list[Result]:
    """Time the systems in turns, a turn of at most about `seconds`; the first is what the others are checked against.

    Those that do not load, or whose outputs differ from the first's by more than `tolerance`, are not timed. `between`
    is called once a round, while all systems wait.
    """
    results = {entry.label: Result(entry.label, entry.worker.peer) for entry in entries}
    expected: list[np.ndarray] | None = None
    running: list[Entry] = []
    for entry in entries:
        result = results[entry.label]
        say(f"loading {entry.label}")
        try:
            loaded = entry.worker.load(entry.task, limit)
            result.version, result.note, result.build_seconds = loaded.version, loaded.note, loaded.seconds
            expected = loaded.outputs if expected is None else expected
            result.error = largest_error(expected, loaded.outputs)
            if not result.error <= tolerance:
                raise Unavailable(f"its outputs differ by {result.error:.1e}")
            running.append(entry)
        except Unavailable as unavailable:
            result.reason = str(unavailable)
            say(f"{entry.label}: {result.reason}")
    if running:
        turns = _take_turns(running, rounds, seconds, gap, seed, between, results)
        for label, found in turns.items():
            results[label].turns = found
    return list(results.values())


def _take_turns(
    running: list[Entry],
    rounds: int,
    seconds: float,
    gap: float,
    seed: int,
    between: Callable[[], object],
    results: dict[str, Result],
) -> dict[str, list[float]]:
    """The median seconds of each round, of those that run to the end; the results of others get the reason."""
    turns: dict[str, list[float]] = {entry.label: [] for entry in running}

    def run(entry: Entry, times: int) -> list[float]:
        try:
            return entry.worker.run(times)
        except Unavailable as unavailable:
            results[entry.label].reason = str(unavailable)
            del turns[entry.label]
            return []

    slowest = max((min(found) for entry in running if (found := run(entry, 2))), default=1.0)
    times = max(1, min(500, int(seconds / slowest)))
    for order in orders(len(running), rounds, seed):
        between()
        for entry in (running[k] for k in order):
            if entry.label in turns:
                time.sleep(gap)
                found = run(entry, times)
                if found:
                    turns[entry.label].append(statistics.median(found))
    return turns


def orders(count: int, rounds: int, seed: int) -> Iterator[list[int]]:
    """The order of each round: pairs of rounds are a random order and its reverse.

    So everyone is as often before as after everyone else, and no one always runs on the caches that the same one left.
    """
    rng = np.random.default_rng(seed)
    for _ in range(0, rounds, 2):
        order = [int(k) for k in rng.permutation(count)]
        yield order
        rounds -= 1
        if rounds:
            yield order[::-1]
            rounds -= 1


def largest_error(expected: Sequence[np.ndarray], found: Sequence[np.ndarray]) -> float:
    """The largest difference relative to the output's largest magnitude; infinite where the outputs cannot match."""
    if len(expected) != len(found):
        return float("inf")
    worst = 0.0
    for want, got in zip(expected, found, strict=True):
        if want.shape != got.shape:
            return float("inf")
        if want.size == 0:
            continue
        want, got = want.astype(np.float64), got.astype(np.float64)
        difference = np.abs(want - got).max()
        worst = max(worst, float(difference / max(np.abs(want).max(), 1e-30)))
        if not np.isfinite(difference):
            return float("inf")
    return worst
