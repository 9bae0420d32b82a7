"""Types of few bits: 16-bit floats in every op, floats of eight bits in casts, all widths of integers."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

from igniter.verification.interp.structured import run_kernel

from .single_node import check, kernel_of, model_of, module_of

Array = np.ndarray[Any, Any]

EIGHTS = {
    "E4M3FN": (TensorProto.FLOAT8E4M3FN, ml_dtypes.float8_e4m3fn),
    "E4M3FNUZ": (TensorProto.FLOAT8E4M3FNUZ, ml_dtypes.float8_e4m3fnuz),
    "E5M2": (TensorProto.FLOAT8E5M2, ml_dtypes.float8_e5m2),
    "E5M2FNUZ": (TensorProto.FLOAT8E5M2FNUZ, ml_dtypes.float8_e5m2fnuz),
}


def cast(x: Array, to: int, **attrs: Any) -> Array:
    """The result of the lowering of Cast for `x`, in the interpreter."""
    model = model_of("Cast", [x], {"to": to, **attrs}, opset=25)
    return run_kernel(kernel_of(module_of(model)), [x])[0]


def patterns() -> Array:
    """f32 of every kind: each sign, exponent and leading bits of the mantissa, with and without what lies below."""
    tops = np.arange(2**14, dtype=np.uint32) << 18
    bits = np.concatenate([tops, tops | 1, tops | 0x1FFFF, tops | 0x20000, tops | 0x3FFFF])
    return bits.view(np.float32)


@pytest.mark.parametrize("name", EIGHTS)
def test_floats_of_eight_bits_are_widened(name: str) -> None:
    x = np.arange(256, dtype=np.uint8).view(EIGHTS[name][1])
    np.testing.assert_array_equal(cast(x, TensorProto.FLOAT), x.astype(np.float32))
    np.testing.assert_array_equal(cast(x, TensorProto.FLOAT16), x.astype(np.float16))


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("name", EIGHTS)
def test_floats_are_rounded_to_eight_bits(name: str, saturate: int) -> None:
    code, dtype = EIGHTS[name]
    x = patterns()
    got = cast(x, code, saturate=saturate)
    with np.errstate(all="ignore"):
        wanted = x.astype(dtype)
        if saturate:
            most = ml_dtypes.finfo(dtype).max
            over = ~np.isnan(x) & (np.isnan(wanted) | np.isinf(wanted.astype(np.float32)))
            wanted = np.where(over, np.copysign(np.float32(most), x).astype(dtype), wanted)
    nan = np.isnan(wanted.astype(np.float32))
    np.testing.assert_array_equal(nan, np.isnan(got.astype(np.float32)))
    np.testing.assert_array_equal(got.view(np.uint8)[~nan], wanted.view(np.uint8)[~nan])


@pytest.mark.parametrize("saturate", [0, 1])
@pytest.mark.parametrize("mode", ["up", "down", "nearest"])
def test_scales(mode: str, saturate: int) -> None:
    from onnx.numpy_helper import to_float8e8m0

    x = np.abs(patterns())
    got = cast(x, TensorProto.FLOAT8E8M0, round_mode=mode, saturate=saturate)
    wanted = to_float8e8m0(x, bool(saturate), mode)
    np.testing.assert_array_equal(got.view(np.uint8), wanted.view(np.uint8))
    codes = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e8m0fnu)
    np.testing.assert_array_equal(cast(codes, TensorProto.FLOAT), codes.astype(np.float32))


@pytest.mark.slow
def test_integers_of_every_width() -> None:
    """Arithmetic wraps, comparisons and extremes know signs, shifts fill with zeros or signs."""
    rng = np.random.default_rng(0)
    for dtype in (np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64):
        info = np.iinfo(dtype)
        a, b = (rng.integers(info.min, info.max, (3, 5), dtype, endpoint=True) for _ in range(2))
        with np.errstate(all="ignore"):
            check("Add", [a, b], expected=[a + b])
            check("Mul", [a, b], expected=[a * b])
            check("Max", [a, b], expected=[np.maximum(a, b)])
            check("Greater", [a, b], expected=[a > b])
            check("ReduceMin", [a, np.array([1])], {"keepdims": 0}, constant=[1], expected=[a.min(1)])
            check("ArgMax", [a], {"axis": 1, "keepdims": 0}, expected=[a.argmax(1)])
        if info.min == 0:
            by = (b % info.bits).astype(dtype)
            check("BitShift", [a, by], {"direction": "RIGHT"}, expected=[a >> by])


HALF = (np.float16, ml_dtypes.bfloat16)


@pytest.mark.parametrize("dtype", HALF)
def test_ops_of_halves_are_computed_in_f32_and_rounded(dtype: Any) -> None:
    rng = np.random.default_rng(1)
    x, y = (rng.standard_normal((4, 9)).astype(dtype) for _ in range(2))
    wide, other = x.astype(np.float32), y.astype(np.float32)
    check("Add", [x, y], expected=[(wide + other).astype(dtype)])
    check("Div", [x, y], expected=[(wide / other).astype(dtype)])
    check("Tanh", [x], expected=[np.tanh(wide).astype(dtype)], tolerance=1e-6)
    check("ReduceMax", [x, np.array([1])], constant=[1], expected=[x.max(1, keepdims=True)])
    total = wide.sum(1, keepdims=True)
    check("ReduceSum", [x, np.array([1])], constant=[1], expected=[total.astype(dtype)], tolerance=2**-7)
    rows = np.exp(wide) / np.exp(wide).sum(1, keepdims=True)
    check("Softmax", [x], expected=[rows.astype(dtype)], tolerance=2**-8)
    centred = wide - wide.mean(1, keepdims=True)
    norm = centred / np.sqrt((centred**2).mean(1, keepdims=True) + 1e-5)
    check("LayerNormalization", [x, np.ones(9, dtype)], expected=[norm.astype(dtype)], tolerance=2**-6)
    check("Where", [x > y, x, y], expected=[np.where(x > y, x, y)])
    check("Transpose", [x], {"perm": [1, 0]}, expected=[x.T])
    check("Gather", [x, np.array([2, 0])], expected=[x[[2, 0]]])
    check("Concat", [x, y], {"axis": 0}, expected=[np.concatenate([x, y])])
    check("Clip", [x, np.array(-0.5, dtype), np.array(0.5, dtype)], expected=[np.clip(wide, -0.5, 0.5).astype(dtype)])
    product = wide @ other.T
    check("MatMul", [x, np.ascontiguousarray(y.T)], expected=[product.astype(dtype)], tolerance=2**-6)


def test_bits_are_taken_for_another_type() -> None:
    rng = np.random.default_rng(2)
    x = rng.integers(0, 2**16, (3, 4), np.uint16)
    for dtype, code in ((np.float16, 10), (ml_dtypes.bfloat16, 16), (np.int16, 5)):
        made = x.view(dtype)
        model = model_of("BitCast", [x], {"to": code}, opset=26)
        np.testing.assert_array_equal(run_kernel(kernel_of(module_of(model)), [x])[0].view(np.uint16), x)
        back = model_of("BitCast", [made], {"to": 4}, opset=26)
        np.testing.assert_array_equal(run_kernel(kernel_of(module_of(back)), [made])[0], x)
