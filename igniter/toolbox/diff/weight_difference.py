"""The difference of two weights, read in pieces: neither is ever in memory whole."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from igniter.dialects.onnx.weights import Weight

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

PIECE = 1 << 22
"""Elements, or bytes, compared at a time."""


@dataclass(frozen=True)
class WeightDifference:
    """`elements` differ, by at most `absolute`, and by at most `relative` of the first's own value; `None` where the
    values are no numbers, or shapes or types are not the same."""

    elements: int | None
    absolute: float | None
    relative: float | None


def same_bytes(a: Weight, b: Weight) -> bool:
    """True if two weights have the same shape, type and bytes."""
    if a is b:
        return True
    if a.shape != b.shape or a.element_type != b.element_type:
        return False
    plain = all(w.strings is None and w.derivation is None and not w.elided for w in (a, b))
    if not plain or (a.file is not None and a.file == b.file):
        return a == b
    mine, theirs = np.frombuffer(a.raw(), np.uint8), np.frombuffer(b.raw(), np.uint8)
    return all(np.array_equal(mine[i : i + PIECE], theirs[i : i + PIECE]) for i in range(0, len(mine), PIECE))


def weight_difference(a: Weight, b: Weight) -> WeightDifference:
    """Returns the figures of two different weights. NaN is equal to NaN."""
    if a.shape != b.shape or a.strings is not None or b.strings is not None or a.elided or b.elided:
        return WeightDifference(None, None, None)
    elements, absolute, relative = 0, 0.0, 0.0
    for mine, theirs in _pieces(a, b):
        if mine.dtype.kind == "c" or theirs.dtype.kind == "c":
            x, y = mine.astype(np.complex128), theirs.astype(np.complex128)
        else:
            x, y = mine.astype(np.float64), theirs.astype(np.float64)
        with np.errstate(all="ignore"):
            differs = ~((x == y) | (np.isnan(x) & np.isnan(y)))
            gap = np.abs(np.where(differs, x - y, 0))
            ratio = np.where(gap > 0, gap / np.abs(x), 0.0)
        elements += int(np.count_nonzero(differs))
        absolute = max(absolute, _largest(gap))
        relative = max(relative, _largest(ratio))
    return WeightDifference(elements, absolute, relative)


def _largest(array: Array) -> float:
    if array.size == 0:
        return 0.0
    return float("inf") if np.isnan(array).any() else float(np.max(array))


def _pieces(a: Weight, b: Weight) -> Iterator[tuple[Array, Array]]:
    mine, theirs = a.array().reshape(-1), b.array().reshape(-1)
    for i in range(0, mine.size, PIECE):
        yield mine[i : i + PIECE], theirs[i : i + PIECE]
