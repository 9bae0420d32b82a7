"""The convolutions of a network, each as a model of its own."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx
from onnx import helper, numpy_helper

from benchmark.models.builder import GAINS, Layers, Map
from benchmark.models.counts import Shape, shapes


@dataclass(frozen=True)
class Layer:
    """A convolution of images with a bias, and the activation behind it, by the names of `GAINS`."""

    inputs: int
    outputs: int
    image: Shape
    """Height and width of what it takes."""
    kernel: Shape
    strides: Shape = (1, 1)
    pads: Shape = (0, 0, 0, 0)
    dilations: Shape = (1, 1)
    group: int = 1
    activation: str = ""

    @property
    def result(self) -> Shape:
        """Height and width of what it gives."""
        axes = zip(self.image, self.kernel, self.strides, self.dilations, self.pads[:2], self.pads[2:], strict=True)
        return tuple((n + a + b - d * (k - 1) - 1) // s + 1 for n, k, s, d, a, b in axes)

    @property
    def follows_itself(self) -> bool:
        """Whether it can take what it gives."""
        return self.inputs == self.outputs and self.image == self.result

    @property
    def depthwise(self) -> bool:
        return 1 < self.group == self.inputs

    @property
    def multiply_adds(self) -> int:
        """For one image."""
        return self.outputs * math.prod(self.result) * self.inputs // self.group * math.prod(self.kernel)

    def bytes(self, batch: int) -> int:
        """What it must read and write in f32, its weights once."""
        images = self.inputs * math.prod(self.image) + self.outputs * math.prod(self.result)
        return 4 * (batch * images + self.outputs * (self.inputs // self.group * math.prod(self.kernel) + 1))

    def __str__(self) -> str:
        """As in `64x56x56 to 256, 1x1, Relu`: what is not said is the usual."""
        said = [f"{_by(self.inputs, *self.image)} to {self.outputs}", _by(*self.kernel)]
        if set(self.strides) != {1}:
            said.append(f"stride {self.strides[0]}" if len(set(self.strides)) == 1 else f"strides {_by(*self.strides)}")
        if set(self.dilations) != {1}:
            said.append(f"dilations {_by(*self.dilations)}")
        if self.group > 1:
            said.append("depthwise" if self.depthwise else f"{self.group} groups")
        if self.pads != tuple(k // 2 for k in self.kernel) * 2:
            said.append(f"pads {_by(*self.pads)}")
        return ", ".join([*said, *filter(None, [self.activation])])


def _by(*sizes: int) -> str:
    return "x".join(map(str, sizes))


def model_of(layer: Layer, repeat: int = 1) -> onnx.ModelProto:
    """The layer, or so many of it in a row, each with weights of its own: `x` of [batch, channels, height, width]."""
    b = Layers()
    y = b.input("x", "batch", layer.inputs, *layer.image)
    fan = layer.inputs // layer.group * math.prod(layer.kernel)
    shape = (layer.outputs, layer.inputs // layer.group, *layer.kernel)
    attributes = {
        "kernel_shape": layer.kernel,
        "strides": layer.strides,
        "pads": layer.pads,
        "dilations": layer.dilations,
        "group": layer.group,
    }
    for _ in range(repeat):
        weights = b.random(*shape, scale=GAINS[layer.activation] / fan**0.5), b.random(layer.outputs, scale=0.1)
        y = b.act(Map(b.op("Conv", y, *weights, **attributes), layer.outputs, 0), layer.activation).name
    return b.model(y)


def layers_of(model: onnx.ModelProto, dims: Mapping[str, int]) -> Counter[Layer]:
    """The different convolutions of images in a network at that size, in order, and how many there are of each."""
    known = shapes(model, dims)
    values = {w.name: w for w in model.graph.initializer}
    users: dict[str, list[onnx.NodeProto]] = {}
    for node in model.graph.node:
        for name in node.input:
            users.setdefault(name, []).append(node)
    found: Counter[Layer] = Counter()
    for node in model.graph.node:
        if node.op_type == "Conv" and len(known[node.input[0]]) == 4:
            activation = _activation(users.get(node.output[0], []), values)
            found[_layer(node, known[node.input[0]], known[node.input[1]], activation)] += 1
    return found


def _layer(node: onnx.NodeProto, image: Shape, weight: Shape, activation: str) -> Layer:
    said: dict[str, Any] = {a.name: helper.get_attribute_value(a) for a in node.attribute}
    if said.get("auto_pad", b"NOTSET") != b"NOTSET":
        raise ValueError(f"{node.name or node.output[0]}: pads of {said['auto_pad'].decode()} are not written out here")
    return Layer(
        image[1],
        weight[0],
        image[2:],
        weight[2:],
        tuple(said.get("strides", (1, 1))),
        tuple(said.get("pads", (0, 0, 0, 0))),
        tuple(said.get("dilations", (1, 1))),
        said.get("group", 1),
        activation,
    )


def _activation(users: list[onnx.NodeProto], values: Mapping[str, onnx.TensorProto]) -> str:
    """The activation that all users of a value are together; nothing where they are something else."""
    kinds = sorted(node.op_type for node in users)
    if kinds == ["Mul", "Sigmoid"]:
        sigmoid = next(node for node in users if node.op_type == "Sigmoid")
        multiplied = next(node for node in users if node.op_type == "Mul")
        return "Silu" if sigmoid.output[0] in multiplied.input else ""
    if len(kinds) != 1:
        return ""
    if kinds == ["Clip"]:
        bounds = [numpy_helper.to_array(values[name]).item() for name in users[0].input[1:] if name in values]
        return "Relu6" if bounds == [0, 6] else ""
    return kinds[0] if kinds[0] in GAINS else ""
