"""The times of both sides, step by step, in turns: A, A again, B in a random order within each round."""

from __future__ import annotations

import random
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from igniter.toolbox.bench.time_profile import Profile, profile_artifact
from igniter.toolbox.explain.sides import Side, SideStep

TURN = 0.15
"""The least seconds of a turn."""

RUNS = 5
"""The least runs of a turn."""


@dataclass(frozen=True)
class Difference:
    """B's time without A's, in milliseconds: the median over the rounds, and the quartiles."""

    ms: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """True if the quartiles have the same sign."""
        return self.low > 0 or self.high < 0


@dataclass(frozen=True)
class Times:
    """The profiles of both sides, round by round; `again` is A's second turn, the control."""

    a: Sequence[Profile]
    again: Sequence[Profile]
    b: Sequence[Profile]

    def total(self) -> Difference:
        """Returns the difference of whole runs."""
        return difference([b.run_ms - a.run_ms for a, b in zip(self.a, self.b, strict=True)])

    def control(self) -> Difference:
        """Returns the difference of A from itself."""
        return difference([again.run_ms - a.run_ms for a, again in zip(self.a, self.again, strict=True)])

    def rest(self) -> Difference:
        """Returns the difference outside of all steps, in ONNX Runtime."""
        return difference([b.rest_ms - a.rest_ms for a, b in zip(self.a, self.b, strict=True)])

    def part(self, a: Sequence[SideStep], b: Sequence[SideStep]) -> Difference:
        """Returns the difference of some steps."""
        before, after = self.of(self.a, a), self.of(self.b, b)
        return difference([y - x for x, y in zip(before, after, strict=True)])

    @staticmethod
    def of(profiles: Sequence[Profile], steps: Sequence[SideStep]) -> list[float]:
        """Returns the milliseconds of some steps, round by round."""
        return [sum(_by_place(profile)[step.key] for step in steps) for profile in profiles]


def difference(values: Sequence[float]) -> Difference:
    """Returns the median and the quartiles of differences."""
    if len(values) == 1:
        return Difference(values[0], values[0], values[0])
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return Difference(middle, low, high)


def _by_place(profile: Profile) -> dict[tuple[str, int], float]:
    counts: dict[str, int] = {}
    found: dict[tuple[str, int], float] = {}
    for step in profile.steps:
        place = counts.get(step.program, 0)
        counts[step.program] = place + 1
        found[step.program, place] = step.ms
    return found


def measure(
    a: Side,
    b: Side,
    inputs: Mapping[str, Any],
    *,
    rounds: int,
    threads: int,
    seed: int = 0,
    progress: Callable[[str], None] = lambda _: None,
) -> Times:
    """Profiles both sides on `inputs`, `rounds` times in turns."""
    rng = random.Random(seed)
    found: dict[str, list[Profile]] = {"a": [], "again": [], "b": []}
    sides = {"a": a, "again": a, "b": b}
    for number in range(rounds):
        order = list(sides)
        rng.shuffle(order)
        for name in order:
            progress(f"round {number + 1} of {rounds}")
            profile = profile_artifact(sides[name].artifact, inputs, threads=threads, runs=RUNS, seconds=TURN)
            found[name].append(profile)
    return Times(found["a"], found["again"], found["b"])
