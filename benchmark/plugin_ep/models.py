"""The models of the comparison: one small product, a transformer, and networks of `benchmark.models`."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmark.models.networks import NETWORKS

WIDTH, HEADS, LAYERS = 512, 8, 4
SIZES = {"rows": 8, "batch": 1, "seq": 64}
"""The sizes of symbolic dims in the runs."""


def make(name: str) -> onnx.ModelProto:
    """Returns a model by name, or reads a file."""
    if name == "product":
        return product()
    if name == "transformer":
        return transformer()
    return NETWORKS[name]() if name in NETWORKS else onnx.load(name)


def product() -> onnx.ModelProto:
    """A product of [rows, 16] and a softmax."""
    weight = numpy_helper.from_array(np.random.default_rng(0).standard_normal((16, 32), dtype=np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Softmax", ["h"], ["y"])]
    values = [helper.make_tensor_value_info(n, 1, ["rows", width]) for n, width in (("x", 16), ("y", 32))]
    return _model(nodes, values[0], values[1], [weight])


def transformer() -> onnx.ModelProto:
    """Four layers of attention and a feed-forward network, 512 wide: 12.6 M parameters."""
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    weights = [
        numpy_helper.from_array(np.array([0, 0, HEADS, WIDTH // HEADS], np.int64), "heads"),
        numpy_helper.from_array(np.array([0, 0, WIDTH], np.int64), "rows"),
        numpy_helper.from_array(np.array((WIDTH // HEADS) ** -0.5, np.float32), "scale"),
        numpy_helper.from_array(np.ones(WIDTH, np.float32), "gamma"),
        numpy_helper.from_array(np.zeros(WIDTH, np.float32), "beta"),
    ]

    def node(op: str, *inputs: str, **attributes: object) -> str:
        output = f"v{len(nodes)}"
        nodes.append(helper.make_node(op, inputs, [output], **attributes))
        return output

    def product_with(value: str, rows: int, columns: int) -> str:
        name = f"w{len(weights)}"
        data = rng.standard_normal((rows, columns), dtype=np.float32) / np.float32(rows**0.5)
        weights.append(numpy_helper.from_array(data, name))
        return node("MatMul", value, name)

    x = "x"
    for _ in range(LAYERS):
        h = node("LayerNormalization", x, "gamma", "beta")
        q, k, v = (node("Reshape", product_with(h, WIDTH, WIDTH), "heads") for _ in range(3))
        scores = node("MatMul", node("Transpose", q, perm=[0, 2, 1, 3]), node("Transpose", k, perm=[0, 2, 3, 1]))
        weighted = node("Softmax", node("Mul", scores, "scale"), axis=-1)
        mixed = node("MatMul", weighted, node("Transpose", v, perm=[0, 2, 1, 3]))
        rows = node("Reshape", node("Transpose", mixed, perm=[0, 2, 1, 3]), "rows")
        x = node("Add", x, product_with(rows, WIDTH, WIDTH))
        h = node("LayerNormalization", x, "gamma", "beta")
        x = node("Add", x, product_with(node("Relu", product_with(h, WIDTH, 4 * WIDTH)), 4 * WIDTH, WIDTH))
    dims = ["batch", "seq", WIDTH]
    ends = [helper.make_tensor_value_info(name, 1, dims) for name in ("x", x)]
    return _model(nodes, ends[0], ends[1], weights)


def _model(
    nodes: list[onnx.NodeProto],
    given: onnx.ValueInfoProto,
    result: onnx.ValueInfoProto,
    weights: list[onnx.TensorProto],
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "g", [given], [result], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
