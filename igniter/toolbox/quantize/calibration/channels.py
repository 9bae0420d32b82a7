"""Statistics of the channels of values over samples: extremes of parts of the samples, and mean squares."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from igniter.toolbox.quantize.calibration.calibrate import groups_of
from igniter.toolbox.quantize.channel_scales import Channels

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]


PARTS = 32
"""The number of parts of the samples with extremes of their own; part k has every sample `k` modulo this."""


@dataclass
class ChannelCounter:
    """The statistics of one value so far. `axis` is the axis of its channels."""

    axis: int
    lows: list[Array] = field(default_factory=list["Array"])
    highs: list[Array] = field(default_factory=list["Array"])
    squares: Any = 0.0
    """The sums of squares over all places, by channel."""
    places: int = 0
    samples: int = 0
    broken: bool = False
    """True if the channels differed between samples, or contained a non-finite value."""

    def add(self, value: Array) -> None:
        """Counts the values of a sample."""
        if self.broken or value.size == 0:
            return
        axis = self.axis % max(value.ndim, 1)
        over = tuple(k for k in range(value.ndim) if k != axis)
        low, high = value.min(axis=over).astype(np.float64), value.max(axis=over).astype(np.float64)
        square = np.square(value, dtype=np.float32).sum(axis=over, dtype=np.float64)
        if not np.isfinite(low + high + square).all() or (self.lows and self.lows[0].shape != low.shape):
            self.broken = True
            return
        part = self.samples % PARTS
        if part == len(self.lows):
            self.lows.append(low)
            self.highs.append(high)
        else:
            self.lows[part] = np.minimum(self.lows[part], low)
            self.highs[part] = np.maximum(self.highs[part], high)
        self.squares = self.squares + square
        self.places += value.size // low.size
        self.samples += 1

    @property
    def found(self) -> Channels | None:
        """Returns the statistics; None without usable samples."""
        if self.broken or not self.lows:
            return None
        squares = self.squares / self.places
        return Channels(np.stack(self.lows), np.stack(self.highs), squares, self.places / self.samples)


def observe_channels(
    session: Any,
    axes: Mapping[str, int],
    samples: Callable[[], Iterator[Mapping[str, Any]]],
    progress: Callable[[str], None] = lambda _: None,
) -> dict[str, Channels]:
    """Returns the channels of the session's outputs `axes`, by the axis of each, over all samples."""
    counters = {name: ChannelCounter(axis) for name, axis in axes.items()}
    sizes: dict[str, int] = {}
    for number, feed in enumerate(samples()):
        progress(f"channels of sample {number + 1}")
        for group in groups_of(list(axes), sizes):
            for name, value in zip(group, session.run(list(group), dict(feed)), strict=True):
                counters[name].add(value)
                sizes[name] = max(sizes.get(name, 0), value.nbytes)
    seen = {name: counter.found for name, counter in counters.items()}
    return {name: found for name, found in seen.items() if found is not None}


__all__ = ["observe_channels"]
