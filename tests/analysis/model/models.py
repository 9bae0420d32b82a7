"""Small models for the tests of plans, and where the onnx package keeps its networks."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import onnx
from onnx import NodeProto, TensorProto, helper

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
F = TensorProto.FLOAT


def model_of(
    nodes: Sequence[NodeProto], inputs: dict[str, list[int | str]], outputs: Sequence[str], **types: int
) -> bytes:
    """A model with inputs by their dims, all of f32 but for those in `types`, and outputs of which nothing is said."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(n, types.get(n, F), dims) for n, dims in inputs.items()],
        [helper.make_tensor_value_info(n, types.get(n, F), None) for n in outputs],
    )
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return made.SerializeToString()


def diamond() -> bytes:
    """x -> a -> (b, c) -> d -> y; b and c are both there for d."""
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "n_a"),
        helper.make_node("Softmax", ["a"], ["b"], "n_b"),
        helper.make_node("Softmax", ["a"], ["c"], "n_c", axis=0),
        helper.make_node("Add", ["b", "c"], ["d"], "n_d"),
        helper.make_node("Softmax", ["d"], ["y"], "n_y"),
    ]
    return model_of(nodes, {"x": ["rows", 3]}, ["y"])


def branches() -> bytes:
    """An If whose branches each have an intermediate value, and read `a` from outside."""

    def branch(name: str, op: str) -> onnx.GraphProto:
        inner = [
            helper.make_node("Softmax", ["a"], [f"{name}_t"], f"{name}_1"),
            helper.make_node(op, [f"{name}_t"], [f"{name}_y"], f"{name}_2"),
        ]
        return helper.make_graph(inner, name, [], [helper.make_tensor_value_info(f"{name}_y", F, None)])

    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], "n_a"),
        helper.make_node("ReduceSum", ["a"], ["sum"], "n_sum", keepdims=0),
        helper.make_node("Cast", ["sum"], ["yes"], "n_yes", to=TensorProto.BOOL),
        helper.make_node(
            "If",
            ["yes"],
            ["z"],
            "choice",
            then_branch=branch("then", "Softmax"),
            else_branch=branch("other", "LogSoftmax"),
        ),
        helper.make_node("Softmax", ["z"], ["y"], "n_y"),
    ]
    return model_of(nodes, {"x": [2, 3]}, ["y"])


def loop_model() -> bytes:
    """A Loop that hands a value on, piles one up, and reads `a` from outside."""
    body = helper.make_graph(
        [
            helper.make_node("Softmax", ["v"], ["t"], "b_1"),
            helper.make_node("Add", ["t", "a"], ["v_next"], "b_2"),
            helper.make_node("Identity", ["go"], ["go_next"], "b_3"),
            helper.make_node("Softmax", ["v_next"], ["row"], "b_4"),
        ],
        "body",
        [
            helper.make_tensor_value_info("i", TensorProto.INT64, []),
            helper.make_tensor_value_info("go", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v", F, [2, 3]),
        ],
        [
            helper.make_tensor_value_info("go_next", TensorProto.BOOL, []),
            helper.make_tensor_value_info("v_next", F, [2, 3]),
            helper.make_tensor_value_info("row", F, [2, 3]),
        ],
    )
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], "n_a"),
        helper.make_node("LogSoftmax", ["a"], ["start"], "n_start"),
        helper.make_node("Loop", ["n", "", "start"], ["last", "rows"], "around", body=body),
        helper.make_node("Softmax", ["last"], ["y"], "n_y"),
    ]
    return model_of(nodes, {"x": [2, 3], "n": []}, ["y", "rows"], n=TensorProto.INT64)
