"""Zeros of a weight, and their block pattern. Weights are read in parts of bounded size.

A weight is treated as a matrix: its first dim by all others. The pattern is the largest block of `BLOCKS` whose
all-zero blocks hold nine tenths of the zeros; else `2:4` where nearly all groups of four in a row have two zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from igniter.analysis.onnx.subnormal_weights import subnormal_count
from igniter.toolbox.profile.profile import Sparsity

if TYPE_CHECKING:
    from igniter.dialects.onnx.weights import Weight

    Mask = np.ndarray[Any, np.dtype[np.bool_]]

BLOCKS = (
    *((64, 64), (32, 32), (16, 16), (64, 1), (1, 64), (8, 8), (32, 1), (1, 32)),
    *((16, 1), (1, 16), (4, 4), (8, 1), (1, 8), (2, 2), (4, 1), (1, 4)),
)
"""Rows and columns of the candidate blocks, the largest first."""

PART = 1 << 22
"""The most elements processed together, apart from whole stripes of 64 rows."""

STRIPE = 64
FEW = 0.05
"""The share of zeros below which no pattern is searched."""


def sparsity_of(weight: Weight, zero: int = 0) -> Sparsity | None:
    """Returns the zeros of a numeric weight, with `zero` the code of 0; `None` for texts and for elided weights."""
    if weight.strings is not None or weight.elided or not weight.size:
        return None
    array = weight.array()
    matrix: np.ndarray[Any, Any] = array.reshape(array.shape[0] if array.ndim > 1 else 1, -1)
    zeros = sum(int(mask.sum()) for mask in _masks(matrix, zero))
    subnormal = subnormal_count(weight)
    if zeros < FEW * weight.size:
        return Sparsity(zeros, weight.size, subnormal=subnormal)
    pattern, share = _pattern(matrix, zero, zeros)
    return Sparsity(zeros, weight.size, pattern, share, subnormal)


def _masks(matrix: np.ndarray[Any, Any], zero: int) -> Any:
    """Yields the zero mask of the matrix, stripe by stripe; each but the last has a multiple of 64 rows."""
    rows, columns = matrix.shape
    step = max(1, PART // max(1, columns) // STRIPE) * STRIPE
    for start in range(0, rows, step):
        yield matrix[start : start + step] == matrix.dtype.type(zero)


def _pattern(matrix: np.ndarray[Any, Any], zero: int, zeros: int) -> tuple[str, float]:
    empty, pairs, groups = dict.fromkeys(BLOCKS, 0), 0, 0
    for mask in _masks(matrix, zero):
        for r, c in BLOCKS:
            rows, columns = mask.shape[0] // r, mask.shape[1] // c
            if rows and columns:
                blocks = mask[: rows * r, : columns * c].reshape(rows, r, columns, c)
                empty[r, c] += int(blocks.all(axis=(1, 3)).sum())
        fours = mask.shape[1] // 4
        if fours:
            found = np.count_nonzero(mask[:, : 4 * fours].reshape(-1, 4), axis=1)
            pairs, groups = pairs + int((found >= 2).sum()), groups + len(found)
    for (r, c), count in empty.items():
        if count * r * c >= 0.9 * zeros:
            return f"{r}x{c}", count / ((matrix.shape[0] // r) * (matrix.shape[1] // c))
    return ("2:4", pairs / groups) if groups and pairs >= 0.99 * groups else ("", 0.0)
