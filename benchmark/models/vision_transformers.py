"""Transformers of images written out by code, as `vision.py` writes convolutional networks."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx

from benchmark.models.builder import Layers
from benchmark.models.vision import CLASSES

Array = np.ndarray[Any, Any]


def vit_base(size: int = 224, **how: bool) -> onnx.ModelProto:
    """ViT-B/16."""
    b, width, heads, patch = Layers(**how), 768, 12, 16
    patches = b.conv(b.image(size), width, patch, patch, pad=0, norm=False)
    rows = b.op("Transpose", b.op("Reshape", patches.name, b.integers(0, width, -1)), perm=[0, 2, 1])
    one = b.op("Concat", b.op("Shape", rows, start=0, end=1), b.integers(1, width), axis=0)
    rows = b.op("Concat", b.op("Expand", b.random(1, 1, width, scale=0.5), one), rows, axis=1)
    rows = b.op("Add", rows, b.random(1, patches.size**2 + 1, width, scale=0.5))
    for _ in range(12):
        x = b.layer_norm(rows, width, 1e-6)
        found = b.attention(*(b.linear(x, width, width) for _ in range(3)), width, heads)
        rows = b.op("Add", b.linear(found, width, width), rows)
        rows = b.op("Add", mlp(b, b.layer_norm(rows, width, 1e-6), width), rows)
    first = b.op("Gather", b.layer_norm(rows, width, 1e-6), b.constant(np.array(0, np.int64)), axis=1)
    return b.model(b.dense(first, width, CLASSES))


def mlp(b: Layers, x: str, width: int) -> str:
    return b.linear(b.gelu(b.linear(x, width, 4 * width)), 4 * width, width)


# -- Swin-T -----------------------------------------------------------------------------------------------------------

SWIN = ((96, 2, 3), (192, 2, 6), (384, 6, 12), (768, 2, 24))
"""Channels, blocks and heads of the stages of Swin-T."""
WINDOW = 7


def swin_tiny(size: int = 224, **how: bool) -> onnx.ModelProto:
    """Swin-T of images that windows of 7x7 fill at every stage: `ValueError` where `size` is no multiple of 224."""
    if size % 224:
        raise ValueError(f"windows of {WINDOW}x{WINDOW} do not fill images of {size}x{size}: take a multiple of 224")
    b = Layers(**how)
    patches = b.conv(b.image(size), 96, 4, 4, pad=0, norm=False)
    rows, side = b.layer_norm(b.to_rows(patches), 96), patches.size
    for stage, (width, blocks, heads) in enumerate(SWIN):
        if stage:
            rows, side = _merged(b, rows, width // 2), side // 2
        for k in range(blocks):
            # Every other block has its windows shifted by half of one, where there is more than one.
            shift = WINDOW // 2 if k % 2 and side > WINDOW else 0
            rows = b.op("Add", rows, _windows(b, b.layer_norm(rows, width), width, heads, side, shift))
            rows = b.op("Add", rows, mlp(b, b.layer_norm(rows, width), width))
    width = SWIN[-1][0]
    return b.model(b.dense(b.means(b.to_map(b.layer_norm(rows, width), width, side)), width, CLASSES))


def _merged(b: Layers, rows: str, width: int) -> str:
    """Squares of four pixels as one with twice the channels."""
    end, axes, two = b.integers(*[np.iinfo(np.int64).max] * 2), b.integers(1, 2), b.integers(2, 2)
    parts = [b.op("Slice", rows, b.integers(y, x), end, axes, two) for x, y in product((0, 1), repeat=2)]
    return b.linear(b.layer_norm(b.op("Concat", *parts, axis=3), 4 * width), 4 * width, 2 * width, bias=False)


def _windows(b: Layers, rows: str, width: int, heads: int, side: int, shift: int) -> str:
    """Attention within windows of [batch, side, side, width]."""
    count = side // WINDOW
    if shift:
        rows = _rolled(b, rows, shift)
    apart = b.op("Reshape", rows, b.integers(0, count, WINDOW, count, WINDOW, width))
    windows = b.op("Reshape", b.op("Transpose", apart, perm=[0, 1, 3, 2, 4, 5]), b.integers(-1, WINDOW**2, width))
    table = b.random((2 * WINDOW - 1) ** 2, heads, scale=0.5)
    places = b.op("Reshape", b.op("Gather", table, b.constant(_relative())), b.integers(WINDOW**2, WINDOW**2, heads))
    bias = b.op("Unsqueeze", b.op("Transpose", places, perm=[2, 0, 1]), b.integers(0))

    def to_scores(scores: str) -> str:
        scores = b.op("Add", scores, bias)
        if not shift:
            return scores
        by_window = b.op("Reshape", scores, b.integers(-1, count**2, heads, WINDOW**2, WINDOW**2))
        masked = b.op("Add", by_window, b.constant(_apart(side, shift)))
        return b.op("Reshape", masked, b.integers(-1, heads, WINDOW**2, WINDOW**2))

    found = b.attention(*(b.linear(windows, width, width) for _ in range(3)), width, heads, to_scores)
    apart = b.op("Reshape", b.linear(found, width, width), b.integers(-1, count, count, WINDOW, WINDOW, width))
    whole = b.op("Reshape", b.op("Transpose", apart, perm=[0, 1, 3, 2, 4, 5]), b.integers(-1, side, side, width))
    return _rolled(b, whole, -shift) if shift else whole


def _rolled(b: Layers, rows: str, shift: int) -> str:
    """The image with its first rows and columns moved to the end, or the last to the start."""
    end = b.integers(np.iinfo(np.int64).max)
    for axis in (1, 2):
        cut, along = b.integers(shift), b.integers(axis)
        rows = b.op(
            "Concat",
            b.op("Slice", rows, cut, end, along),
            b.op("Slice", rows, b.integers(0), cut, along),
            axis=axis,
        )
    return rows


def _relative() -> Array:
    """For each pair of a window's pixels the number of the difference of their places."""
    y, x = np.divmod(np.arange(WINDOW**2), WINDOW)
    rows, columns = (p[:, None] - p[None, :] + WINDOW - 1 for p in (y, x))
    return (rows * (2 * WINDOW - 1) + columns).reshape(-1)


def _apart(side: int, shift: int) -> Array:
    """For each window and pair of its pixels -100 where only shifting has brought the two together, else 0."""
    ends = np.array([side - WINDOW, side - shift])
    part = np.searchsorted(ends, np.arange(side), side="right")
    image = part[:, None] * 3 + part[None, :]
    count = side // WINDOW
    windows = image.reshape(count, WINDOW, count, WINDOW).transpose(0, 2, 1, 3).reshape(count**2, 1, -1)
    return np.where(windows[..., :, None] == windows[..., None, :], 0, -100).astype(np.float32)[None]
