"""Quantised models: what ONNX Runtime's tools make of a model in f32.

A random image calibrates. Weights have seven bits (`reduce_range`): with eight, ONNX
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
