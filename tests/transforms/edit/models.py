"""Models that edits are tried on: control flow, functions, quantised and sparse weights, defaults, external data."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, parser

BRANCHES = """<ir_version: 8, opset_import: ["": 17], producer_name: "by hand">
g (float[batch,4] x, int64[batch] ids, bool c) => (float[batch,4] y, float[batch,3] z)
<float[10,4] tab = {TAB}, float[4,3] w = {W}>
{
  e = Gather (tab, ids)
  h = Add (x, e)
  r = Relu (h)
  y = If (c) <
    then_branch = th () => (float[batch,4] ty) { ty = Neg (r) },
    else_branch = el () => (float[batch,4] ey) { ey = Exp (h) }
  >
  z = MatMul (r, w)
}"""
BRANCHES = BRANCHES.replace("TAB", ", ".join(f"{i / 10}" for i in range(40)))
BRANCHES = BRANCHES.replace("{W}", "{" + ", ".join(f"{i / 10}" for i in range(12)) + "}")

LOOP = """<ir_version: 8, opset_import: ["": 17, "local": 1]>
g (int64 n, bool keep, float[batch,4] x) => (float[batch,4] total, float[n,batch,4] all)
{
  s = local.Scale <factor = 0.5> (x)
  total, all = Loop (n, keep, s) <
    body = b (int64 i, bool going, float[batch,4] before) => (bool still, float[batch,4] after, float[batch,4] seen) {
      still = Identity (going)
      doubled = Add (before, s)
      after = Tanh (doubled)
      seen = Mul (after, x)
    }
  >
}
<domain: "local", opset_import: ["": 17]>
Scale <factor> (a) => (b)
{
  k = Constant <value_float: float = @factor> ()
  b = Mul (a, k)
}"""


def branches() -> onnx.ModelProto:
    """An If that reads values of the graph around it, a table, a product."""
    return parser.parse_model(BRANCHES)


def loop() -> onnx.ModelProto:
    """A Loop with captured values, and a call of a local function."""
    return parser.parse_model(LOOP)


def quantised() -> onnx.ModelProto:
    """A product of dequantised bytes, a sparse constant, an input with a default, and quantization annotations."""
    rng = np.random.default_rng(0)
    graph = helper.make_graph(
        [
            helper.make_node("DequantizeLinear", ["wq", "ws", "wz"], ["w"], "dq"),
            helper.make_node("MatMul", ["x", "w"], ["p"], "product"),
            helper.make_node("Add", ["p", "bias"], ["q"], "add_bias"),
            helper.make_node("Mul", ["q", "gain"], ["y"], "scale"),
        ],
        "quantised",
        [
            helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 4]),
            helper.make_tensor_value_info("gain", TensorProto.FLOAT, []),
        ],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 3])],
        [
            onnx.numpy_helper.from_array(rng.integers(-8, 8, (4, 3)).astype(np.int8), "wq"),
            onnx.numpy_helper.from_array(np.float32(0.1), "ws"),
            onnx.numpy_helper.from_array(np.int8(1), "wz"),
            onnx.numpy_helper.from_array(np.float32(2), "gain"),
        ],
        sparse_initializer=[
            helper.make_sparse_tensor(
                helper.make_tensor("bias", TensorProto.FLOAT, [2], [1.0, -1.0]),
                helper.make_tensor("", TensorProto.INT64, [2], [0, 2]),
                [3],
            )
        ],
    )
    annotation = graph.quantization_annotation.add(tensor_name="p")
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="ws")
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def run(model: onnx.ModelProto | bytes, feed: dict[str, Any], names: list[str] | None = None) -> dict[str, Any]:
    """What ONNX Runtime computes, by the names of outputs."""
    data = model if isinstance(model, bytes) else model.SerializeToString()
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    asked = names or [v.name for v in session.get_outputs()]
    return dict(zip(asked, session.run(asked, feed), strict=True))


def feed_of_branches(batch: int = 3, c: bool = True) -> dict[str, Any]:
    rng = np.random.default_rng(1)
    return {
        "x": rng.standard_normal((batch, 4)).astype(np.float32),
        "ids": rng.integers(0, 10, batch),
        "c": np.array(c),
    }


def feed_of_loop(batch: int = 2, n: int = 3) -> dict[str, Any]:
    x = np.random.default_rng(2).standard_normal((batch, 4)).astype(np.float32)
    return {"n": np.array(n), "keep": np.array(True), "x": x}
