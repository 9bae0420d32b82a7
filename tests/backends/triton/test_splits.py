"""Sums in parts, in Triton's interpreter beside ONNX Runtime, and how many parts are chosen."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from igniter.schedules.product_blocks import ProductSize, best_seconds
from tests.backends.triton.programs import check, kernels_of, lowered, model, values

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

FLOAT, HALF, I64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64


def reduced(op: str, kind: int, dims: list[Any], **attributes: Any) -> onnx.ModelProto:
    return model([helper.make_node(op, ["x"], ["y"], **attributes)], {"x": (kind, dims)}, opset=13)


@pytest.mark.slow
@pytest.mark.parametrize("depth", [4096, 4000])
def test_products_of_few_rows_and_a_long_depth(depth: int) -> None:
    """In parts that divide the depth, and with a last one that is shorter; what follows is in the second launch."""
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Add", ["h", "b"], ["y"])]
    found = model(nodes, {"x": (HALF, [16, depth]), "w": (HALF, [depth, 32]), "b": (HALF, [32])})
    x, w = values(np.float16, 16, depth) / np.float16(8), values(np.float16, depth, 32, seed=1)
    check(found, {"x": x, "w": w, "b": values(np.float16, 32, seed=2)}, launches=2, rtol=2e-3)
    x[3, depth - 1] = np.inf
    check(found, {"x": x, "w": w, "b": values(np.float16, 32, seed=2)}, launches=2, rtol=2e-3)


@pytest.mark.parametrize(
    "op",
    ["ReduceMax", "ReduceLogSumExp", *(pytest.param(n, marks=pytest.mark.full) for n in ("ReduceMean", "ReduceL2"))],
)
def test_whole_tensors(op: str) -> None:
    found = reduced(op, FLOAT, ["n", "m"], keepdims=0)
    assert len(kernels_of(lowered(found))) > 1
    check(found, *({"x": values(np.float32, n, m)} for n, m in ((300, 401), (1, 1), (3, 5))), rtol=1e-4)


@pytest.mark.slow
def test_whole_tensors_of_integers() -> None:
    found = reduced("ReduceSum", I64, [600000], keepdims=0)
    assert len(kernels_of(lowered(found))) > 1
    check(found, {"x": np.random.default_rng(0).integers(-1000, 1000, 600000)})


def test_rows_are_whole_where_they_are_enough() -> None:
    assert len(kernels_of(lowered(reduced("ReduceMax", FLOAT, [4096, 1024], axes=[1])))) == 1
    assert len(kernels_of(lowered(reduced("ReduceMax", FLOAT, ["n", 1024], axes=[1])))) == 1


def test_parts_are_estimated_to_pay_where_programs_are_few() -> None:
    few, many = ProductSize(128, 768, 3072, 1, 2), ProductSize(8192, 8192, 3072, 1, 2)
    assert best_seconds(few.split(8)) + few.joining(8) < best_seconds(few) / 1.5
    assert best_seconds(many.split(2)) + many.joining(2) > best_seconds(many)


def test_sums_over_what_tells_other_sums_apart_are_launches_of_their_own() -> None:
    """All of a tensor, and then each column of it: a program of the first has no column wholly."""
    nodes = [
        helper.make_node("ReduceSumSquare", ["x"], ["s"], keepdims=0),
        helper.make_node("Mul", ["x", "s"], ["p"]),
        helper.make_node("ReduceMax", ["p"], ["y"], axes=[0], keepdims=0),
    ]
    for rows in 0, 3:
        found = model(nodes, {"x": (FLOAT, [rows, "n"])}, opset=13)
        runs = [{"x": values(np.float32, rows, n)} for n in (5, 0)]
        check(found, *runs[: 1 if rows else 0], rtol=1e-5)
        assert kernels_of(lowered(found))
