"""Convolutions whose results are summed in groups of channels, through a view: the values at odd and single sizes."""

from __future__ import annotations

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter


def model(channels: int, filters: int, groups: int, window: int) -> onnx.ModelProto:
    rng = np.random.default_rng(0)
    constants = {
        "w": rng.normal(size=(filters, channels, window, window)).astype(np.float32),
        "b": rng.normal(size=filters).astype(np.float32),
        "grouped": np.array([0, groups, -1]),
        "one": np.ones(groups, np.float32),
        "zero": np.zeros(groups, np.float32),
    }
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], pads=[window // 2] * 4),
        helper.make_node("Shape", ["c"], ["whole"]),
        helper.make_node("Reshape", ["c", "grouped"], ["v"]),
        helper.make_node("InstanceNormalization", ["v", "one", "zero"], ["i"]),
        helper.make_node("Reshape", ["i", "whole"], ["j"]),
        helper.make_node("Relu", ["j"], ["y"]),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", channels, "h", "w"])
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in ("y", "c")]
    initializers = [numpy_helper.from_array(value, name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", [x], outputs, initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


@pytest.mark.slow
def test_a_normalisation_of_groups_after_a_convolution():
    proto = model(5, 6, 2, 3)
    ours = igniter.compile(proto).session()
    theirs = onnxruntime.InferenceSession(proto.SerializeToString())
    rng = np.random.default_rng(1)
    for shape in ((1, 5, 5, 3), (3, 5, 1, 1), (2, 5, 9, 17), (1, 5, 33, 31)):
        feeds = {"x": rng.normal(size=shape).astype(np.float32)}
        for found, expected in zip(ours.run(None, feeds), theirs.run(None, feeds), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)
