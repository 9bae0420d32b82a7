"""The whole model that hostile files are made of: small, with something of everything that a file can hold."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def info(name: str, kind: int, shape: object) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, shape)  # type: ignore[arg-type]


def model_of(
    nodes: list[onnx.NodeProto],
    inputs: list[onnx.ValueInfoProto],
    outputs: list[onnx.ValueInfoProto],
    constants: dict[str, np.ndarray] | None = None,
    *,
    name: str = "hostile",
    opset: int = 17,
    ir_version: int = 8,
) -> onnx.ModelProto:
    tensors = [numpy_helper.from_array(v, k) for k, v in (constants or {}).items()]
    graph = helper.make_graph(nodes, name, inputs, outputs, tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def whole() -> onnx.ModelProto:
    """A product, a normalization, shape arithmetic, a subgraph, attributes of every kind, a symbolic dim."""
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.standard_normal((8, 8)).astype(np.float32),
        "b": rng.standard_normal(8).astype(np.float32),
        "shape": np.array([0, 2, 4], np.int64),
        "axes": np.array([1], np.int64),
        "limit": np.array(0.5, np.float32),
    }
    then = helper.make_graph([helper.make_node("Neg", ["r"], ["t"], "neg")], "then", [], [info("t", FLOAT, None)])
    other = helper.make_graph([helper.make_node("Abs", ["r"], ["e"], "abs")], "else", [], [info("e", FLOAT, None)])
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["m"], "matmul"),
        helper.make_node("Add", ["m", "b"], ["a"], "add"),
        helper.make_node("LayerNormalization", ["a", "b", "b"], ["l"], "norm", epsilon=1e-5, axis=-1),
        helper.make_node("Reshape", ["l", "shape"], ["r"], "reshape"),
        helper.make_node("ReduceMax", ["l"], ["top"], "top", axes=[0, 1], keepdims=0),
        helper.make_node("Greater", ["top", "limit"], ["c"], "greater"),
        helper.make_node("If", ["c"], ["i"], "choose", then_branch=then, else_branch=other),
        helper.make_node("Transpose", ["i"], ["p"], "transpose", perm=[0, 2, 1]),
        helper.make_node("Softmax", ["p"], ["y"], "softmax", axis=-1),
        helper.make_node("Gather", ["l", "axes"], ["g"], "gather", axis=1),
        helper.make_node("Cast", ["g"], ["z"], "cast", to=INT64),
    ]
    inputs = [info("x", FLOAT, ["n", 8])]
    outputs = [info("y", FLOAT, ["n", 4, 2]), info("z", INT64, ["n", 1])]
    model = model_of(nodes, inputs, outputs, constants)
    model.metadata_props.add(key="origin", value="made for a test")
    onnx.checker.check_model(model)
    return model
