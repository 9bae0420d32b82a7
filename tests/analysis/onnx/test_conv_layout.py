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
from igniter.analysis.onnx.conv_layout import ACTIVATIONS
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


# -- convolutions of bytes --------------------------------------------------------------------------------------------


def quantized(*nodes: onnx.NodeProto) -> onnx.ModelProto:
    """Nodes that make `b` of `a`, and maybe `d`, all in f32 between pairs of QuantizeLinear and DequantizeLinear."""
    made: list[onnx.NodeProto] = []

    def rounded(name: str) -> str:
        made.append(node("QuantizeLinear", [name, "scale", "zero"], f"{name}.q"))
        made.append(node("DequantizeLinear", [f"{name}.q", "scale", "zero"], f"{name}.r"))
        return f"{name}.r"

    x = rounded("x")
    for k, weight in enumerate(("w", "u")):
        made.append(node("DequantizeLinear", [f"{weight}.q", f"{weight}.s"], f"{weight}.r", axis=0))
        if not k:
            made.append(node("Conv", [x, "w.r"], "a", pads=[1, 1, 1, 1]))
    kept = {"a": rounded("a")}
    if any("d" in n.input for n in nodes):
        made.append(node("Conv", [x, "w.r"], "d", pads=[2, 2, 2, 2], dilations=[2, 2]))
        kept["d"] = rounded("d")
    for each in nodes:
        renamed = onnx.NodeProto()
        renamed.CopyFrom(each)
        del renamed.input[:]
        renamed.input.extend(kept.get(n, n) for n in each.input)
        made.append(renamed)
        kept[each.output[0]] = rounded(each.output[0])
    made += [node("Conv", [kept["b"], "u.r"], "y.f"), node("QuantizeLinear", ["y.f", "scale", "zero"], "y")]
    weights = [
        numpy_helper.from_array(np.array(0.02, np.float32), "scale"),
        numpy_helper.from_array(np.array(128, np.uint8), "zero"),
    ]
    wide = CHANNELS * (2 if any(n.op_type == "Concat" for n in nodes) else 1)
    for name, depth in (("w", 16), ("u", wide)):
        weights.append(numpy_helper.from_array(RNG.integers(-63, 63, (CHANNELS, depth, 3, 3), np.int8), f"{name}.q"))
        weights.append(numpy_helper.from_array(np.full(CHANNELS, 0.01, np.float32), f"{name}.s"))
    graph = helper.make_graph(
        made,
        "bytes",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 16, 16, 16])],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)


KEPT_BYTES = {
    "residual": [node("Add", ["a", "d"], "b")],
    "product": [node("Mul", ["a", "d"], "b")],
    "silu": [node("Sigmoid", ["a"], "s"), node("Mul", ["a", "s"], "b")],
    "leaky": [node("LeakyRelu", ["a"], "b", alpha=0.1)],
    "pool": [node("MaxPool", ["a"], "b", kernel_shape=[2, 2])],
    "concat": [node("Concat", ["a", "d"], "b", axis=1)],
}
BROKEN_BYTES = {
    "elu": [node("Elu", ["a"], "b")],
    "difference": [node("Sub", ["a", "d"], "b")],
    "tanh": [node("Tanh", ["a"], "b")],
}


@pytest.mark.parametrize("name", KEPT_BYTES)
def test_what_is_between_convolutions_of_bytes_is_left(name: str) -> None:
    assert regions(quantized(*KEPT_BYTES[name])) == 0


@pytest.mark.parametrize("name", BROKEN_BYTES)
def test_others_between_convolutions_of_bytes_are_fused(name: str) -> None:
    assert regions(quantized(*BROKEN_BYTES[name])) == 1


@pytest.mark.parametrize("name", [*KEPT_BYTES, *BROKEN_BYTES])
def test_ort_makes_ops_on_bytes_of_what_is_left(name: str, tmp_path: Path) -> None:
    options = ort.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimized.onnx")
    options.log_severity_level = 3
    model = quantized(*(KEPT_BYTES | BROKEN_BYTES)[name])
    ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    found = [n.op_type for n in onnx.load(options.optimized_model_filepath).graph.node]
    assert (found.count("DequantizeLinear") == 0) == (name in KEPT_BYTES), found
