"""Nodes that stand before what they read are put in order; a cycle is named."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.errors import IgniterError
from igniter.frontend import import_model
from igniter.frontend.node_order import in_order


def _model(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [3])
    graph = helper.make_graph(list(nodes), "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_nodes_out_of_order_compile_as_onnx_runtime_runs_them() -> None:
    captured = helper.make_graph(
        [helper.make_node("Exp", ["late"], ["inner"])],
        "branch",
        [],
        [helper.make_tensor_value_info("inner", TensorProto.FLOAT, [3])],
    )
    yes = helper.make_node("Constant", [], ["yes"], value=numpy_helper.from_array(np.array(True)))
    branch = helper.make_node("If", ["yes"], ["b"], then_branch=captured, else_branch=captured)
    model = _model(
        helper.make_node("Add", ["b", "x"], ["y"]),
        branch,
        helper.make_node("Neg", ["x"], ["late"]),
        yes,
    )
    feed = {"x": np.array([0.5, -1, 2], np.float32)}
    expected = ort.InferenceSession(model.SerializeToString()).run(None, feed)[0]
    found = igniter.compile(model).session().run(None, feed)[0]
    np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_nodes_in_order_stay_as_they_are() -> None:
    nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Exp", ["x"], ["b"])]
    assert in_order(nodes, "here") is nodes


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ([("Neg", "y", "y")], "the node Neg of the main graph that computes 'y' reads its own result"),
        (
            [("Neg", "c", "y"), ("Neg", "a", "b"), ("Exp", "b", "c"), ("Sin", "c", "a")],
            "that computes 'c' and 2 more read each other's results in a cycle; the next is .* 'b'",
        ),
    ],
)
def test_a_cycle_is_named(nodes: list[tuple[str, str, str]], message: str) -> None:
    model = _model(*(helper.make_node(op, [x], [y]) for op, x, y in nodes))
    with pytest.raises(IgniterError, match=message):
        import_model(model)
