"""Ops that make tensors from shapes and numbers."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

from igniter.verification.interp.arithmetic import InterpreterError
from tests.ops.single_node import check, refusal

X = np.zeros((2, 3, 4), np.float32)


@pytest.mark.parametrize("attrs", [{}, {"start": -2}, {"start": 1, "end": -1}, {"start": 2, "end": 1}, {"end": 99}])
def test_shape(attrs: dict[str, int]) -> None:
    check("Shape", [X], attrs)


def test_shape_of_a_scalar() -> None:
    check("Shape", [np.float32(1)])


@pytest.mark.parametrize("dims", [(), (0, 3), (2, 3, 4)])
def test_size(dims: tuple[int, ...]) -> None:
    check("Size", [np.zeros(dims, np.float32)])


@pytest.mark.parametrize("dims", [[], [2, 3], [2, 0]])
@pytest.mark.parametrize("dtype", ["float32", "int32", "int64", "bool", "float64", "uint8", "int8"])
def test_constant_of_shape(dims: list[int], dtype: str) -> None:
    value = numpy_helper.from_array(np.array([1], dtype=dtype))
    check("ConstantOfShape", [np.array(dims, np.int64)], {"value": value}, constant=[0])


def test_constant_of_shape_is_zero_by_default() -> None:
    check("ConstantOfShape", [np.array([2, 3])], constant=[0])


RANGES = [(2, 11, 3), (5, 5, 1), (5, -4, -2), (0, -3, 1), (3, 4, 10), (10, 0, -3)]


@pytest.mark.parametrize("bounds", RANGES)
@pytest.mark.parametrize("dtype", ["int32", "int64", "float32", "float64"])
def test_range(bounds: tuple[int, int, int], dtype: str) -> None:
    check("Range", [np.array(b, dtype=dtype) for b in bounds], constant=[0, 1, 2])


def test_range_of_fractions() -> None:
    # ORT adds the step again and again; ONNX says start + i * delta.
    check("Range", [np.array(b, np.float32) for b in (2.5, -3, -0.7)], constant=[0, 1, 2], tolerance=1e-6)


def test_range_that_is_known_late_has_a_count_that_no_input_binds() -> None:
    with pytest.raises(InterpreterError, match="range is not a dim of any input"):
        check("Range", [np.array(b) for b in (0, 3, 1)])


@pytest.mark.parametrize("k", [0, 1, -1, 7])
def test_eye_like(k: int) -> None:
    check("EyeLike", [X[0]], {"k": k})
    check("EyeLike", [X[0]], {"k": k, "dtype": 7})


def test_shape_arithmetic_of_strings_stays_out() -> None:
    assert "not supported in kernels" in refusal("Shape", [np.array(["a"])])
