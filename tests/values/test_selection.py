"""Results that are as large as the data says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.values.bound import check_bound, ints

RNG = np.random.default_rng(5)


def sparse(dtype: Any, share: float) -> np.ndarray[Any, Any]:
    x = RNG.integers(1, 9, (5, 6, 7)).astype(dtype)
    return np.where(RNG.random(x.shape) < share, x, np.zeros((), dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.bool_, np.int64])
def test_non_zero(dtype: Any) -> None:
    check_bound("NonZero", [[sparse(dtype, share)] for share in (0.3, 0, 1)])


def test_non_zero_takes_nan_for_a_number() -> None:
    check_bound("NonZero", [[np.array([0.0, np.nan, -0.0, np.inf], np.float32)]], dynamic=False)


def test_compress() -> None:
    x = sparse(np.float32, 0.5)
    runs = [[x, RNG.random(6) < share] for share in (0.5, 0, 1)]
    check_bound("Compress", runs, {"axis": 1})
    check_bound("Compress", [[x, RNG.random(4) < 0.5]], {"axis": -1})


def test_compress_of_all_elements() -> None:
    x = sparse(np.float32, 0.5)
    check_bound("Compress", [[x, RNG.random(9) < share] for share in (0.5, 0)])
    # What is behind the end does not count.
    check_bound("Compress", [[x[:2, :2, :2], RNG.random(20) < 0.5]], dynamic=False)


def boxes(count: int) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    corners = RNG.random((2, count, 4)).astype(np.float32)
    scores = (RNG.integers(0, 12, (2, 3, count)) / 12).astype(np.float32)
    return corners, scores


@pytest.mark.parametrize("centred", [0, 1])
@pytest.mark.parametrize("opset", [11, 21])
def test_non_max_suppression(centred: int, opset: int) -> None:
    runs: list[list[Any]] = []
    for most, overlap, least in ((3, 0.3, 0.2), (100, 0.1, 0.0), (0, 0.5, 0.0), (5, 0.0, 0.9), (1, 1.0, 2.0)):
        limits = [ints(most), np.array([overlap], np.float32), np.array([least], np.float32)]
        runs.append([*boxes(9), *limits])
    check_bound("NonMaxSuppression", runs, {"center_point_box": centred}, opset=opset)


def test_non_max_suppression_without_a_least_score() -> None:
    check_bound("NonMaxSuppression", [[*boxes(9), ints(2), np.array([0.4], np.float32)]])
    check_bound("NonMaxSuppression", [[*boxes(9)]], dynamic=False)
