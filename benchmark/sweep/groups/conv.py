"""Convolutions: windows, strides, dilations, groups, dimensions, epilogues, and weights that are computed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from benchmark.sweep.activations import ACTIVATIONS, activated
from benchmark.sweep.graph import Build, Graph, Sketch, times

GROUP = "conv"
DEPTHWISE = 0
"""The number of groups that asks for one for each channel."""
Step = Callable[[Sketch, str, str, int], str]
"""Adds to a convolution's input and result, of that many channels."""


def conv(
    g: Sketch,
    x: str,
    inputs: int,
    outputs: int,
    kernel: Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    dilation: int = 1,
    groups: int = 1,
    pads: int | Sequence[int] | None = None,
    bias: bool = True,
) -> str:
    """Adds a convolution; pads are half of the window unless given."""
    rank = len(kernel)
    strides = [stride] * rank if isinstance(stride, int) else list(stride)
    if pads is None:
        pads = [dilation * (k - 1) // 2 for k in kernel] * 2
    elif isinstance(pads, int):
        pads = [pads] * (2 * rank)
    fan = inputs // groups
    for k in kernel:
        fan *= k
    operands = [g.random(outputs, inputs // groups, *kernel, scale=fan**-0.5)]
    operands += [g.random(outputs, scale=0.1)] if bias else []
    geometry: dict[str, Any] = {"kernel_shape": list(kernel), "strides": strides, "pads": list(pads)}
    return g.op("Conv", x, *operands, **geometry, dilations=[dilation] * rank, group=groups)


def layer(
    kind: str,
    inputs: int,
    outputs: int,
    sides: int | Sequence[int],
    kernel: int | Sequence[int],
    *,
    stride: int | Sequence[int] = 1,
    dilation: int = 1,
    groups: int = 1,
    pads: int | Sequence[int] | None = None,
    act: str = "",
    bias: bool = True,
    batch: int = 1,
    before: str = "",
) -> Graph:
    """A convolution of its own, on a square image if `sides` is one number."""
    sides = (sides, sides) if isinstance(sides, int) else tuple(sides)
    window = (kernel,) * len(sides) if isinstance(kernel, int) else tuple(kernel)

    def build(g: Sketch) -> str:
        share = max(groups, 1)
        c = share * g.wide(inputs // share)
        m = c * (outputs // inputs) if groups == DEPTHWISE else share * g.wide(outputs // share)
        x = activated(g, g.image(c, *(g.side(s) for s in sides), batch=batch), before)
        how: dict[str, Any] = {"stride": stride, "dilation": dilation, "groups": groups or c, "pads": pads}
        return activated(g, conv(g, x, c, m, window, **how, bias=bias), act)

    marks = [f"s{stride if isinstance(stride, int) else times(stride)}"] if stride != 1 else []
    marks += [f"d{dilation}"] if dilation != 1 else []
    marks += [f"g{groups}"] if groups > 1 else []
    marks += ["valid"] if pads == 0 else [f"pads {pads if isinstance(pads, int) else times(pads)}"] if pads else []
    marks += [f"batch {batch}"] if batch != 1 else []
    marks += [f"+ {act}"] if act else []
    marks += [] if bias else ["no bias"]
    marks += [f"after {before}"] if before else []
    name = " ".join([kind, times(window), f"{inputs}>{outputs}", "on", times(sides), *marks])
    return Graph(GROUP, name, build)


def graphs() -> Iterator[Graph]:
    """All convolutions."""
    yield from one_by_one()
    yield from three_by_three()
    yield from larger()
    yield from strided()
    yield from dilated()
    yield from depthwise()
    yield from grouped()
    yield from signals()
    yield from volumes()
    yield from patches()
    yield from computed_weights()
    yield from epilogues()


def one_by_one() -> Iterator[Graph]:
    shapes = [
        (64, 64, 56), (64, 256, 56), (256, 64, 56), (128, 512, 28), (512, 128, 28), (256, 1024, 14), (1024, 256, 14),
        (512, 2048, 7), (2048, 512, 7), (16, 96, 112), (96, 24, 56), (144, 24, 56), (24, 144, 56), (32, 192, 28),
        (192, 64, 14), (384, 64, 14), (320, 1280, 7), (3, 8, 160), (8, 16, 80), (7, 64, 40), (33, 65, 20),
        (1024, 255, 13), (1280, 1000, 1), (768, 384, 20), (512, 256, 44), (128, 1, 80), (128, 2, 64), (64, 19, 128),
    ]  # fmt: skip
    for inputs, outputs, side in shapes:
        yield layer("pointwise", inputs, outputs, side, 1)
    yield layer("pointwise", 256, 256, 2, 1)
    yield layer("pointwise", 64, 128, 14, 1, batch=8)
    yield layer("pointwise", 96, 96, (48, 320), 1, act="Relu")


def three_by_three() -> Iterator[Graph]:
    shapes = [
        (3, 64, 112), (16, 16, 112), (32, 32, 56), (64, 64, 56), (128, 128, 28), (256, 256, 14), (512, 512, 7),
        (1, 32, 28), (1, 64, 64), (8, 8, 160), (24, 24, 80), (48, 48, 40), (7, 64, 40), (64, 3, 64), (64, 1, 64),
        (512, 512, 1), (512, 512, 2), (1280, 256, 1), (256, 256, 3), (320, 320, 4), (96, 40, 33),
    ]  # fmt: skip
    for inputs, outputs, side in shapes:
        yield layer("window", inputs, outputs, side, 3)
    yield layer("window", 64, 64, (17, 9), 3)
    yield layer("window", 32, 32, (48, 320), 3)
    yield layer("window", 32, 64, 26, 3, pads=0)
    yield layer("window", 32, 64, 28, 3, pads=(0, 0, 1, 1))
    yield layer("window", 64, 64, 28, 3, pads=2)
    yield layer("window", 64, 64, 14, 3, batch=4)
    yield layer("window", 64, 64, 28, 3, before="Relu", act="Relu")


def larger() -> Iterator[Graph]:
    for inputs, outputs, side in [(32, 32, 28), (1, 6, 28), (3, 24, 64), (48, 16, 14), (64, 64, 14), (128, 24, 7)]:
        yield layer("window", inputs, outputs, side, 5)
    yield layer("window", 16, 32, 28, 5, pads=0)
    yield layer("window", 3, 32, 112, 5, stride=2)
    for inputs, outputs, side in [(64, 64, 28), (32, 3, 64), (16, 16, 56), (3, 32, 112), (256, 64, 2)]:
        yield layer("window", inputs, outputs, side, 7)
    yield layer("window", 3, 64, 224, 7, stride=2)
    for inputs, outputs, side in [(1, 64, 33), (3, 64, 48), (64, 3, 40)]:
        yield layer("window", inputs, outputs, side, 9)
    yield layer("window", 3, 64, 224, 11, stride=4, pads=2)
    yield layer("window", 4, 8, 32, 15)
    for window in [(1, 7), (7, 1), (1, 3), (3, 1)]:
        yield layer("window", 128, 128, 17, window)
    yield layer("window", 64, 64, (8, 100), (1, 11))
    yield layer("window", 64, 64, (4, 160), (3, 2), pads=0)
    yield layer("window", 32, 16, 20, 2, pads=(0, 0, 1, 1))
    yield layer("window", 32, 32, 20, 4, pads=(1, 1, 2, 2))


def strided() -> Iterator[Graph]:
    for inputs, outputs, side in [(256, 512, 56), (64, 128, 56), (512, 1024, 14), (24, 32, 40)]:
        yield layer("strided", inputs, outputs, side, 1, stride=2)
    for inputs, outputs, side in [
        (3, 32, 112),
        (3, 16, 224),
        (64, 128, 56),
        (128, 256, 28),
        (256, 512, 14),
        (1, 8, 96),
    ]:
        yield layer("strided", inputs, outputs, side, 3, stride=2)
    yield layer("strided", 32, 32, 60, 3, stride=3)
    yield layer("strided", 64, 64, (32, 100), 3, stride=(2, 1))
    yield layer("strided", 3, 32, 128, 3, stride=2, pads=(0, 0, 1, 1))
    for inputs, outputs, side in [(96, 192, 28), (64, 64, 56), (384, 768, 14)]:
        yield layer("strided", inputs, outputs, side, 2, stride=2)
    for inputs, outputs, side in [(3, 64, 64), (64, 128, 32), (128, 256, 16), (256, 1, 8)]:
        yield layer("strided", inputs, outputs, side, 4, stride=2, pads=1)


def dilated() -> Iterator[Graph]:
    for side, channels in ((33, 128), (65, 48)):
        for dilation in (2, 4, 6, 12, 18, 24, 36):
            yield layer("dilated", channels, 64, side, 3, dilation=dilation)
    for dilation in (6, 12, 18):
        yield layer("dilated", 256, 128, 33, 3, dilation=dilation, act="Relu", bias=False)
    yield layer("dilated", 256, 256, 28, 3, dilation=2)
    yield layer("dilated", 64, 64, 40, 5, dilation=3)
    yield layer("dilated", 32, 32, 28, 3, dilation=2, pads=0)
    yield layer("dilated", 64, 64, 41, 3, dilation=2, stride=2)


def depthwise() -> Iterator[Graph]:
    for channels, side, stride in [
        (32, 112, 1), (96, 112, 2), (144, 56, 1), (144, 56, 2), (192, 28, 1), (384, 14, 1), (576, 14, 2), (960, 7, 1),
        (16, 160, 1), (64, 1, 1), (64, 2, 1), (240, 14, 1),
    ]:  # fmt: skip
        yield layer("depthwise", channels, channels, side, 3, stride=stride, groups=DEPTHWISE)
    for channels, side, stride in [(72, 56, 2), (120, 28, 1), (240, 28, 2), (480, 14, 1), (672, 14, 2), (1152, 7, 1)]:
        yield layer("depthwise", channels, channels, side, 5, stride=stride, groups=DEPTHWISE)
    for channels, side in [(96, 56), (192, 28), (384, 14), (768, 7)]:
        yield layer("depthwise", channels, channels, side, 7, groups=DEPTHWISE)
    yield layer("depthwise", 32, 32, 40, 9, groups=DEPTHWISE)
    yield layer("depthwise", 64, 64, 40, 11, groups=DEPTHWISE)
    for window, channels, side in [((1, 11), 64, 56), ((11, 1), 64, 56), ((1, 7), 256, 28), ((21, 1), 64, 64)]:
        yield layer("depthwise", channels, channels, side, window, groups=DEPTHWISE)
    for channels, side in ((256, 33), (128, 65)):
        for dilation in (6, 12, 18):
            yield layer("depthwise", channels, channels, side, 3, dilation=dilation, groups=DEPTHWISE)
    yield layer("depthwise", 192, 192, 28, 3, dilation=2, groups=DEPTHWISE)
    yield layer("depthwise", 32, 64, 28, 3, groups=DEPTHWISE)
    yield layer("depthwise", 24, 96, 20, 5, groups=DEPTHWISE)
    yield layer("depthwise", 64, 64, 29, 3, stride=2, pads=(0, 0, 1, 1), groups=DEPTHWISE)
    for act in ("Relu6", "HardSwish", "SiLU"):
        yield layer("depthwise", 96, 96, 28, 3, groups=DEPTHWISE, act=act)


def grouped() -> Iterator[Graph]:
    for channels, side, groups, stride in [
        (128, 56, 32, 1), (256, 28, 32, 1), (512, 14, 32, 1), (256, 56, 32, 2), (64, 28, 4, 1), (384, 14, 16, 1),
        (1024, 7, 32, 1), (48, 56, 2, 1), (336, 14, 14, 1), (64, 28, 32, 1),
    ]:  # fmt: skip
        yield layer("grouped", channels, channels, side, 3, stride=stride, groups=groups)
    for inputs, outputs, side, groups in [(240, 240, 28, 3), (240, 480, 14, 8), (24, 96, 56, 2), (200, 200, 20, 2)]:
        yield layer("grouped", inputs, outputs, side, 1, groups=groups)
    yield layer("grouped", 96, 256, 27, 5, groups=2)
    yield layer("grouped", 256, 384, 13, 3, groups=2)
    yield layer("grouped", 48, 96, 28, 3, groups=16)
    yield layer("grouped", 64, 64, 28, 7, groups=8, act="Relu")


def signals() -> Iterator[Graph]:
    yield layer("whisper", 80, 384, (1500,), 3)
    yield layer("whisper", 384, 384, (750,), 3, stride=2, pads=1, act="Gelu")
    yield layer("wav2vec", 1, 512, (16000,), 10, stride=5, pads=0, bias=False)
    yield layer("wav2vec", 512, 512, (800,), 3, stride=2, pads=0, bias=False)
    yield layer("wav2vec", 512, 512, (400,), 2, stride=2, pads=0, bias=False)
    yield layer("positions", 768, 768, (49,), 128, groups=16, pads=64)
    for inputs, outputs, length, window, stride, pads in [
        (1, 16, 16000, 7, 1, 3), (16, 1, 16000, 7, 1, 3), (7, 64, 200, 3, 1, 1), (512, 256, 2000, 1, 1, 0),
        (80, 256, 500, 1, 1, 0), (192, 192, 200, 5, 1, 2), (1, 256, 16000, 16, 8, 0), (32, 64, 2000, 4, 2, 1),
        (1, 64, 8000, 80, 4, 38), (1, 258, 16000, 256, 128, 0), (64, 64, 1000, 64, 4, 30), (128, 128, 128, 3, 1, 1),
        (512, 512, 32, 5, 1, 2), (22, 40, 1000, 25, 1, 0), (3, 32, 128, 9, 1, 4), (256, 256, 1, 3, 1, 1),
    ]:  # fmt: skip
        yield layer("signal", inputs, outputs, (length,), window, stride=stride, pads=pads)
    for dilation in (2, 4, 9, 27, 81, 243, 512):
        yield layer("signal", 64, 64, (2000,), 3, dilation=dilation)
    yield layer("signal", 64, 128, (2000,), 2, dilation=256, pads=(256, 0), act="Tanh")
    for channels, length, window in [(256, 200, 31), (256, 200, 15), (144, 400, 7), (512, 100, 3), (1536, 64, 4)]:
        yield layer("signal, depthwise", channels, channels, (length,), window, groups=DEPTHWISE)


def volumes() -> Iterator[Graph]:
    yield layer("volume", 3, 32, (8, 56, 56), 3)
    yield layer("volume", 16, 16, (8, 28, 28), 3)
    yield layer("volume", 64, 64, (4, 14, 14), 3, act="Relu")
    yield layer("volume", 32, 32, (8, 28, 28), (1, 3, 3))
    yield layer("volume", 64, 64, (8, 14, 14), (3, 1, 1))
    yield layer("volume", 3, 24, (16, 56, 56), 3, stride=2)
    yield layer("volume", 64, 128, (8, 14, 14), 1)
    yield layer("volume", 32, 32, (8, 14, 14), 3, groups=DEPTHWISE)
    yield layer("volume", 3, 96, (8, 64, 64), (2, 4, 4), stride=(2, 4, 4), pads=0)
    yield layer("volume", 1, 8, (32, 32, 32), 3)
    yield layer("volume", 128, 128, (2, 4, 4), 3)


def patches() -> Iterator[Graph]:
    for inputs, outputs, side, window in [
        (3, 96, 224, 4), (3, 192, 224, 16), (3, 384, 224, 14), (3, 768, 224, 32), (1, 64, 128, 8), (3, 48, 112, 2),
    ]:  # fmt: skip
        yield layer("patch", inputs, outputs, side, window, stride=window, pads=0)

    def embedded(g: Sketch) -> str:
        width = g.wide(192)
        x = conv(g, g.image(3, g.side(224, 16), g.side(224, 16)), 3, width, (16, 16), stride=16, pads=0)
        return g.op("Transpose", g.reshape(x, 0, width, -1), perm=[0, 2, 1])

    yield Graph(GROUP, "patch 16x16 3>192 on 224x224, to tokens", embedded)


# -- weights that are inputs or computed -------------------------------------------------------------------------------


def computed_weights() -> Iterator[Graph]:
    for inputs, outputs, side, k in [(64, 64, 32, 3), (128, 64, 28, 1), (32, 32, 56, 3), (16, 16, 64, 5)]:
        yield Graph(GROUP, f"weight as an input {k}x{k} {inputs}>{outputs} on {side}", _given(inputs, outputs, side, k))
    for inputs, outputs, side, k in [(128, 128, 16, 3), (64, 64, 64, 3), (256, 256, 8, 3), (64, 3, 64, 1)]:
        yield Graph(GROUP, f"modulated {k}x{k} {inputs}>{outputs} on {side}", _modulated(inputs, outputs, side, k))
    yield Graph(GROUP, "standardised weight 3x3 64>64 on 28", _standardised)
    yield Graph(GROUP, "mixed experts' weight 3x3 32>32 on 28", _mixed)
    yield Graph(GROUP, "depthwise template 5x5 64 on 20", _template)


def _given(inputs: int, outputs: int, side: int, k: int) -> Build:
    def build(g: Sketch) -> str:
        c, m = g.wide(inputs), g.wide(outputs)
        x, w = g.image(c, g.side(side), g.side(side)), g.input("w", m, c, k, k, scale=0.1)
        return g.op("Conv", x, w, kernel_shape=[k, k], pads=[k // 2] * 4)

    return build


def _modulated(inputs: int, outputs: int, side: int, k: int) -> Build:
    """StyleGAN2: a weight times the style, normalised again, of one image."""

    def build(g: Sketch) -> str:
        c, m, height, width = g.wide(inputs), g.wide(outputs), g.side(side), g.side(side)
        style = g.op("Gemm", g.input("style", 1, 64), g.random(c, 64, scale=0.1), g.random(c, around=1.0), transB=1)
        weight = g.op("Mul", g.random(1, m, c, k, k), g.reshape(style, 1, 1, c, 1, 1))
        squares = g.op("ReduceSum", g.op("Mul", weight, weight), g.integers(2, 3, 4), keepdims=1)
        root = g.op("Sqrt", g.op("Add", squares, g.number(1e-8)))
        weight = g.reshape(g.op("Div", weight, root), m, c, k, k)
        x = g.input("x", 1, c, ("height", height), ("width", width))
        return g.op("LeakyRelu", g.op("Conv", x, weight, kernel_shape=[k, k], pads=[k // 2] * 4), alpha=0.2)

    return build


def _standardised(g: Sketch) -> str:
    c, side = g.wide(64), g.side(28)
    x, w = g.image(c, side, side), g.input("w", c, c, 3, 3)
    w = g.op("Sub", w, g.op("ReduceMean", w, g.integers(1, 2, 3), keepdims=1))
    variance = g.op("ReduceMean", g.op("Mul", w, w), g.integers(1, 2, 3), keepdims=1)
    w = g.op("Div", w, g.op("Sqrt", g.op("Add", variance, g.number(1e-5))))
    return g.op("Relu", g.op("Conv", x, w, kernel_shape=[3, 3], pads=[1] * 4))


def _mixed(g: Sketch) -> str:
    """CondConv: a sum of experts' weights by the mean of the image."""
    c, side, experts = g.wide(32), g.side(28), 4
    x = g.input("x", 1, c, ("height", side), ("width", side))
    means = g.op("Flatten", g.op("GlobalAveragePool", x))
    share = g.op("Sigmoid", g.op("Gemm", means, g.random(experts, c, scale=0.3), transB=1))
    weight = g.reshape(g.op("MatMul", share, g.random(experts, c * c * 9, scale=0.05)), c, c, 3, 3)
    return g.op("Conv", x, weight, kernel_shape=[3, 3], pads=[1] * 4)


def _template(g: Sketch) -> str:
    """A tracker's correlation: the template's features are the depthwise weight."""
    c = g.wide(64)
    search, template = g.input("x", 1, c, 20, 20), g.input("t", 1, c, 5, 5)
    return g.op("Conv", search, g.reshape(template, c, 1, 5, 5), kernel_shape=[5, 5], group=c)


# -- epilogues ---------------------------------------------------------------------------------------------------------


def epilogues() -> Iterator[Graph]:
    for kind, inputs, outputs, side, k, groups in [
        ("pointwise", 64, 128, 28, 1, 1), ("window", 64, 64, 28, 3, 1), ("depthwise", 96, 96, 28, 5, DEPTHWISE),
    ]:  # fmt: skip
        for act in ACTIVATIONS:
            yield layer(kind, inputs, outputs, side, k, groups=groups, act=act)
        yield layer(kind, inputs, outputs, side, k, groups=groups, bias=False)
        for name, step in STEPS.items():
            size = inputs if name.startswith("residual") else outputs
            named = f"{kind} {k}x{k} {inputs}>{size} on {side} + {name}"
            yield Graph(GROUP, named, _with(step, inputs, size, side, k, groups))


def _with(step: Step, inputs: int, outputs: int, side: int, k: int, groups: int) -> Build:
    def build(g: Sketch) -> str:
        c = g.wide(inputs)
        m = c if inputs == outputs else g.wide(outputs)
        height, width = g.side(side), g.side(side)
        x = g.image(c, height, width)
        y = conv(g, x, c, m, (k, k), groups=groups or c, bias=step is not _norm)
        return step(g, x, y, m)

    return build


def _residual(g: Sketch, x: str, y: str, _: int) -> str:
    return g.op("Add", y, x)


def _residual_relu(g: Sketch, x: str, y: str, _: int) -> str:
    return g.op("Relu", g.op("Add", y, x))


def _relu_residual(g: Sketch, x: str, y: str, _: int) -> str:
    return g.op("Add", x, g.op("Relu", y))


def _gate(g: Sketch, x: str, y: str, channels: int) -> str:
    return g.op("Mul", y, g.op("Sigmoid", g.input("gate", ("batch", 1), channels, 1, 1)))


def _prelu(g: Sketch, x: str, y: str, channels: int) -> str:
    return g.op("PRelu", y, g.random(channels, 1, 1, scale=0.1, around=0.25))


def _norm(g: Sketch, x: str, y: str, channels: int) -> str:
    scale, shift, mean = (g.random(channels, scale=0.1, around=a) for a in (1.0, 0.0, 0.0))
    variance = g.learned(0.75 + abs(g.draw(channels, scale=0.3)))
    return g.op("Relu", g.op("BatchNormalization", y, scale, shift, mean, variance, epsilon=1e-5))


STEPS: dict[str, Step] = {
    "residual": _residual,
    "residual, Relu": _residual_relu,
    "residual before Relu": _relu_residual,
    "gate": _gate,
    "PRelu": _prelu,
    "BatchNormalization": _norm,
}
"""Epilogues that take more than the result of the convolution."""
