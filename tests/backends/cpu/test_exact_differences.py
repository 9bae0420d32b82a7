"""Values computed twice have the same bits, and equals differ by 0, also where products could be part of an FMA."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np
import onnxruntime as ort
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

import igniter
from tests.fuzz.wild.quick import unoptimised


@pytest.mark.parametrize("op", ["Softmax", "LogSoftmax"])
def test_softmax_of_large_products(op: str) -> None:
    # A product near 2e8 is rounded by up to 8: what an FMA leaves out would multiply the exponentials by e^8.
    weight = numpy_helper.from_array((1 + np.arange(33) * 1e-7).astype(np.float32), "w")
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"]), helper.make_node(op, ["y"], ["z"], axis=-1)]
    x, z = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["rows", 33]) for n in "xz")
    graph = helper.make_graph(nodes, "g", [x], [z], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    feed = {"x": (2e8 + np.random.default_rng(0).random((16, 33)) * 300).astype(np.float32)}
    (want,) = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, feed)
    artifact = igniter.compile(model, verify=False)
    assert artifact.report["regions"] == 1
    (got,) = artifact.session(intra_op_num_threads=1).run(None, feed)
    np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


EVERYTHING = igniter.CompileOptions(
    fusion_passes="form-fusion-regions{contractions=all singletons=all},lift-constants,pack-weights"
)


def _model(nodes: Sequence[NodeProto], inputs: Sequence[str], output: str, kind: int) -> ModelProto:
    given = [helper.make_tensor_value_info(n, TensorProto.FLOAT, SHAPES[n]) for n in inputs]
    result = helper.make_tensor_value_info(output, kind, None)
    graph = helper.make_graph(nodes, "g", given, [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


SHAPES = {"a": ["rows", 1], "b": [1, 9], "c": [9], "d": [9], "w": ["rows", 9]}
"""As in a Gemm of depth 1 whose bias is dequantised: one of the products is the same in all rows."""
TWO_PRODUCTS = [
    helper.make_node("Mul", ["a", "b"], ["p"]),
    helper.make_node("Mul", ["c", "d"], ["q"]),
    helper.make_node("Add", ["p", "q"], ["x"]),
]


def _feed(rows: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(rows)
    shapes = {n: [rows if d == "rows" else d for d in shape] for n, shape in SHAPES.items()}
    return {n: rng.standard_normal(shapes[n], np.float32) for n in "abcd"}


Level = Callable[[], AbstractContextManager[None]]
"""How LLVM optimises: what it fuses by itself depends on it."""


def _session(model: ModelProto, level: Level) -> ort.InferenceSession:
    with level():
        return igniter.compile(model, options=EVERYTHING, verify=False, cache=False).session(intra_op_num_threads=1)


@pytest.mark.parametrize("level", [nullcontext, unoptimised])
@pytest.mark.parametrize("op", ["ArgMin", "ArgMax"])
@pytest.mark.parametrize("axis", [0, 1])
def test_extreme_of_a_sum_of_two_products_is_found(op: str, axis: int, level: Level) -> None:
    # Either product of x = a*b + c*d can be the one that is not rounded: where one copy of the sum took the one and
    # another copy the other, the extreme of the first was not among those of the second.
    nodes = [*TWO_PRODUCTS, helper.make_node(op, ["x"], ["i"], axis=axis, keepdims=0, select_last_index=1)]
    session = _session(_model(nodes, "abcd", "i", TensorProto.INT64), level)
    for rows in (1, 7, 16, 33):
        feed = _feed(rows)
        (got,) = session.run(None, feed)
        x = feed["a"].astype(np.float64) * feed["b"] + feed["c"].astype(np.float64) * feed["d"]
        np.testing.assert_array_equal(got, getattr(np, op.lower())(x, axis=axis))


@pytest.mark.parametrize("level", [nullcontext, unoptimised])
def test_maximum_equals_an_element(level: Level) -> None:
    # What masks of "the greatest" in a graph rely on, where the sum stands beside a product that is kept in a register.
    nodes = [
        *TWO_PRODUCTS,
        helper.make_node("ReduceMax", ["x"], ["m"], axes=[1]),
        helper.make_node("Equal", ["x", "m"], ["e"]),
        helper.make_node("Cast", ["e"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("ReduceMax", ["f"], ["any"], axes=[1]),
    ]
    session = _session(_model(nodes, "abcd", "any", TensorProto.FLOAT), level)
    (got,) = session.run(None, _feed(64))
    assert got.all()


@pytest.mark.parametrize("level", [nullcontext, unoptimised])
def test_variance_of_equals_has_a_root(level: Level) -> None:
    # The greatest square less the square of the greatest is 0, and not what an FMA leaves of its rounding, maybe below.
    nodes = [
        helper.make_node("Mul", ["w", "w"], ["square"]),
        helper.make_node("ReduceMax", ["square"], ["of_squares"], axes=[1]),
        helper.make_node("ReduceMax", ["w"], ["m"], axes=[1]),
        helper.make_node("Mul", ["m", "m"], ["of_m"]),
        helper.make_node("Sub", ["of_squares", "of_m"], ["variance"]),
        helper.make_node("Sqrt", ["variance"], ["y"]),
    ]
    session = _session(_model(nodes, "w", "y", TensorProto.FLOAT), level)
    w = np.repeat(np.random.default_rng(0).random((64, 1), np.float32) + np.float32(0.1), 9, axis=1)
    (got,) = session.run(None, {"w": w})
    np.testing.assert_array_equal(got, 0)


@pytest.mark.slow
@pytest.mark.parametrize("level", [nullcontext, unoptimised])
@pytest.mark.parametrize("op", ["ArgMin", "ArgMax"])
def test_extreme_of_a_quantised_product_is_found(op: str, level: Level) -> None:
    # The bias of a product of depth 1 is a product, too: LLVM fused the one in the vectors that look for the extreme,
    # and the other in those that look for its place, where it was asked not to optimise.
    rng = np.random.default_rng(0)
    constants = {
        "a_scale": np.float32(0.1),
        "a_zero": np.int8(-1),
        "b": rng.integers(-64, 32, (1, 9), np.int8),
        "b_scale": np.float32([0.05, 0.1, 0.25, 0.02, 0.1, 0.25, 0.05, 0.05, 0.25]),
        "b_zero": rng.integers(-3, 3, 9, np.int8),
        "bias": rng.integers(-421, 421, 9, np.int32),
    }
    product = ["a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "bias", "", ""]
    nodes = [
        helper.make_node("QGemm", product, ["x"], domain="com.microsoft"),
        helper.make_node(op, ["x"], ["i"], axis=0),
    ]
    a = helper.make_tensor_value_info("a", TensorProto.INT8, ["rows", 1])
    i = helper.make_tensor_value_info("i", TensorProto.INT64, [1, 9])
    weights = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph(nodes, "g", [a], [i], weights), opset_imports=opsets, ir_version=8)
    want = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    got = _session(model, level)
    for rows in (1, 9, 16, 33):
        feed = {"a": rng.permutation(np.arange(-20, 20, dtype=np.int8))[:rows, None]}
        np.testing.assert_array_equal(got.run(None, feed)[0], want.run(None, feed)[0])
