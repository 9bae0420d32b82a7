"""The greatest element less itself is 0, also where the elements are products that could be part of an FMA."""

from __future__ import annotations

import numpy as np
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter


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
