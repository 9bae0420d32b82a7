"""Synthetic pictures: pages of text and scenes, in the value ranges of common models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from igniter.verification.roles import image_channels_axis
from igniter.verification.specs import InputSpec

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

# fmt: off
_GLYPHS = (
    0x0E11111F111111, 0x1E11111E11111E, 0x0E11101010110E, 0x1E11111111111E, 0x1F10101E10101F, 0x0E11101711110F,
    0x1111111F111111, 0x0E04040404040E, 0x1111121C121111, 0x1010101010101F, 0x111B1515111111, 0x11191513111111,
    0x0E11111111110E, 0x1E11111E101010, 0x1E11111E141211, 0x0F10100E01011E, 0x1F040404040404, 0x1111111111110E,
    0x111111110A0A04, 0x11110A040A1111, 0x11110A04040404, 0x1F01020408101F, 0x0E13151519110E, 0x040C040404040E,
)
# fmt: on
"""Letters of 7 rows of 5 dots, one byte per row."""
_MEANS, _DEVIATIONS = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
"""The means and standard deviations of the channels of ImageNet's pictures."""


def _channels(spec: InputSpec) -> int:
    axis = image_channels_axis(spec)
    return 1 if axis is None else axis


def _drawn(spec: InputSpec, shape: Sequence[int], draw: Callable[[int, int], Array]) -> Array:
    """Returns a batch of pictures from `draw`, tinted by channel. `draw` maps (height, width) to values in 0 .. 1."""
    axis = _channels(spec)
    height, width = (n for a, n in enumerate(shape) if a not in (0, axis))
    pictures = np.array([draw(height, width) for _ in range(shape[0])]).reshape(shape[0], 1, height, width)
    tints = 1.0 - 0.06 * (np.arange(shape[axis]) % 3)
    return np.moveaxis(pictures * tints[None, :, None, None], 1, axis)


def page(spec: InputSpec, shape: Sequence[int], rng: np.random.Generator) -> Array:
    """Draws lines of dark letters on light paper, or of light letters on dark paper."""

    def draw(height: int, width: int) -> Array:
        dots = int(np.clip(height // 28, 1, 4)) if height > 14 else 1
        page = np.zeros((height, width))
        top = int(rng.integers(0, max(1, min(height // 4, 8 * dots))))
        while top + 7 * dots <= height:
            left = int(rng.integers(0, 6 * dots))
            while left + 5 * dots <= width:
                if rng.random() < 0.85:
                    glyph = np.kron(_glyph(_GLYPHS[int(rng.integers(len(_GLYPHS)))]), np.ones((dots, dots)))
                    page[top : top + 7 * dots, left : left + 5 * dots] = glyph
                left += 6 * dots
            top += int(rng.integers(9, 14)) * dots
        paper, ink = (0.95, 0.1) if rng.random() < 0.75 else (0.15, 0.9)
        return np.clip(paper + (ink - paper) * page + 0.02 * rng.standard_normal(page.shape), 0, 1)

    return _drawn(spec, shape, draw)


def _glyph(code: int) -> Array:
    rows = np.array([code >> 8 * (6 - k) & 0xFF for k in range(7)])
    return (rows[:, None] >> np.arange(4, -1, -1)) & 1


def scene(spec: InputSpec, shape: Sequence[int], rng: np.random.Generator) -> Array:
    """Draws a smooth background with discs and boxes as objects in front."""

    def draw(height: int, width: int) -> Array:
        longest = max(height, width, 1)
        y, x = np.arange(height)[:, None] / longest, np.arange(width)[None, :] / longest
        scene: Array = 0.5 + 0.3 * np.sin(
            2 * np.pi * (rng.uniform(0.2, 1) * x + rng.uniform(0.2, 1) * y) + rng.uniform(0, 6)
        )
        for _ in range(6):
            cy, cx, size = rng.uniform(0, height / max(height, width)), rng.uniform(0, 1), rng.uniform(0.05, 0.3)
            box = (abs(y - cy) < size) & (abs(x - cx) < size * rng.uniform(0.4, 1))
            disc = (y - cy) ** 2 + (x - cx) ** 2 < size**2
            scene = np.where(disc if rng.random() < 0.5 else box, rng.uniform(0, 1) + 0.2 * (y - cy), scene)
        return np.clip(scene + 0.03 * rng.standard_normal((height, width)), 0, 1)

    return _drawn(spec, shape, draw)


def ranged(spec: InputSpec, picture: Array, scale: str) -> Array:
    """Converts values in 0 .. 1 to the range `scale` of a model's input."""
    if spec.dtype == "uint8" or scale == "0 .. 255":
        return np.clip(255 * picture, 0, 255)
    if scale == "normalised":
        axis = _channels(spec)
        count = picture.shape[axis]
        index = [None] * 4
        index[axis] = slice(None)  # pyright: ignore[reportCallIssue, reportArgumentType]
        means, deviations = (np.array([v[k % 3] for k in range(count)])[tuple(index)] for v in (_MEANS, _DEVIATIONS))
        return (picture - means) / deviations
    return 2 * picture - 1 if scale == "-1 .. 1" else picture
