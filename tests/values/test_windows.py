"""Slices, pads and counts that are inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.values.bound import check_bound, ints

X = np.random.default_rng(1).standard_normal((5, 6, 7)).astype(np.float32)
END = 2**63 - 1


def number(value: float, dtype: Any = np.float32) -> np.ndarray[Any, Any]:
    return np.array(value, dtype)


@pytest.mark.slow
def test_slice() -> None:
    runs = [
        [X, ints(1, 0), ints(4, -1), ints(0, -1), ints(2, 3)],
        [X, ints(-1, 9), ints(-9, -END), ints(0, 2), ints(-1, -2)],
        [X, ints(4, 0), ints(0, 7), ints(0, 1), ints(-END, END)],
        [X, ints(-2, 1), ints(END, 100), ints(2, 0), ints(1, 1)],
        [X[:0], ints(0, 0), ints(5, 5), ints(0, 1), ints(-1, 1)],
    ]
    refused = [
        [X, ints(4, 3), ints(END, 7), ints(0, 1), ints(-1, 0)],
        [X, ints(0, 0), ints(5, 5), ints(1, 1), ints(1, 1)],
        [X, ints(0, 0), ints(5, 5), ints(1, 3), ints(1, 1)],
    ]
    check_bound("Slice", runs, refused=refused)


def test_slice_of_the_first_axes() -> None:
    check_bound("Slice", [[X, ints(1), ints(4)], [X, ints(-1), ints(9)], [X, ints(0), ints(0)]])


def test_pad() -> None:
    runs = [
        [X, ints(1, 2, 1, 0), number(7.5), ints(0, -1)],
        [X, ints(-1, 2, -1, 0), number(1), ints(1, 2)],
        [X, ints(-3, 0, 4, -7), number(1), ints(0, 2)],
    ]
    check_bound("Pad", runs, refused=[[X, ints(-3, 0, -3, 0), number(1), ints(0, 2)]])


@pytest.mark.parametrize("mode", ["reflect", "edge", "wrap"])
def test_pad_with_what_is_there(mode: str) -> None:
    runs = [[X, ints(1, 0, 2, 0, 1, 0)], [X, ints(-1, 0, -2, 1, 1, -3)], [X, ints(4, 5, 6, 4, 5, 6)]]
    refused = [[X, ints(5, 0, 0, 0, 0, 0)]] if mode == "reflect" else []
    check_bound("Pad", runs, {"mode": mode}, refused=refused, dynamic=False)


def test_split() -> None:
    runs = [[X, ints(2, 3, 0)], [X, ints(0, 0, 5)]]
    check_bound("Split", runs, {"axis": 0}, outputs=3, refused=[[X, ints(1, 1, 1)], [X, ints(-1, 3, 3)]])


def test_top_k() -> None:
    check_bound("TopK", [[X, ints(2)], [X, ints(7)], [X, ints(0)]], outputs=2, refused=[[X, ints(8)], [X, ints(-1)]])


def test_one_hot() -> None:
    index, values = ints(0, 1, 2, -1), np.array([2, 5], np.float32)
    runs = [[index, number(depth, np.int64), values] for depth in (5, 3)]
    check_bound("OneHot", runs, refused=[[index, number(0, np.int64), values]])


def test_sizes_of_what_is_made() -> None:
    check_bound("CenterCropPad", [[X, ints(4, 7, 9)], [X, ints(5, 6, 7)], [X, ints(0, 1, 1)]])
    check_bound("HannWindow", [[number(10, np.int64)], [number(0, np.int64)]], refused=[[number(-1, np.int64)]])
    check_bound("ConstantOfShape", [[ints(2, 3)], [ints(0, 1)]], refused=[[ints(-1, 2)]])


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_range(dtype: Any) -> None:
    triples = [(1, 9, 3), (9, -1, -3), (1, 0, 1)]
    runs = [[number(v, dtype) for v in triple] for triple in triples]
    check_bound("Range", runs, refused=[[number(v, dtype) for v in (9, 1, 0)]])


def test_range_counts_in_the_type_of_its_elements() -> None:
    check_bound("Range", [[number(v) for v in (0, 1, 0.1)], [number(v) for v in (0.3, 16777217, 3e6)]])


def test_affine_grid() -> None:
    theta = np.random.default_rng(2).standard_normal((2, 2, 3)).astype(np.float32)
    runs = [[theta, ints(2, 3, 5, 6)], [theta, ints(2, 1, 1, 7)]]
    check_bound("AffineGrid", runs, refused=[[theta, ints(3, 3, 5, 6)]])


def test_length_of_a_dft() -> None:
    x = X[:, :, :1]
    check_bound("DFT", [[x, number(7, np.int64)], [x, number(3, np.int64)]])


def test_max_unpool() -> None:
    x = np.random.default_rng(2).standard_normal((1, 2, 2, 3)).astype(np.float32)
    places = np.random.default_rng(3).permutation(48)[:12].reshape(x.shape)
    attrs = {"kernel_shape": [2, 2], "strides": [2, 2]}
    runs = [[x, places, ints(1, 2, *size)] for size in ((4, 6), (5, 9), (8, 6))]
    refused = [[x, places, ints(*shape)] for shape in ((1, 2, 3, 6), (2, 2, 4, 6), (1, 3, 4, 6), (1, 2, -4, 6))]
    beyond = np.where(places == places.max(), 48, places)
    check_bound("MaxUnpool", runs, attrs, refused=[*refused, [x, beyond, ints(1, 2, 4, 6)]])
    check_bound("MaxUnpool", runs[:1], attrs, opset=13)
    check_bound("MaxUnpool", [[x, places]], attrs, constant=[], dynamic=False)
