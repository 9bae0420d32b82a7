"""Small decoders of language models, written out by code: one set of random weights in the forms that exporters write.

    python -m benchmark.models.decoders FORM FILE [--layers 2] [--width 64] [--vocabulary 64] ...

`shared` is the graph of onnxruntime-genai's builder: GroupQueryAttention, whose past and present may be one buffer.
`growing` is that of Optimum: positions are inputs, and each present is its past and the new rows, concatenated;
`merged` is the same with `use_cache_branch`, `whole` the same without caches. All four compute the same logits.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import onnx
from onnx import TensorProto, helper

from benchmark.models.builder import Builder

Form = Literal["shared", "growing", "merged", "whole"]
INT64 = TensorProto.INT64
MICROSOFT = {"domain": "com.microsoft"}


@dataclass(frozen=True)
class Decoder:
    """The sizes of a Llama."""

    layers: int = 2
    width: int = 64
    heads: int = 4
    kv_heads: int = 2
    hidden: int = 64
    vocabulary: int = 64
    positions: int = 256
    """The rows of the tables of rotations."""
    seed: int = 0
    sharpness: float = 4.0
    """The standard deviation of the logits."""
    last_only: bool = False
    """True if the graph computes the logits of the last position alone."""

    @property
    def head(self) -> int:
        return self.width // self.heads

    def model(self, form: Form = "shared") -> onnx.ModelProto:
        """Returns the model in one of the forms."""
        return _Graph(self, form).made()


class _Graph:
    """A decoder under construction."""

    def __init__(self, decoder: Decoder, form: Form):
        self.d, self.form = decoder, form
        self.b = Builder(decoder.seed, opset=18)
        self.outputs = ["logits"]
        self.tables = self._tables()

    def _tables(self) -> tuple[str, str]:
        half = self.d.head // 2
        rate = 10000.0 ** -(np.arange(half) / half)
        angle = np.arange(self.d.positions)[:, None] * rate
        return tuple(self.b.constant(f(angle).astype(np.float32)) for f in (np.cos, np.sin))  # type: ignore[return-value]

    def made(self) -> onnx.ModelProto:
        b, d = self.b, self.d
        ids = b.input("input_ids", "batch_size", "sequence_length", kind=INT64)
        if self.form == "shared":
            self._mask_lengths()
        else:
            self._mask_scores()
        x = b.op("Gather", b.random(d.vocabulary, d.width), ids)
        for layer in range(d.layers):
            x = b.op("Add", x, self._attention(self._norm(x), layer))
            x = b.op("Add", x, self._feed_forward(self._norm(x)))
        x = self._norm(x)
        if d.last_only:
            x = b.op("Slice", x, b.integers(-1), b.integers(1 << 40), b.integers(1))
        b._graph.node.append(
            helper.make_node(
                "MatMul", [x, b.random(d.width, d.vocabulary, scale=d.sharpness / d.width**0.5)], ["logits"]
            )
        )
        model = b.model(*self.outputs)
        model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        return model

    def _norm(self, x: str) -> str:
        scale = self.b.random(self.d.width, scale=0.1, around=1.0)
        return self.b.op("SimplifiedLayerNormalization", x, scale, axis=-1, epsilon=1e-5, stash_type=1)

    def _feed_forward(self, x: str) -> str:
        b, d = self.b, self.d
        gate, up = (b.linear(x, d.width, d.hidden, bias=False) for _ in range(2))
        return b.linear(b.op("Mul", b.silu(gate), up), d.hidden, d.width, bias=False)

    def _attention(self, x: str, layer: int) -> str:
        b, d = self.b, self.d
        packed = b.op("MatMul", x, b.random(d.width, (d.heads + 2 * d.kv_heads) * d.head, scale=1.0 / d.width**0.5))
        found = (self._group_query if self.form == "shared" else self._by_nodes)(packed, layer)
        return b.linear(found, d.width, d.width, bias=False)

    # -- caches -------------------------------------------------------------------------------------------------------

    def _past(self, layer: int, kind: str) -> str:
        dims = ("batch_size", self.d.kv_heads, "past_sequence_length", self.d.head)
        return self.b.input(f"past_key_values.{layer}.{kind}", *dims)

    def _present(self, layer: int, kind: str) -> str:
        self.outputs.append(f"present.{layer}.{kind}")
        return self.outputs[-1]

    # -- GroupQueryAttention ------------------------------------------------------------------------------------------

    def _mask_lengths(self) -> None:
        b = self.b
        mask = b.input("attention_mask", "batch_size", "total_sequence_length", kind=INT64)
        count = b.op("Sub", b.op("ReduceSum", mask, b.integers(1), keepdims=0), b.constant(np.array(1, np.int64)))
        self.lengths = b.op("Cast", count, to=TensorProto.INT32)
        total = b.op("Gather", b.op("Shape", mask), b.constant(np.array(1, np.int64)))
        self.total = b.op("Cast", total, to=TensorProto.INT32)

    def _group_query(self, packed: str, layer: int) -> str:
        b, d = self.b, self.d
        inputs = [
            packed,
            "",
            "",
            *(self._past(layer, k) for k in ("key", "value")),
            self.lengths,
            self.total,
            *self.tables,
        ]
        outputs = [f"attention_{layer}", *(self._present(layer, k) for k in ("key", "value"))]
        sizes = {"num_heads": d.heads, "kv_num_heads": d.kv_heads, "do_rotary": 1, "scale": d.head**-0.5}
        b._graph.node.append(helper.make_node("GroupQueryAttention", inputs, outputs, **sizes, **MICROSOFT))
        return outputs[0]

    # -- nodes of ONNX ------------------------------------------------------------------------------------------------

    def _mask_scores(self) -> None:
        """Makes the addend of the scores, [batch, 1, rows, total], and the rotations, [batch, rows, 1, half]."""
        b = self.b
        total = "sequence_length" if self.form == "whole" else "total_sequence_length"
        mask = b.input("attention_mask", "batch_size", total, kind=INT64)
        position = b.input("position_ids", "batch_size", "sequence_length", kind=INT64)
        if self.form == "merged":
            self.branch = b.input("use_cache_branch", 1, kind=TensorProto.BOOL)
        sizes = [b.op("Gather", b.op("Shape", v), b.constant(np.array(1, np.int64))) for v in (mask, position)]
        zero, one = (b.constant(np.array(k, np.int64)) for k in (0, 1))
        rows = b.op("Range", b.op("Sub", sizes[0], sizes[1]), sizes[0], one)
        columns = b.op("Range", zero, sizes[0], one)
        causal = b.op("LessOrEqual", columns, b.op("Unsqueeze", rows, b.integers(1)))
        seen = b.op("Cast", b.op("Unsqueeze", mask, b.integers(1, 2)), to=TensorProto.BOOL)
        self.addend = b.op("Where", b.op("And", seen, causal), b.number(0.0), b.number(-1e9))
        self.rotations = [b.op("Unsqueeze", b.op("Gather", t, position), b.integers(2)) for t in self.tables]

    def _rotated(self, x: str) -> str:
        b = self.b
        first, second = b.ops("Split", x, count=2, axis=-1, num_outputs=2)
        cos, sin = self.rotations
        low = b.op("Sub", b.op("Mul", first, cos), b.op("Mul", second, sin))
        high = b.op("Add", b.op("Mul", second, cos), b.op("Mul", first, sin))
        return b.op("Concat", low, high, axis=-1)

    def _cached(self, new: str, layer: int, kind: str) -> str:
        if self.form == "whole":
            return new
        b, past, present = self.b, self._past(layer, kind), self._present(layer, kind)
        if self.form == "growing":
            b._graph.node.append(helper.make_node("Concat", [past, new], [present], axis=2))
            return present
        branches = {
            "then_branch": helper.make_node("Concat", [past, new], [f"{present}.long"], axis=2),
            "else_branch": helper.make_node("Identity", [new], [f"{present}.first"]),
        }
        graphs = {
            name: helper.make_graph(
                [node], name, [], [helper.make_tensor_value_info(node.output[0], TensorProto.FLOAT, None)]
            )
            for name, node in branches.items()
        }
        b._graph.node.append(helper.make_node("If", [self.branch], [present], **graphs))
        return present

    def _by_nodes(self, packed: str, layer: int) -> str:
        b, d = self.b, self.d
        parts = b.integers(d.heads * d.head, d.kv_heads * d.head, d.kv_heads * d.head)
        q, k, v = b.ops("Split", packed, parts, count=3, axis=-1)
        q = self._rotated(b.op("Reshape", q, b.integers(0, 0, d.heads, d.head)))
        k = self._rotated(b.op("Reshape", k, b.integers(0, 0, d.kv_heads, d.head)))
        v = b.op("Reshape", v, b.integers(0, 0, d.kv_heads, d.head))
        q, k, v = (b.op("Transpose", t, perm=[0, 2, 1, 3]) for t in (q, k, v))
        k, v = self._repeated(self._cached(k, layer, "key")), self._repeated(self._cached(v, layer, "value"))
        scores = b.op("Mul", b.op("MatMul", q, b.op("Transpose", k, perm=[0, 1, 3, 2])), b.number(d.head**-0.5))
        weights = b.op("Softmax", b.op("Add", scores, self.addend), axis=-1)
        found = b.op("Transpose", b.op("MatMul", weights, v), perm=[0, 2, 1, 3])
        return b.op("Reshape", found, b.integers(0, 0, d.width))

    def _repeated(self, x: str) -> str:
        """Repeats each head of keys or values for its heads of queries."""
        b, d = self.b, self.d
        times = d.heads // d.kv_heads
        if times == 1:
            return x
        wide = b.op("Concat", *[b.op("Unsqueeze", x, b.integers(2))] * times, axis=2)
        return b.op("Reshape", wide, b.integers(0, d.heads, -1, d.head))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("form", choices=get_args(Form))
    parser.add_argument("file")
    for name in ("layers", "width", "heads", "kv_heads", "hidden", "vocabulary", "positions", "seed"):
        parser.add_argument(f"--{name.replace('_', '-')}", type=int, default=getattr(Decoder, name))
    given = vars(parser.parse_args())
    form, file = given.pop("form"), given.pop("file")
    onnx.save(Decoder(**given).model(form), file)


if __name__ == "__main__":
    main()
