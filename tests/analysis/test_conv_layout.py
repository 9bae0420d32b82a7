"""What is left to ORT for the sake of its convolutions is what ORT really does in them, or in their layout."""

from __future__ import annotations

import platform
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.analysis.conv_layout import ACTIVATIONS
from igniter.dialects.fusion import RegionOp

CHANNELS = 32
RNG = np.random.default_rng(0)


def node(name: str, inputs: list[str], output: str, **attributes: object) -> onnx.NodeProto:
    domain, _, kind = name.rpartition(".")
    return helper.make_node(kind, inputs, [output], domain=domain, **attributes)  # pyright: ignore[reportArgumentType]


def between(*nodes: onnx.NodeProto, size: int = 16) -> onnx.ModelProto:
    """Nodes that make `b` of `a`, and maybe `d`, the results of convolutions; another one reads `b`."""
    dilated = node("Conv", ["x", "w"], "d", pads=[2, 2, 2, 2], dilations=[2, 2])
    weights = {
        "w": RNG.random((CHANNELS, 16, 3, 3)),
        "u": RNG.random((CHANNELS, CHANNELS, 3, 3)),
        "channels": RNG.random((1, CHANNELS, 1, 1)),
        "row": RNG.random((1, 1, 1, size)),
        "one": RNG.random(CHANNELS),
        "low": np.array(0),
        "high": np.array(3),
    }
    graph = helper.make_graph(
        [
            node("Conv", ["x", "w"], "a", pads=[1, 1, 1, 1]),
            *([dilated] if any("d" in n.input for n in nodes) else []),
            *nodes,
            node("Conv", ["b", "u"], "y"),
        ],
        "layout",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, size, size])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(v.astype(np.float32), k) for k, v in weights.items()]
        + [numpy_helper.from_array(np.array([0, 0, 1, 1, 0, 0, 1, 1]), "pads")],
    )
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def activation(name: str) -> onnx.NodeProto:
    more = {"Clip": ["low", "high"], "BatchNormalization": ["one"] * 4}.get(name, [])
    return node(name, ["a", *more], "b")


KEPT = {name: [activation(name)] for name in sorted(ACTIVATIONS)} | {
    "silu": [node("Sigmoid", ["a"], "s"), node("Mul", ["a", "s"], "b")],
    "residual": [node("Add", ["a", "d"], "s"), node("Relu", ["s"], "b")],
    "sum": [node("Sum", ["a", "d"], "b")],
    "product": [node("Mul", ["a", "d"], "b")],
    "bias of channels": [node("Add", ["a", "channels"], "s"), node("Relu", ["s"], "b")],
    "scale of channels": [node("Mul", ["channels", "a"], "s"), node("Relu", ["s"], "b")],
    "pool": [node("MaxPool", ["a"], "s", kernel_shape=[2, 2]), node("Relu", ["s"], "b")],
    "padding": [node("Relu", ["a"], "s"), node("Pad", ["s", "pads"], "b")],
}
BROKEN = {
    "elu": [node("Elu", ["a"], "b")],
    "difference": [node("Sub", ["a", "d"], "s"), node("Relu", ["s"], "b")],
    "row": [node("Mul", ["a", "row"], "s"), node("Relu", ["s"], "b")],
    "padding with threes": [node("Neg", ["a"], "s"), node("Pad", ["s", "pads", "high"], "b")],
    "reflection": [node("Neg", ["a"], "s"), node("Pad", ["s", "pads"], "b", mode="reflect")],
}


def regions(model: onnx.ModelProto) -> int:
    module = igniter.load(model)
    module.run_passes("cpu-onnx,cpu-fusion")
    return sum(isinstance(op, RegionOp) for op in module.ir.walk())


@pytest.mark.parametrize("name", KEPT)
def test_nodes_of_a_convolution_are_left(name: str) -> None:
    assert regions(between(*KEPT[name])) == 0


@pytest.mark.parametrize("name", BROKEN)
def test_others_are_fused(name: str) -> None:
    assert regions(between(*BROKEN[name])) == 1


@pytest.mark.skipif(platform.machine() != "x86_64", reason="ORT blocks channels on x86-64")
@pytest.mark.parametrize("name", [*KEPT, *BROKEN])
def test_ort_agrees(name: str, tmp_path: Path) -> None:
    """One reordering behind the last convolution is all there is, or there are more."""
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 3
    model = between(*(KEPT | BROKEN)[name])
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = [n.op_type for n in onnx.load(options.optimized_model_filepath).graph.node]
    assert ("Pad" in found) == (name in ("padding with threes", "reflection"))
    assert (found.count("ReorderOutput") == 1) == (name in KEPT)
