"""Ratios of times taken in turns, with bootstrap intervals and verdicts. Pure functions of the raw times.

Every system of a comparison runs in two processes, its copies. In a round each process has one turn of several runs,
and all turns of a round are near each other in time, so only ratios within a round count. A launch starts all processes
anew: the addresses of code and data change, and with them the times. So the first copies of two systems in a launch are
one pair of processes, the second copies another, and pairs are independent of each other.

* A ratio is that of the median runs of a pair in a round. The figure is the median over all pairs and rounds.
* The interval is a percentile bootstrap in two levels: of n pairs, n - 1 are drawn with replacement, then the rounds of
  each. One fewer than there are makes the variance between pairs unbiased, which matters for few of them (Rao and Wu,
  Resampling Inference with Complex Survey Data, JASA 83, 1988).
* The control (A/A) of a system is the median ratio of its second copy to its first, which would be 1 without noise.
* A figure is *inconclusive* if its interval contains 1, or if the control of the system or of the base is as far from 1
  as the figure. So is any figure of a single launch: both of its pairs are often on the same side of 1 by chance.
* In a mean over models the models are fixed: the pairs and rounds of each are drawn.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

Verdict = Literal["faster", "slower", "inconclusive"]

LEAST_PAIRS = 4
"""The fewest pairs of processes for a verdict: two launches."""

Rounds = Sequence[Sequence[float]]
"""The seconds of the runs of every turn of one process."""

Floats: TypeAlias = np.ndarray[Any, np.dtype[np.float64]]


@dataclass(frozen=True)
class Copies:
    """The times of one system in one launch: its two processes, round by round."""

    first: Rounds
    second: Rounds


Launches = Sequence[Mapping[str, Copies]]
"""The systems of a comparison by name, launch by launch."""


@dataclass(frozen=True)
class Interval:
    """A figure with its bootstrap interval."""

    value: float
    low: float
    high: float

    @property
    def contains_one(self) -> bool:
        """True if the interval has 1 in it."""
        return self.low <= 1 <= self.high


ONE = Interval(1.0, 1.0, 1.0)
"""The ratio of the base to itself."""


@dataclass(frozen=True)
class Compared:
    """A system beside the base."""

    seconds: float
    """The median of all runs."""
    ratio: Interval
    """The time relative to the base's."""
    control: float
    """The ratio of the system's second copy to its first."""
    verdict: Verdict


def median_seconds(launches: Launches, name: str) -> float:
    """Returns the median of all runs of a system."""
    copies = [launch[name] for launch in launches]
    return statistics.median(s for c in copies for side in (c.first, c.second) for turn in side for s in turn)


def control_ratio(launches: Launches, name: str) -> float:
    """Returns the median ratio of a system's second copy to its first."""
    return math.exp(_median([_log(launch[name].second) - _log(launch[name].first) for launch in launches]))


def compare(
    launches: Launches, name: str, base: str, *, seed: int = 0, resamples: int = 2000, confidence: float = 0.95
) -> Compared:
    """Compares a system with the base of a comparison."""
    ratios = _log_ratios(launches, name, base)
    ratio = _interval(_median(ratios), _bootstrap(ratios, np.random.default_rng(seed), resamples), confidence)
    controls = control_ratio(launches, name), control_ratio(launches, base)
    said = verdict(ratio, controls) if len(ratios) >= LEAST_PAIRS else "inconclusive"
    return Compared(median_seconds(launches, name), ratio, controls[0], said)


def verdict(ratio: Interval, controls: Sequence[float]) -> Verdict:
    """Returns the conclusion from a ratio, its interval, and the controls of the two systems."""
    distance = abs(math.log(ratio.value))
    if ratio.contains_one or any(abs(math.log(c)) >= distance for c in controls):
        return "inconclusive"
    return "faster" if ratio.value < 1 else "slower"


def combine(
    comparisons: Sequence[tuple[Launches, str, str] | None],
    *,
    seed: int = 0,
    resamples: int = 2000,
    confidence: float = 0.95,
) -> Interval:
    """Returns the geometric mean of ratios over comparisons, each as its launches, a system and the base; `None` stands
    for a system with the base's own kernels, whose ratio is 1."""
    rng = np.random.default_rng(seed)
    total, value = np.zeros(resamples), 0.0
    for each in comparisons:
        if each is not None:
            ratios = _log_ratios(*each)
            total += _bootstrap(ratios, rng, resamples)
            value += _median(ratios)
    count = max(1, len(comparisons))
    return _interval(value / count, total / count, confidence)


def _log_ratios(launches: Launches, name: str, base: str) -> list[Floats]:
    """Returns the logarithms of the ratios within the rounds, pair by pair."""
    pairs = [(launch[name], launch[base]) for launch in launches]
    first = [_log(system.first) - _log(other.first) for system, other in pairs]
    return first + [_log(system.second) - _log(other.second) for system, other in pairs]


def _log(rounds: Rounds) -> Floats:
    return np.log(np.array([statistics.median(turn) for turn in rounds], np.float64))


def _median(pairs: Sequence[Floats]) -> float:
    return float(np.median(np.concatenate(list(pairs))))


def _bootstrap(pairs: Sequence[Floats], rng: np.random.Generator, resamples: int) -> Floats:
    """Returns medians of resamples: of the pairs, and of the rounds in each."""
    count, rounds = len(pairs), len(pairs[0])
    if any(len(each) != rounds for each in pairs):
        raise ValueError("the launches of a comparison have different numbers of rounds")
    table = np.stack(list(pairs))
    drawn = rng.integers(count, size=(resamples, count - 1, 1))
    places = rng.integers(rounds, size=(resamples, count - 1, rounds))
    return np.median(table[drawn, places].reshape(resamples, -1), axis=1)


def _interval(value: float, drawn: Floats, confidence: float) -> Interval:
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Interval(math.exp(value), math.exp(float(low)), math.exp(float(high)))
