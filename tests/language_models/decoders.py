"""A Llama written by code, in the form of onnxruntime-genai's builder, and greedy generation in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

Array = np.ndarray[Any, Any]
WORDS, WIDE, HEADS, SHARED, SIZE, INNER, LAYERS, LONGEST = 96, 64, 4, 2, 16, 96, 2, 320
MICROSOFT = {"domain": "com.microsoft"}


@dataclass
class _Graph:
    """Nodes and weights; `bits` of 4 stores the weights of products in blocks of 32."""

    bits: int
    level: int
    rng: np.random.Generator
    nodes: list[onnx.NodeProto] = field(default_factory=list[onnx.NodeProto])
    weights: list[onnx.TensorProto] = field(default_factory=list[onnx.TensorProto])

    def weight(self, name: str, array: Array) -> str:
        self.weights.append(numpy_helper.from_array(array, name))
        return name

    def add(self, op: str, operands: Sequence[str], results: Sequence[str], **attributes: Any) -> str:
        self.nodes.append(helper.make_node(op, operands, results, name=results[0], **attributes))
        return results[0]

    def product(self, name: str, x: str, depth: int, columns: int) -> str:
        matrix = (self.rng.standard_normal((depth, columns)) / np.sqrt(depth)).astype(np.float32)
        if self.bits == 32:
            return self.add("MatMul", [x, self.weight(f"{name}.weight", matrix)], [f"{name}.output"])
        blocks = matrix.T.reshape(columns, depth // 32, 32)
        scales = (np.abs(blocks).max(-1) / 7).astype(np.float32)
        codes = (np.clip(np.round(blocks / scales[..., None]), -8, 7) + 8).astype(np.uint8)
        packed = codes[..., ::2] | (codes[..., 1::2] << 4)
        operands = [x, self.weight(f"{name}.weight", packed), self.weight(f"{name}.scales", scales)]
        sizes = {"K": depth, "N": columns, "bits": 4, "block_size": 32, "accuracy_level": self.level}
        return self.add("MatMulNBits", operands, [f"{name}.output"], **MICROSOFT, **sizes)


def llama(bits: int = 32, level: int = 0, seed: int = 0) -> onnx.ModelProto:
    """A decoder with random weights: f32, or of 4 bits at an accuracy level."""
    g = _Graph(bits, level, np.random.default_rng(seed))
    angles = np.arange(LONGEST)[:, None] / 100 ** (np.arange(SIZE // 2) / SIZE)
    for name, array in (("cos_cache", np.cos(angles)), ("sin_cache", np.sin(angles))):
        g.weight(name, array.astype(np.float32))
    for name, number in (("one", np.array([1])), ("axis", np.array(1))):
        g.weight(name, number.astype(np.int64))
    g.weight("norm", np.ones(WIDE, np.float32))
    g.add("ReduceSum", ["attention_mask", "one"], ["sum"], keepdims=0)
    g.add("Sub", ["sum", "one"], ["last"])
    g.add("Cast", ["last"], ["seqlens_k"], to=TensorProto.INT32)
    g.add("Shape", ["attention_mask"], ["dims"])
    g.add("Gather", ["dims", "axis"], ["count"])
    g.add("Cast", ["count"], ["total"], to=TensorProto.INT32)
    embedding = g.rng.standard_normal((WORDS, WIDE)).astype(np.float32)
    skip = g.add("Gather", [g.weight("embedding", embedding), "input_ids"], ["embedded"])
    x = g.add("SimplifiedLayerNormalization", [skip, "norm"], ["first_norm"], epsilon=1e-6, axis=-1)
    for k in range(LAYERS):
        x, skip = _layer(g, k, x, skip)
    g.add("Identity", [g.product("lm_head", x, WIDE, WORDS)], ["logits"])
    return _model(g)


def _layer(g: _Graph, k: int, x: str, skip: str) -> tuple[str, str]:
    qkv = g.product(f"qkv{k}", x, WIDE, (HEADS + 2 * SHARED) * SIZE)
    past = [f"past_key_values.{k}.{part}" for part in ("key", "value")]
    present = [f"present.{k}.{part}" for part in ("key", "value")]
    operands = [qkv, "", "", *past, "seqlens_k", "total", "cos_cache", "sin_cache"]
    heads = {"num_heads": HEADS, "kv_num_heads": SHARED, "do_rotary": 1, "scale": SIZE**-0.5}
    g.add("GroupQueryAttention", operands, [f"attention{k}", *present], **MICROSOFT, **heads)
    made = g.product(f"out{k}", f"attention{k}", HEADS * SIZE, WIDE)
    norm = ["SkipSimplifiedLayerNormalization", [skip, made, "norm"], [f"norm{k}", "", "", f"skip{k}"]]
    x = g.add(*norm, epsilon=1e-6, **MICROSOFT)
    gate, up = (g.product(f"{part}{k}", x, WIDE, INNER) for part in ("gate", "up"))
    g.add("Mul", [gate, g.add("Sigmoid", [gate], [f"sigmoid{k}"])], [f"silu{k}"])
    g.add("Mul", [f"silu{k}", up], [f"inner{k}"])
    made = g.product(f"down{k}", f"inner{k}", INNER, WIDE)
    results = [f"next{k}", "", "", f"sum{k}"]
    g.add("SkipSimplifiedLayerNormalization", [f"skip{k}", made, "norm"], results, epsilon=1e-6, **MICROSOFT)
    return f"next{k}", f"sum{k}"


def _model(g: _Graph) -> onnx.ModelProto:
    info, kind = helper.make_tensor_value_info, TensorProto.FLOAT
    inputs = [
        info("input_ids", TensorProto.INT64, ["batch_size", "sequence_length"]),
        info("attention_mask", TensorProto.INT64, ["batch_size", "total_sequence_length"]),
    ]
    outputs = [info("logits", kind, ["batch_size", "sequence_length", WORDS])]
    for k in range(LAYERS):
        for part in ("key", "value"):
            rows: list[Any] = ["batch_size", SHARED, "past_sequence_length", "kv_cache_dim"]
            inputs.append(info(f"past_key_values.{k}.{part}", kind, rows))
            rows = ["batch_size", SHARED, "total_sequence_length", "kv_cache_dim"]
            outputs.append(info(f"present.{k}.{part}", kind, rows))
    graph = helper.make_graph(g.nodes, "main_graph", inputs, outputs, g.weights)
    imports = [helper.make_opsetid("", 22), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


def greedy(session: Any, prompt: Array, steps: int, capacity: int = 0) -> Array:
    """Returns the tokens after a prompt [batch, length]: with a shared buffer of `capacity` keys that holds NaN at
    first, or with a past that grows."""
    import onnxruntime as ort

    batch, length = prompt.shape
    names = [f"{k}.{part}" for k in range(LAYERS) for part in ("key", "value")]
    shape = batch, SHARED, capacity, SIZE
    caches: dict[str, Any] = {n: ort.OrtValue.ortvalue_from_numpy(np.full(shape, np.nan, np.float32)) for n in names}
    given, tokens = prompt.astype(np.int64), list[Array]()
    for step in range(steps):
        binding = session.io_binding()
        binding.bind_cpu_input("input_ids", np.ascontiguousarray(given))
        binding.bind_cpu_input("attention_mask", np.ones((batch, length + step), np.int64))
        for name, cache in caches.items():
            binding.bind_ortvalue_input(f"past_key_values.{name}", cache)
        binding.bind_output("logits")
        for name, cache in caches.items():
            if capacity:
                binding.bind_ortvalue_output(f"present.{name}", cache)
            else:
                binding.bind_output(f"present.{name}")
        session.run_with_iobinding(binding)
        logits, *rest = binding.get_outputs()
        if not capacity:
            caches = dict(zip(names, rest, strict=True))
        given = logits.numpy()[:, -1:].argmax(-1)
        tokens.append(given)
    return np.concatenate(tokens, 1)
