"""Reductions against ONNX Runtime: axes as attribute and operand, keepdims, empty and rank-0 tensors, types, NaN."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from onnx import helper

import igniter
from tests.ops.exact_integers import EXACT, extremes, reduced
from tests.ops.single_node import check as check_exactly
from tests.ops.single_node import element_code, model_of, refusal

F32 = np.float32
check = partial(check_exactly, tolerance=4e-6)
REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax"),
    *("ReduceMean", "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"),
)


def floats(shape: tuple[int, ...], dtype: Any = F32, seed: int = 0) -> Any:
    return np.abs(np.random.default_rng(seed).normal(0, 1.5, shape)).astype(dtype)


def ints(shape: tuple[int, ...], dtype: Any, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(1, 5, shape).astype(dtype)


def as_axes(axes: list[int]) -> Any:
    return np.array(axes, np.int64)


@pytest.mark.parametrize("axes", [[0], [1], [-1], [0, 2], [1, 2], [0, 1, 2], [-2, 0]])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_axes(op: str, axes: list[int]) -> None:
    x = floats((3, 4, 5))
    for keepdims in (0, 1):
        check(op, [x], {"axes": axes, "keepdims": keepdims}, opset=11)
        check(op, [x, as_axes(axes)], {"keepdims": keepdims}, opset=18, constant=[1])


@pytest.mark.parametrize("op", REDUCTIONS)
def test_all_axes_and_none(op: str) -> None:
    x = floats((3, 4))
    for keepdims in (0, 1):
        check(op, [x], {"keepdims": keepdims}, opset=18)
        check(op, [x, as_axes([])], {"keepdims": keepdims}, opset=18, constant=[1])
    check(op, [x], {}, opset=11)
    check("ReduceSum", [x, as_axes([])], {"noop_with_empty_axes": 1}, opset=18, constant=[1])
    check("ReduceSum", [x], {"noop_with_empty_axes": 1}, opset=18)


@pytest.mark.parametrize("shape", [(), (1,), (7,), (1, 1), (2, 1, 3, 1, 2)])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_ranks(op: str, shape: tuple[int, ...]) -> None:
    check(op, [floats(shape)], opset=18)
    if len(shape) > 1:
        check(op, [floats(shape), as_axes([-1, 0])], {"keepdims": 0}, opset=18, constant=[1])


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "int64"])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_empty(op: str, dtype: str) -> None:
    check(op, [np.zeros((2, 0, 3), dtype), as_axes([1])], opset=18, constant=[1])
    check(op, [np.zeros((2, 0, 3), dtype), as_axes([0])], opset=18, constant=[1])


@pytest.mark.parametrize("dtype", ["float64", "int32", "int64"])
@pytest.mark.parametrize("op", REDUCTIONS)
def test_types(op: str, dtype: str) -> None:
    x = ints((3, 4), dtype) if dtype != "float64" else floats((3, 4), dtype)
    check(op, [x, as_axes([1])], opset=18, constant=[1])
    if op not in ("ReduceLogSum", "ReduceLogSumExp", "ReduceProd"):
        check(op, [-x, as_axes([0])], opset=18, constant=[1])


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
def test_extremes_of_bytes_and_bools(op: str) -> None:
    for dtype in (np.int8, np.uint8):
        info = np.iinfo(dtype)
        x = np.array([[info.min, 3, info.max], [1, 2, 3]], dtype)
        check(op, [x, as_axes([1])], opset=18, constant=[1])
        check(op, [np.zeros((2, 0), dtype), as_axes([1])], opset=18, constant=[1])
    flags = np.array([[True, False], [False, False], [True, True]])
    numpy_op = np.max if op == "ReduceMax" else np.min
    check(op, [flags, as_axes([1])], opset=20, constant=[1], expected=[numpy_op(flags, 1, keepdims=True)])


def test_nan_makes_an_extreme_nan() -> None:
    x = np.array([[1, np.nan, 3], [np.nan, 1, 2], [1, 2, 3]], F32)
    check("ReduceMax", [x, as_axes([1])], opset=18, constant=[1], expected=[np.max(x, 1, keepdims=True)])
    check("ReduceMin", [x, as_axes([1])], opset=18, constant=[1], expected=[np.min(x, 1, keepdims=True)])
    check("ReduceSum", [x, as_axes([1])], opset=18, constant=[1])


def test_log_sum_exp_is_stable() -> None:
    inf = np.inf
    x = np.array([[-inf, -inf, -inf], [np.nan, 1, 2], [inf, 1, 2], [500, 501, 502], [-500, -501, -502]], F32)
    with np.errstate(all="ignore"):
        wide = np.log(np.exp(x.astype(np.longdouble)).sum(1, keepdims=True)).astype(F32)
    check("ReduceLogSumExp", [x, as_axes([1])], opset=18, constant=[1], expected=[wide])


def test_axes_that_only_a_run_knows_are_refused() -> None:
    assert "known only at run time" in refusal("ReduceSum", [floats((3, 4)), as_axes([1])], opset=18)


def test_large_reduction_is_accurate() -> None:
    x = floats((2, 20000))
    check("ReduceMean", [x, as_axes([1])], opset=18, constant=[1], tolerance=2e-5, dynamic=[False])


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
def test_arg_extremes(op: str) -> None:
    x = np.random.default_rng(0).integers(0, 4, (3, 4, 5)).astype(F32)
    for axis in (0, 1, -1):
        for keepdims in (0, 1):
            for last in (0, 1):
                check(op, [x], {"axis": axis, "keepdims": keepdims, "select_last_index": last}, opset=13)
    check(op, [x.astype(np.int32)], opset=13)
    check(op, [np.array([3, 1, 2], F32)], opset=13)
    with_nan = np.array([[1, np.nan, 3], [np.nan, 1, np.nan], [3, 4, 5]], F32)
    numpy_op = np.argmax if op == "ArgMax" else np.argmin
    check(op, [with_nan], {"axis": 1}, opset=13, expected=[numpy_op(with_nan, 1)[:, None]])
    assert refusal(op, [np.array(3, F32)], opset=13) == "it has no axis to reduce over"


def test_cumsum() -> None:
    for axis in (0, 1, -1):
        for exclusive in (0, 1):
            for reverse in (0, 1):
                attrs = {"exclusive": exclusive, "reverse": reverse}
                check("CumSum", [floats((3, 4, 2)), np.array(axis, np.int64)], attrs, constant=[1])
    check("CumSum", [ints((2, 6), np.int64), np.array(1, np.int32)], constant=[1])
    check("CumSum", [ints((2, 1), np.int32), np.array(1, np.int32)], {"exclusive": 1}, constant=[1])
    for axis in (0, 1, -1):
        check("CumSum", [floats((3, 4)), np.array(axis, np.int64)], {"reverse": 1})


def test_cumprod() -> None:
    # ONNX Runtime has no kernel for it.
    x = floats((2, 5, 3))
    for axis in (0, 1, 2):
        wanted = [np.cumprod(x, axis)]
        for constant in ([1], []):
            check("CumProd", [x, np.array(axis)], constant=constant, opset=26, expected=wanted, tolerance=1e-5)
    before = np.flip(np.cumprod(np.flip(x, 1), 1), 1)[:, 1:]
    wanted = [np.concatenate([before, np.ones((2, 1, 3), F32)], 1)]
    check("CumProd", [x, np.array(1)], {"exclusive": 1, "reverse": 1}, opset=26, expected=wanted, tolerance=1e-5)


@pytest.mark.parametrize("axes", [[0], [1], [2], [0, 2]])
def test_log_sum_exp_of_integers(axes: list[int]) -> None:
    x = np.random.default_rng(7).integers(-6, 7, (17, 5, 16))
    for dtype in (np.int64, np.int32):
        check("ReduceLogSumExp", [x.astype(dtype), np.array(axes)], opset=18, constant=[1])


@pytest.mark.parametrize("dtype", [np.int32, np.int64, np.uint32, np.uint64])
@pytest.mark.parametrize("op", EXACT)
def test_integers_are_exact_and_wrap(op: str, dtype: Any) -> None:
    for axes in ([1], [0, 2], [-3]):
        x = np.concatenate([a[None] for a in extremes((4, 7), dtype)]).reshape(5, 4, 7)
        for keepdims in (0, 1):
            expected = [reduced(op, x, tuple(axes), bool(keepdims))]
            attrs = {"keepdims": keepdims}
            check_exactly(op, [x, as_axes(axes)], attrs, opset=18, constant=[1], expected=expected)
    empty = np.zeros((2, 0), dtype)
    check_exactly(op, [empty, as_axes([1])], {}, opset=18, constant=[1], expected=[reduced(op, empty, (1,))])


@pytest.mark.parametrize("op", EXACT)
def test_integers_without_axes_stay(op: str) -> None:
    x = extremes((3, 4), np.int64)[3]
    with np.errstate(over="ignore"):
        expected = {"ReduceL1": np.abs(x), "ReduceSumSquare": x * x}.get(op, x)
    attrs = {"noop_with_empty_axes": 1}
    check_exactly(op, [x, as_axes([])], attrs, opset=18, constant=[1], expected=[expected])


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("op", ["ReduceL2", "ReduceLogSum"])
def test_functions_of_sums_of_integers_are_made_in_f64_and_saturate(op: str, dtype: Any) -> None:
    most, least = np.iinfo(dtype).max, np.iinfo(dtype).min
    x = np.array([[most, 1, 5, 9], [least, -1, -7, -9], [most, most, 2, 3], [100, 7, -3, 4], [0, -5, 2, 0]], dtype)
    if op == "ReduceLogSum":
        x = np.abs(x[[0, 2, 3]])
    check_exactly(op, [x], {"axes": [1]}, opset=11)
    check_exactly(op, [x, as_axes([1])], {"keepdims": 0}, opset=18, constant=[1])
    check_exactly(op, [x, as_axes([])], {"noop_with_empty_axes": 1}, opset=18, constant=[1])


def test_norms_of_unsigned_integers() -> None:
    x = np.array([[3, 4], [2**32 - 1, 2**32 - 1], [0, 0]], np.uint32)
    expected = [np.array([[5], [2**32 - 1], [0]], np.uint32)]
    check_exactly("ReduceL2", [x, as_axes([1])], opset=18, constant=[1], expected=expected)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("op", EXACT)
def test_integers_are_exact_in_kernels(op: str, dtype: Any) -> None:
    # Rows of a vector and more, a constant operand, and what ONNX Runtime alone would round.
    x = np.concatenate(extremes((2, 37), dtype))
    model = model_of(op, [x], {"axes": [1]}, opset=11, dynamic=True)
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y0", element_code(x), ["n10", 1]))
    compiled = igniter.compile(model, verify=False)
    assert compiled.report["regions"] == 1
    np.testing.assert_array_equal(compiled.session().run(None, {"x0": x})[0], reduced(op, x, (1,)))
