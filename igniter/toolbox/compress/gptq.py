"""GPTQ: codes of a weight that keep its products over samples (Frantar et al., ICLR 2023).

The rows of a weight `w`, [depth, columns], are rounded one after the other. The error of a row is made up for by the
rows behind it, by the inverse of the Hessian of the squared error of `x @ w`, which is `x.T @ x` over the samples. Rows
that matter most come first, and every block has the scale of its own original numbers, narrowed where this lowers the
squared error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from igniter.analysis.onnx.weight_codes import Coding, FixedCodes

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

DAMPING = 0.01
"""The share of the mean of the Hessian's diagonal that is added to it."""
STRIPE = 32
"""The rows whose errors reach the rest together."""
NARROWED = tuple(1.0 - 0.04 * k for k in range(9))
"""The shares of the range of a block that are tried for its scale."""


@dataclass(frozen=True, eq=False)
class Factor:
    """What the samples say of the left factor of products."""

    importance: Array
    """The diagonal of the Hessian, [depth]."""
    order: Array
    """The rows by importance."""
    upper: Array
    """The upper triangular root of the inverse of the damped Hessian, in this order."""

    @staticmethod
    def of(hessian: Array) -> Factor:
        """Returns the facts of a Hessian, [depth, depth]; weights with one factor share them."""
        importance = np.diag(hessian).astype(np.float32)
        order: Array = np.argsort(-importance, kind="stable")
        return Factor(importance, order, _inverse_root(hessian[np.ix_(order, order)]))


def corrected(weight: Array, factor: Factor, coding: Coding, kind: Any = np.float32) -> FixedCodes:
    """Returns codes, scales and zero points of a weight, [depth, columns]. The coding has blocks of the depth, or a
    scale for each column. `kind` is the type of scales."""
    rows = np.array(weight, np.float32)
    depth, columns = rows.shape
    block = coding.block or depth
    scales, zeros = _scales(rows, factor.importance, coding, block, kind)
    order, upper = factor.order, factor.upper
    rows = rows[order]
    codes = np.empty((depth, columns), np.int32)
    for start in range(0, depth, STRIPE):
        stop = min(start + STRIPE, depth)
        errors = np.empty((stop - start, columns), np.float32)
        for row in range(start, stop):
            group = int(order[row]) // block
            scale, zero = scales[group], zeros[group]
            code = np.clip(np.rint(rows[row] / scale) + zero, coding.least, coding.greatest)
            codes[order[row]] = code
            error = (rows[row] - (code - zero) * scale) / upper[row, row]
            errors[row - start] = error
            if row + 1 < stop:
                rows[row + 1 : stop] -= upper[row, row + 1 : stop, None] * error
        rows[stop:] -= upper[start:stop, stop:].T @ errors
    return FixedCodes(codes, scales.astype(kind), zeros.astype(np.int32))


def _inverse_root(hessian: Array) -> Array:
    """Returns the upper triangular root of the inverse of a damped Hessian."""
    damped = np.array(hessian, np.float64)
    diagonal = np.diag(damped).copy()
    # An input that is always 0 has no effect, and no error to make up for.
    damped[np.diag_indices_from(damped)] = np.where(diagonal > 0, diagonal, 1.0) + DAMPING * max(diagonal.mean(), 1e-12)
    return np.linalg.cholesky(np.linalg.inv(damped)).T.astype(np.float32)


def _scales(rows: Array, importance: Array, coding: Coding, block: int, kind: Any) -> tuple[Array, Array]:
    """Returns scales and zero points, [blocks, columns]: of the share of each block's range with the least squared
    error, weighted by the importance of rows."""
    scales: list[Array] = []
    zeros: list[Array] = []
    for start in range(0, rows.shape[0], block):
        part, weight = rows[start : start + block], importance[start : start + block, None]
        low, high = part.min(axis=0, initial=0.0), part.max(axis=0, initial=0.0)
        best = np.full(part.shape[1], np.inf, np.float32)
        scale_of, zero_of = np.ones(part.shape[1], np.float32), np.zeros(part.shape[1], np.float32)
        for share in NARROWED:
            if coding.symmetric:
                scale = share * np.maximum(high / coding.greatest, low / coding.least)
            else:
                scale = share * 2.0 * (high / (2 * coding.greatest) - low / (2 * coding.greatest))
            scale = np.where(scale > 0, scale, 1.0).astype(kind).astype(np.float32)
            scale = np.where(scale > 0, scale, 1.0).astype(np.float32)
            zero = (
                np.zeros_like(scale) if coding.symmetric else np.clip(np.rint(-share * low / scale), 0, coding.greatest)
            )
            codes = np.clip(np.rint(part / scale) + zero, coding.least, coding.greatest)
            error = (weight * np.square((codes - zero) * scale - part)).sum(axis=0)
            better = error < best
            best = np.where(better, error, best)
            scale_of, zero_of = np.where(better, scale, scale_of), np.where(better, zero, zero_of)
        scales.append(scale_of)
        zeros.append(zero_of)
    return np.stack(scales), np.stack(zeros)


__all__ = ["Factor", "corrected"]
