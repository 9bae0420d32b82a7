"""Histograms of values over a stream of samples, in bounded memory, and the ranges derived from them by the methods.

The bins are over `[-r, r]` for a power of two `r`. When a value is outside, `r` doubles and pairs of bins are merged.
This loses only resolution: every value stays in the bin that it would be in for this `r` from the start.

    min-max       the least and the greatest value
    percentile    what is left where the outermost `1 - p` of the values is cut off at either end
    entropy       the range whose codes, as a distribution, have the least Kullback-Leibler divergence from the values
                  (Migacz: 8-bit inference with TensorRT, GTC 2017), over ranges that shrink at both ends alike
    distribution  the range with the least expected square of the error, of rounding and of clipping together, over
                  the distribution of the values
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

Method = Literal["min-max", "entropy", "percentile", "distribution"]
METHODS: tuple[Method, ...] = ("min-max", "entropy", "percentile", "distribution")

BINS = 4096
"""The number of bins, half of them for either sign."""
CODES = 256
CANDIDATES = 96
"""The number of ranges tried by `entropy` and `distribution`, each a little smaller than the one before."""
LEAST_SHARE = 0.02
"""The smallest of these ranges, as a share of the whole range."""


def _counts() -> Array:
    return np.zeros(BINS, np.int64)


@dataclass
class Histogram:
    """The counts of the values so far, their extremes, and the number of non-finite ones."""

    counts: Array = field(default_factory=_counts)
    reach: float = 0.0
    """The bins are over `[-reach, reach]`; 0 before the first value."""
    low: float = float("inf")
    high: float = float("-inf")
    next_low: float = float("inf")
    next_high: float = float("-inf")
    """The extremes of the arrays so far, except the array with the extreme."""
    strange: int = 0
    """The number of non-finite values; they are not counted otherwise."""

    def add(self, values: Array) -> None:
        """Counts the values of an array of floats."""
        flat: Array = np.asarray(values).reshape(-1).astype(np.float32, copy=False)
        finite = np.isfinite(flat)
        if not finite.all():
            self.strange += int(flat.size - finite.sum())
            flat = flat[finite]
        if flat.size == 0:
            return
        low, high = float(flat.min()), float(flat.max())
        self.next_low, self.next_high = (
            max(self.low, min(self.next_low, low)),
            min(self.high, max(self.next_high, high)),
        )
        self.low, self.high = min(self.low, low), max(self.high, high)
        self._grow(max(abs(low), abs(high)))
        counts, _ = np.histogram(flat, BINS, (-self.reach, self.reach))
        self.counts += counts

    def _grow(self, size: float) -> None:
        if self.reach == 0.0:
            self.reach = float(2.0 ** np.ceil(np.log2(max(size, 1e-30))))
        while self.reach < size:
            merged = self.counts.reshape(-1, 2).sum(axis=1)
            self.counts = np.concatenate([np.zeros(BINS // 4, np.int64), merged, np.zeros(BINS // 4, np.int64)])
            self.reach *= 2

    @property
    def total(self) -> int:
        """The number of finite values."""
        return int(self.counts.sum())

    def centres(self) -> Array:
        """Returns the middle of each bin."""
        return (np.arange(BINS) + 0.5) * (2 * self.reach / BINS) - self.reach

    def extent(self, wide: bool) -> tuple[float, float]:
        """Returns the range from the least to the greatest value, extended to include 0. A wide one extends the
        extremes by their distance from the extremes of the other arrays (Robson and Whitlock, Biometrika 1964)."""
        if self.total == 0:
            return 0.0, 0.0
        low, high = self.low, self.high
        if wide and self.next_low <= self.next_high:
            low, high = 2 * low - self.next_low, 2 * high - self.next_high
            low, high = (low if self.low < 0 else 0.0), (high if self.high > 0 else 0.0)
        return min(low, 0.0), max(high, 0.0)

    def range(self, method: Method, percentile: float = 99.999) -> tuple[float, float]:
        """Returns the range found by a method, extended to include 0."""
        if self.total == 0:
            return 0.0, 0.0
        low, high = min(self.low, 0.0), max(self.high, 0.0)
        if method == "min-max" or low == high:
            return low, high
        if method == "percentile":
            return self._percentile(percentile)
        cost = self._divergence if method == "entropy" else self.square_error
        shares = [LEAST_SHARE ** (k / CANDIDATES) for k in range(CANDIDATES + 1)]
        # The wider one of two equal candidates.
        best = min(shares, key=lambda share: (cost(low * share, high * share), -share))
        return low * best, high * best

    def _percentile(self, percentile: float) -> tuple[float, float]:
        below = np.cumsum(self.counts) / self.total
        cut = 1.0 - percentile / 100.0
        width = 2 * self.reach / BINS
        first, last = int(np.searchsorted(below, cut, "right")), int(np.searchsorted(below, 1.0 - cut, "left"))
        low = max(first * width - self.reach, self.low)
        high = min((min(last, BINS - 1) + 1) * width - self.reach, self.high)
        return min(low, 0.0), max(high, 0.0)

    def square_error(self, low: float, high: float) -> float:
        """Returns the expected square of the error with `CODES` codes from `low` to `high`."""
        centres, step = self.centres(), (high - low) / (CODES - 1)
        # Values are spread over their bin: rounding adds the error of a step to the error of the middle.
        over = np.maximum(low - centres, 0) + np.maximum(centres - high, 0)
        clipped = (over > 0) * over * over
        inside = (over == 0) * (step * step / 12.0)
        return float(np.dot(self.counts, clipped + inside)) / self.total

    def _divergence(self, low: float, high: float) -> float:
        """Returns the Kullback-Leibler divergence of codes from `low` to `high` from the values, outliers in the last
        bins."""
        centres = self.centres()
        inside = (centres >= low) & (centres <= high)
        if not inside.any():
            return float("inf")
        first, last = int(np.argmax(inside)), BINS - 1 - int(np.argmax(inside[::-1]))
        part = self.counts[first : last + 1].astype(np.float64)
        clipped = part.copy()
        clipped[0] += self.counts[:first].sum()
        clipped[-1] += self.counts[last + 1 :].sum()
        group = np.minimum((np.arange(part.size) * CODES) // part.size, CODES - 1)
        # The share of a code is spread over its non-empty bins.
        sums, filled = np.bincount(group, part, CODES), np.bincount(group, part > 0, CODES)
        spread = np.where(part > 0, (sums / np.maximum(filled, 1))[group], 0.0)
        if spread.sum() == 0:
            return float("inf")
        p, q = clipped / clipped.sum(), spread / spread.sum()
        tiny = 1e-9
        return float(np.sum(np.where(p > 0, p * np.log((p + tiny) / (q + tiny)), 0.0)))


__all__ = ["METHODS", "Histogram", "Method"]
