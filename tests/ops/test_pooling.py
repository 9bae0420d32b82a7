"""Pools against ONNX Runtime: windows, padding, rounding of sizes, indices, degenerate sizes, types."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import igniter
from tests.ops.single_node import check as check_exactly
from tests.ops.single_node import model_of, reference

F32 = np.float32
check = partial(check_exactly, tolerance=1e-5)


def floats(*shape: int, dtype: Any = F32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(dtype)


WINDOWS: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((2, 3, 9), {"kernel_shape": [3]}),
    ((2, 3, 9), {"kernel_shape": [3], "strides": [2], "pads": [1, 2]}),
    ((2, 3, 8), {"kernel_shape": [3], "strides": [3], "pads": [1, 1], "ceil_mode": 1}),
    ((2, 3, 7), {"kernel_shape": [3], "strides": [2], "auto_pad": "SAME_UPPER"}),
    ((2, 3, 7), {"kernel_shape": [4], "auto_pad": "SAME_LOWER"}),
    ((2, 3, 7), {"kernel_shape": [1], "strides": [3], "auto_pad": "SAME_LOWER"}),
    ((2, 3, 7, 5), {"kernel_shape": [2, 3], "strides": [2, 1], "pads": [1, 1, 0, 1]}),
    ((2, 3, 7, 6), {"kernel_shape": [3, 3], "strides": [2, 2], "ceil_mode": 1}),
    ((2, 3, 7, 6), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1}),
    ((1, 2, 4, 5, 3), {"kernel_shape": [2, 2, 2], "strides": [1, 2, 1], "pads": [0, 1, 1, 1, 0, 0]}),
    ((2, 3, 2), {"kernel_shape": [3], "strides": [2]}),
    ((2, 3, 1, 6), {"kernel_shape": [2, 2], "strides": [2, 2]}),
    ((1, 1, 2), {"kernel_shape": [5], "strides": [4]}),
    ((0, 3, 7), {"kernel_shape": [3]}),
    # Rows of several vectors: their rims are apart from their interior.
    ((1, 2, 70), {"kernel_shape": [3], "strides": [2], "pads": [1, 1]}),
    ((1, 2, 21, 43), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((1, 2, 11, 50), {"kernel_shape": [3, 5], "pads": [1, 2, 1, 2]}),
)
DILATED: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((2, 3, 9), {"kernel_shape": [3], "dilations": [2]}),
    ((2, 3, 9), {"kernel_shape": [2], "dilations": [3], "strides": [2], "pads": [1, 1]}),
    ((2, 3, 7), {"kernel_shape": [3], "dilations": [2], "auto_pad": "SAME_UPPER"}),
    (
        (2, 3, 9, 8),
        {"kernel_shape": [2, 3], "dilations": [2, 1], "strides": [1, 2], "pads": [1, 1, 1, 1], "ceil_mode": 1},
    ),
)


LARGE: tuple[tuple[tuple[int, ...], dict[str, Any]], ...] = (
    ((2, 3, 7, 7), {"kernel_shape": [40, 40], "strides": [40, 40], "ceil_mode": 1}),
    ((2, 3, 7, 5), {"kernel_shape": [40, 9], "strides": [3, 2], "pads": [20, 4, 19, 3]}),
    ((2, 3, 5), {"kernel_shape": [37], "strides": [2], "pads": [33, 18]}),
    ((2, 3, 5), {"kernel_shape": [8], "pads": [5, 4], "ceil_mode": 1, "strides": [3]}),
    ((1, 2, 40), {"kernel_shape": [35], "strides": [4], "pads": [7, 2]}),
)
"""Windows larger than the image, of which only the elements inside are visited; the last is so for some sizes only."""


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("shape, attrs", LARGE)
def test_windows_larger_than_the_image(op: str, shape: tuple[int, ...], attrs: dict[str, Any]) -> None:
    x = floats(*shape)
    check(op, [x], attrs)
    if op == "MaxPool":
        x[0, 0].flat[1] = np.nan
        check(op, [x], attrs, expected=[_max_with_nan(x, attrs)])
        check(op, [np.round(floats(*shape) * 2)], attrs, outputs=2)
        kernel = attrs["kernel_shape"]
        # The padding on both sides makes room for a window with gaps.
        pads = [k - 1 for k in kernel] * 2
        apart = {**attrs, "dilations": [2] * len(kernel), "pads": pads, "ceil_mode": 1}
        check(op, [x], apart, expected=[_max_with_nan(x, apart)])
    if op == "AveragePool":
        check(op, [x], {**attrs, "count_include_pad": 1})


def _max_with_nan(x: Any, attrs: dict[str, Any]) -> Any:
    """The maxima of windows, NaN for those with a NaN. What ONNX Runtime gives for these depends on the CPU."""

    def largest(values: Any) -> Any:
        return reference(model_of("MaxPool", [values], attrs), {"x0": values})[0]

    odd = np.isnan(x)
    return np.where(largest(odd.astype(F32)) == 1, F32(np.nan), largest(np.where(odd, F32(-np.inf), x)))


@pytest.mark.parametrize("shape, attrs", WINDOWS + DILATED)
def test_max_pool(shape: tuple[int, ...], attrs: dict[str, Any]) -> None:
    x = np.round(floats(*shape) * 2)
    check("MaxPool", [x], attrs)
    check("MaxPool", [x], attrs, outputs=2)
    check("MaxPool", [x], {**attrs, "storage_order": 1}, outputs=2, dynamic=(False,))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "float64"])
def test_max_pool_of_other_types(dtype: str) -> None:
    x = np.random.default_rng(0).integers(0, 9, (2, 3, 7, 5)).astype(dtype)
    check("MaxPool", [x - 5 if dtype != "uint8" else x], {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1]}, outputs=2)


@pytest.mark.parametrize("shape, attrs", WINDOWS + DILATED)
def test_average_pool(shape: tuple[int, ...], attrs: dict[str, Any]) -> None:
    for include in (0, 1):
        check("AveragePool", [floats(*shape)], {**attrs, "count_include_pad": include})
        if "dilations" not in attrs and "ceil_mode" not in attrs:
            check("AveragePool", [floats(*shape)], {**attrs, "count_include_pad": include}, opset=7, dynamic=(False,))


@pytest.mark.parametrize("shape, attrs", WINDOWS + DILATED)
def test_lp_pool(shape: tuple[int, ...], attrs: dict[str, Any]) -> None:
    for p in (1, 2, 3):
        check("LpPool", [floats(*shape)], {**attrs, "p": p})


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalMaxPool", "GlobalLpPool"])
def test_global_pool(op: str) -> None:
    for shape in ((2, 3, 5), (2, 3, 5, 4), (1, 2, 3, 2, 1), (0, 3, 4)):
        check(op, [floats(*shape)])


def test_nan_in_a_window() -> None:
    x = np.array([[[1, np.nan, 2, 3, -np.inf, -np.inf]]], F32)
    check("MaxPool", [x], {"kernel_shape": [2]}, expected=[np.array([[[np.nan, np.nan, 3, 3, -np.inf]]], F32)])


@pytest.mark.parametrize("stride", [1, 2])
def test_nan_and_infinities_in_rows_of_several_vectors(stride: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.choice(
        np.array([np.nan, np.inf, -np.inf, 1, 2, 3, -5], F32), (1, 1, 9, 41), p=[0.03, 0.07, 0.5] + [0.1] * 4
    )
    least = np.finfo(F32).min
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=least)
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))[:, :, ::stride, ::stride]
    attrs = {"kernel_shape": [3, 3], "strides": [stride, stride], "pads": [1, 1, 1, 1]}
    check("MaxPool", [x], attrs, expected=[windows.max((4, 5))])


@pytest.mark.parametrize("size", [1, 3, 5])
def test_lrn(size: int) -> None:
    check("LRN", [floats(2, 5, 3, 4)], {"size": size, "alpha": 0.2, "beta": 0.6, "bias": 2.0})
    check("LRN", [floats(1, 1, 3, 1)], {"size": size})


@pytest.mark.parametrize("op", ["GlobalAveragePool", "GlobalLpPool", "ReduceMean", "ReduceSum"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_long_sums_behind_a_convolution_round_like_short_ones(op: str, dynamic: bool, tmp_path: Path) -> None:
    """Where channels are last, each lane adds up one channel: 40,000 positive terms one by one were off by 1e-4."""
    size, channels = 200, 16
    weight = np.eye(channels, dtype=np.float32)[:, :, None, None]
    attrs = {"axes": [2, 3]} if op == "ReduceMean" else {}
    axes = ["axes"] if op == "ReduceSum" else []
    nodes = [
        helper.make_node("Conv", ["x", "w"], ["c"], kernel_shape=[1, 1]),
        helper.make_node("Relu", ["c"], ["r"]),
        helper.make_node(op, ["r", *axes], ["y"], **attrs),
    ]
    dims = ["n", channels, "h", "w"] if dynamic else [1, channels, size, size]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, dims)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [numpy_helper.from_array(weight, "w"), numpy_helper.from_array(np.array([2, 3], np.int64), "axes")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    x = np.random.default_rng(0).uniform(0.5, 1.5, (1, channels, size, size)).astype(np.float32)
    (got,) = igniter.load(model).compile(tmp_path / "out", verify=False).session().run(None, {"x": x})
    wide = x.astype(np.float64)
    power = {"GlobalLpPool": 2}.get(op, 1)
    want = (wide**power).sum((2, 3), keepdims=True) ** (1 / power)
    want /= size * size if op in ("GlobalAveragePool", "ReduceMean") else 1
    np.testing.assert_allclose(got, want, rtol=5e-6)
