"""Models of 16-bit floats: a BERT written out by code, and what makes f16 of a model in f32.

Weights are random but seeded. `to_half` is what converters do: every f32 tensor becomes f16, inputs and outputs too.
"""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmark.models.builder import Builder


def bert(layers: int = 12, hidden: int = 768, heads: int = 12, inner: int = 3072, words: int = 2048) -> onnx.ModelProto:
    """BERT (base by default, with fewer words): `ids` and `mask` of [batch, sequence] to the last hidden state."""
    b = Builder()
    ids, given = (b.input(name, "batch", "sequence", kind=TensorProto.INT64) for name in ("ids", "mask"))
    long = b.op("Cast", b.op("Unsqueeze", given, b.integers(1, 2)), to=TensorProto.FLOAT)
    mask = b.op("Mul", b.op("Sub", b.number(1.0), long), b.number(-10000.0))
    x = b.layer_norm(b.op("Gather", b.random(words, hidden), ids), hidden)
    for _ in range(layers):
        q, k, v = (b.linear(x, hidden, hidden) for _ in range(3))
        found = b.attention(q, k, v, hidden, heads, lambda scores: b.op("Add", scores, mask))
        x = b.layer_norm(b.op("Add", b.linear(found, hidden, hidden), x), hidden)
        wide = b.gelu(b.linear(x, hidden, inner))
        x = b.layer_norm(b.op("Add", b.linear(wide, inner, hidden), x), hidden)
    return b.model(x)


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
