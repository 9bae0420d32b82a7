"""Averages of codes are summed in the order of ONNX Runtime, since many of them lie halfway between two codes."""

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.runtime.session import make_session
from igniter.verification.original import unoptimised

SCALE = np.float32(0.0042458684)
WINDOWS: list[tuple[float, dict[str, Any]]] = [
    (8 / 3, {"kernel_shape": [3, 3], "strides": [1, 2], "pads": [1, 1, 1, 1], "count_include_pad": 1}),
    (1, {"kernel_shape": [2, 3], "pads": [0, 1, 0, 1], "count_include_pad": 1}),
    (2, {"kernel_shape": [4, 3], "strides": [1, 3]}),
    (4 / 3, {"kernel_shape": [3, 4], "strides": [3, 1], "pads": [0, 2, 0, 2], "count_include_pad": 1, "ceil_mode": 1}),
]
"""The step of each result in scales of the input, and the attributes of the pool."""


@pytest.mark.parametrize("opset", [13, 19])
def test_averages_of_codes_are_equal(opset: int) -> None:
    zero = numpy_helper.from_array(np.uint8(0), "zero")
    nodes = [helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["d"])]
    weights = [zero, numpy_helper.from_array(SCALE, "scale")]
    for k, (step, attributes) in enumerate(WINDOWS):
        nodes.append(helper.make_node("AveragePool", ["d"], [f"a{k}"], **attributes))
        nodes.append(helper.make_node("QuantizeLinear", [f"a{k}", f"step{k}", "zero"], [f"y{k}"]))
        weights.append(numpy_helper.from_array(np.float32(SCALE * step), f"step{k}"))
    dims = [2, 8, 17, 18]
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, dims)
    outputs = [helper.make_tensor_value_info(f"y{k}", TensorProto.UINT8, None) for k in range(len(WINDOWS))]
    graph = helper.make_graph(nodes, "g", [x], outputs, weights)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
    session = igniter.load(model).compile(verify=False, cache=False).session()
    # With its own rewriting ONNX Runtime rounds in another way (docs/explanation/numerics.md).
    wanted = make_session(model.SerializeToString(), graph_optimization_level=unoptimised(), log_severity_level=4)
    feed = {"x": np.random.default_rng(0).integers(0, 256, dims).astype(np.uint8)}
    names = [o.name for o in outputs]
    for name, e, a in zip(names, wanted.run(names, feed), session.run(names, feed), strict=True):
        assert np.array_equal(e, a), f"{name}: {np.count_nonzero(e != a)} of {e.size} codes differ"


@pytest.mark.slow
def test_columns_of_a_window_in_three_axes() -> None:
    attributes = {"kernel_shape": [2, 2, 3], "strides": [1, 2, 1]}
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "scale", "zero"], ["d"]),
        helper.make_node("AveragePool", ["d"], ["a"], **attributes),
        helper.make_node("QuantizeLinear", ["a", "step", "zero"], ["y"]),
    ]
    numbers = {"scale": SCALE, "step": np.float32(SCALE * np.float32(8 / 3)), "zero": np.uint8(0)}
    weights = [numpy_helper.from_array(np.asarray(v), n) for n, v in numbers.items()]
    x = helper.make_tensor_value_info("x", TensorProto.UINT8, [1, 8, 6, 9, 11])
    y = helper.make_tensor_value_info("y", TensorProto.UINT8, None)
    graph = helper.make_graph(nodes, "g", [x], [y], weights)
    model = onnx.helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    wanted = make_session(model.SerializeToString(), graph_optimization_level=unoptimised(), log_severity_level=4)
    feed = {"x": np.random.default_rng(1).integers(0, 256, (1, 8, 6, 9, 11)).astype(np.uint8)}
    found = igniter.load(model).compile(verify=False, cache=False).session().run(None, feed)[0]
    assert np.array_equal(wanted.run(None, feed)[0], found)
