"""Quantised models have a kernel for every node: what is left to ONNX Runtime is left because it is faster there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper
from onnxruntime.quantization import QuantFormat, QuantType

import igniter
from igniter.runtime.session import make_session
from tests.conformance.node_cases import EVERYTHING
from tests.quantized_models import ModelBuilder, feeds_of, perceptron, quantize_dynamic, quantize_static


def network() -> onnx.ModelProto:
    """Convolutions of every kind, pools, a residual, two branches and a classifier."""
    b = ModelBuilder(3)

    def conv(x: str, inputs: int, outputs: int, kernel: int, group: int = 1, stride: int = 1) -> str:
        weight = b.random(outputs, inputs // group, kernel, kernel, scale=(group / inputs) ** 0.5 / kernel)
        attrs = {"kernel_shape": [kernel] * 2, "pads": [kernel // 2] * 4, "strides": [stride] * 2, "group": group}
        return b.op("Conv", x, weight, b.random(outputs), **attrs)

    x = b.op("Relu", conv("image", 3, 8, 3))
    x = b.op("Add", x, conv(b.op("Relu", conv(x, 8, 8, 3, group=8)), 8, 8, 1))
    x = b.op("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    left = b.op("Sigmoid", conv(x, 8, 4, 1, group=2))
    right = b.op("LeakyRelu", conv(x, 8, 4, 3), alpha=0.1)
    x = b.op("Concat", left, b.op("Mul", right, left), axis=1)
    x = b.op("AveragePool", x, kernel_shape=[2, 2], pads=[1, 0, 0, 1])
    x = b.op("Flatten", b.op("GlobalAveragePool", conv(x, 8, 16, 3, stride=2)))
    y = b.op("Softmax", b.op("Gemm", x, b.random(16, 10, scale=1.0), b.random(10)), axis=-1)
    return b.finish({"image": (TensorProto.FLOAT, ["batch", 3, 8, 8])}, y, ["batch", 10])


def quantised(kind: str, folder: Path) -> onnx.ModelProto:
    if kind == "dynamic":
        return quantize_dynamic(perceptron(), folder, weight_type=QuantType.QInt8, reduce_range=True)
    return quantize_static(
        network(),
        folder,
        {"batch": 2},
        quant_format=QuantFormat[kind],
        activation_type=QuantType.QUInt8,
        weight_type=QuantType.QInt8,
        reduce_range=True,
        per_channel=True,
    )


def step_of(model: onnx.ModelProto) -> float:
    """The scale of what the model's last node gives."""
    last = next(n for n in model.graph.node if model.graph.output[0].name in n.output)
    scale = next(w for w in model.graph.initializer if w.name == last.input[1])
    return float(numpy_helper.to_array(scale))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["QDQ", "QOperator", "dynamic"])
def test_everything_has_a_kernel(kind: str, tmp_path: Path) -> None:
    model = quantised(kind, tmp_path)
    feeds = feeds_of(model, {"batch": 3, "rows": 3}, seed=7)
    (wanted,) = make_session(model.SerializeToString()).run(None, feeds)
    for options in (igniter.CompileOptions(fusion_passes=EVERYTHING), igniter.CompileOptions()):
        artifact = igniter.load(model).compile(options=options, verify=False)
        left = artifact.report["left_to_onnxruntime"]
        if options.fusion_passes == EVERYTHING:
            assert left == []
        assert {each["kind"] for each in left} <= {"cost", "view", "shape"}, left
        (got,) = artifact.session().run(None, feeds)
        if kind == "dynamic":
            np.testing.assert_allclose(got, wanted, atol=1e-2 * np.abs(wanted).max())
        else:
            # A value between two steps of an inner tensor goes to either of them: ONNX Runtime with and without its own
            # optimisations is 0.1 of a step apart on average, too.
            apart = np.abs(got - wanted) / step_of(model)
            assert apart.max() < 2.01 and apart.mean() < 0.2
