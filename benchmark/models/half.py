"""Models of 16-bit floats: BERT and MobileNet written out by code, and what makes f16 of a model in f32.

Weights are random but seeded. `to_half` is what converters do: every f32 tensor becomes f16, inputs and outputs too.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]


@dataclass
class Builder:
    """Nodes and weights of a graph in f32."""

    seed: int = 0
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    weights: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        """Adds a node; the name of its output."""
        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def weight(self, value: Array) -> str:
        name = f"w{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(value, name))
        return name

    def random(self, *dims: int, scale: float = 1.0, around: float = 0.0) -> str:
        return self.weight((around + scale * self.rng.standard_normal(dims)).astype(np.float32))

    def number(self, value: float) -> str:
        return self.weight(np.array(value, np.float32))

    def linear(self, x: str, rows: int, columns: int) -> str:
        product = self.op("MatMul", x, self.random(rows, columns, scale=0.5 / rows**0.5))
        return self.op("Add", product, self.random(columns, scale=0.1))

    def layer_norm(self, x: str, size: int) -> str:
        scale, bias = self.random(size, scale=0.1, around=1.0), self.random(size, scale=0.1)
        return self.op("LayerNormalization", x, scale, bias, epsilon=1e-5)

    def gelu(self, x: str) -> str:
        """As exporters write it."""
        error = self.op("Erf", self.op("Div", x, self.number(2**0.5)))
        return self.op("Mul", self.op("Mul", x, self.op("Add", error, self.number(1.0))), self.number(0.5))

    def model(self, inputs: dict[str, list[Any]], output: str, opset: int = 17) -> onnx.ModelProto:
        """The model; inputs called `ids` or `mask` are integers."""
        infos = [
            helper.make_tensor_value_info(n, TensorProto.INT64 if n in ("ids", "mask") else TensorProto.FLOAT, d)
            for n, d in inputs.items()
        ]
        result = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
        graph = helper.make_graph(self.nodes, "g", infos, [result], self.weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def bert(layers: int = 12, hidden: int = 768, heads: int = 12, inner: int = 3072, words: int = 2048) -> onnx.ModelProto:
    """BERT (base by default, with fewer words): `ids` and `mask` of [batch, sequence] to the last hidden state."""
    b = Builder()
    long = b.op("Cast", b.op("Unsqueeze", "mask", b.weight(np.array([1, 2], np.int64))), to=TensorProto.FLOAT)
    mask = b.op("Mul", b.op("Sub", b.number(1.0), long), b.number(-10000.0))
    x = b.layer_norm(b.op("Gather", b.random(words, hidden), "ids"), hidden)
    split = b.weight(np.array([0, 0, heads, hidden // heads], np.int64))
    joined = b.weight(np.array([0, 0, hidden], np.int64))
    for _ in range(layers):
        q, k, v = (b.op("Reshape", b.linear(x, hidden, hidden), split) for _ in range(3))
        q, v = (b.op("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, v))
        scores = b.op("MatMul", q, b.op("Transpose", k, perm=[0, 2, 3, 1]))
        scaled = b.op("Div", scores, b.number((hidden / heads) ** 0.5))
        rows = b.op("Softmax", b.op("Add", scaled, mask), axis=-1)
        found = b.op("Reshape", b.op("Transpose", b.op("MatMul", rows, v), perm=[0, 2, 1, 3]), joined)
        x = b.layer_norm(b.op("Add", b.linear(found, hidden, hidden), x), hidden)
        wide = b.gelu(b.linear(x, hidden, inner))
        x = b.layer_norm(b.op("Add", b.linear(wide, inner, hidden), x), hidden)
    return b.model({"ids": ["batch", "sequence"], "mask": ["batch", "sequence"]}, x)


MOBILENET = ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1))
"""Expansion, channels, repeats and stride of the stages of MobileNetV2."""


def mobilenet(size: int = 224) -> onnx.ModelProto:
    """MobileNetV2 without batch normalisation: `x` of [batch, 3, size, size] to 1000 scores."""
    b = Builder()

    def conv(x: str, inputs: int, outputs: int, kernel: int, stride: int = 1, group: int = 1) -> str:
        fan = inputs // group * kernel**2
        weight = b.random(outputs, inputs // group, kernel, kernel, scale=(1.5 / fan) ** 0.5)
        attrs = {"kernel_shape": [kernel] * 2, "strides": [stride] * 2, "pads": [kernel // 2] * 4, "group": group}
        return b.op("Conv", x, weight, b.random(outputs, scale=0.1), **attrs)

    def clip(x: str) -> str:
        return b.op("Clip", x, b.number(0.0), b.number(6.0))

    x, channels = clip(conv("x", 3, 32, 3, 2)), 32
    for expansion, outputs, repeats, stride in MOBILENET:
        for k in range(repeats):
            inner, step = channels * expansion, stride if k == 0 else 1
            wide = x if expansion == 1 else clip(conv(x, channels, inner, 1))
            made = conv(clip(conv(wide, inner, inner, 3, step, inner)), inner, outputs, 1)
            x = b.op("Add", x, made) if step == 1 and channels == outputs else made
            channels = outputs
    pooled = b.op("Flatten", b.op("GlobalAveragePool", clip(conv(x, channels, 1280, 1))))
    return b.model({"x": ["batch", 3, size, size]}, b.linear(pooled, 1280, 1000))


def to_half(model: onnx.ModelProto, kind: int = TensorProto.FLOAT16) -> onnx.ModelProto:
    """A copy of a model in f32 with every f32 tensor in f16 (or, with `kind`, in bf16)."""
    made = onnx.ModelProto()
    made.CopyFrom(model)
    graph = made.graph
    for value in (*graph.input, *graph.output, *graph.value_info):
        if value.type.tensor_type.elem_type == TensorProto.FLOAT:
            value.type.tensor_type.elem_type = kind
    for weight in graph.initializer:
        weight.CopyFrom(_narrowed(weight, kind))
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                attribute.t.CopyFrom(_narrowed(attribute.t, kind))
            elif node.op_type == "Cast" and attribute.name == "to" and attribute.i == TensorProto.FLOAT:
                attribute.i = kind
    return made


def _narrowed(tensor: onnx.TensorProto, kind: int) -> onnx.TensorProto:
    if tensor.data_type != TensorProto.FLOAT:
        return tensor
    array = numpy_helper.to_array(tensor)
    if kind == TensorProto.FLOAT16:
        limits = np.finfo(np.float16)
        array = np.clip(array, limits.min, limits.max)
    return numpy_helper.from_array(array.astype(helper.tensor_dtype_to_np_dtype(kind)), tensor.name)
