"""Quantised graphs: pairs of QuantizeLinear and DequantizeLinear, integer ops, dynamic quantisation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from onnx import TensorProto

from benchmark.sweep.graph import Build, Graph, Sketch
from benchmark.sweep.groups.conv import DEPTHWISE

GROUP = "quantised"
UINT8, INT8, FLOAT = TensorProto.UINT8, TensorProto.INT8, TensorProto.FLOAT


def graphs() -> Iterator[Graph]:
    """All quantised graphs."""
    for kind, inputs, outputs, side, k, stride, groups in [
        ("pointwise", 64, 128, 28, 1, 1, 1), ("pointwise", 256, 64, 14, 1, 1, 1), ("pointwise", 16, 96, 56, 1, 1, 1),
        ("pointwise", 320, 1280, 7, 1, 1, 1), ("window", 3, 32, 112, 3, 2, 1), ("window", 64, 64, 28, 3, 1, 1),
        ("window", 32, 32, 56, 3, 1, 1), ("window", 128, 256, 14, 3, 2, 1), ("window", 256, 256, 7, 3, 1, 1),
        ("depthwise", 96, 96, 56, 3, 1, DEPTHWISE), ("depthwise", 192, 192, 28, 3, 1, DEPTHWISE),
        ("depthwise", 144, 144, 56, 3, 2, DEPTHWISE), ("depthwise", 240, 240, 14, 5, 1, DEPTHWISE),
        ("depthwise", 960, 960, 7, 5, 1, DEPTHWISE),
    ]:  # fmt: skip
        marks = f"{k}x{k} {inputs}>{outputs} on {side}" + (f" s{stride}" if stride > 1 else "")
        yield Graph(GROUP, f"QDQ {kind} {marks}", _qdq_conv(inputs, outputs, side, k, stride, groups, ""))
        if stride == 1:
            yield Graph(
                GROUP, f"QDQ {kind} {marks} + Relu", _qdq_conv(inputs, outputs, side, k, stride, groups, "Relu")
            )
    yield Graph(GROUP, "QDQ residual 64 on 28", _qdq_sum)
    yield Graph(GROUP, "QDQ Gemm 16x512x512", _qdq_product(16, 512, 512))
    for rows, depth, columns in [(1, 768, 768), (128, 384, 384), (32, 384, 1536)]:
        yield Graph(GROUP, f"MatMulInteger {rows}x{depth}x{columns}", _integer_product(rows, depth, columns))
        yield Graph(GROUP, f"dynamic MatMul {rows}x{depth}x{columns}", _dynamic(rows, depth, columns, ""))
        yield Graph(GROUP, f"dynamic MatMul {rows}x{depth}x{columns} + Relu", _dynamic(rows, depth, columns, "Relu"))
    yield Graph(GROUP, "QLinearConv 3x3 64>64 on 28", _linear_conv)
    yield Graph(GROUP, "QLinearMatMul 64x256x256", _linear_product)
    yield Graph(GROUP, "ConvInteger 3x3 32>32 on 28", _integer_conv)
    yield Graph(GROUP, "weight in codes of channels 64x512x512", _weight_only(512, 512))
    yield Graph(GROUP, "QuantizeLinear 64x56x56", _quantized)
    yield Graph(GROUP, "DequantizeLinear + Sigmoid + QuantizeLinear 64x56x56", _requantized)
    yield Graph(GROUP, "DynamicQuantizeLinear 128x768", _dynamic_codes)
    yield Graph(GROUP, "QDQ MaxPool 2/2 64 on 56", _qdq_pool("MaxPool"))
    yield Graph(GROUP, "QDQ AveragePool 2/2 64 on 56", _qdq_pool("AveragePool"))
    yield Graph(GROUP, "QDQ Concat of 2 64 on 28", _qdq_join)


def _scale(g: Sketch, value: float) -> str:
    return g.constant(np.array(value, np.float32))


def _zero(g: Sketch, value: int, dtype: type = np.uint8) -> str:
    return g.constant(np.array(value, dtype))


def pair(g: Sketch, x: str, scale: float = 0.05, zero: int = 128) -> str:
    """Adds QuantizeLinear and DequantizeLinear of u8 with one scale."""
    s, z = _scale(g, scale), _zero(g, zero)
    return g.op("DequantizeLinear", g.op("QuantizeLinear", x, s, z), s, z)


def _codes(g: Sketch, *shape: int) -> np.ndarray[Any, Any]:
    return g.rng.integers(-127, 128, shape, dtype=np.int8)


def _weight(g: Sketch, *shape: int, fan: int) -> str:
    """A weight in codes of i8 with a scale for each output channel."""
    scales = (np.abs(g.draw(shape[0], scale=0.2, around=1.0)) / 127 * fan**-0.5).astype(np.float32)
    zeros = g.constant(np.zeros(shape[0], np.int8))
    return g.op("DequantizeLinear", g.constant(_codes(g, *shape)), g.constant(scales), zeros, axis=0)


def _qdq_conv(inputs: int, outputs: int, side: int, k: int, stride: int, groups: int, act: str) -> Build:
    def build(g: Sketch) -> str:
        c, n = g.wide(inputs), g.side(side)
        m, share = (c, 1) if groups == DEPTHWISE else (g.wide(outputs), c)
        weight = _weight(g, m, share, k, k, fan=share * k * k)
        bias_scale = g.constant(np.full(m, 0.05 / 127, np.float32))
        codes = g.constant(g.rng.integers(-500, 500, m).astype(np.int32))
        bias = g.op("DequantizeLinear", codes, bias_scale, axis=0)
        how = {
            "kernel_shape": [k, k],
            "strides": [stride] * 2,
            "pads": [k // 2] * 4,
            "group": c if groups == DEPTHWISE else 1,
        }
        y = g.op("Conv", pair(g, g.image(c, n, n)), weight, bias, **how)
        return pair(g, g.op(act, y) if act else y)

    return build


def _qdq_sum(g: Sketch) -> str:
    c, n = g.wide(64), g.side(28)
    x = pair(g, g.image(c, n, n))
    y = pair(g, g.op("Conv", x, _weight(g, c, c, 3, 3, fan=9 * c), kernel_shape=[3, 3], pads=[1] * 4))
    return pair(g, g.op("Relu", g.op("Add", y, x)), zero=0)


def _qdq_product(rows: int, depth: int, columns: int) -> Build:
    def build(g: Sketch) -> str:
        k, n = g.wide(depth), g.wide(columns)
        x = pair(g, g.input("x", ("batch", g.side(rows)), k))
        return pair(g, g.op("Gemm", x, _weight(g, n, k, fan=k), transB=1))

    return build


def _integer_product(rows: int, depth: int, columns: int) -> Build:
    def build(g: Sketch) -> str:
        k, n = g.wide(depth), g.wide(columns)
        x = g.input("x", ("batch", 1), ("sequence", g.side(rows)), k, kind=UINT8, below=256)
        return g.op("MatMulInteger", x, g.constant(_codes(g, k, n)), _zero(g, 120), _zero(g, 0, np.int8))

    return build


def _dynamic(rows: int, depth: int, columns: int, act: str) -> Build:
    """As ORT's `quantize_dynamic` writes it, with a bias."""

    def build(g: Sketch) -> str:
        k, n = g.wide(depth), g.wide(columns)
        codes, scale, zero = g.ops("DynamicQuantizeLinear", g.tokens(g.side(rows), k), count=3)
        product = g.op("MatMulInteger", codes, g.constant(_codes(g, k, n)), zero, _zero(g, 0, np.int8))
        scales = g.op("Mul", scale, _scale(g, 0.3 / 127 * k**-0.5))
        y = g.op("Add", g.op("Mul", g.cast(product, FLOAT), scales), g.random(n, scale=0.1))
        return g.op(act, y) if act else y

    return build


def _linear_conv(g: Sketch) -> str:
    c, n = g.wide(64), g.side(28)
    x = g.image(c, n, n, kind=UINT8, below=256)
    weight = [
        g.constant(_codes(g, c, c, 3, 3)),
        g.constant(np.full(c, 0.001, np.float32)),
        g.constant(np.zeros(c, np.int8)),
    ]
    result = [_scale(g, 0.1), _zero(g, 128)]
    return g.op("QLinearConv", x, _scale(g, 0.02), _zero(g, 128), *weight, *result, kernel_shape=[3, 3], pads=[1] * 4)


def _linear_product(g: Sketch) -> str:
    k, n = g.wide(256), g.wide(256)
    x = g.input("x", ("batch", g.side(64)), k, kind=UINT8, below=256)
    weight = [g.constant(_codes(g, k, n)), _scale(g, 0.002), _zero(g, 0, np.int8)]
    return g.op("QLinearMatMul", x, _scale(g, 0.02), _zero(g, 128), *weight, _scale(g, 0.1), _zero(g, 128))


def _integer_conv(g: Sketch) -> str:
    c, n = g.wide(32), g.side(28)
    x = g.image(c, n, n, kind=UINT8, below=256)
    weight = g.constant(g.rng.integers(0, 256, (c, c, 3, 3)).astype(np.uint8))
    y = g.op("ConvInteger", x, weight, _zero(g, 128), _zero(g, 128), kernel_shape=[3, 3], pads=[1] * 4)
    return g.op("Mul", g.cast(y, FLOAT), _scale(g, 0.0001))


def _weight_only(depth: int, columns: int) -> Build:
    def build(g: Sketch) -> str:
        k, n = g.wide(depth), g.wide(columns)
        return g.op("Gemm", g.input("x", ("batch", g.side(64)), k), _weight(g, n, k, fan=k), transB=1)

    return build


def _quantized(g: Sketch) -> str:
    return g.op("QuantizeLinear", g.image(g.wide(64), g.side(56), g.side(56)), _scale(g, 0.02), _zero(g, 128))


def _requantized(g: Sketch) -> str:
    x = g.image(g.wide(64), g.side(56), g.side(56), kind=UINT8, below=256)
    y = g.op("Sigmoid", g.op("DequantizeLinear", x, _scale(g, 0.05), _zero(g, 128)))
    return g.op("QuantizeLinear", y, _scale(g, 1 / 256), _zero(g, 0))


def _dynamic_codes(g: Sketch) -> list[str]:
    return g.ops("DynamicQuantizeLinear", g.tokens(g.side(128), g.wide(768)), count=3)


def _qdq_pool(kind: str) -> Build:
    def build(g: Sketch) -> str:
        x = pair(g, g.image(g.wide(64), g.side(56), g.side(56)))
        return pair(g, g.op(kind, x, kernel_shape=[2, 2], strides=[2, 2]))

    return build


def _qdq_join(g: Sketch) -> str:
    c, n = g.wide(64), g.side(28)
    parts = [pair(g, g.image(c, n, n, name=name)) for name in "xy"]
    return pair(g, g.op("Concat", *parts, axis=1))
