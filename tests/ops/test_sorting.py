"""TopK, interpreted and compiled, against ONNX Runtime: values, places, order, ties and NaNs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.ops.single_node import check, refusal
from tests.ops.test_compiled import run

F32 = np.float32


def both(x: Any, k: int, **attrs: int) -> None:
    model: dict[str, Any] = {"constant": [1], "outputs": 2, "opset": 11}
    if x.size <= 40:  # The interpreter takes milliseconds for every step of a heap.
        check("TopK", [x, np.array([k])], attrs, dynamic=(True,), **model)
    run("TopK", [x, np.array([k])], attrs, 0.0, **model)


@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("k", [0, 5, 17])
def test_top_k(k: int, largest: int) -> None:
    rng = np.random.default_rng(k)
    x = rng.normal(0, 1, (3, 40 if k < 17 else 20)).astype(F32)
    x[0, 3] = x[1, 0] = x[1, 11] = np.nan
    x[2, 5], x[2, 7] = np.inf, -np.inf
    both(x, k, largest=largest)
    both(rng.integers(0, 4, (1, 18, 2)).astype(F32), k, largest=largest, axis=1)
    if k < 17:
        unsorted = rng.integers(0, 4, (2, 40)).astype(F32)
        unsorted[1, [2, 9, 30]] = np.nan
        both(unsorted, k, largest=largest, sorted=0)


@pytest.mark.parametrize("dtype", ["int8", "uint32", "int64", "float64"])
def test_types(dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 100, (5, 7)).astype(dtype)
    both(x, 3, axis=0)


@pytest.mark.slow
def test_sizes() -> None:
    both(np.zeros((0, 7), F32), 3)
    both(np.full((2, 9), np.nan, F32), 4)
    both(np.random.default_rng(0).normal(0, 1, (1, 200)).astype(F32), 5)
    check("TopK", [np.arange(7, dtype=F32)], {"k": 3}, outputs=2, opset=9)


def test_k_that_only_a_run_knows() -> None:
    assert "known only at run time" in refusal("TopK", [np.zeros((3, 4), F32), np.array([2])], outputs=2)
