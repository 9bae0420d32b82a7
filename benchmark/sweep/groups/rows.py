"""Rows: softmax, and normalisations as ops and in the parts that exporters write."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from onnx import TensorProto

from benchmark.sweep.graph import Build, Graph, Sketch, times

GROUP = "rows"
Norm = Callable[[Sketch, str, int], str]
"""Adds a norm over the last axis, of that size."""


def graphs() -> Iterator[Graph]:
    """All rows."""
    yield from softmaxes()
    yield from layer_norms()
    yield from channel_norms()
    yield from lengths()


def _free(g: Sketch, shape: Sequence[int], **more: Any) -> str:
    """An input with a free first dim; the others are near `shape`."""
    return g.input("x", ("batch", g.side(shape[0])), *(g.side(s) for s in shape[1:]), **more)


def softmaxes() -> Iterator[Graph]:
    for shape in [
        (512, 1000),
        (8, 2048, 3),
        (1, 64, 56, 56),
        (2, 12, 128, 128),
        (4, 8, 16, 16, 16),
        (100, 5),
        (1, 50257),
    ]:
        for axis in range(len(shape)):
            if shape[axis] > 1:
                yield Graph(GROUP, f"Softmax over axis {axis} of {times(shape)}", _softmax("Softmax", shape, axis))
    for shape, axis in [((128, 1000), 1), ((100, 1, 6625), 2), ((1, 64, 56, 56), 1), ((40, 8, 29), 2)]:
        yield Graph(GROUP, f"LogSoftmax over axis {axis} of {times(shape)}", _softmax("LogSoftmax", shape, axis))
    yield Graph(GROUP, "Hardmax over axis 1 of 512x1000", _softmax("Hardmax", (512, 1000), 1))
    yield Graph(GROUP, "Softmax of 1x19x65x65 + ArgMax", _softmax_argmax)
    yield Graph(GROUP, "Mul + Softmax of 1x21x65x65 over channels", _scaled_softmax)
    yield Graph(GROUP, "Softmax in parts 512x1000", _softmax_in_parts)
    yield Graph(GROUP, "distribution of boxes 1x64x8400", _box_distribution)
    yield Graph(GROUP, "Softmax f16 of 512x1000", _softmax("Softmax", (512, 1000), 1, TensorProto.FLOAT16))


def _softmax(kind: str, shape: Sequence[int], axis: int, to: int = TensorProto.FLOAT) -> Build:
    return lambda g: g.op(kind, _free(g, shape, kind=to), axis=axis)


def _softmax_argmax(g: Sketch) -> list[str]:
    shares = g.op("Softmax", _free(g, (1, 19, 65, 65)), axis=1)
    return [shares, g.op("ArgMax", shares, axis=1, keepdims=0)]


def _scaled_softmax(g: Sketch) -> str:
    return g.op("Softmax", g.op("Mul", _free(g, (1, 21, 65, 65)), g.number(0.125)), axis=1)


def _softmax_in_parts(g: Sketch) -> str:
    x = _free(g, (512, 1000))
    e = g.op("Exp", g.op("Sub", x, g.op("ReduceMax", x, g.integers(-1), keepdims=1)))
    return g.op("Div", e, g.op("ReduceSum", e, g.integers(-1), keepdims=1))


def _box_distribution(g: Sketch) -> str:
    """YOLOv8's decoder: a softmax over 16 bins and their mean."""
    x = g.input("x", ("batch", 1), 64, ("places", g.side(8400)))
    bins = g.op("Softmax", g.op("Transpose", g.reshape(x, 0, 4, 16, -1), perm=[0, 2, 1, 3]), axis=1)
    weight = g.constant(g.draw(1, 16, 1, 1))
    return g.op("Conv", bins, weight, kernel_shape=[1, 1])


# -- normalisation of the last axes ------------------------------------------------------------------------------------


def layer_norms() -> Iterator[Graph]:
    for name, build in (
        ("LayerNormalization", _layer_norm_op), ("torch's", torch_layer_norm), ("TensorFlow's", tf_layer_norm),
        ("RMS of Llama", rms_norm), ("RMSNormalization", _rms_op),
    ):  # fmt: skip
        for rows, width in [(128, 768), (1, 4096), (3136, 96), (1000, 37)]:
            yield Graph(GROUP, f"{name} norm {rows}x{width}", _norm(build, rows, width))
    for rows, width in [(128, 768), (1, 768)]:
        yield Graph(GROUP, f"residual + torch's norm {rows}x{width}", _residual_norm(rows, width))
    yield Graph(GROUP, "norm over two axes 16x64x56", _two_axes)
    yield Graph(GROUP, "torch's norm in f16 128x768", _norm_half)
    yield Graph(GROUP, "norm of heads 1x8x64x64", _norm_of_heads)


def _norm(build: Norm, rows: int, width: int) -> Build:
    def made(g: Sketch) -> str:
        size = g.wide(width)
        return build(g, g.tokens(g.side(rows), size), size)

    return made


def _layer_norm_op(g: Sketch, x: str, width: int) -> str:
    return g.layer_norm(x, width)


def torch_layer_norm(g: Sketch, x: str, width: int) -> str:
    """As PyTorch exported it before opset 17."""
    centred = g.op("Sub", x, g.op("ReduceMean", x, g.integers(-1), keepdims=1))
    variance = g.op("ReduceMean", g.op("Pow", centred, g.number(2.0)), g.integers(-1), keepdims=1)
    normed = g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, g.number(1e-5))))
    return g.op("Add", g.op("Mul", normed, g.random(width, scale=0.1, around=1.0)), g.random(width, scale=0.1))


def tf_layer_norm(g: Sketch, x: str, width: int) -> str:
    """As Keras has it: the scale first, the mean within the shift."""
    mean = g.op("ReduceMean", x, g.integers(-1), keepdims=1)
    away = g.op("Sub", x, mean)
    variance = g.op("ReduceMean", g.op("Mul", away, away), g.integers(-1), keepdims=1)
    inverse = g.op("Reciprocal", g.op("Sqrt", g.op("Add", variance, g.number(1e-3))))
    scale = g.op("Mul", inverse, g.random(width, scale=0.1, around=1.0))
    shift = g.op("Sub", g.random(width, scale=0.1), g.op("Mul", mean, scale))
    return g.op("Add", g.op("Mul", x, scale), shift)


def rms_norm(g: Sketch, x: str, width: int) -> str:
    """As transformers' Llama is exported."""
    mean = g.op("ReduceMean", g.op("Pow", x, g.number(2.0)), g.integers(-1), keepdims=1)
    inverse = g.op("Div", g.number(1.0), g.op("Sqrt", g.op("Add", mean, g.number(1e-6))))
    return g.op("Mul", g.random(width, scale=0.1, around=1.0), g.op("Mul", x, inverse))


def _rms_op(g: Sketch, x: str, width: int) -> str:
    g.use_opset(23)
    return g.op("RMSNormalization", x, g.random(width, scale=0.1, around=1.0), axis=-1, epsilon=1e-6)


def _residual_norm(rows: int, width: int) -> Build:
    def build(g: Sketch) -> list[str]:
        size, n = g.wide(width), g.side(rows)
        total = g.op("Add", g.tokens(n, size), g.tokens(n, size, name="y"))
        return [torch_layer_norm(g, total, size), total]

    return build


def _two_axes(g: Sketch) -> str:
    height, width = g.side(64), g.side(56)
    x = g.input("x", ("batch", 16), height, width)
    return g.op("LayerNormalization", x, g.random(height, width), g.random(height, width), axis=1)


def _norm_half(g: Sketch) -> str:
    width = g.wide(768)
    x = g.cast(g.tokens(g.side(128), width, kind=TensorProto.FLOAT16), TensorProto.FLOAT)
    return g.cast(torch_layer_norm(g, x, width), TensorProto.FLOAT16)


def _norm_of_heads(g: Sketch) -> str:
    x = g.input("x", ("batch", 1), 8, ("sequence", g.side(64)), 64)
    return rms_norm(g, x, 64)


# -- normalisation of images -------------------------------------------------------------------------------------------


def channel_norms() -> Iterator[Graph]:
    for channels, side in [(64, 56), (320, 16), (512, 4), (32, 112)]:
        yield Graph(GROUP, f"GroupNorm of 32 groups {channels} on {side}", _group_norm(channels, side))
        yield Graph(GROUP, f"InstanceNormalization {channels} on {side}", _instance_norm(channels, side))
    yield Graph(GROUP, "GroupNormalization of 8 groups 64 on 28", _group_norm_op)
    yield Graph(GROUP, "GroupNorm + SiLU 64 on 32", _group_norm(64, 32, silu=True))
    for channels, side in [(96, 56), (384, 14)]:
        yield Graph(GROUP, f"norm over channels {channels} on {side}", _over_channels(channels, side))
        yield Graph(GROUP, f"norm with channels turned last {channels} on {side}", _turned(channels, side))
    yield Graph(GROUP, "BatchNormalization + Relu 64 on 56", _batch_norm)
    yield Graph(GROUP, "LRN 64 on 28", lambda g: g.op("LRN", g.image(g.wide(64), 28, 28), size=5, alpha=1e-4))
    yield Graph(GROUP, "adaptive instance norm 64 on 32", _adaptive)
    yield Graph(GROUP, "MeanVarianceNormalization 16 on 64", _mean_variance)
    yield Graph(GROUP, "global response norm 96 on 28", _response)
    yield Graph(GROUP, "InstanceNormalization 64 on 1000", _instance_norm_signal)


def _affine(g: Sketch, x: str, channels: int) -> str:
    scaled = g.op("Mul", x, g.random(channels, 1, 1, scale=0.1, around=1.0))
    return g.op("Add", scaled, g.random(channels, 1, 1, scale=0.1))


def _group_norm(channels: int, side: int, *, silu: bool = False) -> Build:
    """As PyTorch exports it: Reshape, InstanceNormalization, Reshape back."""

    def build(g: Sketch) -> str:
        c, n = g.wide(channels, 32), g.side(side)
        x = g.image(c, n, n)
        ones, zeros = g.numbers(*[1.0] * 32), g.numbers(*[0.0] * 32)
        normed = g.op("InstanceNormalization", g.reshape(x, 0, 32, -1), ones, zeros, epsilon=1e-5)
        y = _affine(g, g.op("Reshape", normed, g.op("Shape", x)), c)
        return g.silu(y) if silu else y

    return build


def _group_norm_op(g: Sketch) -> str:
    g.use_opset(21)
    c = g.wide(64, 8)
    x = g.image(c, 28, 28)
    return g.declare(g.op("GroupNormalization", x, g.random(c), g.random(c), num_groups=8), like=x)


def _instance_norm(channels: int, side: int) -> Build:
    def build(g: Sketch) -> str:
        c, n = g.wide(channels), g.side(side)
        return g.op("InstanceNormalization", g.image(c, n, n), g.random(c), g.random(c))

    return build


def _instance_norm_signal(g: Sketch) -> str:
    c = g.wide(64)
    return g.op("InstanceNormalization", g.image(c, g.side(1000)), g.random(c), g.random(c))


def _over_channels(channels: int, side: int) -> Build:
    """ConvNeXt's: the parts of a LayerNorm over axis 1."""

    def build(g: Sketch) -> str:
        c, n = g.wide(channels), g.side(side)
        x = g.image(c, n, n)
        centred = g.op("Sub", x, g.op("ReduceMean", x, g.integers(1), keepdims=1))
        variance = g.op("ReduceMean", g.op("Pow", centred, g.number(2.0)), g.integers(1), keepdims=1)
        return _affine(g, g.op("Div", centred, g.op("Sqrt", g.op("Add", variance, g.number(1e-6)))), c)

    return build


def _turned(channels: int, side: int) -> Build:
    def build(g: Sketch) -> str:
        c, n = g.wide(channels), g.side(side)
        last = g.layer_norm(g.op("Transpose", g.image(c, n, n), perm=[0, 2, 3, 1]), c)
        return g.op("Transpose", last, perm=[0, 3, 1, 2])

    return build


def _batch_norm(g: Sketch) -> str:
    c = g.wide(64)
    scale, shift, mean = (g.random(c, scale=0.1, around=a) for a in (1.0, 0.0, 0.0))
    variance = g.learned(0.75 + abs(g.draw(c, scale=0.3)))
    return g.op("Relu", g.op("BatchNormalization", g.image(c, g.side(56), g.side(56)), scale, shift, mean, variance))


def _adaptive(g: Sketch) -> str:
    c, n = g.wide(64), g.side(32)
    x = g.image(c, n, n)
    scale, shift = (g.input(name, ("batch", 1), c, 1, 1) for name in ("scale", "shift"))
    mean = g.op("ReduceMean", x, g.integers(2, 3), keepdims=1)
    away = g.op("Sub", x, mean)
    variance = g.op("ReduceMean", g.op("Mul", away, away), g.integers(2, 3), keepdims=1)
    normed = g.op("Div", away, g.op("Sqrt", g.op("Add", variance, g.number(1e-5))))
    return g.op("Add", g.op("Mul", normed, scale), shift)


def _mean_variance(g: Sketch) -> str:
    return g.op("MeanVarianceNormalization", g.image(g.wide(16), g.side(64), g.side(64)), axes=[0, 2, 3])


def _response(g: Sketch) -> str:
    """ConvNeXt V2's, channels last."""
    c, n = g.wide(96), g.side(28)
    x = g.input("x", ("batch", 1), ("height", n), ("width", n), c)
    size = g.op("ReduceL2", x, g.integers(1, 2), keepdims=1)
    share = g.op("Div", size, g.op("Add", g.op("ReduceMean", size, g.integers(-1), keepdims=1), g.number(1e-6)))
    return g.op("Add", g.op("Add", g.op("Mul", g.op("Mul", x, share), g.random(c)), g.random(c)), x)


# -- lengths -----------------------------------------------------------------------------------------------------------


def lengths() -> Iterator[Graph]:
    for shape, axis in [((128, 512), 1), ((1, 256, 28, 28), 1), ((8, 64, 784), 2), ((1, 128), 1)]:
        yield Graph(GROUP, f"normalised length over axis {axis} of {times(shape)}", _unit(shape, axis))
    yield Graph(GROUP, "LpNormalization 128x512", lambda g: g.op("LpNormalization", _free(g, (128, 512)), axis=-1, p=2))
    yield Graph(GROUP, "cosines of 64x512 and 64x512", _cosines)
    yield Graph(GROUP, "distances of 200x64 and 300x64", _distances)


def _unit(shape: Sequence[int], axis: int) -> Build:
    """PyTorch's `normalize`."""

    def build(g: Sketch) -> str:
        x = _free(g, shape)
        size = g.op("Clip", g.op("ReduceL2", x, g.integers(axis), keepdims=1), g.number(1e-12))
        return g.op("Div", x, g.op("Expand", size, g.op("Shape", x)))

    return build


def _cosines(g: Sketch) -> str:
    x, y = g.input("x", ("n", g.side(64)), 512), g.input("y", ("m", g.side(64)), 512)
    x, y = (g.op("Div", v, g.op("ReduceL2", v, g.integers(-1), keepdims=1)) for v in (x, y))
    return g.op("MatMul", x, g.op("Transpose", y, perm=[1, 0]))


def _distances(g: Sketch) -> str:
    x, y = g.input("x", ("n", g.side(200)), 1, 64), g.input("y", 1, ("m", g.side(300)), 64)
    away = g.op("Sub", x, y)
    return g.op("Sqrt", g.op("ReduceSum", g.op("Mul", away, away), g.integers(-1), keepdims=0))
