"""Exact results of reductions and powers of integers, on Python's numbers, and arrays to try them on."""

from __future__ import annotations

import functools
import math
import operator
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]
EXACT = ("ReduceL1", "ReduceMean", "ReduceProd", "ReduceSum", "ReduceSumSquare")


def wrapped(value: int, dtype: Any) -> int:
    """`value` modulo 2 to the width of `dtype`, in its range."""
    info = np.iinfo(dtype)
    return (value - int(info.min)) % (1 << info.bits) + int(info.min)


def _folded(op: str, values: list[int], dtype: Any) -> int:
    if op == "ReduceMean":
        total = sum(values)
        quotient = abs(total) // max(1, len(values))
        return quotient if total >= 0 else -quotient
    if op == "ReduceProd":
        return functools.reduce(operator.mul, values, 1)
    each = {"ReduceL1": abs, "ReduceSum": int, "ReduceSumSquare": lambda v: v * v}[op]
    return sum(each(v) for v in values)


def reduced(op: str, x: Array, axes: tuple[int, ...], keepdims: bool = True) -> Array:
    """A reduction of integers, which wraps; a mean is the exact sum over the count, rounded towards zero."""
    axes = tuple(a % x.ndim for a in axes)
    last = [a for a in range(x.ndim) if a not in axes]
    rows = x.transpose(*last, *axes).reshape(*[x.shape[a] for a in last], math.prod(x.shape[a] for a in axes))
    found = np.zeros([1 if a in axes else n for a, n in enumerate(x.shape)], x.dtype)
    flat = rows.reshape(found.size, -1) if rows.size else np.zeros((found.size, 0), x.dtype)
    results = [wrapped(_folded(op, [int(v) for v in row], x.dtype), x.dtype) for row in flat]
    found.reshape(-1)[:] = results
    return found if keepdims else found.reshape([n for a, n in enumerate(x.shape) if a not in axes])


def power(x: int, exponent: int, dtype: Any) -> int:
    """A power of integers, which wraps; with a negative exponent the quotient rounded towards zero, 0 for 0."""
    if exponent < 0:
        return {1: 1, -1: -1 if exponent % 2 else 1}.get(x, 0)
    return wrapped(pow(x, exponent, 1 << np.iinfo(dtype).bits), dtype)


def extremes(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> list[Array]:
    """Random numbers of the whole range, the limits alone, the limits among small numbers, and small numbers."""
    info = np.iinfo(dtype)
    rng = np.random.default_rng(seed)
    low = -9 if info.min else 0
    few = rng.integers(low, 9, shape).astype(dtype)
    limits = np.where(rng.integers(0, 2, shape) == 0, info.min, info.max).astype(dtype)
    return [
        rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True),
        np.full(shape, info.max, dtype),
        np.full(shape, info.min, dtype),
        np.where(rng.integers(0, 4, shape) == 0, limits, few),
        few,
    ]
