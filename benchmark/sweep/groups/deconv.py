"""Transposed convolutions, alone and in front of what networks put behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from benchmark.sweep.activations import activated
from benchmark.sweep.graph import Build, Graph, Sketch, times
from benchmark.sweep.groups.conv import DEPTHWISE, conv

GROUP = "deconv"


def deconv(
    g: Sketch,
    x: str,
    inputs: int,
    outputs: int,
    kernel: Sequence[int],
    *,
    stride: int = 2,
    pads: int = 0,
    groups: int = 1,
    dilation: int = 1,
    bias: bool = True,
    **more: Any,
) -> str:
    """Adds a transposed convolution."""
    rank, fan = len(kernel), inputs // groups
    weight = g.random(inputs, outputs // groups, *kernel, scale=(2 / fan) ** 0.5)
    operands = [weight, *([g.random(outputs, scale=0.1)] if bias else [])]
    geometry: dict[str, Any] = {"kernel_shape": list(kernel), "strides": [stride] * rank, "pads": [pads] * (2 * rank)}
    return g.op("ConvTranspose", x, *operands, **geometry, dilations=[dilation] * rank, group=groups, **more)


def layer(
    kind: str, inputs: int, outputs: int, sides: Sequence[int], k: int, stride: int, pads: int = 0, groups: int = 1,
    act: str = "", bias: bool = True, dilation: int = 1, **more: Any,
) -> Graph:  # fmt: skip
    """A transposed convolution of its own."""

    def build(g: Sketch) -> str:
        share = max(groups, 1)
        c = share * g.wide(inputs // share)
        m = c if groups == DEPTHWISE else share * g.wide(outputs // share)
        x = g.image(c, *(g.side(s) for s in sides))
        how: dict[str, Any] = {
            "stride": stride,
            "pads": pads,
            "groups": groups or c,
            "bias": bias,
            "dilation": dilation,
        }
        return activated(g, deconv(g, x, c, m, (k,) * len(sides), **how, **more), act)

    marks = [f"pads {pads}"] if pads else []
    marks += [f"g{groups}"] if groups > 1 else []
    marks += [f"d{dilation}"] if dilation > 1 else []
    marks += [f"+ {act}"] if act else []
    marks += [] if bias else ["no bias"]
    marks += [f"{key} {times(value)}" for key, value in more.items()]
    return Graph(GROUP, " ".join([kind, f"{k}/{stride} {inputs}>{outputs} on {times(sides)}", *marks]), build)


def graphs() -> Iterator[Graph]:
    """All transposed convolutions."""
    for inputs, side in [(64, 28), (128, 14), (256, 14), (512, 7), (32, 56), (128, 33)]:
        for k in (3, 1):
            yield Graph(GROUP, f"U-Net 2/2 {inputs}>{inputs // 2} on {side} + Concat + {k}x{k}", _up(inputs, side, k))
    yield Graph(GROUP, "U-Net 2/2 64>32 on 28 + Concat + 3x3, skip first", _up(64, 28, 3, skip_first=True))
    yield Graph(GROUP, "U-Net 2/2 64>32 on 28 + Relu + Concat + 3x3", _up(64, 28, 3, act="Relu"))
    yield Graph(GROUP, "U-Net 2/2 64>32 on 28 + Concat, also an output", _up(64, 28, 0))
    yield Graph(GROUP, "FPN 2/2 64>64 on 20 + Add + 3x3", _added)
    for inputs, outputs, side in [(64, 32, 28), (256, 128, 14), (32, 16, 80), (16, 1, 112), (64, 64, 1)]:
        yield layer("up", inputs, outputs, (side, side), 2, 2)
    for inputs, outputs, side in [(256, 128, 8), (128, 64, 16), (64, 32, 32), (64, 3, 32), (512, 256, 4)]:
        yield layer("GAN", inputs, outputs, (side, side), 4, 2, 1, bias=False)
    yield layer("GAN", 100, 512, (1, 1), 4, 1, bias=False)
    yield layer("GAN", 64, 3, (32, 32), 4, 2, 1, act="Tanh")
    for inputs, outputs, side in [(64, 32, 28), (128, 64, 14), (32, 16, 56)]:
        yield layer("padded", inputs, outputs, (side, side), 3, 2, 1, output_padding=[1, 1])
    yield layer("padded", 64, 32, (20, 20), 5, 2, 2, output_padding=[1, 1])
    yield layer("padded", 32, 32, (33, 33), 3, 2, 1)
    yield layer("plain", 64, 64, (28, 28), 3, 1, 1)
    yield layer("plain", 64, 64, (28, 28), 3, 1, 2, dilation=2)
    yield layer("plain", 64, 64, (28, 28), 1, 1)
    yield layer("plain", 32, 16, (20, 20), 3, 3)
    yield layer("plain", 64, 1, (20, 20), 8, 8)
    for channels, side, k, stride in [(64, 28, 4, 2), (21, 32, 4, 2), (256, 14, 4, 2), (21, 16, 16, 8), (32, 20, 2, 2)]:
        yield layer("depthwise", channels, channels, (side, side), k, stride, (k - stride) // 2, DEPTHWISE, bias=False)
    yield layer("depthwise", 64, 64, (28, 28), 3, 2, 1, DEPTHWISE, output_padding=[1, 1])
    yield layer("grouped", 64, 64, (20, 20), 4, 2, 1, 4)
    yield layer("grouped", 128, 64, (14, 14), 2, 2, 0, 2)
    for inputs, outputs, length, k, stride in [
        (256, 128, 100, 16, 8), (128, 64, 800, 4, 2), (64, 32, 800, 8, 4), (64, 32, 400, 11, 5),
        (258, 1, 100, 256, 128),
    ]:  # fmt: skip
        yield layer("signal", inputs, outputs, (length,), k, stride, (k - stride) // 2)
    yield layer("signal", 64, 32, (800,), 4, 2, 1, act="LeakyRelu")
    yield layer("volume", 32, 16, (8, 8, 8), 2, 2)
    yield layer("volume", 32, 16, (8, 8, 8), 3, 2, 1, output_padding=[1, 1, 1])


def _up(inputs: int, side: int, k: int, *, act: str = "", skip_first: bool = False) -> Build:
    """A step of a U-Net's decoder; the skip is twice as wide and high."""

    def build(g: Sketch) -> str | list[str]:
        c = 2 * g.wide(inputs // 2)
        half, height, width = c // 2, g.side(side), g.side(side)
        x = g.input("x", ("batch", 1), c, ("height", height), ("width", width))
        skip = g.input("skip", ("batch", 1), half, ("2*height", 2 * height), ("2*width", 2 * width))
        up = activated(g, deconv(g, x, c, half, (2, 2)), act)
        joined = g.op("Concat", *((skip, up) if skip_first else (up, skip)), axis=1)
        if not k:
            return [joined, g.op("Relu", joined)]
        return g.op("Relu", conv(g, joined, c, half, (k, k)))

    return build


def _added(g: Sketch) -> str:
    c, side = g.wide(64), g.side(20)
    x = g.input("x", ("batch", 1), c, ("height", side), ("width", side))
    skip = g.input("skip", ("batch", 1), c, ("2*height", 2 * side), ("2*width", 2 * side))
    return conv(g, g.op("Add", deconv(g, x, c, c, (2, 2)), skip), c, c, (3, 3))
