"""Ops that write where another tensor says, interpreted and compiled, against ONNX Runtime."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from onnx import helper

import igniter
from igniter.backend import EVERYTHING
from igniter.verification.interp.arithmetic import InterpreterError
from tests.ops.single_node import check, refusal
from tests.ops.test_compiled import run

F32 = np.float32
OPSETS = {"TensorScatter": 24}
REDUCTIONS = ("none", "add", "mul", "max", "min")


def floats(*shape: int, seed: int = 0) -> Any:
    return np.random.default_rng(seed).normal(0, 1, shape).astype(F32)


def indices(dim: int, *shape: int, seed: int = 5) -> Any:
    """From -dim to dim - 1, many of them twice."""
    return np.random.default_rng(seed).integers(-dim, dim, shape)


def both(op: str, inputs: Sequence[Any], attrs: Mapping[str, Any], **model: Any) -> None:
    check(op, inputs, attrs, **model)
    run(op, inputs, attrs, 0.0, **model)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_scatter_elements(reduction: str) -> None:
    x = floats(3, 5, 20)
    x[0, 0, 0] = x[1, 1, 3] = np.nan
    for axis, shape in ((0, (4, 5, 20)), (1, (2, 7, 20)), (-1, (1, 2, 3)), (2, (3, 5, 0))):
        updates = floats(*shape, seed=1)
        updates.flat[::7] = np.nan
        attrs = {"axis": axis, "reduction": reduction}
        both("ScatterElements", [x, indices(x.shape[axis], *shape), updates], attrs, opset=18, fixed=[1, 2, 3, 4, 5, 7])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "uint16", "int32", "int64", "float64"])
def test_scatter_of_types(dtype: str) -> None:
    rng = np.random.default_rng(0)
    x, updates = (rng.integers(0, 100, s).astype(dtype) for s in ((4, 6), (3, 6)))
    for reduction in REDUCTIONS:
        at = indices(4, 3, 6).astype(np.int32)
        both("ScatterElements", [x, at, updates], {"axis": 0, "reduction": reduction}, opset=18, fixed=[3, 4])


@pytest.mark.slow
def test_scatter_before_opset_11() -> None:
    both("Scatter", [floats(3, 5), indices(5, 3, 2) % 5, floats(3, 2, seed=1)], {"axis": 1}, opset=9)
    both("Scatter", [floats(4), np.array([1, 1, 1]), floats(3)], {}, opset=9)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_scatter_nd(reduction: str) -> None:
    x = floats(3, 5, 20)
    attrs = {"reduction": reduction}
    rows = np.stack([indices(3, 4, 6), indices(5, 4, 6)], -1)
    both("ScatterND", [x, rows, floats(4, 6, 20, seed=1)], attrs, opset=18, fixed=[2])
    elements = np.stack([indices(3, 9), indices(5, 9), indices(20, 9)], -1)
    both("ScatterND", [x, elements, floats(9, seed=1)], attrs, opset=18, fixed=[3])
    both("ScatterND", [x, np.array([1]), floats(5, 20)], attrs, opset=18)


def test_scatter_nd_of_one_row() -> None:
    """One row at a position: a nest, which a caller may have computed in place."""
    x = floats(7, 3, 20)
    for row in (-7, 0, 3, 6):
        both("ScatterND", [x, np.array([[row]]), floats(1, 3, 20, seed=1)], {}, opset=18, fixed=[1])
    both("ScatterND", [x, np.array([[[2]]], np.int64), floats(1, 1, 3, 20, seed=1)], {}, opset=18, fixed=[1])


def session_of(op: str, *dims: tuple[Any, ...], **attrs: Any) -> Any:
    """The compiled model of one scatter whose inputs have these dims."""
    types = (1, 1, 7) if op == "TensorScatter" else (1, 7, 1)
    infos = [helper.make_tensor_value_info(f"x{k}", t, d) for k, (t, d) in enumerate(zip(types, dims, strict=True))]
    node = helper.make_node(op, ["x0", "x1", "x2"], ["y"], name="the_scatter", **attrs)
    graph = helper.make_graph([node], "g", infos, [helper.make_tensor_value_info("y", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSETS.get(op, 18))], ir_version=8)
    artifact = igniter.load(model).compile(options=igniter.CompileOptions(fusion_passes=EVERYTHING), verify=False)
    assert artifact.report["nodes_after"] == artifact.report["regions"] == 1
    return artifact.session(intra_op_num_threads=1, log_severity_level=4)


def test_what_onnx_runtime_refuses_is_refused() -> None:
    x, updates = floats(3, 5), floats(3, 2, seed=1)
    session = session_of("ScatterElements", ("a", "b"), ("c", "d"), ("e", "f"), axis=1)
    right = np.array([[0, 4], [-5, 1], [2, 2]])
    (found,) = session.run(None, {"x0": x, "x1": right, "x2": updates})
    wanted = x.copy()
    np.put_along_axis(wanted, right % 5, updates, 1)
    np.testing.assert_array_equal(found[:2], wanted[:2])
    for wrong in (5, -6, 1 << 40):
        with pytest.raises(Exception, match=r"the_scatter.*out of data bounds"):
            session.run(None, {"x0": x, "x1": np.where(right == 4, wrong, right), "x2": updates})
    with pytest.raises(Exception, match="its updates and its indices have different dims"):
        session.run(None, {"x0": x, "x1": right, "x2": updates[:2]})
    with pytest.raises(Exception, match="longer than the data"):
        session.run(None, {"x0": x[:2], "x1": right, "x2": updates})
    session = session_of("ScatterND", ("a", "b"), ("c", 1), ("e", "f"))
    with pytest.raises(Exception, match=r"the_scatter.*invalid index"):
        session.run(None, {"x0": x, "x1": np.array([[3]]), "x2": floats(1, 5)})
    with pytest.raises(Exception, match="do not fit its indices"):
        session.run(None, {"x0": x, "x1": np.array([[2]]), "x2": floats(1, 4)})


def test_what_is_not_compiled() -> None:
    assert "in one position" in refusal("ScatterND", [floats(3, 5), indices(5, 3, 5), floats(3)], dynamic=True)


def test_tensor_scatter() -> None:
    past, update = floats(3, 2, 9, 4), floats(3, 2, 4, 4, seed=1)
    both("TensorScatter", [past, update, np.array([1, 5, 0])], {}, opset=24, fixed=[2, 3])
    both("TensorScatter", [past, update, np.array([1, 8, 6])], {"mode": "circular"}, opset=24, fixed=[2, 3])
    both("TensorScatter", [past, update], {}, opset=24, fixed=[2, 3])
    # More than once around.
    both("TensorScatter", [past, update, np.array([10, 27, 9])], {"mode": "circular"}, opset=24, fixed=[2, 3])


def test_what_has_no_place_is_an_error() -> None:
    past, update = floats(3, 2, 9, 4), floats(3, 2, 4, 4, seed=1)
    for mode, at in (("linear", [0, 6, 0]), ("linear", [0, -1, 0]), ("circular", [0, 0, -1])):
        with pytest.raises(InterpreterError, match="its write indices are negative or too large"):
            check("TensorScatter", [past, update, np.array(at)], {"mode": mode}, opset=24, fixed=[2, 3], expected=[])
    x, places = floats(1, 1, 2, 2), np.array([0, 5, 10, 15]).reshape(1, 1, 2, 2)
    for wrong in (16, -1):
        places[0, 0, 0, 0] = wrong
        with pytest.raises(InterpreterError, match="its indices are out of bounds"):
            check("MaxUnpool", [x, places], {"kernel_shape": [2, 2], "strides": [2, 2]}, opset=11, expected=[])


def test_max_unpool() -> None:
    x, at = floats(2, 2, 2, 3), np.arange(24).reshape(2, 2, 2, 3) * 4
    attrs = {"kernel_shape": [2, 2], "strides": [2, 2]}
    both("MaxUnpool", [x, at], attrs, opset=11)
    at[0, 0, 0, :] = 5  # Three elements go to one place: the last of them stays.
    both("MaxUnpool", [x, at], attrs, opset=11)
    both("MaxUnpool", [x[:0], at[:0]], attrs, opset=11)


@pytest.mark.parametrize("op", ["ScatterND", "TensorScatter"])
def test_one_row_in_the_memory_of_the_data(op: str) -> None:
    """The data and the result are one buffer, of which only the row is written: NaN elsewhere stay as they are."""
    if op == "ScatterND":
        shapes, attrs, at, new = (("n", 4, 16), (1, 1), (1, 4, 16)), {}, np.array([[5]]), 2
    else:
        shapes, attrs, at, new = ((1, "n", 16), (1, 1, 16), (1,)), {"axis": 1}, np.array([5]), 1
    session = session_of(op, *shapes, **attrs)
    data = np.full([9 if size == "n" else size for size in shapes[0]], np.nan, F32)
    row, expected = floats(*shapes[new], seed=1), data.copy()
    expected.reshape(9, -1)[5] = row.reshape(-1)
    binding = session.io_binding()
    for name, value in zip(("x0", "x1", "x2"), (data, at, row) if new == 2 else (data, row, at), strict=True):
        binding.bind_input(name, "cpu", 0, value.dtype, value.shape, value.ctypes.data)
    binding.bind_output("y", "cpu", 0, F32, data.shape, data.ctypes.data)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(data, expected)
