"""Scales of channels, derived from their ranges, to reduce the error of quantised tensors.

A tensor of activations has one scale for all of its channels, so channels of small numbers have few codes. With `x`
divided by `s`, a number for each channel, and the reading weight multiplied by `s`, the product is the same and the
codes are distributed evenly. This is weighed against the loss in the weight's codes:

    activations   step^2 / 12 * sum_c s_c^2 * |w_c|^2          w_c: the weights that read channel c
    weights       sum_o step_o^2 / 12 * sum_c E[x_c^2] / s_c^2     step_o: of output channel o, of w * s

The factors are `r^alpha` for the reaches `r` of the channels. `alpha`, and the ratio of the reaches below and above 0,
minimise the sum. (Nagel et al.: Data-Free Quantization Through Weight Equalization and Bias Correction, ICCV 2019; Xiao
et al.: SmoothQuant, ICML 2023, with a given `alpha`.)

A channel's extremes over few samples predict future ones badly. Two corrections are made:

* A channel's reach is the greatest sample plus its distance to the greatest of the other samples: the end of a
  distribution as estimated from two order statistics (Robson and Whitlock, Biometrika 1964).
* The error has a third part, of clipping, by leave-one-out: the excess of a sample over its channel's range by the
  other samples, squared, over the count of numbers of a channel in a sample.

One sample allows no estimate, so nothing is scaled.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

ALPHAS = tuple(k / 8 for k in range(9))
FREE_GAIN, PAID_GAIN = 0.9, 0.7
"""The largest profitable ratio of the sum with scales to the sum without: for scales without cost, and for scales with
a computation."""
LEAST_REACH = 1 / 256
"""The least reach of a channel relative to the tensor's: a channel without samples above 0 may still get some."""
CODES = 255.0
SIGNED = 127.0


@dataclass(frozen=True)
class Channels:
    """The figures of a value's channels: the least and greatest numbers of samples, or of parts of them, `[parts,
    channels]`, the mean squares, and the count of numbers of a channel in a sample."""

    lows: Array
    highs: Array
    square: Array
    places: float

    def reaches(self, without: int | None = None) -> tuple[Array, Array]:
        """Returns the assumed reach of each channel below and above 0; optionally `without` one of the parts."""
        kept = [k for k in range(self.lows.shape[0]) if k != without]
        below, above = (np.sort(np.maximum(v[kept], 0.0), axis=0) for v in (-self.lows, self.highs))
        found = [v[-1] + (v[-1] - v[-2] if v.shape[0] > 1 else 0.0) for v in (below, above)]
        least = LEAST_REACH * max(float(v.max(initial=0.0)) for v in found)
        return found[0], np.maximum(found[1], least)


@dataclass(frozen=True)
class Reader:
    """A weight reading the channels: the largest magnitudes and the sums of squares for each output channel and input
    channel, both `[groups, outputs of a group, channels of a group]`."""

    sizes: Array
    squares: Array
    window: int
    """The numbers of the weight behind each entry."""
    whole: bool
    """True if the weight has one scale rather than one for each output channel."""

    def grouped(self, values: Array) -> Array:
        """Reshapes numbers of the channels to broadcast with `sizes`."""
        return values.reshape(self.sizes.shape[0], 1, -1)


@dataclass(frozen=True)
class Producer:
    """A weight with one scale producing the channels: the largest magnitude for each."""

    sizes: Array
    power: float
    """The mean square of a result's error for a unit step of the weight."""


def scales_of(
    channels: Channels,
    readers: Sequence[Reader],
    producer: Producer | None = None,
    symmetric: bool = False,
    free: bool = True,
) -> Array | None:
    """Returns the divisor of each channel; `None` where the gain is small. The geometric mean of the divisors is 1."""
    if channels.lows.shape[0] < 2 or channels.lows.shape[1] < 2:
        return None
    below, above = channels.reaches()
    if not above.max() > 0 or not np.isfinite(below + above).all():
        return None
    left_out = [(k, *channels.reaches(k)) for k in range(channels.lows.shape[0])]

    def cost(alpha: float, ratio: float) -> float:
        scale = _scale(below, above, ratio, alpha)
        clipped = np.mean([_clipping(channels, k, b, a, _scale(b, a, ratio, alpha)) for k, b, a in left_out], axis=0)
        return _cost(channels, readers, producer, below, above, scale, symmetric, clipped)

    plain = cost(0.0, 0.0)
    if not np.isfinite(plain) or plain <= 0:
        return None
    choices = [(alpha, ratio) for ratio in _ratios(below, above) for alpha in ALPHAS[1:]]
    least, alpha, ratio = min((cost(*choice), *choice) for choice in choices)
    return (
        _scale(below, above, ratio, alpha).astype(np.float32)
        if least < (FREE_GAIN if free else PAID_GAIN) * plain
        else None
    )


def _scale(below: Array, above: Array, ratio: float, alpha: float) -> Array:
    """Returns scales from reaches, with those below 0 divided by `ratio`; their geometric mean is 1."""
    reach = np.maximum(above, below / ratio) if ratio > 0 else above
    return (reach / np.exp(np.mean(np.log(reach)))) ** alpha


def _clipping(channels: Channels, part: int, below: Array, above: Array, scale: Array) -> Array:
    """Returns, by channel, the squared excess of one part over the numbers of a channel, with scales from the other
    parts."""
    over = np.maximum(channels.highs[part] - scale * (above / scale).max(), 0.0)
    under = np.maximum(-channels.lows[part] - scale * (below / scale).max(initial=0.0), 0.0)
    return (np.square(over) + np.square(under)) / channels.places


def _ratios(below: Array, above: Array) -> list[float]:
    """Returns the candidate ratios of the reaches below and above 0."""
    if not below.max(initial=0.0) > 0:
        return [0.0]
    each = below / above
    found = [float(np.median(each)), float(each.max()), float(below.max() / above.max()), 1.0]
    return sorted({r for r in found if r > 0})


def _cost(
    channels: Channels,
    readers: Sequence[Reader],
    producer: Producer | None,
    below: Array,
    above: Array,
    scale: Array,
    symmetric: bool,
    clipped: Array,
) -> float:
    """Returns the error of the readers' results relative to the results, times 12."""
    low, high = float((below / scale).max(initial=0.0)), float((above / scale).max())
    step = max(low, high) / SIGNED if symmetric else (low + high) / CODES
    noise = step * step * scale * scale + 12.0 * clipped
    if producer is not None:
        rows = float((producer.sizes / scale).max()) / SIGNED
        noise = noise + rows * rows * scale * scale * producer.power
    total = 0.0
    for reader in readers:
        square, scaled = reader.grouped(channels.square), reader.sizes * reader.grouped(scale)
        exact = float(np.sum(reader.squares * square)) or 1.0
        steps = scaled.max() if reader.whole else scaled.max(axis=2, keepdims=True)
        held = (reader.squares > 0) * reader.window * (square / reader.grouped(scale * scale))
        of_weights = float(np.sum((steps / SIGNED) ** 2 * held))
        total += (float(np.sum(reader.squares * reader.grouped(noise))) + of_weights) / exact
    return total


__all__ = ["Channels", "Producer", "Reader", "scales_of"]
