"""Axes, lengths and blocks of transforms that are inputs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.values.bound import check_bound, ints

ROUNDED = 2e-5
"""ONNX Runtime transforms in f32, and kernels in f64: a part that is 0 is one of its roundings there."""
RNG = np.random.default_rng(7)


def number(value: int) -> np.ndarray[Any, Any]:
    return np.array(value, np.int64)


@pytest.mark.slow
@pytest.mark.parametrize("attrs", [{}, {"onesided": 1}, {"inverse": 1}])
def test_axis_of_a_dft(attrs: dict[str, int]) -> None:
    x = RNG.standard_normal((5, 6, 7, 1 if attrs.get("onesided") else 2)).astype(np.float32)
    runs = [[x, None, number(axis)] for axis in (0, 1, 2, -2, -4)]
    check_bound("DFT", runs, attrs, refused=[[x, None, number(4)]], atol=ROUNDED)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_axis_of_a_real_inverse(kind: Any) -> None:
    x = np.random.default_rng(1).standard_normal((5, 6, 7, 2)).astype(kind)
    check_bound("DFT", [[x, None, number(axis)] for axis in (0, 1, -2)], {"inverse": 1, "onesided": 1}, atol=ROUNDED)


def test_axis_and_length_of_a_dft() -> None:
    x = RNG.standard_normal((5, 6, 1)).astype(np.float32)
    check_bound("DFT", [[x, number(n), number(axis)] for n, axis in ((9, 0), (3, 1), (6, -3))], atol=ROUNDED)


def test_stft() -> None:
    x, window = RNG.standard_normal((2, 40, 1)).astype(np.float32), np.hanning(16).astype(np.float32)
    runs = [[x, number(step), window, number(16)] for step in (8, 3, 24)]
    refused = [[x, number(0), window, number(16)], [x, number(8), window, number(15)]]
    check_bound("STFT", runs, refused=refused, atol=ROUNDED)
    # Of a length that is no power of two ONNX Runtime makes three transforms (Bluestein), each rounded to f32: sums of
    # 16 are off by 3e-5.
    runs = [[x, number(8), None, number(n)] for n in (10, 40)]
    check_bound("STFT", runs, refused=[[x, number(8), None, number(41)]], atol=2 * ROUNDED)


def test_col2im() -> None:
    runs: list[list[Any]] = []
    for image, block in (((5, 5), (1, 5)), ((6, 7), (2, 3)), ((5, 6), (5, 6))):
        windows = (image[0] - block[0] + 1) * (image[1] - block[1] + 1)
        columns = RNG.standard_normal((1, 2 * block[0] * block[1], windows)).astype(np.float32)
        runs.append([columns, ints(*image), ints(*block)])
    columns = runs[0][0]
    check_bound("Col2Im", runs, refused=[[columns, ints(5, 5), ints(3, 3)], [columns, ints(5, 6), ints(1, 5)]])


def test_col2im_with_strides() -> None:
    columns = RNG.standard_normal((1, 9, 4)).astype(np.float32)
    attrs = {"strides": [2, 2], "pads": [1, 0, 1, 0], "dilations": [1, 2]}
    check_bound("Col2Im", [[columns, ints(3, 7), ints(3, 3)]], attrs, dynamic=False)
