"""Resize by scales or sizes that are inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.values.bound import check_bound, ints

X = np.random.default_rng(3).standard_normal((1, 2, 5, 6)).astype(np.float32)
ROI = np.zeros(0, np.float32)


def scales(*values: float) -> np.ndarray[Any, Any]:
    return np.array(values, np.float32)


@pytest.mark.parametrize(
    "attrs",
    [
        {"mode": "nearest", "nearest_mode": "ceil"},
        {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
        {"mode": "cubic", "coordinate_transformation_mode": "pytorch_half_pixel", "exclude_outside": 1},
    ],
)
def test_scales(attrs: dict[str, Any]) -> None:
    runs = [[X, None, scales(1, 1, *s)] for s in ((2, 0.6), (0.5, 3.3), (1, 1), (0.9, 1))]
    check_bound("Resize", runs, attrs, refused=[[X, None, scales(1, 1, 0, 1)], [X, None, scales(1, 1, 1, -2)]])


@pytest.mark.slow
def test_an_axis_that_keeps_its_size_takes_nothing_from_its_neighbours() -> None:
    x = X.copy()
    x[0, 1, 2, 3] = np.inf
    check_bound("Resize", [[x, None, scales(1, 1, 2, 2)]], {"mode": "linear"}, dynamic=False)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_filtered(mode: str) -> None:
    runs = [[X, None, scales(1, 1, *s)] for s in ((0.6, 0.3), (0.45, 1.4), (2, 1))]
    check_bound("Resize", runs, {"mode": mode, "antialias": 1})


@pytest.mark.parametrize("policy", ["stretch", "not_larger", "not_smaller"])
def test_sizes_of_some_axes(policy: str) -> None:
    runs = [[X, None, None, ints(*sizes)] for sizes in ((7, 8), (3, 9), (5, 6), (1, 2))]
    attrs = {"mode": "nearest", "axes": [2, 3], "keep_aspect_ratio_policy": policy}
    # Where the greatest factor counts, ONNX Runtime takes no notice of the other.
    refused = [[X, None, None, ints(-1, -1)], *([] if policy == "not_smaller" else [[X, None, None, ints(-1, 4)]])]
    check_bound("Resize", runs, attrs, refused=refused)


@pytest.mark.slow
def test_crop() -> None:
    roi = scales(0, 0, 0.2, 0.1, 1, 1, 0.7, 1.2)
    runs = [[X, roi, None, ints(1, 2, 3, 9)], [X, roi, None, ints(1, 2, 6, 1)]]
    attrs = {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 3.0}
    check_bound("Resize", runs, attrs)
