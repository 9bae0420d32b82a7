"""What is left to ORT for the sake of its convolutions of bytes is what ORT really does on bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.dialects.fusion import RegionOp
from igniter.pipelines import PIPELINES

CHANNELS = 32
BYTE_PRODUCTS = ("form-integer-products", "hoist-zero-points")
RNG = np.random.default_rng(0)


def node(name: str, inputs: list[str], output: str, **attributes: object) -> onnx.NodeProto:
    domain, _, kind = name.rpartition(".")
    return helper.make_node(kind, inputs, [output], domain=domain, **attributes)  # pyright: ignore[reportArgumentType]


def regions(model: onnx.ModelProto) -> int:
    module = igniter.load(model)
    # Where no target multiplies bytes: elsewhere kernels do.
    passes = [f"{p}{{byte_products=false}}" if p in BYTE_PRODUCTS else p for p in PIPELINES["cpu-onnx"]]
    module.run_passes(",".join((*passes, "cpu-fusion")))
    return sum(isinstance(op, RegionOp) for op in module.ir.walk())


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
