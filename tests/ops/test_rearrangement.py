"""ReverseSequence, CenterCropPad and BitCast against ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto

from tests.ops.single_node import check, refusal

F32 = np.float32


def floats(*shape: int, dtype: Any = F32) -> Any:
    return np.random.default_rng(0).normal(0, 1, shape).astype(dtype)


def test_reverse_sequence() -> None:
    lengths = np.array([4, 1, 3])
    check("ReverseSequence", [floats(4, 3), lengths], {"time_axis": 0, "batch_axis": 1}, opset=10)
    check("ReverseSequence", [floats(3, 5, 2), lengths], {"time_axis": 1, "batch_axis": 0}, opset=10)
    check("ReverseSequence", [floats(1, 1), np.array([1])], opset=10)


@pytest.mark.parametrize("sizes", [[4, 9], [7, 2], [5, 6], [0, 1]])
def test_center_crop_pad(sizes: list[int]) -> None:
    x = floats(5, 6)
    check("CenterCropPad", [x, np.array(sizes)], opset=18, constant=[1])
    check("CenterCropPad", [x, np.array(sizes[:1])], {"axes": [-1]}, opset=18, constant=[1])


def test_center_crop_pad_refuses() -> None:
    assert refusal("CenterCropPad", [floats(5), np.array([3])], opset=18) == "its shape is known only at run time"


@pytest.mark.parametrize(
    "source, target",
    [("float32", "int32"), ("int32", "float32"), ("uint64", "float64"), ("int8", "uint8"), ("float16", "uint16")],
)
def test_bit_cast(source: str, target: str) -> None:
    width = np.dtype(source).itemsize
    bits = np.random.default_rng(0).integers(0, 2 ** (8 * width) - 1, (3, 5), f"u{width}", endpoint=True)
    x = bits.view(source)
    to = TensorProto.DataType.Value({"float32": "FLOAT", "float64": "DOUBLE"}.get(target, target.upper()))
    # NaNs are compared by their bits.
    expected = [x.view(target)]
    if np.dtype(target).kind == "f":
        x = np.where(np.isfinite(x.view(target)), bits, bits >> 2).astype(f"u{width}").view(source)
        expected = [x.view(target)]
    check("BitCast", [x], {"to": to}, opset=26, expected=expected)


def test_bits_of_a_bool() -> None:
    x = np.array([True, False, True])
    for to, dtype in ((TensorProto.UINT8, np.uint8), (TensorProto.INT8, np.int8)):
        check("BitCast", [x], {"to": to}, opset=26, expected=[x.view(dtype)])
        check("BitCast", [x.view(dtype)], {"to": TensorProto.BOOL}, opset=26, expected=[x])
