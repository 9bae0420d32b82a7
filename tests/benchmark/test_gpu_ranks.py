"""Estimates without a GPU are in the order of measured times: `python -m benchmark.gpu_ranks`."""

from __future__ import annotations

import math

import pytest

from benchmark.gpu_ranks import Timed, across, loss, measured_cases, spearman, within

REACHED = {
    "attention 1x16x4096x64": (0.88, 1.05),
    "attention 1x32/8x4096x128 causal": (0.73, 1.01),
    "attention 1x16x4096x128": (0.99, 1.0),
    "decoding 8x32/8x4096x128": (0.2, 1.0),
    "decoding 1x32/8x16384x128": (0.55, 1.0),
    "product 4096x4096x4096 f16": (0.97, 1.0),
    "product 4096x4096x4096 f16 + bias + Gelu": (0.92, 1.14),
    "product 128x4096x4096 f16": (0.88, 1.0),
    "convolutions of a ResNet-50": (0.97, 1.09),
    "product 4096x4096x4096 f32": (0.25, 1.49),
}
"""The least rank correlation of each case and the greatest loss, as reached. The times of the variants of a decoding
differ by their noise."""


def timed(*pairs: tuple[float, float]) -> list[Timed]:
    return [Timed("", "", measured, expected) for measured, expected in pairs]


def test_a_correlation_is_of_ranks() -> None:
    assert spearman(timed((1, 10), (2, 20), (3, 1000))) == pytest.approx(1)
    assert spearman(timed((1, 3), (2, 2), (3, 1))) == pytest.approx(-1)
    # Equal times share a rank: the correlation of (1, 2, 3) with (1.5, 1.5, 3).
    assert spearman(timed((1, 5), (2, 5), (3, 6))) == pytest.approx(math.sqrt(3) / 2)
    assert math.isnan(spearman(timed((1, 5), (2, 5))))


def test_a_loss_is_of_the_worst_choice_among_equals() -> None:
    assert loss(timed((1.0, 5), (1.5, 4), (2.0, 4))) == 2.0
    assert loss(timed((1.0, 4), (1.5, 5))) == 1.0


@pytest.mark.slow
def test_expected_times_of_cases_are_in_the_measured_order() -> None:
    """Of every third case without the longest chains; the test below has all."""
    some = [row for row in measured_cases() if row["case"] != "chain of 100 f32"][::3]
    assert spearman(list(across(some))) >= 0.93


@pytest.mark.full
def test_expected_times_of_all_cases_are_in_the_measured_order() -> None:
    assert spearman(list(across(measured_cases()))) >= 0.97


def test_expected_times_of_blocks_are_in_the_measured_order() -> None:
    found = within()
    everything = [each for variants in found.values() for each in variants]
    assert spearman(everything) >= 0.98
    assert all(spearman(everything[k::2]) >= 0.97 for k in (0, 1))
    for case, (least, most) in REACHED.items():
        assert spearman(found[case]) >= least, case
        assert loss(found[case]) <= most + 1e-3, case
