"""Timing of sessions beside each other in one process, in turns.

`igniter.runtime.timing` gives each system a process of its own, which takes a second to start. A measured compile
(`igniter.compiler.measuring`) times some hundred small models, so their sessions share a process and run in turns.
Absolute times drift with the load and the clock of the machine; only ratios within a round count.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from igniter.frontend.ort_values import has_foreign_types, run, runner
from igniter.runtime.session import onnxruntime_package

FEWEST_ROUNDS = 6
SHORT_TURN = 0.0005
"""The least seconds of a turn: shorter runs are repeated within it."""
MOST_REPEATS = 200
BLOCKS = 12
"""The least number of blocks of consecutive rounds, if there are as many rounds."""
QUIET = 0.25
"""The share of a block's turns taken for undisturbed: other processes only add time."""
RANGE = 2.0
"""The standard errors of a ratio within its noise."""


@dataclass(frozen=True)
class Turns:
    """The seconds of one run of each system by name, round by round."""

    seconds: Mapping[str, Sequence[float]]

    @property
    def rounds(self) -> int:
        return min(map(len, self.seconds.values()))

    def median(self, name: str) -> float:
        """Returns the median run of a system, in seconds."""
        return statistics.median(self.seconds[name])

    def ratio(self, name: str, other: str) -> float:
        """Returns the time of one system relative to another one's: the median over blocks of rounds of the ratio of
        their times in the block, each the quantile `QUIET` of its turns."""
        return math.exp(statistics.median(self._logs(name, other)))

    def noise(self, name: str, other: str, control: tuple[str, str] | None = None) -> float:
        """Returns the distance of `ratio` from 1 that proves nothing: the larger one of the distance of a system from
        itself (`control`), and of `RANGE` standard errors of the ratio, by the spread of the blocks."""
        logs = self._logs(name, other)
        middle = statistics.median(logs)
        spread = 1.4826 * statistics.median(abs(log - middle) for log in logs)
        # The standard error of a median of normally distributed values.
        error = 1.2533 * spread / math.sqrt(len(logs))
        apart = abs(self.ratio(*control) - 1) if control is not None else 0.0
        return max(apart, math.expm1(RANGE * error))

    def _logs(self, name: str, other: str) -> list[float]:
        size = max(1, self.rounds // BLOCKS)
        blocks = range(0, self.rounds - size + 1, size)
        return [math.log(self._quiet(name, at, size) / self._quiet(other, at, size)) for at in blocks]

    def _quiet(self, name: str, at: int, size: int) -> float:
        turns = sorted(self.seconds[name][at : at + size])
        return max(1e-9, turns[int(QUIET * (size - 1))])


class Timer(Protocol):
    """A function that times systems; tests give their own."""

    def __call__(self, what: str, systems: Mapping[str, Callable[[], object]], seconds: float) -> Turns:
        """Returns the times of `systems`, functions without arguments; `what` names the subject, and `seconds` is the
        desired duration."""
        ...


def time_turns(what: str, systems: Mapping[str, Callable[[], object]], seconds: float) -> Turns:
    """Times systems in turns for `seconds`, and in `FEWEST_ROUNDS` rounds at least."""
    del what
    names = list(systems)
    begin = time.perf_counter()
    for name in names:
        systems[name]()
        systems[name]()
    once = (time.perf_counter() - begin) / (2 * len(names))
    repeats = max(1, min(MOST_REPEATS, int(SHORT_TURN / max(once, 1e-7))))
    found: dict[str, list[float]] = {name: [] for name in names}
    for order in orders(len(names)):
        if time.perf_counter() - begin > seconds and len(found[names[0]]) >= FEWEST_ROUNDS:
            break
        for k in order:
            system = systems[names[k]]
            start = time.perf_counter()
            for _ in range(repeats):
                system()
            found[names[k]].append((time.perf_counter() - start) / repeats)
    return Turns(found)


def orders(count: int) -> Iterator[list[int]]:
    """Yields random orders, each followed by its reverse: the second system finds the inputs in the cache."""
    rng = np.random.default_rng(0)
    while True:
        order = [int(k) for k in rng.permutation(count)]
        yield order
        yield order[::-1]


def in_place(session: Any, feed: Mapping[str, Any]) -> Callable[[], object]:
    """Returns a run of a session with its inputs and outputs in place; without in-place outputs for types missing in
    numpy, and for sequences."""
    feed = {item.name: feed[item.name] for item in session.get_inputs()}
    results: list[Any] = run(session, feed)
    if has_foreign_types(session, feed) or not all(isinstance(r, np.ndarray) for r in (*results, *feed.values())):
        return runner(session, feed)
    if any(r.dtype.kind in "OUS" for r in (*results, *feed.values())):
        return runner(session, feed)
    ort = onnxruntime_package()
    binding = session.io_binding()
    # The binding does not keep the memory that it reads and writes.
    kept: list[Any] = []
    for item in session.get_inputs():
        kept.append(ort.OrtValue.ortvalue_from_numpy(np.asarray(feed[item.name], order="C")))
        binding.bind_ortvalue_input(item.name, kept[-1])
    for item, result in zip(session.get_outputs(), results, strict=True):
        kept.append(ort.OrtValue.ortvalue_from_numpy(np.asarray(result, order="C")))
        binding.bind_ortvalue_output(item.name, kept[-1])

    def bound(_kept: object = kept) -> None:
        session.run_with_iobinding(binding)

    return bound
