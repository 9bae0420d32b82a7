"""The statistics of experiments on synthetic times whose answer is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

from igniter.toolbox.experiment.statistics import (
    ONE,
    Copies,
    Interval,
    Launches,
    combine,
    compare,
    control_ratio,
    verdict,
)

ROUNDS, RUNS = 7, 5


def times(
    rng: np.random.Generator, means: dict[str, float], noise: float, launches: int = 3, drift: float = 0.2
) -> Launches:
    """Times of systems with these means: each launch of a process has a level of its own, each round a drift that all
    systems share, each run noise that only adds time."""

    def turns(mean: float, level: float, drifts: np.ndarray) -> list[list[float]]:
        return [[float(mean * level * d * (1 + rng.exponential(noise))) for _ in range(RUNS)] for d in drifts]

    found = []
    for _ in range(launches):
        drifts = np.exp(rng.normal(0, drift, ROUNDS))
        levels = {name: np.exp(rng.normal(0, noise, 2)) for name in means}
        found.append(
            {n: Copies(turns(m, levels[n][0], drifts), turns(m, levels[n][1], drifts)) for n, m in means.items()}
        )
    return found


def verdicts(mean: float, noise: float, count: int = 60) -> dict[str, int]:
    """How often each verdict is given for a system with this mean beside a base with 1."""
    found = dict.fromkeys(("faster", "slower", "inconclusive"), 0)
    for seed in range(count):
        launches = times(np.random.default_rng(seed), {"base": 1.0, "other": mean}, noise)
        found[compare(launches, "other", "base", seed=seed, resamples=400).verdict] += 1
    return found


def test_equal_systems_are_inconclusive():
    found = verdicts(1.0, 0.02)
    assert found["inconclusive"] >= 55, found


def test_a_faster_system_is_found_in_spite_of_a_drift_ten_times_as_large():
    found = verdicts(0.9, 0.01)
    assert found["faster"] >= 57 and not found["slower"], found


def test_a_slower_system_is_found():
    found = verdicts(1.1, 0.01)
    assert found["slower"] >= 57 and not found["faster"], found


def test_a_difference_within_the_noise_is_inconclusive():
    found = verdicts(0.99, 0.1)
    assert found["inconclusive"] >= 54, found


def test_the_interval_has_the_true_ratio_about_as_often_as_it_says():
    inside = 0
    for seed in range(80):
        launches = times(np.random.default_rng(seed), {"base": 1.0, "other": 0.8}, 0.03, launches=4)
        ratio = compare(launches, "other", "base", seed=seed, resamples=400).ratio
        inside += ratio.low <= 0.8 <= ratio.high
    assert inside >= 68, inside


def test_times_without_noise_give_the_ratio_itself():
    launches = times(np.random.default_rng(0), {"base": 1.0, "other": 0.5}, 0.0)
    found = compare(launches, "other", "base")
    assert math.isclose(found.ratio.value, 0.5) and math.isclose(found.ratio.low, found.ratio.high)
    assert math.isclose(found.control, 1.0) and found.verdict == "faster"


@pytest.mark.parametrize(
    ("ratio", "controls", "expected"),
    [
        (Interval(0.9, 0.85, 0.95), (1.0, 1.0), "faster"),
        (Interval(1.2, 1.1, 1.3), (1.0, 1.0), "slower"),
        (Interval(0.97, 0.9, 1.01), (1.0, 1.0), "inconclusive"),
        # The control of the system, or of the base, is as far away as the figure, on either side of 1.
        (Interval(0.9, 0.85, 0.95), (0.89, 1.0), "inconclusive"),
        (Interval(0.9, 0.85, 0.95), (1.0, 1.12), "inconclusive"),
        (Interval(0.5, 0.45, 0.55), (0.89, 1.12), "faster"),
    ],
)
def test_a_verdict_needs_the_interval_and_the_controls(ratio: Interval, controls: tuple[float, float], expected: str):
    assert verdict(ratio, controls) == expected


def test_a_single_launch_is_inconclusive():
    for seed in range(5):
        launches = times(np.random.default_rng(seed), {"base": 1.0, "other": 0.5}, 0.0, launches=1)
        found = compare(launches, "other", "base")
        assert math.isclose(found.ratio.value, 0.5) and found.verdict == "inconclusive"


def test_the_control_is_the_second_copy_beside_the_first():
    slow = Copies([[1.0]] * 4, [[1.5]] * 4)
    assert math.isclose(control_ratio([{"a": slow}], "a"), 1.5)


def test_the_mean_over_models_counts_unchanged_ones_as_1():
    launches = times(np.random.default_rng(0), {"base": 1.0, "other": 0.25}, 0.0)
    found = combine([(launches, "other", "base"), None])
    assert math.isclose(found.value, 0.5) and math.isclose(found.low, found.high)
    assert combine([None]) == ONE


def test_one_seed_gives_one_interval():
    launches = times(np.random.default_rng(0), {"base": 1.0, "other": 0.9}, 0.05)
    first, again = (compare(launches, "other", "base", seed=3) for _ in range(2))
    assert first == again
    assert compare(launches, "other", "base", seed=4).ratio != first.ratio


def test_launches_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="different numbers of rounds"):
        compare([{"a": Copies([[1.0]], [[1.0]])}, {"a": Copies([[1.0]] * 2, [[1.0]] * 2)}], "a", "a")
