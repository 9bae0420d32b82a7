"""Reductions over every set of axes, and the ops that search and accumulate along one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from onnx import TensorProto

from benchmark.sweep.graph import Build, Graph, Sketch, times

GROUP = "reductions"
SHAPES = [(4096,), (256, 1000), (16, 200, 300), (2, 48, 40, 40), (2, 6, 16, 20, 24)]
"""A shape of every rank."""
ALL_KINDS = [
    "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare",
    "ReduceLogSum",
]  # fmt: skip


def graphs() -> Iterator[Graph]:
    """All reductions."""
    for shape in SHAPES:
        for count in range(1, len(shape) + 1):
            for axes in combinations(range(len(shape)), count):
                yield Graph(GROUP, f"ReduceSum over {times(axes)} of {times(shape)}", reduced("ReduceSum", shape, axes))
    for kind in ALL_KINDS:
        for shape, axes in [((256, 1000), (1,)), ((2, 48, 40, 40), (1,)), ((2, 48, 40, 40), (2, 3))]:
            yield Graph(GROUP, f"{kind} over {times(axes)} of {times(shape)}", reduced(kind, shape, axes))
    yield from surrounded()
    yield from searches()
    yield from sums_so_far()


def _input(g: Sketch, shape: Sequence[int], **more: Any) -> str:
    dims = [g.side(s) for s in shape]
    return g.input("x", ("batch", dims[0]), *dims[1:], **more)


def reduced(kind: str, shape: Sequence[int], axes: Sequence[int], before: str = "") -> Build:
    """A reduction, with an op on one input in front of it if named."""

    # A product of many numbers leaves the range of f32, and a sum below 0 has no logarithm.
    ranges = {"ReduceProd": {"around": 1.0, "scale": 0.02}, "ReduceLogSum": {"around": 20.0}}

    def build(g: Sketch) -> str:
        x = _input(g, shape, **ranges.get(kind, {}))
        x = g.op(before, x) if before else x
        return g.op(kind, x, g.integers(*axes), keepdims=int(len(shape) % 2 == 0))

    return build


def surrounded() -> Iterator[Graph]:
    """Reductions with other ops around them."""
    for kind, shape, axes, before in [
        ("ReduceMean", (2, 48, 40, 40), (1,), "Relu"), ("ReduceMax", (2, 48, 40, 40), (1,), "Sigmoid"),
        ("ReduceSum", (256, 1000), (0,), "Exp"), ("ReduceSum", (2, 6, 16, 20, 24), (0, 1, 2, 3, 4), "Abs"),
        ("ReduceMean", (1, 64, 56, 56), (2, 3), "Relu"), ("ReduceMax", (16, 200, 300), (1,), "Tanh"),
    ]:  # fmt: skip
        yield Graph(
            GROUP, f"{before} + {kind} over {times(axes)} of {times(shape)}", reduced(kind, shape, axes, before)
        )
    yield Graph(GROUP, "variance over 1 of 256x1000", _variance)
    yield Graph(GROUP, "centred over 2x3 of 1x64x56x56", _centred)
    yield Graph(GROUP, "mean and maximum over channels of 1x64x56x56", _both)
    yield Graph(GROUP, "masked mean of 8x128x384", _masked_mean)
    yield Graph(GROUP, "square error of 64x1000", _square_error)
    yield Graph(GROUP, "ReduceSum of i32 over 1 of 256x1000", _whole_numbers(TensorProto.INT32, "ReduceSum"))
    yield Graph(GROUP, "ReduceMax of i64 over 1 of 256x1000", _whole_numbers(TensorProto.INT64, "ReduceMax"))
    yield Graph(GROUP, "ReduceSum of f64 over 1 of 256x1000", _whole_numbers(TensorProto.DOUBLE, "ReduceSum"))


def _variance(g: Sketch) -> str:
    x = _input(g, (256, 1000))
    away = g.op("Sub", x, g.op("ReduceMean", x, g.integers(1), keepdims=1))
    return g.op("ReduceMean", g.op("Mul", away, away), g.integers(1), keepdims=0)


def _centred(g: Sketch) -> str:
    x = _input(g, (1, 64, 56, 56))
    return g.op("Sub", x, g.op("ReduceMean", x, g.integers(2, 3), keepdims=1))


def _both(g: Sketch) -> str:
    """CBAM's spatial attention."""
    x = _input(g, (1, 64, 56, 56))
    pair = [g.op(kind, x, g.integers(1), keepdims=1) for kind in ("ReduceMean", "ReduceMax")]
    return g.op("Concat", *pair, axis=1)


def _masked_mean(g: Sketch) -> str:
    """Sentence embeddings: the mean over the tokens that are there."""
    n = g.side(128)
    x = g.tokens(n, g.wide(384), batch=8)
    mask = g.input("mask", ("batch", 8), ("sequence", n), kind=TensorProto.INT64, below=2)
    mask = g.op("Expand", g.cast(g.op("Unsqueeze", mask, g.integers(-1)), TensorProto.FLOAT), g.op("Shape", x))
    total = g.op("ReduceSum", g.op("Mul", x, mask), g.integers(1), keepdims=0)
    return g.op("Div", total, g.op("Clip", g.op("ReduceSum", mask, g.integers(1), keepdims=0), g.number(1e-9)))


def _square_error(g: Sketch) -> str:
    dims = ("batch", g.side(64)), g.side(1000)
    x, y = g.input("x", *dims), g.input("y", *dims)
    away = g.op("Sub", x, y)
    return g.op("ReduceMean", g.op("Mul", away, away), keepdims=0)


def _whole_numbers(kind: int, op: str) -> Build:
    return lambda g: g.op(op, _input(g, (256, 1000), kind=kind), g.integers(1), keepdims=0)


def searches() -> Iterator[Graph]:
    """The places of the largest and smallest values."""
    for shape, axis in [
        ((256, 1000), 1),
        ((256, 1000), 0),
        ((1, 19, 65, 65), 1),
        ((16, 200, 300), 2),
        ((1, 100, 6625), 2),
    ]:
        yield Graph(GROUP, f"ArgMax over {axis} of {times(shape)}", _search("ArgMax", shape, axis))
    yield Graph(GROUP, "ArgMin over 1 of 256x1000", _search("ArgMin", (256, 1000), 1))
    yield Graph(GROUP, "ArgMax and ReduceMax over 1 of 8400x80", _best)
    for shape, axis, k in [
        ((64, 1000), 1, 5),
        ((1, 8400), 1, 100),
        ((1, 8400), 1, 1),
        ((8, 80, 300), 1, 3),
        ((1, 76725), 1, 1000),
    ]:
        yield Graph(GROUP, f"TopK {k} over {axis} of {times(shape)}", _top(shape, axis, k))


def _search(kind: str, shape: Sequence[int], axis: int) -> Build:
    return lambda g: g.op(kind, _input(g, shape), axis=axis, keepdims=0)


def _best(g: Sketch) -> list[str]:
    x = g.op("Sigmoid", _input(g, (8400, 80)))
    return [g.op("ReduceMax", x, g.integers(1), keepdims=0), g.op("ArgMax", x, axis=1, keepdims=0)]


def _top(shape: Sequence[int], axis: int, k: int) -> Build:
    def build(g: Sketch) -> list[str]:
        x = g.input("x", *(("batch" if d == 0 else "places", s) if d in (0, axis) else s for d, s in enumerate(shape)))
        return g.ops("TopK", x, g.integers(k), count=2, axis=axis)

    return build


def sums_so_far() -> Iterator[Graph]:
    for shape, axis, more in [
        ((256, 1000), 1, {}), ((256, 1000), 0, {}), ((8, 128, 64), 1, {}), ((1, 20000), 1, {}),
        ((256, 1000), 1, {"exclusive": 1}), ((256, 1000), 1, {"reverse": 1}),
    ]:  # fmt: skip
        named = f"CumSum over {axis} of {times(shape)} {' '.join(more)}".strip()
        yield Graph(GROUP, named, _so_far(shape, axis, more))
    yield Graph(GROUP, "positions of a mask 8x128", _positions)


def _so_far(shape: Sequence[int], axis: int, more: dict[str, int]) -> Build:
    return lambda g: g.op("CumSum", _input(g, shape), g.scalar(axis), **more)


def _positions(g: Sketch) -> str:
    mask = g.input("mask", ("batch", 8), ("sequence", g.side(128)), kind=TensorProto.INT64, below=2)
    return g.op("Mul", g.op("Sub", g.op("CumSum", mask, g.scalar(1)), g.scalar(1)), mask)
