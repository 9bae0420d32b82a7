"""A MobileBERT-shaped model, built by code with seeded weights, for `igniter demo`.

The nodes are those of torch's tracing exporter: linear layers as MatMul and Add, attention decomposed, the shapes of
reshapes computed from the input's, the no-norm layers as `x * w + b`, the mask as `(1 - mask) * min`. Only this module
and the frontend import `onnx`.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from igniter.runtime.files import write_whole

if TYPE_CHECKING:
    import onnx

    Array: TypeAlias = np.ndarray[Any, Any]

OPSET = 17


@dataclass(frozen=True)
class Shape:
    """The hyper-parameters; the defaults are MobileBERT's, except the vocabulary."""

    layers: int = 24
    hidden: int = 512
    inner: int = 128
    heads: int = 4
    feed_forward: int = 512
    feed_forwards: int = 4
    embedding: int = 128
    vocabulary: int = 8192
    positions: int = 512
    seed: int = 7


@dataclass
class _Builder:
    """The nodes and initializers so far, under the names of an exporter."""

    shape: Shape
    nodes: list[Any] = field(default_factory=list[Any])
    weights: list[Any] = field(default_factory=list[Any])
    _scope: list[str] = field(default_factory=list[str])
    _counts: dict[str, int] = field(default_factory=dict[str, int])

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.shape.seed)

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        path = "/" + "/".join([*self._scope, kind])
        number = self._counts.get(path, 0)
        self._counts[path] = number + 1
        name = f"{path}_{number}" if number else path
        output = f"{name}_output_0"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=name, **attributes))
        return output

    def weight(self, name: str, value: Array) -> str:
        full = ".".join([*self._scope, name])
        self.weights.append(numpy_helper.from_array(value, full))
        return full

    def constant(self, value: Array) -> str:
        return self.op("Constant", value=numpy_helper.from_array(value))

    def integers(self, *values: int) -> str:
        return self.constant(np.array(values, np.int64))

    def scalar(self, value: float) -> str:
        return self.constant(np.array(value, np.float32))

    # Layers.

    def matrix(self, rows: int, columns: int) -> Array:
        return (self.rng.standard_normal((rows, columns)) * (0.3 / rows**0.5)).astype(np.float32)

    def vector(self, size: int, around: float) -> Array:
        # Different from their usual 0 and 1: dropping `x * w + b` must be detected.
        return (around + 0.1 * self.rng.standard_normal(size)).astype(np.float32)

    def linear(self, name: str, x: str, rows: int, columns: int) -> str:
        self._scope.append(name)
        product = self.op("MatMul", x, self.weight("weight", self.matrix(rows, columns)))
        result = self.op("Add", self.weight("bias", self.vector(columns, 0.0)), product)
        self._scope.pop()
        return result

    def no_norm(self, name: str, x: str, size: int) -> str:
        self._scope.append(name)
        scaled = self.op("Mul", x, self.weight("weight", self.vector(size, 1.0)))
        result = self.op("Add", scaled, self.weight("bias", self.vector(size, 0.0)))
        self._scope.pop()
        return result

    def dim(self, x: str, axis: int) -> str:
        size = self.op("Gather", self.op("Shape", x), self.constant(np.array(axis, np.int64)), axis=0)
        return self.op("Unsqueeze", size, self.integers(0))

    def scope(self, name: str) -> _Scope:
        return _Scope(self, name)


@dataclass
class _Scope:
    builder: _Builder
    name: str

    def __enter__(self) -> None:
        self.builder._scope.append(self.name)

    def __exit__(self, *_: object) -> None:
        self.builder._scope.pop()


def _heads(b: _Builder, x: str) -> str:
    """Reshapes [batch, sequence, inner] to [batch, sequence, heads, size], with a computed shape."""
    target = b.op(
        "Concat",
        b.dim(x, 0),
        b.dim(x, 1),
        b.integers(b.shape.heads),
        b.integers(b.shape.inner // b.shape.heads),
        axis=0,
    )
    return b.op("Reshape", x, target)


def _attention(b: _Builder, shared: str, value: str, residual: str, mask: str) -> str:
    s = b.shape
    with b.scope("attention"):
        with b.scope("self"):
            query = b.op("Transpose", _heads(b, b.linear("query", shared, s.inner, s.inner)), perm=[0, 2, 1, 3])
            key = b.op("Transpose", _heads(b, b.linear("key", shared, s.inner, s.inner)), perm=[0, 2, 3, 1])
            values = b.op("Transpose", _heads(b, b.linear("value", value, s.hidden, s.inner)), perm=[0, 2, 1, 3])
            scores = b.op("Div", b.op("MatMul", query, key), b.scalar((s.inner / s.heads) ** 0.5))
            weights = b.op("Softmax", b.op("Add", scores, mask), axis=-1)
            context = b.op("Transpose", b.op("MatMul", weights, values), perm=[0, 2, 1, 3])
            target = b.op("Concat", b.dim(context, 0), b.dim(context, 1), b.integers(s.inner), axis=0)
            context = b.op("Reshape", context, target)
        with b.scope("output"):
            dense = b.linear("dense", context, s.inner, s.inner)
            return b.no_norm("LayerNorm", b.op("Add", dense, residual), s.inner)


def _feed_forward(b: _Builder, name: str, x: str) -> str:
    s = b.shape
    with b.scope(name):
        wide = b.op("Relu", b.linear("intermediate", x, s.inner, s.feed_forward))
        dense = b.linear("output", wide, s.feed_forward, s.inner)
        return b.no_norm("LayerNorm", b.op("Add", dense, x), s.inner)


def _layer(b: _Builder, index: int, hidden: str, mask: str) -> str:
    s = b.shape
    with b.scope(f"layer.{index}"):
        with b.scope("bottleneck"):
            narrow = b.no_norm("input.LayerNorm", b.linear("input.dense", hidden, s.hidden, s.inner), s.inner)
            shared = b.no_norm("attention.LayerNorm", b.linear("attention.dense", hidden, s.hidden, s.inner), s.inner)
        x = _attention(b, shared, hidden, narrow, mask)
        for number in range(s.feed_forwards - 1):
            x = _feed_forward(b, f"ffn.{number}", x)
        x = _feed_forward(b, "ffn.last", x)
        with b.scope("output.bottleneck"):
            dense = b.linear("dense", x, s.inner, s.hidden)
            return b.no_norm("LayerNorm", b.op("Add", dense, hidden), s.hidden)


def _embeddings(b: _Builder, ids: str, types: str) -> str:
    s = b.shape
    with b.scope("embeddings"):
        table = b.rng.standard_normal((s.vocabulary, s.embedding)).astype(np.float32)
        words = b.op("Gather", b.weight("word_embeddings.weight", table), ids, axis=0)
        # The previous and the next word beside each word.
        after = b.op("Slice", words, b.integers(1), b.integers(2**62), b.integers(1))
        before = b.op("Slice", words, b.integers(0), b.integers(-1), b.integers(1))
        after = b.op("Pad", after, b.integers(0, 0, 0, 0, 1, 0), b.scalar(0.0), mode="constant")
        before = b.op("Pad", before, b.integers(0, 1, 0, 0, 0, 0), b.scalar(0.0), mode="constant")
        trigrams = b.op("Concat", after, words, before, axis=2)
        x = b.linear("embedding_transformation", trigrams, 3 * s.embedding, s.hidden)
        places = b.weight("position_ids", np.arange(s.positions, dtype=np.int64)[None, :])
        places = b.op("Slice", places, b.integers(0), b.dim(ids, 1), b.integers(1))
        places = b.op("Gather", b.weight("position_embeddings.weight", b.matrix(s.positions, s.hidden)), places, axis=0)
        kinds = b.op("Gather", b.weight("token_type_embeddings.weight", b.matrix(2, s.hidden)), types, axis=0)
        return b.no_norm("LayerNorm", b.op("Add", b.op("Add", x, places), kinds), s.hidden)


def build_demo_model(shape: Shape | None = None) -> onnx.ModelProto:
    """Builds the model: `input_ids`, `attention_mask` and `token_type_ids` of [batch, sequence] to `last_hidden_state`
    and `pooler_output`."""
    s = shape or Shape()
    b = _Builder(s)
    with b.scope("model"):
        mask = b.op("Unsqueeze", "attention_mask", b.integers(1))
        mask = b.op("Cast", b.op("Unsqueeze", mask, b.integers(2)), to=TensorProto.FLOAT)
        lowest = b.scalar(float(np.finfo(np.float32).min))
        mask = b.op("Mul", b.op("Sub", b.scalar(1.0), mask), lowest)
        hidden = _embeddings(b, "input_ids", "token_type_ids")
        for index in range(s.layers):
            hidden = _layer(b, index, hidden, mask)
    b.nodes.append(helper.make_node("Identity", [hidden], ["last_hidden_state"], name="last_hidden_state"))
    first = b.constant(np.array(0, np.int64))
    b.nodes.append(helper.make_node("Gather", [hidden, first], ["pooler_output"], name="pooler_output", axis=1))
    dims = ["batch", "sequence"]
    names = ("input_ids", "attention_mask", "token_type_ids")
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, dims) for name in names]
    outputs = [
        helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, [*dims, s.hidden]),
        helper.make_tensor_value_info("pooler_output", TensorProto.FLOAT, ["batch", s.hidden]),
    ]
    graph = helper.make_graph(b.nodes, "main_graph", inputs, outputs, b.weights)
    opsets = [helper.make_opsetid("", OPSET)]
    return helper.make_model(graph, producer_name="igniter-demo", opset_imports=opsets, ir_version=8)


def save_demo_model(path: str | Path, shape: Shape | None = None) -> Path:
    """Builds the model and writes it to `path`."""
    target = Path(path)
    write_whole(target, build_demo_model(shape).SerializeToString())
    return target


def main() -> None:
    """Runs `python -m igniter.tools.demo_model --layers 4 model.onnx`, which writes a model."""
    parser = argparse.ArgumentParser("python -m igniter.tools.demo_model", description="Write the model of the demo.")
    parser.add_argument("path", help="the file to write")
    parser.add_argument("--layers", type=int, default=Shape.layers, help=f"layers of the model ({Shape.layers})")
    given = parser.parse_args()
    if given.layers < 1:
        parser.error("--layers: a model has one or more")
    save_demo_model(given.path, Shape(layers=given.layers))


if __name__ == "__main__":
    main()
