"""Elementwise ops: one at a time, in chains, with broadcasts, with casts, and on integers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from onnx import TensorProto

from benchmark.sweep.activations import ACTIVATIONS
from benchmark.sweep.graph import Build, Graph, Sketch, times

GROUP = "pointwise"
FLOAT = TensorProto.FLOAT
UNARY = [
    "Exp", "Log", "Sqrt", "Erf", "Tanh", "Sigmoid", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh",
    "Asinh",
    "Acosh", "Atanh", "Softplus", "Softsign", "Selu", "Celu", "Elu", "ThresholdedRelu", "Abs", "Neg", "Floor", "Round",
    "Ceil", "Sign", "Reciprocal",
]  # fmt: skip
POSITIVE = {"Log", "Sqrt", "Acosh", "Reciprocal"}
WITHIN_ONE = {"Asin", "Acos", "Atanh"}


def graphs() -> Iterator[Graph]:
    """All elementwise graphs."""
    for kind in UNARY:
        yield Graph(GROUP, f"Mul + {kind} 64x56x56", _unary(kind))
    for name in ACTIVATIONS:
        yield Graph(GROUP, f"{name} 1x96x56x56", _activation(name, (96, 56, 56)))
    for name in ("Gelu", "SiLU", "HardSwish in parts"):
        yield Graph(GROUP, f"{name} 1x1000", _activation(name, (1000,)))
    yield from chains()
    yield from broadcasts()
    yield from choices()
    yield from casts()
    yield from integers()


def _x(g: Sketch, *shape: int, name: str = "x", **more: Any) -> str:
    first = ("batch", g.sizes.get("batch", 1))
    return g.input(name, first, *shape, **more)


def _unary(kind: str) -> Build:
    def build(g: Sketch) -> str:
        x = g.op("Mul", _x(g, g.wide(64), 56, 56), g.number(0.7))
        if kind in POSITIVE:
            x = g.op("Add", g.op("Abs", x), g.number(1.01))
        if kind in WITHIN_ONE:
            x = g.op("Clip", x, g.number(-0.99), g.number(0.99))
        return g.op(kind, x)

    return build


def _activation(name: str, shape: Sequence[int]) -> Build:
    return lambda g: ACTIVATIONS[name](g, _x(g, *(g.side(s) for s in shape)))


def chains() -> Iterator[Graph]:
    for count in (2, 8, 40):
        yield Graph(GROUP, f"chain of {count} 1x64x56x56", _chain(count))
    yield Graph(GROUP, "chain of 8 1x10", _chain(8, (10,)))
    yield Graph(GROUP, "tree of 16 inputs 1x1000", _tree)
    yield Graph(GROUP, "Pow 2 1x64x56x56", lambda g: g.op("Pow", _x(g, 64, 56, 56), g.number(2.0)))
    yield Graph(GROUP, "Pow 0.4545 1x3x224x224", _gamma)
    yield Graph(GROUP, "Clip + Acos 1x64x56x56", _angle)
    yield Graph(GROUP, "Min + Max of four 1x10000", _extremes)
    yield Graph(GROUP, "boxes to corners 8400x4", _corners)
    yield Graph(GROUP, "overlaps of 300 and 300 boxes", _overlaps)
    yield Graph(GROUP, "step of a sampler 1x4x64x64", _sampler)


def _chain(count: int, shape: Sequence[int] = (64, 56, 56)) -> Build:
    def build(g: Sketch) -> str:
        x = _x(g, *(g.side(s) for s in shape))
        for k in range(count):
            other = {"Mul": [g.number(1.01)], "Add": [g.number(0.01)], "Relu": [], "Sub": [g.number(0.2)]}
            kind = list(other)[k % 4]
            x = g.op(kind, x, *other[kind])
        return x

    return build


def _tree(g: Sketch) -> str:
    n = g.wide(1000)
    level = [_x(g, n, name=f"x{k}") for k in range(16)]
    while len(level) > 1:
        level = [g.op("Add", a, b) for a, b in zip(level[::2], level[1::2], strict=True)]
    return level[0]


def _gamma(g: Sketch) -> str:
    return g.op("Pow", g.op("Clip", _x(g, 3, 224, 224), g.number(0.0), g.number(1.0)), g.number(0.4545))


def _angle(g: Sketch) -> str:
    return g.op("Acos", g.op("Clip", _x(g, g.wide(64), 56, 56), g.number(-1.0), g.number(1.0)))


def _extremes(g: Sketch) -> str:
    n = g.wide(10000)
    a, b, c, d = (_x(g, n, name=name) for name in "abcd")
    return g.op("Sub", g.op("Max", a, b, c, d), g.op("Min", a, b, c, d))


def _corners(g: Sketch) -> str:
    boxes = g.input("x", ("boxes", g.side(8400)), 4)
    centre, size = g.ops("Split", boxes, count=2, axis=1, num_outputs=2)
    half = g.op("Div", size, g.number(2.0))
    return g.op("Concat", g.op("Sub", centre, half), g.op("Add", centre, half), axis=1)


def _overlaps(g: Sketch) -> str:
    a, b = g.input("a", ("n", g.side(300)), 1, 4), g.input("b", 1, ("m", g.side(300)), 4)

    def part(x: str, start: int) -> str:
        return g.op("Slice", x, g.integers(start), g.integers(start + 2), g.integers(2))

    low, high = g.op("Max", part(a, 0), part(b, 0)), g.op("Min", part(a, 2), part(b, 2))
    return g.op("ReduceProd", g.op("Relu", g.op("Sub", high, low)), g.integers(2), keepdims=0)


def _sampler(g: Sketch) -> str:
    x, noise = _x(g, 4, 64, 64), _x(g, 4, 64, 64, name="noise")
    first, second = g.input("alpha"), g.input("beta")
    return g.op("Add", g.op("Mul", x, first), g.op("Mul", noise, g.op("Sub", second, first)))


def broadcasts() -> Iterator[Graph]:
    for left, right in [
        ((1, 64, 56, 56), (1, 64, 1, 1)), ((1, 64, 56, 56), (56, 56)), ((1, 64, 56, 56), (1, 1, 56, 56)),
        ((1, 64, 56, 56), (56, 1)),
        ((128, 768), (768,)), ((128, 768), (128, 1)), ((500, 1), (1, 500)), ((1, 12, 128, 128), (1, 1, 1, 128)),
        ((8, 1, 64), (1, 100, 64)),
        ((64, 1, 1), (64, 56, 56)), ((1, 1, 1, 1), (1, 64, 28, 28)), ((16, 1, 16, 1, 16), (1, 16, 1, 16, 1)),
    ]:  # fmt: skip
        for kind in ("Add", "Mul"):
            yield Graph(GROUP, f"{kind} {times(left)} and {times(right)}", _broadcast(kind, left, right))
    yield Graph(GROUP, "scale and shift of channels + Relu 1x64x56x56", _affine)
    yield Graph(GROUP, "scale and shift of columns 128x768", _columns)
    yield Graph(GROUP, "outer difference of 512", _outer)


def _broadcast(kind: str, left: Sequence[int], right: Sequence[int]) -> Build:
    def build(g: Sketch) -> str:
        return g.op("Relu", g.op(kind, g.input("x", *left), g.input("y", *right)))

    return build


def _affine(g: Sketch) -> str:
    c = g.wide(64)
    scaled = g.op("Mul", _x(g, c, 56, 56), g.random(1, c, 1, 1))
    return g.op("Relu", g.op("Add", scaled, g.random(1, c, 1, 1)))


def _columns(g: Sketch) -> str:
    n = g.wide(768)
    return g.op("Add", g.op("Mul", g.tokens(g.side(128), n), g.random(n)), g.random(n))


def _outer(g: Sketch) -> str:
    x = g.input("x", ("n", g.side(512)))
    return g.op("Abs", g.op("Sub", g.op("Unsqueeze", x, g.integers(0)), g.op("Unsqueeze", x, g.integers(1))))


def choices() -> Iterator[Graph]:
    yield Graph(GROUP, "Where by a mask 1x64x56x56", _where_mask)
    yield Graph(GROUP, "Where by a comparison 1x64x56x56", _where_compared)
    yield Graph(GROUP, "Where by a row 64x1000", _where_row)
    yield Graph(GROUP, "Equal + Not + Cast 128x128", _pad_mask)
    yield Graph(GROUP, "And of comparisons 10000", _between)
    yield Graph(GROUP, "IsNaN + Where 1x64x56x56", _cleaned)


def _where_mask(g: Sketch) -> str:
    shape = (g.wide(64), 56, 56)
    mask = _x(g, *shape, name="mask", kind=TensorProto.BOOL)
    return g.op("Where", mask, _x(g, *shape), _x(g, *shape, name="y"))


def _where_compared(g: Sketch) -> str:
    x = _x(g, g.wide(64), 56, 56)
    return g.op("Where", g.op("Greater", x, g.number(0.0)), x, g.op("Mul", x, g.number(0.1)))


def _where_row(g: Sketch) -> str:
    n = g.wide(1000)
    return g.op("Where", g.input("mask", 1, n, kind=TensorProto.BOOL), g.input("x", ("batch", 64), n), g.number(-1e9))


def _pad_mask(g: Sketch) -> str:
    ids = g.input("ids", ("batch", 128), ("sequence", g.side(128)), kind=TensorProto.INT64, below=3)
    return g.cast(g.op("Not", g.op("Equal", ids, g.scalar(1))), FLOAT)


def _between(g: Sketch) -> str:
    x = g.input("x", ("n", g.wide(10000)))
    inside = g.op("And", g.op("GreaterOrEqual", x, g.number(-1.0)), g.op("Less", x, g.number(1.0)))
    return g.op("Where", inside, x, g.number(0.0))


def _cleaned(g: Sketch) -> str:
    x = g.op("Sqrt", _x(g, g.wide(64), 56, 56))
    return g.op("Where", g.op("IsNaN", x), g.number(0.0), x)


def casts() -> Iterator[Graph]:
    kinds = {
        "u8": TensorProto.UINT8, "i8": TensorProto.INT8, "i32": TensorProto.INT32, "i64": TensorProto.INT64,
        "f16": TensorProto.FLOAT16, "f64": TensorProto.DOUBLE, "bool": TensorProto.BOOL,
    }  # fmt: skip
    for name, kind in kinds.items():
        yield Graph(GROUP, f"Cast {name} to f32 + Mul 3x160x160", _from(kind))
        yield Graph(GROUP, f"Mul + Cast f32 to {name} 3x160x160", _to(kind))
    yield Graph(GROUP, "f16 chain through f32 1x64x56x56", _through_half)


def _from(kind: int) -> Build:
    def build(g: Sketch) -> str:
        return g.op("Mul", g.cast(_x(g, 3, g.side(160), 160, kind=kind), FLOAT), g.number(1 / 255))

    return build


def _to(kind: int) -> Build:
    def build(g: Sketch) -> str:
        # Not below 0: what a cast of negative numbers to u8 gives is not defined.
        x = g.op("Mul", g.op("Abs", _x(g, 3, g.side(160), 160)), g.number(20.0))
        return g.cast(x, kind)

    return build


def _through_half(g: Sketch) -> str:
    x = g.cast(_x(g, 64, 56, 56, kind=TensorProto.FLOAT16), FLOAT)
    return g.cast(g.silu(x), TensorProto.FLOAT16)


def integers() -> Iterator[Graph]:
    for kind, name in ((TensorProto.INT64, "i64"), (TensorProto.INT32, "i32")):
        for op in ("Add", "Mul", "Div", "Mod"):
            yield Graph(GROUP, f"{op} of {name} + Sub 10000", _integer(op, kind))
    yield Graph(GROUP, "bytes shifted and masked 10000", _bits)
    yield Graph(GROUP, "buckets of positions 128x128", _buckets)


def _integer(op: str, kind: int) -> Build:
    def build(g: Sketch) -> str:
        n, dtype = g.wide(10000), np.int64 if kind == TensorProto.INT64 else np.int32
        x, y = g.input("x", ("n", n), kind=kind, below=1000), g.input("y", ("n", n), kind=kind, below=50)
        one = g.constant(np.array(1, dtype))
        return g.op("Sub", g.op(op, x, g.op("Add", y, one)), one)

    return build


def _bits(g: Sketch) -> str:
    g.use_opset(18)
    x = g.input("x", ("n", g.wide(10000)), kind=TensorProto.UINT8, below=256)
    high = g.op("BitShift", x, g.constant(np.array(4, np.uint8)), direction="RIGHT")
    return g.op("BitwiseAnd", high, g.constant(np.array(7, np.uint8)))


def _buckets(g: Sketch) -> str:
    """T5's relative positions."""
    n = g.op(
        "Range",
        g.scalar(0),
        g.op("Gather", g.op("Shape", g.input("x", ("sequence", g.side(128)))), g.scalar(0)),
        g.scalar(1),
    )
    away = g.op("Sub", g.op("Unsqueeze", n, g.integers(0)), g.op("Unsqueeze", n, g.integers(1)))
    far = g.op("Log", g.op("Add", g.cast(g.op("Abs", away), FLOAT), g.number(1.0)))
    bucket = g.op("Min", g.op("Abs", away), g.cast(g.op("Mul", far, g.number(4.0)), TensorProto.INT64))
    return g.op("Add", bucket, g.op("Mul", g.cast(g.op("Less", away, g.scalar(0)), TensorProto.INT64), g.scalar(16)))
