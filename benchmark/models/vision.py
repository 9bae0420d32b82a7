"""Convolutional networks written out by code: the layers of the published models, with seeded random weights.

Each takes the sides of its images and the options of `Layers`, and is a model of `x`, [batch, 3, size, size]. It gives
scores, and the detector boxes.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx

from benchmark.models.builder import Layers, Map

CLASSES = 1000
RESIDUAL = 0.3
"""How much a block adds to what goes past it: sums do not grow from block to block."""

RESNET = ((64, 256, 3, 1), (128, 512, 4, 2), (256, 1024, 6, 2), (512, 2048, 3, 2))
"""Inner channels, channels, blocks and stride of the stages of ResNet-50."""


def _scores(b: Layers, x: Map) -> onnx.ModelProto:
    """The model whose last layer is of the means over the images."""
    return b.model(b.dense(b.means(x), x.channels, CLASSES))


def resnet50(size: int = 224, **how: bool) -> onnx.ModelProto:
    """ResNet-50 with the strides in the convolutions of 3x3, as everyone but its authors has them."""
    b = Layers(**how)
    x = b.pool("MaxPool", b.conv(b.image(size), 64, 7, 2, "Relu"), 3, 2, 1)
    for inner, outputs, blocks, stride in RESNET:
        for k in range(blocks):
            step = 1 if k else stride
            made = b.conv(b.conv(x, inner, act="Relu"), inner, 3, step, "Relu")
            kept = x if k else b.conv(x, outputs, 1, step)
            x = b.act(b.add(b.conv(made, outputs, gain=RESIDUAL), kept), "Relu")
    return _scores(b, x)


VGG = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
"""Channels and convolutions of the stages of VGG-16."""


def vgg16(size: int = 224, **how: bool) -> onnx.ModelProto:
    """VGG-16; of images of other sizes the first dense layer has more or fewer weights."""
    b = Layers(**how)
    x = b.image(size)
    for channels, count in VGG:
        for _ in range(count):
            x = b.conv(x, channels, 3, act="Relu", norm=False)
        x = b.pool("MaxPool", x, 2, 2)
    y, rows = b.op("Flatten", x.name), x.channels * x.size**2
    for _ in range(2):
        y, rows = b.dense(y, rows, 4096, "Relu"), 4096
    return b.model(b.dense(y, rows, CLASSES))


def densenet121(size: int = 224, **how: bool) -> onnx.ModelProto:
    """DenseNet-121: each layer takes what all layers of its block have made."""
    b = Layers(**how)
    x = b.pool("MaxPool", b.conv(b.image(size), 64, 7, 2, "Relu"), 3, 2, 1)
    for stage, layers in enumerate((6, 12, 24, 16)):
        if stage:
            x = b.conv(b.batch_norm(x, "Relu"), x.channels // 2, norm=False, bias=False)
            x = b.pool("AveragePool", x, 2, 2)
        made = [x]
        for _ in range(layers):
            # The normalisation of 4 * 32 channels stands behind a convolution, and can be folded; the first cannot.
            inner = b.conv(b.batch_norm(_joined(b, made), "Relu"), 128, act="Relu")
            made.append(b.conv(inner, 32, 3, norm=False, bias=False))
        x = _joined(b, made)
    return _scores(b, b.batch_norm(x, "Relu"))


def _joined(b: Layers, maps: Sequence[Map]) -> Map:
    return b.concat(*maps) if len(maps) > 1 else maps[0]


def inception_v3(size: int = 299, **how: bool) -> onnx.ModelProto:
    """Inception-v3 without the second classifier, which is for training."""
    b = Layers(epsilon=1e-3, **how)
    x = _chain(b, b.image(size), (32, 3, 2, 0), (32, 3, 1, 0), (64, 3, 1, 1))
    x = _chain(b, b.pool("MaxPool", x, 3, 2), (80, 1, 1, 0), (192, 3, 1, 0))
    x = b.pool("MaxPool", x, 3, 2)
    for pooled in (32, 64, 64):
        x = b.concat(
            _chain(b, x, (64, 1)),
            _chain(b, x, (48, 1), (64, 5)),
            _chain(b, x, (64, 1), (96, 3), (96, 3)),
            _chain(b, _mean(b, x), (pooled, 1)),
        )
    x = b.concat(
        _chain(b, x, (384, 3, 2, 0)),
        _chain(b, x, (64, 1), (96, 3), (96, 3, 2, 0)),
        b.pool("MaxPool", x, 3, 2),
    )
    wide, high = (1, 7), (7, 1)
    for c in (128, 160, 160, 192):
        x = b.concat(
            _chain(b, x, (192, 1)),
            _chain(b, x, (c, 1), (c, wide), (192, high)),
            _chain(b, x, (c, 1), (c, high), (c, wide), (c, high), (192, wide)),
            _chain(b, _mean(b, x), (192, 1)),
        )
    x = b.concat(
        _chain(b, x, (192, 1), (320, 3, 2, 0)),
        _chain(b, x, (192, 1), (192, wide), (192, high), (192, 3, 2, 0)),
        b.pool("MaxPool", x, 3, 2),
    )
    for _ in range(2):
        second, third = _chain(b, x, (384, 1)), _chain(b, x, (448, 1), (384, 3))
        x = b.concat(
            _chain(b, x, (320, 1)),
            b.concat(*(_chain(b, second, (384, k)) for k in ((1, 3), (3, 1)))),
            b.concat(*(_chain(b, third, (384, k)) for k in ((1, 3), (3, 1)))),
            _chain(b, _mean(b, x), (192, 1)),
        )
    return _scores(b, x)


def _chain(b: Layers, x: Map, *layers: tuple[Any, ...]) -> Map:
    """Convolutions in a row: channels, kernel, and stride and pad where they are not the usual ones."""
    for outputs, kernel, *rest in layers:
        stride, pad = rest or (1, None)
        x = b.conv(x, outputs, kernel, stride, "Relu", pad=pad)
    return x


def _mean(b: Layers, x: Map) -> Map:
    return b.pool("AveragePool", x, 3, 1, 1, count_include_pad=1)


SQUEEZENET = ((16, 64), (16, 64), (32, 128), (32, 128), (48, 192), (48, 192), (64, 256), (64, 256))
"""Inner channels, and the channels of each of two convolutions, of the layers of SqueezeNet."""


def squeezenet1_1(size: int = 224, **how: bool) -> onnx.ModelProto:
    """SqueezeNet 1.1, which has no normalisation."""
    b = Layers(**how)
    x = b.conv(b.image(size), 64, 3, 2, "Relu", pad=0, norm=False)
    for k, (inner, outputs) in enumerate(SQUEEZENET):
        if k in (0, 2, 4):
            x = b.pool("MaxPool", x, 3, 2, ceil_mode=1)
        squeezed = b.conv(x, inner, act="Relu", norm=False)
        x = b.concat(*(b.conv(squeezed, outputs, kernel, act="Relu", norm=False) for kernel in (1, 3)))
    return b.model(b.means(b.conv(x, CLASSES, act="Relu", norm=False)))


def shufflenet_v1(size: int = 224, **how: bool) -> onnx.ModelProto:
    """ShuffleNet with four groups and half of the channels: the one of the onnx package."""
    b = Layers(**how)
    x = b.pool("MaxPool", b.conv(b.image(size), 24, 3, 2, "Relu"), 3, 2, 1)
    for channels, units in ((136, 4), (272, 8), (544, 4)):
        for k in range(units):
            stride = 1 if k else 2
            outputs = channels if k else channels - x.channels
            made = b.shuffle(b.conv(x, outputs, act="Relu", group=4), 4)
            made = b.conv(made, outputs, 3, stride, group=outputs)
            made = b.conv(made, outputs, group=4, gain=RESIDUAL if k else 1.414)
            kept = x if k else b.pool("AveragePool", x, 3, 2, 1)
            x = b.act(b.add(made, kept) if k else b.concat(made, kept), "Relu")
    return _scores(b, x)


def shufflenet_v2(size: int = 224, **how: bool) -> onnx.ModelProto:
    """ShuffleNetV2 x1.0."""
    b = Layers(**how)
    x = b.pool("MaxPool", b.conv(b.image(size), 24, 3, 2, "Relu"), 3, 2, 1)
    for channels, units in ((116, 4), (232, 8), (464, 4)):
        half = channels // 2
        for k in range(units):
            if k:
                kept, made = b.split(x, half, half)
            else:
                kept = b.conv(b.conv(x, x.channels, 3, 2, group=x.channels), half, act="Relu")
                made = x
            made = b.conv(made, half, act="Relu")
            made = b.conv(made, half, 3, 1 if k else 2, group=half)
            x = b.shuffle(b.concat(kept, b.conv(made, half, act="Relu")), 2)
    return _scores(b, b.conv(x, 1024, act="Relu"))


MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, repeats and stride of the stages of MobileNetV2."""


def mobilenet_v2(size: int = 224, **how: bool) -> onnx.ModelProto:
    """MobileNetV2."""
    b = Layers(**how)
    x = b.conv(b.image(size), 32, 3, 2, "Relu6")
    for expansion, outputs, repeats, stride in MOBILENET:
        for k in range(repeats):
            x = _inverted(b, x, x.channels * expansion, outputs, 3, 1 if k else stride, "Relu6")
    return _scores(b, b.conv(x, 1280, act="Relu6"))


def _inverted(
    b: Layers,
    x: Map,
    inner: int,
    outputs: int,
    kernel: int,
    stride: int,
    act: str,
    squeezed: int = 0,
    gates: tuple[str, str] = ("Relu", "HardSigmoid"),
) -> Map:
    """An inverted residual: wider, a convolution of each channel, squeeze and excitation where `squeezed`, narrower."""
    made = x if inner == x.channels else b.conv(x, inner, act=act)
    made = b.conv(made, inner, kernel, stride, act, group=inner)
    if squeezed:
        made = b.excite(made, squeezed, *gates)
    past = stride == 1 and x.channels == outputs
    # The gates halve what goes through.
    gain = (RESIDUAL if past else 1.0) * (2 if squeezed else 1)
    made = b.conv(made, outputs, gain=gain)
    return b.add(x, made) if past else made


MOBILENET_V3 = (
    (3, 16, 16, False, "Relu", 1),
    (3, 64, 24, False, "Relu", 2),
    (3, 72, 24, False, "Relu", 1),
    (5, 72, 40, True, "Relu", 2),
    (5, 120, 40, True, "Relu", 1),
    (5, 120, 40, True, "Relu", 1),
    (3, 240, 80, False, "HardSwish", 2),
    (3, 200, 80, False, "HardSwish", 1),
    (3, 184, 80, False, "HardSwish", 1),
    (3, 184, 80, False, "HardSwish", 1),
    (3, 480, 112, True, "HardSwish", 1),
    (3, 672, 112, True, "HardSwish", 1),
    (5, 672, 160, True, "HardSwish", 2),
    (5, 960, 160, True, "HardSwish", 1),
    (5, 960, 160, True, "HardSwish", 1),
)
"""Kernel, inner channels, channels, squeeze and excitation, activation and stride of the blocks of MobileNetV3."""


def mobilenet_v3_large(size: int = 224, **how: bool) -> onnx.ModelProto:
    """MobileNetV3, the large one."""
    b = Layers(epsilon=1e-3, **how)
    x = b.conv(b.image(size), 16, 3, 2, "HardSwish")
    for kernel, inner, outputs, squeeze, act, stride in MOBILENET_V3:
        x = _inverted(b, x, inner, outputs, kernel, stride, act, _by_eight(inner / 4) if squeeze else 0)
    x = b.conv(x, 960, act="HardSwish")
    return b.model(b.dense(b.dense(b.means(x), 960, 1280, "HardSwish"), 1280, CLASSES))


def _by_eight(channels: float) -> int:
    """The nearest multiple of eight, not under nine tenths."""
    near = max(8, int(channels + 4) // 8 * 8)
    return near if near >= 0.9 * channels else near + 8


EFFICIENTNET = (
    (1, 3, 1, 16, 1),
    (6, 3, 2, 24, 2),
    (6, 5, 2, 40, 2),
    (6, 3, 2, 80, 3),
    (6, 5, 1, 112, 3),
    (6, 5, 2, 192, 4),
    (6, 3, 1, 320, 1),
)
"""Expansion, kernel, stride, channels and repeats of the stages of EfficientNet-B0."""


def efficientnet_b0(size: int = 224, **how: bool) -> onnx.ModelProto:
    """EfficientNet-B0."""
    b = Layers(**how)
    x = b.conv(b.image(size), 32, 3, 2, "Silu")
    for expansion, kernel, stride, outputs, repeats in EFFICIENTNET:
        for k in range(repeats):
            inner, squeezed = x.channels * expansion, x.channels // 4
            step = 1 if k else stride
            x = _inverted(b, x, inner, outputs, kernel, step, "Silu", squeezed, ("Silu", "Sigmoid"))
    return _scores(b, b.conv(x, 1280, act="Silu"))


CONVNEXT = ((96, 3), (192, 3), (384, 9), (768, 3))
"""Channels and blocks of the stages of ConvNeXt-T."""


def convnext_tiny(size: int = 224, **how: bool) -> onnx.ModelProto:
    """ConvNeXt-T; a block goes over to channels last behind its convolution."""
    b = Layers(**how)
    x = b.image(size)
    for stage, (channels, blocks) in enumerate(CONVNEXT):
        if stage:
            x = b.conv(_norm_of_map(b, x), channels, 2, 2, pad=0, norm=False)
        else:
            x = _norm_of_map(b, b.conv(x, channels, 4, 4, pad=0, norm=False))
        for _ in range(blocks):
            made = b.conv(x, channels, 7, group=channels, norm=False)
            rows = b.layer_norm(b.to_rows(made), channels, 1e-6)
            rows = b.linear(b.gelu(b.linear(rows, channels, 4 * channels)), 4 * channels, channels)
            scaled = b.op("Mul", b.random(channels, 1, 1, scale=0.1, around=0.5), b.to_map(rows, channels, x.size).name)
            x = x._replace(name=b.op("Add", x.name, scaled))
    means = _norm_of_map(b, Map(b.op("GlobalAveragePool", x.name), x.channels, 1))
    return b.model(b.dense(b.op("Flatten", means.name), x.channels, CLASSES))


def _norm_of_map(b: Layers, x: Map) -> Map:
    """LayerNorm of the channels of every pixel."""
    return b.to_map(b.layer_norm(b.to_rows(x), x.channels, 1e-6), x.channels, x.size)


# -- YOLOv8-n ---------------------------------------------------------------------------------------------------------

YOLO_CLASSES, YOLO_BINS = 80, 16
"""What can be detected, and how many bins the distribution of a side of a box has."""


def yolov8n(size: int = 640, **how: bool) -> onnx.ModelProto:
    """YOLOv8-n with the boxes decoded: [batch, 4 + 80, boxes]."""
    b = Layers(epsilon=1e-3, **how)
    x = b.conv(b.conv(b.image(size), 16, 3, 2, "Silu"), 32, 3, 2, "Silu")
    x = _partial(b, x, 32, 1)
    fine = x = _partial(b, b.conv(x, 64, 3, 2, "Silu"), 64, 2)
    middle = x = _partial(b, b.conv(x, 128, 3, 2, "Silu"), 128, 2)
    coarse = _pyramid(b, _partial(b, b.conv(x, 256, 3, 2, "Silu"), 256, 1))
    middle = _partial(b, b.concat(b.doubled(coarse), middle), 128, 1, past=False)
    fine = _partial(b, b.concat(b.doubled(middle), fine), 64, 1, past=False)
    middle = _partial(b, b.concat(b.conv(fine, 64, 3, 2, "Silu"), middle), 128, 1, past=False)
    coarse = _partial(b, b.concat(b.conv(middle, 128, 3, 2, "Silu"), coarse), 256, 1, past=False)
    return b.model(_boxes(b, size, [fine, middle, coarse]))


def _partial(b: Layers, x: Map, outputs: int, count: int, past: bool = True) -> Map:
    """Half of the channels go through `count` blocks, and what each makes is kept (C2f)."""
    half = outputs // 2
    made = b.split(b.conv(x, outputs, act="Silu"), half, half)
    for _ in range(count):
        block = b.conv(b.conv(made[-1], half, 3, act="Silu"), half, 3, act="Silu", gain=0.5 if past else 1.0)
        made.append(b.add(made[-1], block) if past else block)
    return b.conv(b.concat(*made), outputs, act="Silu")


def _pyramid(b: Layers, x: Map) -> Map:
    """Maxima of squares of 5, 9 and 13 (SPPF)."""
    made = [b.conv(x, x.channels // 2, act="Silu")]
    for _ in range(3):
        made.append(b.pool("MaxPool", made[-1], 5, 1, 2))
    return b.conv(b.concat(*made), x.channels, act="Silu")


def _boxes(b: Layers, size: int, maps: Sequence[Map]) -> str:
    """The head: distributions of the distances to a box's four sides, and scores of the classes, for every pixel."""
    sides, depth = 4 * YOLO_BINS, max(maps[0].channels, YOLO_CLASSES)
    parts: list[str] = []
    for x in maps:
        found = [
            b.conv(b.conv(b.conv(x, c, 3, act="Silu"), c, 3, act="Silu"), outputs, norm=False)
            for c, outputs in ((max(16, maps[0].channels // 4, sides), sides), (depth, YOLO_CLASSES))
        ]
        parts.append(b.op("Reshape", b.concat(*found).name, b.integers(0, sides + YOLO_CLASSES, x.size**2)))
    count = sum(x.size**2 for x in maps)
    joined = Map(b.op("Concat", *parts, axis=2), sides + YOLO_CLASSES, 1)
    bins, scores = b.split(joined, sides, YOLO_CLASSES)
    bins = b.op("Transpose", b.op("Reshape", bins.name, b.integers(0, 4, YOLO_BINS, count)), perm=[0, 2, 1, 3])
    # The mean of the distribution, as a convolution.
    weight = b.learned(np.arange(YOLO_BINS, dtype=np.float32).reshape(1, YOLO_BINS, 1, 1))
    means = b.op("Conv", b.op("Softmax", bins, axis=1), weight, kernel_shape=[1, 1])
    near, far = b.split(Map(b.op("Reshape", means, b.integers(0, 4, count)), 4, 1), 2, 2)
    anchors, strides = _anchors(size, maps)
    first = b.op("Sub", b.constant(anchors), near.name)
    last = b.op("Add", b.constant(anchors), far.name)
    middle = b.op("Div", b.op("Add", first, last), b.number(2.0))
    boxes = b.op("Concat", middle, b.op("Sub", last, first), axis=1)
    scaled = b.op("Mul", boxes, b.constant(strides))
    return b.op("Concat", scaled, b.op("Sigmoid", scores.name), axis=1)


def _anchors(size: int, maps: Sequence[Map]) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """The middles of all pixels, [1, 2, boxes], and how many of the image's a pixel is, [1, boxes]."""
    middles = [np.stack(np.meshgrid(*[np.arange(x.size) + 0.5] * 2)).reshape(2, -1) for x in maps]
    strides = [np.full(x.size**2, size / x.size) for x in maps]
    return np.concatenate(middles, 1)[None].astype(np.float32), np.concatenate(strides)[None].astype(np.float32)
