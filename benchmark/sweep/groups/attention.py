"""Attention as exporters write it: heads, masks, a past, grouped keys, windows."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from onnx import TensorProto

from benchmark.sweep.graph import Build, Graph, Sketch

GROUP = "attention"
Mask = Callable[[Sketch, str, int], str]
"""Adds to scores of [batch, heads, rows, columns], of that many rows."""


def graphs() -> Iterator[Graph]:
    """All kinds of attention."""
    for heads, width, length in [
        (12, 64, 128), (12, 64, 32), (8, 32, 64), (4, 16, 50), (3, 64, 197), (1, 64, 256), (16, 64, 64), (2, 24, 100),
        (8, 40, 300), (12, 64, 1), (6, 64, 577), (4, 128, 64),
    ]:  # fmt: skip
        yield Graph(GROUP, f"{heads} heads of {width}, {length}", _scores(heads, width, length))
    for name, mask in MASKS.items():
        for length in (64, 200):
            yield Graph(GROUP, f"8 heads of 64, {length}, {name}", _scores(8, 64, length, mask))
    for heads, width, length in [(12, 64, 128), (6, 64, 197), (4, 32, 64)]:
        yield Graph(GROUP, f"self, {heads} heads of {width}, {length}", _self(heads, width, length))
        yield Graph(
            GROUP, f"self from one product, {heads} heads of {width}, {length}", _from_one(heads, width, length)
        )
    for heads, width, rows, columns in [(8, 64, 64, 77), (8, 40, 256, 77), (4, 64, 1, 100), (8, 32, 100, 400)]:
        yield Graph(GROUP, f"cross, {heads} heads of {width}, {rows} on {columns}", _cross(heads, width, rows, columns))
    for heads, groups, width, past in [
        (8, 8, 64, 1023),
        (12, 12, 64, 127),
        (8, 2, 64, 511),
        (32, 4, 64, 255),
        (8, 1, 64, 300),
    ]:
        named = f"one query, {heads} heads of {width}, {groups} of keys, past {past}"
        yield Graph(GROUP, named, _one_query(heads, groups, width, past))
    for heads, groups, width, length in [(8, 2, 64, 64), (16, 4, 64, 128), (8, 1, 64, 64)]:
        yield Graph(
            GROUP,
            f"grouped, {heads} heads of {width}, {groups} of keys, {length}",
            _grouped(heads, groups, width, length),
        )
    for heads, width, windows in [(3, 32, 64), (6, 32, 16), (12, 32, 4)]:
        yield Graph(
            GROUP, f"windows of 49, {heads} heads of {width}, {windows} windows", _windows(heads, width, windows)
        )
    yield Graph(GROUP, "linear, 8 heads of 32, 400", _linear)
    yield Graph(GROUP, "over channels, 4 heads of 32, 1024", _over_channels)
    yield Graph(GROUP, "rotary, 8 heads of 64, 64", _rotary)
    yield Graph(GROUP, "f16 with Softmax in f32, 8 heads of 64, 64", _half)
    for length in (64, 200):
        yield Graph(GROUP, f"op of opset 23, 8 heads of 64, {length}", _op(length))
    yield Graph(GROUP, "pooling by one learned query, 64 of 256", _pooled)


def _heads(g: Sketch, name: str, heads: int, width: int, length: int, dim: str = "sequence") -> str:
    return g.input(name, ("batch", 1), heads, (dim, length), width)


def attend(g: Sketch, q: str, k: str, v: str, width: int, mask: Mask | None = None, rows: int = 0) -> str:
    """Adds attention of heads that are apart, keys turned; the scale divides the scores."""
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    scores = g.op("Div", scores, g.number(width**0.5))
    if mask is not None:
        scores = mask(g, scores, rows)
    return g.op("MatMul", g.op("Softmax", scores, axis=-1), v)


def _scores(heads: int, width: int, length: int, mask: Mask | None = None) -> Build:
    def build(g: Sketch) -> str:
        n = g.side(length)
        q, k, v = (_heads(g, name, heads, width, n) for name in "qkv")
        return attend(g, q, k, v, width, mask, n)

    return build


# -- masks -------------------------------------------------------------------------------------------------------------


def _padding(g: Sketch, scores: str, rows: int) -> str:
    """BERT's: 1 for a token, 0 for padding."""
    mask = g.input("mask", ("batch", 1), ("sequence", rows), kind=TensorProto.INT64, below=2)
    mask = g.cast(g.op("Unsqueeze", mask, g.integers(1, 2)), TensorProto.FLOAT)
    return g.op("Add", scores, g.op("Mul", g.op("Sub", g.number(1.0), mask), g.number(-10000.0)))


def _added(g: Sketch, scores: str, rows: int) -> str:
    return g.op("Add", scores, g.input("mask", ("batch", 1), 1, ("sequence", rows), ("sequence", rows)))


def _where(g: Sketch, scores: str, rows: int) -> str:
    mask = g.input("mask", ("batch", 1), 1, 1, ("sequence", rows), kind=TensorProto.BOOL)
    return g.op("Where", mask, scores, g.number(-1e9))


def _causal_slice(g: Sketch, scores: str, rows: int) -> str:
    """GPT-2's: a triangle of all positions, cut to the length at hand."""
    triangle = g.constant(np.tril(np.ones((1, 1, 512, 512), np.bool_)))
    size = g.dim(scores, 2)
    for axis in (2, 3):
        triangle = g.op("Slice", triangle, g.integers(0), size, g.integers(axis))
    return g.op("Where", triangle, scores, g.number(-3.4e38))


def _causal_trilu(g: Sketch, scores: str, rows: int) -> str:
    size = g.dim(scores, 2)
    full = g.op("Expand", g.number(-3.4e38), g.op("Concat", size, size, axis=0))
    return g.op("Add", scores, g.op("Trilu", full, g.scalar(1), upper=1))


def _relative(g: Sketch, scores: str, rows: int) -> str:
    return g.op("Add", scores, g.input("bias", 1, 8, ("sequence", rows), ("sequence", rows)))


def _alibi(g: Sketch, scores: str, rows: int) -> str:
    places = g.op("Range", g.scalar(0), g.op("Gather", g.op("Shape", scores), g.scalar(3), axis=0), g.scalar(1))
    slopes = g.constant((2.0 ** -np.arange(1, 9, dtype=np.float32)).reshape(1, 8, 1, 1))
    return g.op("Add", scores, g.op("Mul", g.cast(places, TensorProto.FLOAT), slopes))


MASKS: dict[str, Mask] = {
    "padding": _padding,
    "mask": _added,
    "Where": _where,
    "causal by Slice": _causal_slice,
    "causal by Trilu": _causal_trilu,
    "bias of heads": _relative,
    "slopes": _alibi,
}


# -- with products around ----------------------------------------------------------------------------------------------


def _self(heads: int, width: int, length: int) -> Build:
    def build(g: Sketch) -> str:
        size = heads * width
        x = g.tokens(g.side(length), size)
        q, k, v = (g.linear(x, size, size) for _ in range(3))
        return g.linear(g.attention(q, k, v, size, heads), size, size)

    return build


def _from_one(heads: int, width: int, length: int) -> Build:
    """As vision transformers have it: one product for queries, keys and values."""

    def build(g: Sketch) -> str:
        size = heads * width
        x = g.tokens(g.side(length), size)
        parts = g.op("Transpose", g.reshape(g.linear(x, size, 3 * size), 0, -1, 3, heads, width), perm=[2, 0, 3, 1, 4])
        q, k, v = (g.op("Gather", parts, g.scalar(index), axis=0) for index in range(3))
        q = g.op("Mul", q, g.number(width**-0.5))
        shares = g.op("Softmax", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), axis=-1)
        joined = g.op("Transpose", g.op("MatMul", shares, v), perm=[0, 2, 1, 3])
        return g.linear(g.reshape(joined, 0, -1, size), size, size)

    return build


def _cross(heads: int, width: int, rows: int, columns: int) -> Build:
    def build(g: Sketch) -> str:
        size, n, m = heads * width, g.side(rows), g.side(columns)
        x = g.tokens(n, size)
        y = g.input("y", ("batch", 1), ("context", m), size)
        q = g.heads(g.linear(x, size, size, bias=False), heads, width)
        k, v = (g.heads(g.linear(y, size, size, bias=False), heads, width) for _ in range(2))
        joined = g.op("Transpose", attend(g, q, k, v, width), perm=[0, 2, 1, 3])
        return g.reshape(joined, 0, 0, size)

    return build


# -- a past, and fewer keys than queries -------------------------------------------------------------------------------


def _repeated(g: Sketch, x: str, groups: int, heads: int, width: int) -> str:
    """Repeats each head of keys or values, as transformers' `repeat_kv` is exported."""
    if groups == heads:
        return x
    length = g.dim(x, 2)
    shape = [g.integers(1), g.integers(groups), g.integers(heads // groups), length, g.integers(width)]
    wide = g.op("Expand", g.op("Unsqueeze", x, g.integers(2)), g.op("Concat", *shape, axis=0))
    return g.reshape(wide, 1, heads, -1, width)


def _one_query(heads: int, groups: int, width: int, past: int) -> Build:
    """A step of decoding; the longer past is an output too."""

    def build(g: Sketch) -> list[str]:
        n = g.side(past)
        q = g.input("q", 1, heads, 1, width)
        kept: list[str] = []
        for name in ("k", "v"):
            before = g.input(f"past_{name}", 1, groups, ("past", n), width)
            kept.append(g.op("Concat", before, g.input(name, 1, groups, 1, width), axis=2))
        k, v = (_repeated(g, x, groups, heads, width) for x in kept)
        return [attend(g, q, k, v, width), *kept]

    return build


def _grouped(heads: int, groups: int, width: int, length: int) -> Build:
    def build(g: Sketch) -> str:
        n = g.side(length)
        q = g.input("q", 1, heads, ("sequence", n), width)
        k, v = (_repeated(g, g.input(name, 1, groups, ("sequence", n), width), groups, heads, width) for name in "kv")
        return attend(g, q, k, v, width, _causal_trilu, n)

    return build


def _windows(heads: int, width: int, windows: int) -> Build:
    """Swin's: a bias for each head, a mask for each window."""

    def build(g: Sketch) -> str:
        q, k, v = (g.input(name, ("windows", windows), heads, 49, width) for name in "qkv")
        scores = g.op("MatMul", g.op("Mul", q, g.number(width**-0.5)), g.op("Transpose", k, perm=[0, 1, 3, 2]))
        scores = g.op("Add", scores, g.random(1, heads, 49, 49))
        scores = g.op("Add", scores, g.input("mask", ("windows", windows), 1, 49, 49))
        return g.op("MatMul", g.op("Softmax", scores, axis=-1), v)

    return build


# -- others ------------------------------------------------------------------------------------------------------------


def _linear(g: Sketch) -> str:
    n = g.side(400)
    q, k, v = (_heads(g, name, 8, 32, n) for name in "qkv")
    q, k = (g.op("Add", g.op("Elu", x), g.number(1.0)) for x in (q, k))
    context = g.op("MatMul", g.op("Transpose", k, perm=[0, 1, 3, 2]), v)
    total = g.op("Unsqueeze", g.op("ReduceSum", k, g.integers(2), keepdims=0), g.integers(3))
    return g.op("Div", g.op("MatMul", q, context), g.op("MatMul", q, total))


def _over_channels(g: Sketch) -> str:
    """Restormer's: normalised channels attend to each other."""
    places = g.side(1024)
    q, k, v = (g.input(name, ("batch", 1), 4, 32, ("places", places)) for name in "qkv")
    q, k = (
        g.op("Div", x, g.op("Clip", g.op("ReduceL2", x, g.integers(-1), keepdims=1), g.number(1e-12))) for x in (q, k)
    )
    scores = g.op("Mul", g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2])), g.random(4, 1, 1))
    return g.op("MatMul", g.op("Softmax", scores, axis=-1), v)


def _rotary(g: Sketch) -> str:
    n = g.side(64)
    q, k, v = (g.input(name, 1, 8, ("sequence", n), 64) for name in "qkv")
    cosine, sine = (g.input(name, 1, 1, ("sequence", n), 64) for name in ("cos", "sin"))

    def turned(x: str) -> str:
        first = g.op("Slice", x, g.integers(0), g.integers(32), g.integers(3))
        second = g.op("Slice", x, g.integers(32), g.integers(2**62), g.integers(3))
        other = g.op("Concat", g.op("Neg", second), first, axis=-1)
        return g.op("Add", g.op("Mul", x, cosine), g.op("Mul", other, sine))

    return attend(g, turned(q), turned(k), v, 64)


def _half(g: Sketch) -> str:
    n = g.side(64)
    half = TensorProto.FLOAT16
    q, k, v = (g.input(name, ("batch", 1), 8, ("sequence", n), 64, kind=half) for name in "qkv")
    scores = g.op("MatMul", q, g.op("Transpose", k, perm=[0, 1, 3, 2]))
    shares = g.op("Softmax", g.op("Mul", g.cast(scores, TensorProto.FLOAT), g.number(0.125)), axis=-1)
    return g.op("MatMul", g.cast(shares, half), v)


def _op(length: int) -> Build:
    def build(g: Sketch) -> str:
        g.use_opset(23)
        q, k, v = (_heads(g, name, 8, 64, g.side(length) if name == "q" else g.sizes["sequence"]) for name in "qkv")
        return g.op("Attention", q, k, v, is_causal=1)

    return build


def _pooled(g: Sketch) -> str:
    width = g.wide(256)
    x = g.tokens(g.side(64), width)
    shares = g.op("Softmax", g.op("MatMul", x, g.random(width, 1, scale=width**-0.5)), axis=1)
    return g.op("ReduceSum", g.op("Mul", x, shares), g.integers(1), keepdims=0)
