"""The networks of the shipped specifications, written out by code with seeded random weights.

Six kinds of networks in use, small enough for a comparison in seconds, with the nodes that exporters write: layer norms
and Gelu decomposed in `encoder` and `decoder`, attention decomposed everywhere, batch normalisation folded into
convolutions. `NETWORKS` lists them; the batch and the length of a sequence are symbolic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto, helper, numpy_helper

OPSET = 17
CLASSES = 100


class Net:
    """A graph under construction; values are their names."""

    def __init__(self, name: str, seed: int):
        self.rng = np.random.default_rng(seed)
        self._model = ModelProto(ir_version=8, opset_import=[helper.make_opsetid("", OPSET)])
        self._graph = self._model.graph
        self._graph.name = name

    def input(self, name: str, *dims: int | str, kind: int = TensorProto.FLOAT) -> str:
        self._graph.input.append(helper.make_tensor_value_info(name, kind, dims))
        return name

    def model(self, output: str, *dims: int | str) -> ModelProto:
        self._graph.output.append(helper.make_tensor_value_info(output, TensorProto.FLOAT, dims))
        return self._model

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        name = f"{kind}_{len(self._graph.node)}"
        self._graph.node.append(helper.make_node(kind, list(inputs), [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def constant(self, value: Any) -> str:
        name = f"c{len(self._graph.initializer)}"
        self._graph.initializer.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def number(self, value: float) -> str:
        return self.constant(np.float32(value))

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def weight(self, *dims: int, scale: float, around: float = 0.0) -> str:
        return self.constant(np.float32(around) + np.float32(scale) * self.rng.standard_normal(dims, np.float32))

    # -- layers -------------------------------------------------------------------------------------------------------

    def linear(self, x: str, rows: int, columns: int) -> str:
        product = self.op("MatMul", x, self.weight(rows, columns, scale=rows**-0.5))
        return self.op("Add", product, self.weight(columns, scale=0.1))

    def layer_norm(self, x: str, size: int) -> str:
        """A layer norm in the nodes of torch's tracing exporter."""
        centred = self.op("Sub", x, self.op("ReduceMean", x, axes=[-1]))
        variance = self.op("ReduceMean", self.op("Pow", centred, self.number(2.0)), axes=[-1])
        deviation = self.op("Sqrt", self.op("Add", variance, self.number(1e-5)))
        scaled = self.op("Mul", self.op("Div", centred, deviation), self.weight(size, scale=0.1, around=1.0))
        return self.op("Add", scaled, self.weight(size, scale=0.1))

    def gelu(self, x: str) -> str:
        error = self.op("Erf", self.op("Div", x, self.number(2**0.5)))
        return self.op("Mul", self.op("Mul", x, self.op("Add", error, self.number(1.0))), self.number(0.5))

    def silu(self, x: str) -> str:
        return self.op("Mul", x, self.op("Sigmoid", x))

    def attention(self, x: str, width: int, heads: int, mask: str = "") -> str:
        """Attention of [batch, rows, width] on itself."""
        split = self.integers(0, 0, heads, width // heads)
        q, k, v = (self.op("Reshape", self.linear(x, width, width), split) for _ in range(3))
        q, v = (self.op("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
        scores = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 2, 3, 1]))
        scores = self.op("Div", scores, self.number((width / heads) ** 0.5))
        weights = self.op("Softmax", self.op("Add", scores, mask) if mask else scores, axis=-1)
        joined = self.op("Transpose", self.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        return self.linear(self.op("Reshape", joined, self.integers(0, 0, width)), width, width)

    def feed_forward(self, x: str, width: int, inner: int) -> str:
        return self.linear(self.gelu(self.linear(x, width, inner)), inner, width)

    def conv(self, x: str, inputs: int, outputs: int, kernel: int = 3, stride: int = 1, group: int = 1) -> str:
        fan = inputs // group * kernel**2
        weight = self.weight(outputs, inputs // group, kernel, kernel, scale=(2 / fan) ** 0.5)
        bias, pads = self.weight(outputs, scale=0.1), [kernel // 2] * 4
        return self.op("Conv", x, weight, bias, group=group, strides=[stride] * 2, pads=pads, kernel_shape=[kernel] * 2)

    def group_norm(self, x: str, channels: int, groups: int) -> str:
        """A group norm of images in the nodes of torch's tracing exporter."""
        ones, zeros = self.constant(np.ones(groups, np.float32)), self.constant(np.zeros(groups, np.float32))
        rows = self.op("Reshape", x, self.integers(0, groups, -1))
        normed = self.op("Reshape", self.op("InstanceNormalization", rows, ones, zeros), self.op("Shape", x))
        scale = self.constant(self.rng.normal(1, 0.1, (channels, 1, 1)).astype(np.float32))
        return self.op("Add", self.op("Mul", normed, scale), self.weight(channels, 1, 1, scale=0.1))


def encoder(layers: int = 4, width: int = 256, heads: int = 4, words: int = 1000) -> ModelProto:
    """A BERT: layer norms behind the residuals, a mask of positions, embeddings of words."""
    net = Net("encoder", 1)
    ids = net.input("ids", "batch", "seq", kind=TensorProto.INT64)
    mask = net.op("Unsqueeze", net.input("mask", "batch", "seq"), net.integers(1, 2))
    penalty = net.op("Mul", net.op("Sub", net.number(1.0), mask), net.number(-1e4))
    x = net.layer_norm(net.op("Gather", net.weight(words, width, scale=1.0), ids), width)
    for _ in range(layers):
        x = net.layer_norm(net.op("Add", x, net.attention(x, width, heads, penalty)), width)
        x = net.layer_norm(net.op("Add", x, net.feed_forward(x, width, 4 * width)), width)
    return net.model(x, "batch", "seq", width)


def decoder(layers: int = 4, width: int = 256, heads: int = 4, words: int = 1000) -> ModelProto:
    """A GPT: layer norms in front of the blocks, a causal mask, scores of the next word."""
    net = Net("decoder", 2)
    ids = net.input("ids", "batch", "seq", kind=TensorProto.INT64)
    length = net.op("Gather", net.op("Shape", ids), net.integers(1))
    square = net.op("Concat", length, length, axis=0)
    value = numpy_helper.from_array(np.array([-1e4], np.float32))
    mask = net.op("Trilu", net.op("ConstantOfShape", square, value=value), net.constant(np.int64(1)), upper=1)
    x = net.op("Gather", net.weight(words, width, scale=1.0), ids)
    for _ in range(layers):
        x = net.op("Add", x, net.attention(net.layer_norm(x, width), width, heads, mask))
        x = net.op("Add", x, net.feed_forward(net.layer_norm(x, width), width, 4 * width))
    scores = net.op("MatMul", net.layer_norm(x, width), net.weight(width, words, scale=width**-0.5))
    return net.model(scores, "batch", "seq", words)


def mixer(layers: int = 4, width: int = 128, size: int = 64, patch: int = 8) -> ModelProto:
    """An MLP-Mixer: products along the patches of an image, then along their channels."""
    net = Net("mixer", 3)
    image = net.input("image", "batch", 3, size, size)
    weight, bias = net.weight(width, 3, patch, patch, scale=(3 * patch**2) ** -0.5), net.weight(width, scale=0.1)
    x = net.op("Conv", image, weight, bias, strides=[patch] * 2, kernel_shape=[patch] * 2)
    rows = (size // patch) ** 2
    x = net.op("Transpose", net.op("Reshape", x, net.integers(0, 0, -1)), perm=[0, 2, 1])
    for _ in range(layers):
        turned = net.op("Transpose", net.layer_norm(x, width), perm=[0, 2, 1])
        mixed = net.op("Transpose", net.feed_forward(turned, rows, 2 * rows), perm=[0, 2, 1])
        x = net.op("Add", x, mixed)
        x = net.op("Add", x, net.feed_forward(net.layer_norm(x, width), width, 4 * width))
    mean = net.op("ReduceMean", net.layer_norm(x, width), axes=[1], keepdims=0)
    return net.model(net.linear(mean, width, CLASSES), "batch", CLASSES)


def resnet(blocks: int = 2, width: int = 32, size: int = 64) -> ModelProto:
    """A residual network: convolutions of 3 x 3 with Relu, channels doubled as sides are halved."""
    net = Net("resnet", 4)
    x = net.op("Relu", net.conv(net.input("image", "batch", 3, size, size), 3, width))
    channels = width
    for stage in range(3):
        for block in range(blocks):
            stride = 2 if stage and not block else 1
            made = channels * stride
            inner = net.op("Relu", net.conv(x, channels, made, 3, stride))
            past = x if stride == 1 else net.conv(x, channels, made, 1, stride)
            x = net.op("Relu", net.op("Add", net.op("Mul", net.conv(inner, made, made), net.number(0.3)), past))
            channels = made
    means = net.op("Flatten", net.op("GlobalAveragePool", x))
    return net.model(net.linear(means, channels, CLASSES), "batch", CLASSES)


def mobilenet(blocks: int = 6, width: int = 24, size: int = 64) -> ModelProto:
    """Depthwise convolutions between pointwise ones, HardSwish, and gates of channels."""
    net = Net("mobilenet", 5)
    x = net.op("HardSwish", net.conv(net.input("image", "batch", 3, size, size), 3, width, 3, 2))
    channels = width
    for block in range(blocks):
        stride = 2 if block % 2 == 0 else 1
        made, inner = channels + 8 * (stride - 1), 4 * channels
        y = net.op("HardSwish", net.conv(x, channels, inner, 1))
        y = net.op("HardSwish", net.conv(y, inner, inner, 3, stride, group=inner))
        gate = net.op("Relu", net.conv(net.op("GlobalAveragePool", y), inner, inner // 4, 1))
        y = net.op("Mul", y, net.op("HardSigmoid", net.conv(gate, inner // 4, inner, 1), alpha=1 / 6, beta=0.5))
        y = net.conv(y, inner, made, 1)
        x, channels = (net.op("Add", x, y) if stride == 1 else y), made
    means = net.op("Flatten", net.op("GlobalAveragePool", x))
    return net.model(net.linear(means, channels, CLASSES), "batch", CLASSES)


def unet(width: int = 32, size: int = 32) -> ModelProto:
    """The parts of a diffusion model: group norms with SiLU, convolutions, attention of pixels, a skip connection."""
    net = Net("unet", 6)
    first = net.conv(net.input("image", "batch", 4, size, size), 4, width)

    def block(x: str, inputs: int, outputs: int) -> str:
        y = net.conv(net.silu(net.group_norm(x, inputs, 8)), inputs, outputs)
        y = net.conv(net.silu(net.group_norm(y, outputs, 8)), outputs, outputs)
        return net.op("Add", y, x if inputs == outputs else net.conv(x, inputs, outputs, 1))

    top = block(first, width, width)
    low = block(net.conv(top, width, 2 * width, 3, 2), 2 * width, 2 * width)
    rows = net.op("Reshape", net.group_norm(low, 2 * width, 8), net.integers(0, 0, -1))
    rows = net.attention(net.op("Transpose", rows, perm=[0, 2, 1]), 2 * width, 4)
    pixels = net.op("Reshape", net.op("Transpose", rows, perm=[0, 2, 1]), net.op("Shape", low))
    low = block(net.op("Add", low, pixels), 2 * width, 2 * width)
    scales = net.constant(np.array([1, 1, 2, 2], np.float32))
    nearest = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    large = net.op("Resize", low, "", scales, **nearest)
    x = block(net.op("Concat", large, top, axis=1), 3 * width, width)
    return net.model(net.conv(net.silu(net.group_norm(x, width, 8)), width, 4), "batch", 4, size, size)


NETWORKS: dict[str, Callable[[], ModelProto]] = {
    "encoder": encoder,
    "decoder": decoder,
    "mixer": mixer,
    "resnet": resnet,
    "mobilenet": mobilenet,
    "unet": unet,
}
"""The networks by name."""
