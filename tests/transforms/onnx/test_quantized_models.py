"""Models that ONNX Runtime's tools quantise, compiled, beside ONNX Runtime.

Weights have seven bits (`reduce_range`): with eight, ONNX Runtime's own sums saturate on x86-64 without VNNI.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnxruntime.quantization import QuantFormat, QuantType

import igniter
from tests.quantized_models import (
    encoder,
    feeds_of,
    multiplies_bytes,
    perceptron,
    quantize_dynamic,
    quantize_static,
    residual_network,
)

FORMATS = [QuantFormat.QDQ, QuantFormat.QOperator]
ACTIVATIONS = [QuantType.QInt8, QuantType.QUInt8]


def compare(model: onnx.ModelProto, folder: Path, sizes: Mapping[str, int]) -> Counter[str]:
    """Compiles a model and compares; the nodes that are left to ONNX Runtime, by op."""
    artifact = igniter.load(model).compile(folder / "out", verify=False)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    original = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    feeds = feeds_of(model, sizes, seed=5)
    for got, want in zip(artifact.session().run(None, feeds), original.run(None, feeds), strict=True):
        assert got.shape == want.shape
        # A value between two steps may go to either: errors are rare, and of steps.
        error, scale = np.abs(got - want), float(np.abs(want).max())
        assert error.mean() <= 2e-3 * scale, f"mean error {error.mean()} of values up to {scale}"
        assert error.max() <= 0.1 * scale, f"largest error {error.max()} of values up to {scale}"
    left = onnx.load(artifact.model_path, load_external_data=False).graph.node
    return Counter(n.op_type for n in left if not n.domain.startswith("libigniter_") and n.op_type != "Constant")


@pytest.mark.parametrize("form", FORMATS, ids=lambda f: f.name)
@pytest.mark.parametrize("activation", ACTIVATIONS, ids=lambda a: a.name)
def test_perceptron(form: QuantFormat, activation: QuantType, tmp_path: Path) -> None:
    model = quantize_static(
        perceptron(),
        tmp_path,
        {"rows": 8},
        quant_format=form,
        activation_type=activation,
        weight_type=QuantType.QInt8,
        reduce_range=True,
        per_channel=activation == QuantType.QUInt8 and form == QuantFormat.QDQ,
    )
    assert not compare(model, tmp_path, {"rows": 5})


@pytest.mark.slow
@pytest.mark.parametrize("kind", [QuantType.QInt8, QuantType.QUInt8], ids=lambda k: k.name)
def test_dynamically_quantised_encoder(kind: QuantType, tmp_path: Path) -> None:
    model = quantize_dynamic(encoder(), tmp_path, weight_type=kind, reduce_range=True)
    left = compare(model, tmp_path, {"batch": 2, "seq": 7})
    assert not any(op.startswith(("MatMul", "Dynamic")) for op in left)


def left_by(model: onnx.ModelProto, target: str) -> Counter[str]:
    """The nodes that are left to ONNX Runtime where the library is for `target`, by op."""
    options = igniter.CompileOptions(target=target)
    artifact = igniter.load(model).compile(options=options, verify=False)
    rewritten = onnx.load(artifact.model_path, load_external_data=False)
    return Counter(n.op_type for n in rewritten.graph.node if not n.domain.startswith("libigniter_"))


@pytest.mark.slow
@pytest.mark.parametrize("target", ["x86-64-v3", "sapphirerapids"])
def test_where_products_of_bytes_are_slow_some_are_left(target: str, tmp_path: Path) -> None:
    """ONNX Runtime is faster with a product alone, and with dequantised factors, where no instruction multiplies
    bytes."""
    slow = target == "x86-64-v3"
    alone = left_by(quantize_dynamic(perceptron((96, 128)), tmp_path, reduce_range=True), target)
    assert alone["MatMulInteger"] == alone["DynamicQuantizeLinear"] == int(slow)
    attended = encoder(hidden=128, inner=256)
    assert left_by(quantize_dynamic(attended, tmp_path, reduce_range=True), target)["MatMulInteger"] == 6 * slow
    static = quantize_static(attended, tmp_path, {"batch": 1, "seq": 8}, quant_format=QuantFormat.QDQ)
    left = left_by(static, target)
    # Six products with weights and two in attention.
    assert left["MatMul"] == 8 * slow and left["QuantizeLinear"] >= left["MatMul"]
    assert not left["Softmax"] and not left["LayerNormalization"] and not left["Erf"]


def test_network_of_convolutions(tmp_path: Path) -> None:
    """What convolves bytes is in kernels, as is all that is between."""
    model = quantize_static(
        residual_network(1),
        tmp_path,
        {"batch": 1},
        quant_format=QuantFormat.QOperator,
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        reduce_range=True,
    )
    left = compare(model, tmp_path, {"batch": 2})
    assert not left or not multiplies_bytes()


@pytest.mark.full
@pytest.mark.parametrize("form", FORMATS, ids=lambda f: f.name)
def test_statically_quantised_encoder(form: QuantFormat, tmp_path: Path) -> None:
    model = quantize_static(
        encoder(),
        tmp_path,
        {"batch": 1, "seq": 8},
        quant_format=form,
        activation_type=QuantType.QInt8,
        weight_type=QuantType.QInt8,
        reduce_range=True,
    )
    left = compare(model, tmp_path, {"batch": 2, "seq": 7})
    # Where no instruction multiplies bytes, ONNX Runtime is faster with those of computed factors.
    assert not left.keys() - {"MatMul", "QuantizeLinear", "DequantizeLinear"}


def test_weights_in_bytes_behind_arithmetic_are_folded(tmp_path: Path) -> None:
    """A weight of i8 that is cast, shifted and scaled is f32 when the model is loaded, as in ONNX Runtime."""
    model = onnx.parser.parse_model(
        """<ir_version: 9, opset_import: ["" : 17]> g (float[n, 192] x) => (float[n, 192] y)
           <int8[192, 192] w, float[1, 192] s, float z = {3.0}> {
             f = Cast<to = 1>(w)  c = Sub(f, z)  d = Mul(c, s)  y = MatMul(x, d) }"""
    )
    rng = np.random.default_rng(0)
    values = {"w": rng.integers(-127, 127, (192, 192)).astype(np.int8), "s": rng.random((1, 192), np.float32)}
    for k, tensor in enumerate(model.graph.initializer):
        if tensor.name in values:
            model.graph.initializer[k].CopyFrom(onnx.numpy_helper.from_array(values[tensor.name], tensor.name))
    for name in values.keys() - {t.name for t in model.graph.initializer}:
        model.graph.initializer.append(onnx.numpy_helper.from_array(values[name], name))
    assert not compare(model, tmp_path, {"n": 3})
