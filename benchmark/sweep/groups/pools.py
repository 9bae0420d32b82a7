"""Pools: windows of all sizes, also larger than the image, of one to three dimensions, alone and behind other ops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from onnx import TensorProto

from benchmark.sweep.activations import activated
from benchmark.sweep.graph import Build, Graph, Sketch, times
from benchmark.sweep.groups.conv import conv

GROUP = "pools"
KINDS = {"max": "MaxPool", "average": "AveragePool", "lp": "LpPool"}


def pool(
    kind: str,
    channels: int,
    sides: int | Sequence[int],
    kernel: int | Sequence[int],
    stride: int | Sequence[int] = 1,
    pads: int | Sequence[int] = 0,
    *,
    before: str = "",
    fixed: bool = False,
    to: int = TensorProto.FLOAT,
    **more: Any,
) -> Graph:
    """A pool on a square image if `sides` is one number; `fixed` keeps the sides for any seed."""
    sides = (sides, sides) if isinstance(sides, int) else tuple(sides)
    rank = len(sides)
    window = [kernel] * rank if isinstance(kernel, int) else list(kernel)
    strides = [stride] * rank if isinstance(stride, int) else list(stride)
    margins = [pads] * (2 * rank) if isinstance(pads, int) else list(pads)

    def build(g: Sketch) -> str:
        g.use_opset(19)
        x = g.image(g.wide(channels), *(s if fixed else g.side(s) for s in sides), kind=to, below=256)
        x = activated(g, x, before)
        return g.op(KINDS[kind], x, kernel_shape=window, strides=strides, pads=margins, **more)

    marks = [f"pads {pads if isinstance(pads, int) else times(pads)}"] if margins != [0] * len(margins) else []
    marks += [f"{key} {value if isinstance(value, int) else times(value)}" for key, value in more.items()]
    marks += [f"after {before}"] if before else []
    marks += [TensorProto.DataType.Name(to)] if to != TensorProto.FLOAT else []
    shape = "/".join(str(v[0]) if len(set(v)) == 1 else times(v) for v in (window, strides))
    return Graph(GROUP, " ".join([kind, shape, f"{channels} on {times(sides)}", *marks]), build)


def graphs() -> Iterator[Graph]:
    """All pools."""
    yield from largest()
    yield from averages()
    yield from beyond()
    yield from others()
    yield from whole()
    yield from surrounded()


def largest() -> Iterator[Graph]:
    for channels, side in [(64, 112), (64, 56), (16, 160), (256, 14)]:
        yield pool("max", channels, side, 3, 2, 1)
    yield pool("max", 128, 28, 3, 2, ceil_mode=1)
    yield pool("max", 64, 55, 3, 2)
    for channels, side in [(16, 112), (64, 56), (256, 28), (512, 14), (6, 24), (32, 33)]:
        yield pool("max", channels, side, 2, 2)
    yield pool("max", 32, (48, 320), (2, 1), (2, 1))
    yield pool("max", 32, (48, 320), 2, 2)
    yield pool("max", 192, 28, 3, 1, 1)
    yield pool("max", 480, 14, 3, 1, 1)
    for window in (5, 9, 13):
        yield pool("max", 128, 20, window, 1, window // 2)
    yield pool("max", 32, 56, 31, 1, 15)
    yield pool("max", 64, 28, 2, 1)
    yield pool("max", 64, 28, 2, 1, (0, 0, 1, 1))
    yield pool("max", 64, 2, 2, 2)
    yield pool("max", 64, (1, 1), 3, 2, 1)
    yield pool("max", 64, 40, 3, 1, 2, dilations=[2, 2])
    yield pool("max", 32, 41, 3, 3)
    yield pool("max", 64, (1000,), 3, 2, 1)
    yield pool("max", 64, (1000,), 2, 2)
    yield pool("max", 16, (4000,), 4, 4)
    yield pool("max", 32, (1000,), 25, 1, 12)
    yield pool("max", 32, (8, 28, 28), 2, 2)
    yield pool("max", 32, (8, 28, 28), (1, 2, 2), (1, 2, 2))
    yield pool("max", 32, (8, 28, 28), 3, 2, 1)
    yield pool("max", 32, (8, 14, 14), (3, 1, 1), (2, 1, 1), (1, 0, 0, 1, 0, 0))
    yield pool("max", 64, 56, 2, 2, to=TensorProto.UINT8)
    yield pool("max", 64, 56, 3, 2, 1, to=TensorProto.INT8)


def averages() -> Iterator[Graph]:
    for channels, side in [(128, 56), (256, 28), (512, 14), (16, 112)]:
        yield pool("average", channels, side, 2, 2)
    yield pool("average", 64, 56, 3, 2, 1, count_include_pad=1)
    yield pool("average", 192, 28, 3, 1, 1)
    yield pool("average", 192, 28, 3, 1, 1, count_include_pad=1)
    yield pool("average", 128, 17, 5, 3)
    yield pool("average", 2048, 7, 7, 1, fixed=True)
    yield pool("average", 512, 8, 8, 8, fixed=True)
    yield pool("average", 64, 33, 3, 2, ceil_mode=1)
    yield pool("average", 64, 33, 3, 2, 1, ceil_mode=1, count_include_pad=1)
    yield pool("average", 32, 56, 31, 1, 15)
    yield pool("average", 32, 56, 9, 1, 4)
    yield pool("average", 64, 20, 13, 1, 6, count_include_pad=1)
    yield pool("average", 64, (96,), 25, 1)
    yield pool("average", 64, (1000,), 2, 2)
    yield pool("average", 32, (1000,), 4, 4)
    yield pool("average", 40, (1, 973), (1, 75), (1, 15))
    yield pool("average", 64, (4, 14, 14), (1, 2, 2), (1, 2, 2))
    yield pool("average", 32, (8, 14, 14), 2, 2)
    yield pool("average", 64, (30, 32), (5, 2), (5, 2))


def beyond() -> Iterator[Graph]:
    """Windows larger than the image, as exporters write a global pool."""
    yield pool("average", 320, 7, 1280, 1280, ceil_mode=1, count_include_pad=1, before="Sigmoid")
    yield pool("average", 320, 14, 512, 512, ceil_mode=1, before="Sigmoid")
    yield pool("average", 64, 7, 64, 64, ceil_mode=1)
    yield pool("max", 320, 7, 1280, 1280, ceil_mode=1, before="Sigmoid")
    yield pool("max", 64, 7, 13, 1, 6)
    yield pool("max", 64, 4, 9, 1, 4)
    yield pool("lp", 320, (9, 11), 300, 300, ceil_mode=1, before="Sigmoid")
    yield pool("average", 320, (50,), 4000, 4000, ceil_mode=1, before="Sigmoid")
    yield pool("average", 64, 3, 5, 1, 2, count_include_pad=1)


def others() -> Iterator[Graph]:
    for p in (1, 2):
        yield pool("lp", 64, 56, 2, 2, p=p)
    yield pool("lp", 64, 28, 3, 1, 1, p=2)
    yield pool("lp", 64, (1000,), 4, 4, p=3)
    for channels, side, k, stride in [(64, 56, 2, 2), (64, 28, 3, 2), (128, 28, 2, 2)]:
        yield Graph(
            GROUP, f"max {k}/{stride} {channels} on {side}x{side}, indices", _indices(channels, side, k, stride)
        )
    yield Graph(GROUP, "unpool 2/2 64 on 28x28", _unpool)


def _indices(channels: int, side: int, k: int, stride: int) -> Build:
    def build(g: Sketch) -> list[str]:
        x = g.image(g.wide(channels), g.side(side), g.side(side))
        return g.ops("MaxPool", x, count=2, kernel_shape=[k, k], strides=[stride, stride])

    return build


def _unpool(g: Sketch) -> str:
    side = g.side(56, 2)
    x = g.image(g.wide(64), side, side)
    largest, places = g.ops("MaxPool", x, count=2, kernel_shape=[2, 2], strides=[2, 2])
    back = g.op("MaxUnpool", g.op("Relu", largest), places, g.op("Shape", x), kernel_shape=[2, 2], strides=[2, 2])
    return g.declare(back, like=x)


def whole() -> Iterator[Graph]:
    """Pools over the whole image."""
    for kind, channels, sides in [
        ("GlobalAveragePool", 1280, (7, 7)), ("GlobalAveragePool", 512, (14, 14)), ("GlobalAveragePool", 64, (56, 56)),
        ("GlobalAveragePool", 2048, (7, 7)), ("GlobalAveragePool", 16, (112, 112)), ("GlobalAveragePool", 512, (100,)),
        ("GlobalAveragePool", 64, (4, 7, 7)), ("GlobalAveragePool", 512, (1, 1)), ("GlobalMaxPool", 512, (14, 14)),
        ("GlobalMaxPool", 64, (56, 56)), ("GlobalMaxPool", 256, (100,)), ("GlobalLpPool", 512, (14, 14)),
    ]:  # fmt: skip
        yield Graph(GROUP, f"{kind} {channels} on {times(sides)}", _whole(kind, channels, sides, ""))
    yield Graph(GROUP, "GlobalAveragePool 1280 on 7x7 after SiLU", _whole("GlobalAveragePool", 1280, (7, 7), "SiLU"))
    yield Graph(GROUP, "ReduceMean 1280 on 7x7 after Relu6", _means)


def _whole(kind: str, channels: int, sides: Sequence[int], before: str) -> Build:
    return lambda g: g.op(kind, activated(g, g.image(g.wide(channels), *(g.side(s) for s in sides)), before))


def _means(g: Sketch) -> str:
    x = activated(g, g.image(g.wide(1280), g.side(7), g.side(7)), "Relu6")
    return g.op("ReduceMean", x, g.integers(2, 3), keepdims=1)


def surrounded() -> Iterator[Graph]:
    """Pools behind and in front of other ops."""
    yield pool("max", 64, 56, 3, 2, 1, before="Relu")
    yield pool("max", 64, 56, 2, 2, before="Relu")
    yield pool("average", 128, 28, 2, 2, before="Relu")
    yield pool("max", 128, 20, 5, 1, 2, before="SiLU")
    for kind in ("max", "average"):
        yield Graph(GROUP, f"{kind} 2/2 behind a 3x3 of 32 on 56x56", _behind_conv(KINDS[kind]))
    yield Graph(GROUP, "max 3/1 + Add 64 on 28x28", _added)
    yield Graph(GROUP, "stacked max 5/1 three times 128 on 20x20 + Concat", _stacked)


def _behind_conv(kind: str) -> Build:
    def build(g: Sketch) -> str:
        c, side = g.wide(32), g.side(56)
        y = g.op("Relu", conv(g, g.image(c, side, side), c, c, (3, 3)))
        return g.op(kind, y, kernel_shape=[2, 2], strides=[2, 2])

    return build


def _added(g: Sketch) -> str:
    x = g.image(g.wide(64), g.side(28), g.side(28))
    return g.op("Add", g.op("MaxPool", x, kernel_shape=[3, 3], pads=[1] * 4, strides=[1, 1]), x)


def _stacked(g: Sketch) -> str:
    """The fast SPP of YOLO."""
    pieces = [activated(g, g.image(g.wide(128), g.side(20), g.side(20)), "SiLU")]
    for _ in range(3):
        pieces.append(g.op("MaxPool", pieces[-1], kernel_shape=[5, 5], pads=[2] * 4, strides=[1, 1]))
    return g.op("Concat", *pieces, axis=1)
