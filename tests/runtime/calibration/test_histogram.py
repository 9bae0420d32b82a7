"""Histograms that grow, and the ranges that methods find."""

from __future__ import annotations

import numpy as np
import pytest

from igniter.toolbox.quantize.calibration.histogram import BINS, METHODS, Histogram

RNG = np.random.default_rng(3)


def test_growing_is_the_same_as_knowing_the_range():
    parts = [RNG.standard_normal(1000) * scale for scale in (0.01, 3.0, 0.5, 80.0)]
    grown, known = Histogram(), Histogram()
    known.reach = 512.0
    for part in parts:
        grown.add(part.astype(np.float32))
    while grown.reach < known.reach:
        grown._grow(2 * grown.reach)
    for part in parts:
        known.add(part.astype(np.float32))
    assert grown.total == 4000
    # A number at the edge of two bins may round into either.
    assert np.abs(grown.counts - known.counts).sum() <= 4
    assert (grown.low, grown.high) == (known.low, known.high)


def test_memory_does_not_grow():
    histogram = Histogram()
    for scale in (1e-20, 1.0, 1e20):
        histogram.add(np.array([scale, -scale], np.float32))
    assert histogram.counts.size == BINS
    assert histogram.total == 6


@pytest.mark.parametrize("method", METHODS)
def test_what_is_empty_or_not_finite(method: str):
    histogram = Histogram()
    assert histogram.range(method) == (0.0, 0.0)  # pyright: ignore[reportArgumentType]
    histogram.add(np.zeros((0, 3), np.float32))
    histogram.add(np.array([np.nan, np.inf], np.float32))
    assert histogram.strange == 2
    histogram.add(np.zeros(5, np.float32))
    low, high = histogram.range(method)  # pyright: ignore[reportArgumentType]
    assert low <= 0 <= high
    assert high - low < 1e-20


def test_min_max_and_zero():
    histogram = Histogram()
    histogram.add(np.array([2.0, 5.0], np.float32))
    assert histogram.range("min-max") == (0.0, 5.0)


def test_a_percentile_cuts_outliers_only():
    histogram = Histogram()
    values = RNG.uniform(-1, 1, 100_000).astype(np.float32)
    histogram.add(values)
    histogram.add(np.array([100.0], np.float32))
    low, high = histogram.range("percentile", 99.9)
    assert low == pytest.approx(np.quantile(values, 0.001), abs=2 * 2 * histogram.reach / BINS)
    assert 0.9 < high < 1.2
    assert histogram.range("percentile", 100.0) == (pytest.approx(-1, abs=1e-3), 100.0)


def test_the_distribution_has_the_least_error():
    """Of all ranges that are tried, quantising the values themselves with the found one errs least."""
    values = RNG.laplace(size=200_000).astype(np.float32)
    histogram = Histogram()
    histogram.add(values)
    low, high = histogram.range("distribution")

    def error(low: float, high: float) -> float:
        step = (high - low) / 255
        codes = np.clip(np.rint((values - low) / step), 0, 255)
        return float(np.mean((codes * step + low - values) ** 2))

    wide = histogram.range("min-max")
    tried = [error(wide[0] * s, wide[1] * s) for s in np.linspace(0.1, 1.0, 40)]
    assert error(low, high) <= 1.02 * min(tried)
    assert error(low, high) < 0.9 * error(*wide)


def test_entropy_cuts_a_long_tail():
    histogram = Histogram()
    histogram.add(np.maximum(RNG.standard_normal(200_000), 0).astype(np.float32))
    histogram.add(np.array([200.0], np.float32))
    low, high = histogram.range("entropy")
    assert low == 0
    assert 1.5 < high < 30
