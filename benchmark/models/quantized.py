"""Quantised models: what ONNX Runtime's tools make of a transformer and of convolutional networks built by code.

Weights are random but seeded, and a random image calibrates. Weights have seven bits (`reduce_range`): with eight, ONNX
Runtime's sums saturate on x86-64 without VNNI.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

from benchmark.models.half import Builder

RESNET = ((64, 256, 3, 1), (128, 512, 4, 2), (256, 1024, 6, 2), (512, 2048, 3, 2))
"""Inner channels, channels, blocks and stride of the stages of ResNet-50."""


def resnet(size: int = 224) -> onnx.ModelProto:
    """ResNet-50 without batch normalisation: `x` of [batch, 3, size, size] to 1000 scores."""
    b = Builder()

    def conv(x: str, inputs: int, outputs: int, kernel: int, stride: int = 1, gain: float = 1.4) -> str:
        weight = b.random(outputs, inputs, kernel, kernel, scale=gain / (inputs * kernel**2) ** 0.5)
        attrs = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4}
        return b.op("Conv", x, weight, b.random(outputs, scale=0.1), **attrs)

    x = b.op("Relu", conv("x", 3, 64, 7, 2))
    x, channels = b.op("MaxPool", x, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]), 64
    for inner, outputs, blocks, stride in RESNET:
        for k in range(blocks):
            step = stride if k == 0 else 1
            made = b.op("Relu", conv(b.op("Relu", conv(x, channels, inner, 1)), inner, inner, 3, step))
            kept = x if k else conv(x, channels, outputs, 1, step)
            # A small gain, so that sums of residuals do not grow from block to block.
            x = b.op("Relu", b.op("Add", conv(made, inner, outputs, 1, gain=0.3), kept))
            channels = outputs
    pooled = b.op("Flatten", b.op("GlobalAveragePool", x))
    return b.model({"x": ["batch", 3, size, size]}, b.linear(pooled, channels, 1000))


class _Images(CalibrationDataReader):
    def __init__(self, size: int):
        image = np.random.default_rng(1).standard_normal((1, 3, size, size)).astype(np.float32)
        self._left: Iterator[dict[str, Any]] = iter([{"x": image}])

    def get_next(self) -> dict[str, Any] | None:
        return next(self._left, None)


def dynamic(model: onnx.ModelProto) -> onnx.ModelProto:
    """Weights of i8; what they are multiplied with is quantised as it comes."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = _saved(model, folder)
        quantize_dynamic(source, target, weight_type=QuantType.QInt8, reduce_range=True)
        return onnx.load(target)


def static(model: onnx.ModelProto, form: QuantFormat, size: int) -> onnx.ModelProto:
    """Everything quantised, with ranges of a random image: pairs of nodes (QDQ) or ops on integers (QOperator)."""
    with tempfile.TemporaryDirectory() as folder:
        source, target = _saved(model, folder)
        kinds = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
        quantize_static(source, target, _Images(size), quant_format=form, reduce_range=True, per_channel=True, **kinds)
        return onnx.load(target)


def _saved(model: onnx.ModelProto, folder: str) -> tuple[str, str]:
    source = Path(folder) / "source.onnx"
    onnx.save(model, source)
    return str(source), str(Path(folder) / "quantized.onnx")
