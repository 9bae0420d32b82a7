"""GridSample, AffineGrid and DeformConv against ONNX Runtime: modes, padding, ranks, places far outside."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pytest

from tests.ops.single_node import check as check_exactly
from tests.ops.single_node import model_of, reference

F32 = np.float32
check = partial(check_exactly, tolerance=3e-5)


def floats(*shape: int, dtype: Any = F32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(dtype)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_grid_sample(mode: str, padding: str) -> None:
    for corners in (0, 1):
        attrs = {"mode": mode, "padding_mode": padding, "align_corners": corners}
        x, grid = floats(2, 3, 5, 6), floats(2, 3, 4, 2, seed=1)
        check("GridSample", [x, grid], attrs, opset=20, fixed=[2])
        check("GridSample", [x, grid * 5], attrs, opset=20, dynamic=(False,))
        if mode != "cubic":
            volume, points = floats(1, 2, 4, 3, 5), floats(1, 2, 3, 2, 3, seed=1)
            check("GridSample", [volume, points], attrs, opset=20, fixed=[3])


def test_grid_sample_of_other_types_and_opsets() -> None:
    for mode in ("nearest", "bilinear", "bicubic"):
        check("GridSample", [floats(1, 1, 5, 4), floats(1, 3, 3, 2, seed=1)], {"mode": mode}, opset=16)
    wide = [floats(1, 1, 5, 4, dtype=np.float64), floats(1, 3, 3, 2, dtype=np.float64, seed=1)]
    check("GridSample", wide, opset=20, tolerance=1e-12, dynamic=(False,))
    check("GridSample", [floats(1, 2, 3, 4), floats(1, 0, 3, 2)], opset=20)


def test_coordinates_that_are_no_numbers_lie_outside() -> None:
    x, grid, far = floats(1, 2, 3, 4), floats(1, 3, 3, 2), floats(1, 3, 3, 2)
    grid[0, 0, 0], grid[0, 1, 1] = [np.nan, 0.5], [np.inf, -1e30]
    far[0, 0, 0] = far[0, 1, 1] = [99, 99]
    wanted = reference(model_of("GridSample", [x, far], {}, opset=20), {"x0": x, "x1": far})
    check("GridSample", [x, grid], opset=20, expected=wanted)


def test_affine_grid() -> None:
    for corners, size in product((0, 1), ([2, 3, 4, 5], [2, 3, 2, 4, 5])):
        rank = len(size) - 2
        theta = floats(2, rank, rank + 1)
        check(
            "AffineGrid", [theta, np.array(size)], {"align_corners": corners}, opset=20, constant=[1], fixed=[2, 3, 4]
        )
    check("AffineGrid", [floats(1, 2, 3), np.array([1, 1, 1, 3])], {}, opset=20, constant=[1], fixed=[2, 3])


DEFORMED: tuple[tuple[tuple[int, ...], tuple[int, ...], int, dict[str, Any]], ...] = (
    ((2, 3, 5, 6), (4, 3, 3, 2), 1, {}),
    ((1, 4, 6, 5), (4, 2, 2, 2), 2, {"group": 2, "strides": [2, 1], "pads": [1, 0, 1, 1], "dilations": [1, 2]}),
)


@pytest.mark.parametrize("data, weight, groups, attrs", DEFORMED)
def test_deform_conv(data: tuple[int, ...], weight: tuple[int, ...], groups: int, attrs: dict[str, Any]) -> None:
    pads, strides, dilations = (
        attrs.get(k, d) for k, d in (("pads", [0] * 4), ("strides", [1, 1]), ("dilations", [1, 1]))
    )
    out = [
        (data[2 + k] + pads[k] + pads[k + 2] - dilations[k] * (weight[2 + k] - 1) - 1) // strides[k] + 1 for k in (0, 1)
    ]
    taps = weight[2] * weight[3] * groups
    offset, mask = floats(data[0], 2 * taps, *out, seed=1) * 2, floats(data[0], taps, *out, seed=2)
    operands = [floats(*data), floats(*weight, seed=3), offset]
    attrs = {**attrs, "offset_group": groups}
    check("DeformConv", operands, attrs, opset=19, dynamic=(False,))
    check("DeformConv", [*operands, floats(weight[0], seed=4), mask], attrs, opset=19, dynamic=(False,))
