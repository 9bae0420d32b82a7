"""Unique: against ONNX Runtime, and ONNX's evaluator where ONNX Runtime has no kernel or confuses NaNs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx.reference import ReferenceEvaluator

import igniter
from tests.ops.single_node import model_of
from tests.values.bound import OPTIONS, check_bound

RNG = np.random.default_rng(3)


def check_as_onnx(runs: list[np.ndarray[Any, Any]], attrs: dict[str, int], opset: int = 21) -> None:
    """Compiles the node, of which nothing is left, and compares with ONNX's evaluator."""
    model = model_of("Unique", runs[:1], attrs, outputs=4, opset=opset, dynamic=True)
    artifact = igniter.load(model).compile(options=OPTIONS, verify=False)
    assert artifact.report["left_to_onnxruntime"] == []
    session, evaluator = artifact.session(log_severity_level=4), ReferenceEvaluator(model)
    for x in runs:
        for got, expected in zip(session.run(None, {"x0": x}), evaluator.run(None, {"x0": x}), strict=True):
            assert got.dtype == expected.dtype
            np.testing.assert_array_equal(got, expected)


@pytest.mark.parametrize("sorted_", [0, 1])
def test_elements(sorted_: int) -> None:
    x = RNG.integers(0, 9, (6, 5, 7)).astype(np.float32)
    x[0, :2, :2] = [[-0.0, np.inf], [0.0, -np.inf]]
    distinct = RNG.permutation(x.size).reshape(x.shape).astype(np.float32)
    check_bound("Unique", [[x], [np.ones_like(x)], [distinct], [x[:1]], [x[:0]]], {"sorted": sorted_}, outputs=4)


@pytest.mark.parametrize(("axis", "sorted_"), [(0, 1), (1, 0), (-1, 1)])
def test_slices(axis: int, sorted_: int) -> None:
    x = RNG.integers(0, 2, (9, 8, 2)).astype(np.int64)
    check_bound("Unique", [[x], [x * 0], [x[:, :1]]], {"axis": axis, "sorted": sorted_}, outputs=4)


def test_some_outputs() -> None:
    x = RNG.integers(-3, 3, (40,)).astype(np.int8)
    check_bound("Unique", [[x]], outputs=1)
    check_bound("Unique", [[x], [x[:1]]], {"axis": 0}, outputs=2, opset=11)
    check_bound("Unique", [[np.array(3.0)]], outputs=4, dynamic=False)


@pytest.mark.parametrize("kind", ["u1", "i4", "u8", "f2", "?"])
def test_types(kind: str) -> None:
    x = RNG.integers(0, 7, (5, 6)).astype(kind)
    if kind == "u8":
        x[:3, 0] = np.iinfo(kind).max
    check_as_onnx([x, x[:1]], {"axis": 1})


def test_nan_is_equal_to_nan_and_comes_last() -> None:
    x = np.array([1, np.nan, 2, np.nan, -np.inf, np.inf, 1], np.float32)
    check_as_onnx([x, x[1:], x[1:2]], {})
    check_as_onnx([x, x[1:]], {"sorted": 0})


def test_slices_of_nothing_are_equal() -> None:
    model = model_of("Unique", [np.zeros((3, 0, 2), np.float32)], {"axis": 0}, outputs=4)
    session = igniter.load(model).compile(options=OPTIONS, verify=False).session(log_severity_level=4)
    found = session.run(None, {"x0": np.zeros((3, 0, 2), np.float32)})
    assert found[0].shape == (1, 0, 2)
    assert [f.tolist() for f in found[1:]] == [[0], [0, 0, 0], [3]]
