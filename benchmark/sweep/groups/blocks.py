"""Blocks of networks: some ten nodes that belong together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from benchmark.sweep.activations import activated
from benchmark.sweep.graph import Build, Graph, Sketch
from benchmark.sweep.groups.attention import attend
from benchmark.sweep.groups.conv import conv
from benchmark.sweep.groups.deconv import deconv
from benchmark.sweep.groups.rows import rms_norm, torch_layer_norm

GROUP = "blocks"


def graphs() -> Iterator[Graph]:
    """All blocks."""
    for channels, side, k, act in [
        (16, 56, 3, "Relu6"), (32, 28, 3, "Relu6"), (64, 14, 5, "HardSwish"), (96, 14, 3, "SiLU"),
        (160, 7, 5, "HardSwish in parts"),
    ]:  # fmt: skip
        yield Graph(GROUP, f"inverted residual {k}x{k} {channels} on {side}, {act}", _inverted(channels, side, k, act))
    for channels, side in [(96, 28), (480, 14), (1152, 7)]:
        yield Graph(GROUP, f"squeeze and excitation {channels} on {side}", _excited(channels, side))
    for channels, side in [(64, 56), (128, 28), (256, 14), (512, 7)]:
        yield Graph(GROUP, f"bottleneck {channels} on {side}", _bottleneck(channels, side))
        yield Graph(GROUP, f"basic residual {channels} on {side}", _basic(channels, side))
    for width, heads, length in [(384, 6, 128), (256, 4, 32), (192, 3, 197), (768, 12, 16)]:
        yield Graph(GROUP, f"transformer {width} of {length}", _transformer(width, heads, length))
        yield Graph(GROUP, f"Llama {width} of {length}", _llama(width, heads, length))
    for channels, side in [(64, 28), (128, 14), (256, 7)]:
        yield Graph(GROUP, f"U-Net up {channels} on {side}", _unet_up(channels, side))
        yield Graph(GROUP, f"U-Net up by Resize {channels} on {side}", _resize_up(channels, side))
    for channels, side in [(256, 33), (128, 17)]:
        yield Graph(GROUP, f"ASPP {channels} on {side}", _aspp(channels, side))
    yield Graph(GROUP, "SPP 5, 9, 13 256 on 20", _spp)
    yield Graph(GROUP, "CSP 64 on 40", _csp)
    yield Graph(GROUP, "FPN of three levels 64", _fpn)
    yield Graph(GROUP, "ConvNeXt 96 on 28", _convnext(96, 28))
    yield Graph(GROUP, "ConvNeXt 384 on 14", _convnext(384, 14))
    yield Graph(GROUP, "Inception 192 on 28", _inception)
    yield Graph(GROUP, "Fire 96 on 56", _fire)
    yield Graph(GROUP, "ShuffleNet 116 on 28", _shufflenet)
    yield Graph(GROUP, "dense block of three 64 on 28", _dense)
    yield Graph(GROUP, "conformer convolution 256 of 200", _conformer)
    yield Graph(GROUP, "WaveNet 64 of 1000", _wavenet)
    yield Graph(GROUP, "mixer 196 of 192", _mixer)
    yield Graph(GROUP, "detection head of 80 classes on 20", _head)


def _inverted(channels: int, side: int, k: int, act: str) -> Build:
    def build(g: Sketch) -> str:
        c, n = g.wide(channels), g.side(side)
        x = g.image(c, n, n)
        y = activated(g, conv(g, x, c, 6 * c, (1, 1)), act)
        y = activated(g, conv(g, y, 6 * c, 6 * c, (k, k), groups=6 * c), act)
        return g.op("Add", conv(g, y, 6 * c, c, (1, 1)), x)

    return build


def _excite(g: Sketch, x: str, channels: int) -> str:
    inner = max(channels // 4, 1)
    y = g.op("Relu", conv(g, g.op("GlobalAveragePool", x), channels, inner, (1, 1)))
    return g.op("Mul", x, g.op("HardSigmoid", conv(g, y, inner, channels, (1, 1)), alpha=1 / 6, beta=0.5))


def _excited(channels: int, side: int) -> Build:
    def build(g: Sketch) -> str:
        c = g.wide(channels)
        return _excite(g, activated(g, g.image(c, g.side(side), g.side(side)), "SiLU"), c)

    return build


def _bottleneck(channels: int, side: int) -> Build:
    def build(g: Sketch) -> str:
        c, n = g.wide(channels), g.side(side)
        x = g.image(4 * c, n, n)
        y = g.op("Relu", conv(g, x, 4 * c, c, (1, 1)))
        y = g.op("Relu", conv(g, y, c, c, (3, 3)))
        return g.op("Relu", g.op("Add", conv(g, y, c, 4 * c, (1, 1)), x))

    return build


def _basic(channels: int, side: int) -> Build:
    def build(g: Sketch) -> str:
        c, n = g.wide(channels), g.side(side)
        x = g.image(c, n, n)
        y = conv(g, g.op("Relu", conv(g, x, c, c, (3, 3))), c, c, (3, 3))
        return g.op("Relu", g.op("Add", y, x))

    return build


def _transformer(width: int, heads: int, length: int) -> Build:
    """A layer as BERT has it, norms behind the sums, in parts."""

    def build(g: Sketch) -> str:
        x = g.tokens(g.side(length), width)
        q, k, v = (g.linear(x, width, width) for _ in range(3))
        y = g.linear(g.attention(q, k, v, width, heads), width, width)
        y = torch_layer_norm(g, g.op("Add", y, x), width)
        z = g.linear(g.gelu(g.linear(y, width, 4 * width)), 4 * width, width)
        return torch_layer_norm(g, g.op("Add", z, y), width)

    return build


def _llama(width: int, heads: int, length: int) -> Build:
    def build(g: Sketch) -> str:
        each, inner = width // heads, 8 * width // 3
        x = g.tokens(g.side(length), width)
        y = rms_norm(g, x, width)
        q, k, v = (g.heads(g.linear(y, width, width, bias=False), heads, each) for _ in range(3))
        joined = g.op("Transpose", attend(g, q, k, v, each), perm=[0, 2, 1, 3])
        x = g.op("Add", x, g.linear(g.reshape(joined, 0, 0, width), width, width, bias=False))
        y = rms_norm(g, x, width)
        gate, up = (g.linear(y, width, inner, bias=False) for _ in range(2))
        return g.op("Add", x, g.linear(g.op("Mul", g.silu(gate), up), inner, width, bias=False))

    return build


def _pair(g: Sketch, channels: int, side: int) -> tuple[str, str, int]:
    """A small image and the skip that is twice as wide and high, with their numbers of channels."""
    c, n = 2 * g.wide(channels // 2), g.side(side)
    x = g.input("x", ("batch", 1), c, ("height", n), ("width", n))
    return x, g.input("skip", ("batch", 1), c // 2, ("2*height", 2 * n), ("2*width", 2 * n)), c


def _double(g: Sketch, x: str, inputs: int, outputs: int) -> str:
    y = g.op("Relu", conv(g, x, inputs, outputs, (3, 3)))
    return g.op("Relu", conv(g, y, outputs, outputs, (3, 3)))


def _unet_up(channels: int, side: int) -> Build:
    def build(g: Sketch) -> str:
        x, skip, c = _pair(g, channels, side)
        return _double(g, g.op("Concat", skip, deconv(g, x, c, c // 2, (2, 2)), axis=1), c, c // 2)

    return build


NEAREST = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


def _doubled(g: Sketch, x: str) -> str:
    return g.op("Resize", x, "", g.numbers(1.0, 1.0, 2.0, 2.0), **NEAREST)


def _resize_up(channels: int, side: int) -> Build:
    def build(g: Sketch) -> str:
        x, skip, c = _pair(g, channels, side)
        joined = g.op("Concat", _doubled(g, x), skip, axis=1)
        return g.op("Relu", conv(g, joined, c + c // 2, c // 2, (3, 3)))

    return build


def _aspp(channels: int, side: int) -> Build:
    """DeepLab's: a 1x1, three dilated windows and the mean of the image."""

    def build(g: Sketch) -> str:
        c, m, n = g.wide(channels), g.wide(64), g.side(side)
        x = g.image(c, n, n)
        branches = [g.op("Relu", conv(g, x, c, m, (1, 1)))]
        branches += [g.op("Relu", conv(g, x, c, m, (3, 3), dilation=d)) for d in (6, 12, 18)]
        mean = g.op("Relu", conv(g, g.op("GlobalAveragePool", x), c, m, (1, 1)))
        shape = g.op("Concat", g.dim(mean, 0), g.dim(mean, 1), g.dim(x, 2), g.dim(x, 3), axis=0)
        branches.append(g.op("Resize", mean, "", "", shape, mode="linear", coordinate_transformation_mode="half_pixel"))
        return g.op("Relu", conv(g, g.op("Concat", *branches, axis=1), 5 * m, m, (1, 1)))

    return build


def _spp(g: Sketch) -> str:
    c, n = g.wide(256, 2), g.side(20)
    y = g.silu(conv(g, g.image(c, n, n), c, c // 2, (1, 1)))
    pools = [g.op("MaxPool", y, kernel_shape=[k, k], strides=[1, 1], pads=[k // 2] * 4) for k in (5, 9, 13)]
    return g.silu(conv(g, g.op("Concat", y, *pools, axis=1), 2 * c, c, (1, 1)))


def _csp(g: Sketch) -> str:
    """YOLOv8's C2f with one bottleneck."""
    c, n = g.wide(64, 2), g.side(40)
    y = g.silu(conv(g, g.image(c, n, n), c, c, (1, 1)))
    first, second = g.ops("Split", y, count=2, axis=1, num_outputs=2)
    third = g.silu(conv(g, g.silu(conv(g, second, c // 2, c // 2, (3, 3))), c // 2, c // 2, (3, 3)))
    joined = g.op("Concat", first, second, g.op("Add", second, third), axis=1)
    return g.silu(conv(g, joined, 3 * (c // 2), c, (1, 1)))


def _fpn(g: Sketch) -> list[str]:
    m, n = g.wide(64), g.side(10)
    levels: list[str] = []
    for k, c in enumerate((64, 128, 256)):
        times = 2 ** (2 - k)
        dims = (
            [("height", n), ("width", n)]
            if times == 1
            else [(f"{times}*height", times * n), (f"{times}*width", times * n)]
        )
        levels.append(conv(g, g.input(f"x{k}", ("batch", 1), c, *dims), c, m, (1, 1)))
    for k in (1, 0):
        levels[k] = g.op("Add", levels[k], _doubled(g, levels[k + 1]))
    return [conv(g, level, m, m, (3, 3)) for level in levels]


def _convnext(channels: int, side: int) -> Build:
    def build(g: Sketch) -> str:
        c, n = g.wide(channels), g.side(side)
        x = g.image(c, n, n)
        y = g.op("Transpose", conv(g, x, c, c, (7, 7), groups=c), perm=[0, 2, 3, 1])
        y = g.linear(g.gelu(g.linear(g.layer_norm(y, c), c, 4 * c)), 4 * c, c)
        return g.op("Add", x, g.op("Transpose", g.op("Mul", y, g.random(c)), perm=[0, 3, 1, 2]))

    return build


def _inception(g: Sketch) -> str:
    c, n = g.wide(192), g.side(28)
    x = g.image(c, n, n)

    def step(v: str, inputs: int, outputs: int, k: Sequence[int]) -> str:
        return g.op("Relu", conv(g, v, inputs, outputs, k))

    pooled = g.op("MaxPool", x, kernel_shape=[3, 3], strides=[1, 1], pads=[1] * 4)
    branches = [step(x, c, 64, (1, 1)), step(pooled, c, 32, (1, 1))]
    branches += [step(step(x, c, inner, (1, 1)), inner, m, (k, k)) for inner, m, k in ((96, 128, 3), (16, 32, 5))]
    return g.op("Concat", *branches, axis=1)


def _fire(g: Sketch) -> str:
    c, n = g.wide(96), g.side(56)
    x = g.op("Relu", conv(g, g.image(c, n, n), c, 16, (1, 1)))
    return g.op("Concat", *(g.op("Relu", conv(g, x, 16, 64, (k, k))) for k in (1, 3)), axis=1)


def _shufflenet(g: Sketch) -> str:
    c = g.wide(116, 2)
    half = c // 2
    x = g.input("x", ("batch", 1), c, 28, 28)
    kept, y = g.ops("Split", x, count=2, axis=1, num_outputs=2)
    y = g.op("Relu", conv(g, y, half, half, (1, 1)))
    y = g.op("Relu", conv(g, conv(g, y, half, half, (3, 3), groups=half), half, half, (1, 1)))
    apart = g.reshape(g.op("Concat", kept, y, axis=1), -1, 2, half, 28, 28)
    return g.reshape(g.op("Transpose", apart, perm=[0, 2, 1, 3, 4]), -1, c, 28, 28)


def _dense(g: Sketch) -> str:
    c, n = g.wide(64), g.side(28)
    maps, width = [g.image(c, n, n)], c
    for _ in range(3):
        joined = g.op("Concat", *maps, axis=1) if len(maps) > 1 else maps[0]
        y = g.op("Relu", conv(g, g.op("Relu", joined), width, 64, (1, 1)))
        maps.append(conv(g, y, 64, 32, (3, 3)))
        width += 32
    return g.op("Concat", *maps, axis=1)


def _conformer(g: Sketch) -> str:
    c = g.wide(256)
    x = g.tokens(g.side(200), c)
    y = conv(g, g.op("Transpose", g.layer_norm(x, c), perm=[0, 2, 1]), c, 2 * c, (1,))
    first, second = g.ops("Split", y, count=2, axis=1, num_outputs=2)
    y = g.silu(conv(g, g.op("Mul", first, g.op("Sigmoid", second)), c, c, (31,), groups=c))
    return g.op("Add", x, g.op("Transpose", conv(g, y, c, c, (1,)), perm=[0, 2, 1]))


def _wavenet(g: Sketch) -> list[str]:
    c, n = g.wide(64), g.side(1000)
    x = g.input("x", ("batch", 1), c, ("length", n))
    parts = [conv(g, x, c, c, (3,), dilation=16) for _ in range(2)]
    y = g.op("Mul", g.op("Tanh", parts[0]), g.op("Sigmoid", parts[1]))
    return [g.op("Add", x, conv(g, y, c, c, (1,))), conv(g, y, c, c, (1,))]


def _mixer(g: Sketch) -> str:
    """MLP-Mixer: a product over the tokens, whose number is fixed, and one over the channels."""
    n, c = 196, g.wide(192)
    x = g.input("x", ("batch", 1), n, c)
    y = g.op("Transpose", g.layer_norm(x, c), perm=[0, 2, 1])
    y = g.op("Transpose", g.linear(g.gelu(g.linear(y, n, 96)), 96, n), perm=[0, 2, 1])
    x = g.op("Add", x, y)
    return g.op("Add", x, g.linear(g.gelu(g.linear(g.layer_norm(x, c), c, 2 * c)), 2 * c, c))


def _head(g: Sketch) -> str:
    c, n = g.wide(64), g.side(20)
    x = g.image(c, n, n)
    boxes, classes = (conv(g, g.silu(conv(g, x, c, c, (3, 3))), c, m, (1, 1)) for m in (4, 80))
    flat = [g.reshape(v, 0, m, -1) for v, m in ((boxes, 4), (g.op("Sigmoid", classes), 80))]
    return g.op("Concat", *flat, axis=1)
