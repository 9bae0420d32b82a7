"""Models with exact integers, run by ONNX Runtime, against Python's numbers."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from igniter.dialects.onnx.base import OnnxOp, constant_weight
from igniter.dialects.onnx.structure import main_graph
from igniter.frontend import import_model
from igniter.frontend.evaluate import evaluate_nodes
from igniter.frontend.exact_integers import with_exact_integers
from tests.ops.exact_integers import EXACT, extremes, power, reduced, wrapped

Array = np.ndarray[Any, Any]
CODES = {
    np.int32: TensorProto.INT32,
    np.int64: TensorProto.INT64,
    np.uint32: TensorProto.UINT32,
    np.uint64: TensorProto.UINT64,
}


def run(model: onnx.ModelProto, **feed: Array) -> Array:
    """The first output of the model with exact integers."""
    exact = with_exact_integers(model, unsigned=True)
    assert exact is not None and exact.replaced and not exact.left
    assert with_exact_integers(exact.proto, unsigned=True) is None, "it is exact already"
    session: Any = onnxruntime.InferenceSession(exact.proto.SerializeToString())
    return session.run(None, feed)[0]


def model_of(nodes: list[onnx.NodeProto], inputs: dict[str, Any], opset: int, **constants: Any) -> onnx.ModelProto:
    infos = [helper.make_tensor_value_info(n, CODES[t], None) for n, t in inputs.items()]
    weights = [numpy_helper.from_array(np.array(v, np.int64), n) for n, v in constants.items()]
    outputs = [helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph(nodes, "g", infos, outputs, weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


@pytest.mark.parametrize(
    ("op", "dtype"),
    [
        *((op, dtype) for op in EXACT for dtype in (np.int32, np.int64)),
        *((op, dtype) for op in ("ReduceMean", "ReduceSumSquare") for dtype in (np.uint32, np.uint64)),
    ],
)
def test_reductions(op: str, dtype: Any) -> None:
    arrays = [np.stack(extremes((4, 3), dtype)), np.zeros((2, 0, 3), dtype)]
    for opset, axes, keepdims in [(11, [1], 0), (11, [0, -1], 1), (18, [-1], 1), (18, [0, 2], 0), (18, [], 0)]:
        attrs: dict[str, Any] = {"axes": axes} if opset < 13 else {}
        node = helper.make_node(op, ["x", "axes"] if opset > 13 else ["x"], ["y"], keepdims=keepdims, **attrs)
        model = model_of([node], {"x": dtype}, opset, axes=axes)
        for x in arrays:
            expected = reduced(op, x, tuple(axes) or (0, 1, 2), bool(keepdims))
            np.testing.assert_array_equal(run(model, x=x), expected)


def test_axes_that_a_run_gives() -> None:
    model = model_of([helper.make_node("ReduceSum", ["x", "axes"], ["y"])], {"x": np.int64, "axes": np.int64}, 18)
    x = np.stack(extremes((4, 3), np.int64))
    np.testing.assert_array_equal(run(model, x=x, axes=np.array([2])), reduced("ReduceSum", x, (2,)))
    model.graph.node[0].op_type = "ReduceProd"
    found = with_exact_integers(model)
    assert found is not None and found.left == ("ReduceProd of 'y'",)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize("equation", ["ij,jk->ik", "ij->i", "ij->", "ij,ij->j"])
def test_einsum(equation: str, dtype: Any) -> None:
    operands = extremes((4, 4), dtype)[:3:2][: equation.count(",") + 1]
    names = [f"x{k}" for k in range(len(operands))]
    model = model_of([helper.make_node("Einsum", names, ["y"], equation=equation)], dict.fromkeys(names, dtype), 18)
    expected = np.vectorize(lambda v: wrapped(v, dtype), otypes=[dtype])(
        np.einsum(equation, *(x.astype(object) for x in operands))
    )
    np.testing.assert_array_equal(run(model, **dict(zip(names, operands, strict=True))), expected)


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_powers(dtype: Any) -> None:
    model = model_of([helper.make_node("Pow", ["x", "e"], ["y"])], {"x": dtype, "e": np.int64}, 15)
    x = np.concatenate(extremes((6,), dtype))
    for e in (-3, -2, -1, 0, 1, 2, 31, 32, 63, 64, 2**40 + 1):
        expected = np.array([power(int(v), e, dtype) for v in x], dtype)
        np.testing.assert_array_equal(run(model, x=x, e=np.array(e)), expected)


def test_functions_and_loops() -> None:
    """A sum inside of a function, which is called in the body of a loop."""
    model = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18, "local" : 1]>
        g (int64[n] x) => (int64 y) {
            trips = Constant <value = int64 {3}> ()
            zero = Constant <value = int64 {0}> ()
            y = Loop (trips, , zero) <body = body (int64 i, bool going, int64 state) => (bool goes, int64 next) {
                s = local.total (x)
                next = Add (state, s)
                goes = Identity (going)
            }>
        }
        <domain : "local", opset_import : ["" : 18]>
        total (v) => (s) { s = ReduceSum <keepdims = 0> (v) }
    """)
    x = np.array([2**62, 2**62, 2**60 + 1], np.int64)
    assert run(model, x=x) == wrapped(3 * sum(int(v) for v in x), np.int64)


def test_floats_and_dims_stay() -> None:
    floats = onnx.parser.parse_model("""
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[n] x) => (float y, int64 count) {
            y = ReduceSum <keepdims = 0> (x)
            dims = Shape (x)
            count = ReduceProd <keepdims = 0> (dims)
        }
    """)
    assert with_exact_integers(floats, of_shapes=False) is None
    found = with_exact_integers(floats)
    assert found is not None and found.replaced == ("ReduceProd of 'count'",)


def test_constants_are_folded_exactly() -> None:
    nodes = [helper.make_node("ReduceSum", ["c"], ["y"], keepdims=0)]
    module = import_model(model_of(nodes, {}, 18, c=[2**60 + 1, 2**55 + 3, 5]))
    ops = [op for op in main_graph(module).body.ops if isinstance(op, OnnxOp)]
    constant, total = ops
    weight = constant_weight(constant.results[0])
    assert weight is not None
    (value,) = evaluate_nodes([total], {constant.results[0]: weight}, [total.results[0]], {"": 18})
    assert int(value) == 2**60 + 2**55 + 9
