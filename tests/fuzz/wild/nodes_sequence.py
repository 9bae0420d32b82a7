"""Recurrent layers, attention, rotary embeddings, and graphs in graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import helper

from tests.fuzz.wild.nodes import rule
from tests.fuzz.wild.pool import FLOATS, Array, Pool, value_info

MS = "com.microsoft."


@rule(3)
def recurrent(p: Pool) -> bool:
    x = p.pick((np.float32,), (3,))
    if x is None or p.special:
        return False  # what an infinite weight makes of a state of zeros depends on whether it is multiplied
    dtype, (length, batch, width) = p.values[x].dtype, p.shape(x)
    op, gates = p.rng.choice([("LSTM", 4), ("GRU", 3), ("RNN", 1)])
    direction = p.rng.choice(["forward", "reverse", "bidirectional"])
    ways, hidden = 2 if direction == "bidirectional" else 1, p.rng.choice([1, 3, 8])
    layout = p.rng.randrange(2) if p.opset >= 14 and p.chance(0.2) else 0
    if layout:
        length, batch = batch, length
    small = 0.3

    def made(*shape: int) -> str:
        return p.weight((p.array(dtype, shape) * np.asarray(small, dtype)).astype(dtype))

    inputs = [x, made(ways, gates * hidden, width), made(ways, gates * hidden, hidden)]
    inputs.append(made(ways, 2 * gates * hidden) if p.chance(0.6) else "")
    lengths = p.weight(p.data.integers(1, max(length, 1) + 1, batch), np.int32) if p.chance(0.3) else ""
    inputs.append(lengths)
    state = (batch, ways, hidden) if layout else (ways, batch, hidden)
    inputs.append(made(*state) if p.chance(0.5) else "")
    attrs: dict[str, Any] = {"hidden_size": hidden, "direction": direction}
    if p.opset >= 14:
        attrs["layout"] = layout
    if op == "LSTM":
        inputs.append(made(*state) if inputs[-1] else "")
        inputs.append(made(ways, 3 * hidden) if p.chance(0.3) else "")
        attrs["input_forget"] = int(p.chance(0.1))
    if op == "GRU":
        attrs["linear_before_reset"] = p.rng.randrange(2)
    if p.chance(0.2):
        attrs["clip"] = 0.5
    while not inputs[-1]:
        inputs.pop()
    return p.try_node(op, inputs, p.rng.choice([1, 2, 3 if op == "LSTM" else 2]), **attrs)


@rule(3)
def attention(p: Pool) -> bool:
    """Heads in a dim of their own, or in the last one."""
    x = p.pick(FLOATS, (3, 4))
    if x is None or p.opset < 23:
        return False
    dtype, shape = p.values[x].dtype, p.shape(x)
    keys = p.rng.choice([1, 3, 8])
    attrs: dict[str, Any] = {"is_causal": p.rng.randrange(2)}
    if len(shape) == 3:
        heads = p.rng.choice([h for h in (1, 2, 4) if shape[2] % h == 0])
        attrs.update(q_num_heads=heads, kv_num_heads=heads)
        other, queries = (shape[0], keys, shape[2]), shape[1]
    else:
        heads, other, queries = shape[1], (*shape[:2], keys, shape[3]), shape[2]
    k, v = (p.input(dtype, other) if p.chance(0.5) else p.weight(p.array(dtype, other)) for _ in range(2))
    mask: list[str] = []
    if p.chance(0.5):
        of = p.rng.choice([(queries, keys), (shape[0], 1, queries, keys), (1, keys)])
        mask = [p.weight(p.array(p.rng.choice([dtype, np.bool_]), of))]
    if p.chance(0.3):
        attrs["softcap"] = 2.0
    if p.chance(0.3):
        attrs["scale"] = 0.5
    return p.try_node("Attention", [x, k, v, *mask], **attrs)


@rule(2)
def contrib_attention(p: Pool) -> bool:
    x = p.pick((np.float32, np.float16), (3,))
    if x is None:
        return False
    dtype, (batch, length, width) = p.values[x].dtype, p.shape(x)
    heads = p.rng.choice([h for h in (1, 2, 4) if width % h == 0])
    kind = p.rng.randrange(4)
    if kind == 0:
        w, b = p.weight(p.array(dtype, (width, 3 * width))), p.weight(p.array(dtype, (3 * width,)))
        mask = [p.weight(p.data.integers(1, length + 1, batch), np.int32)] if length and p.chance(0.4) else []
        return p.try_node(MS + "Attention", [x, w, b, *mask], num_heads=heads, unidirectional=p.rng.randrange(2))
    other = (batch, p.rng.choice([1, 3, length]), width)
    k, v = (p.input(dtype, other) if p.chance(0.5) else p.weight(p.array(dtype, other)) for _ in range(2))
    if kind == 1:
        bias = [p.weight(p.array(dtype, (3 * width,)))] if p.chance(0.5) else []
        return p.try_node(MS + "MultiHeadAttention", [x, k, v, *bias], num_heads=heads)
    if kind == 2:
        if not length or p.shape(k)[1] != length:
            return False
        ends = p.weight(np.full(batch, length - 1), np.int32)
        total = p.weight(length, np.int32)
        attrs = {"num_heads": heads, "kv_num_heads": heads}
        return p.try_node(MS + "GroupQueryAttention", [x, k, v, "", "", ends, total], 3, **attrs)
    head = width // heads
    if head % 2:
        return False
    table = [p.weight(p.array(dtype, (length + 2, head // 2))) for _ in range(2)]
    if p.opset >= 23 and p.chance(0.5):
        at = p.weight(p.data.integers(0, length + 2, (batch, length)), np.int64)
        return p.try_node("RotaryEmbedding", [x, *table, at], num_heads=heads, interleaved=p.rng.randrange(2))
    first = p.weight(np.zeros(1), np.int64)
    return p.try_node(MS + "RotaryEmbedding", [x, first, *table], num_heads=heads, interleaved=p.rng.randrange(2))


@rule(1)
def bert_embedding(p: Pool) -> bool:
    batch, length, width = 2, p.rng.choice([1, 3, 8]), p.rng.choice([4, 8])
    ids = p.input(np.int32, (batch, length))
    p.values[ids] = p.data.integers(0, 9, (batch, length)).astype(np.int32)
    tables = [p.weight(p.array(np.float32, (rows, width))) for rows in (9, length + 2, 2)]
    rows_ = [p.weight(p.array(np.float32, (width,))) for _ in range(2)]
    segments = p.weight(p.data.integers(0, 2, (batch, length)), np.int32)
    return p.try_node(MS + "EmbedLayerNormalization", [ids, segments, *tables, *rows_], 2)


# -- graphs in graphs -------------------------------------------------------------------------------------------------


def _body(nodes: list[onnx.NodeProto], inputs: list[tuple[str, Array]], outputs: list[str]) -> onnx.GraphProto:
    given = [value_info(n, a.dtype, None) for n, a in inputs]
    return helper.make_graph(nodes, "body", given, [onnx.ValueInfoProto(name=o) for o in outputs])


@rule(2)
def conditional(p: Pool) -> bool:
    x = p.pick(FLOATS)
    flag = p.pick((np.bool_,), (0,))
    if flag is None:
        flag = p.input(np.bool_, ()) if p.chance(0.5) else p.weight(p.chance(0.5), np.bool_)
    if x is None:
        return False
    y = p.pick((p.values[x].dtype,)) or x
    tag = p.fresh("g")
    branches: list[onnx.GraphProto] = []
    for k, op in enumerate(p.rng.sample(["Relu", "Neg", "Exp", "Abs", "Sigmoid"], 2)):
        nodes = [helper.make_node(op, [x], [f"{tag}a{k}"]), helper.make_node("Add", [f"{tag}a{k}", y], [f"{tag}b{k}"])]
        info = value_info(f"{tag}b{k}", p.values[x].dtype, None)
        branches.append(helper.make_graph(nodes, "branch", [], [info]))
    captures = list(dict.fromkeys([x, y]))
    return p.try_node("If", [flag], captures=captures, then_branch=branches[0], else_branch=branches[1])


@rule(2)
def loop(p: Pool) -> bool:
    x = p.pick(FLOATS)
    if x is None:
        return False
    array, tag = p.values[x], p.fresh("g")
    steps = p.weight(p.rng.choice([0, 1, 3, 4]), np.int64)
    if p.chance(0.3):
        steps = p.input(np.int64, ())
        p.values[steps] = np.asarray(p.rng.choice([0, 1, 3]), np.int64)
    go = p.weight(True, np.bool_)
    op = p.rng.choice(["Tanh", "Sigmoid", "Neg", "Sin"])
    nodes = [
        helper.make_node("Identity", [f"{tag}c"], [f"{tag}d"]),
        helper.make_node("Add", [f"{tag}s", x], [f"{tag}t"]),
        helper.make_node(op, [f"{tag}t"], [f"{tag}u"]),
        helper.make_node("Identity", [f"{tag}u"], [f"{tag}v"]),
    ]
    shape: list[Any] = [None] * array.ndim
    given = [
        value_info(f"{tag}i", np.int64, ()),
        value_info(f"{tag}c", np.bool_, ()),
        value_info(f"{tag}s", array.dtype, shape),
    ]
    made = [
        value_info(f"{tag}d", np.bool_, ()),
        value_info(f"{tag}u", array.dtype, shape),
        value_info(f"{tag}v", array.dtype, shape),
    ]
    body = helper.make_graph(nodes, "body", given, made)
    return p.try_node("Loop", [steps, go, x], 2, captures=[x], body=body)


@rule(2)
def scan_loop(p: Pool) -> bool:
    x = p.pick(FLOATS, (2, 3))
    if x is None or p.opset < 9 or not p.values[x].size:
        return False
    array, tag = p.values[x], p.fresh("g")
    state = p.weight(p.array(array.dtype, array.shape[1:]))
    op = p.rng.choice(["Add", "Max", "Mul"])
    nodes = [
        helper.make_node(op, [f"{tag}s", f"{tag}x"], [f"{tag}t"]),
        helper.make_node("Tanh", [f"{tag}t"], [f"{tag}u"]),
        helper.make_node("Identity", [f"{tag}u"], [f"{tag}v"]),
    ]
    shape: list[Any] = [None] * (array.ndim - 1)
    given = [value_info(f"{tag}{n}", array.dtype, shape) for n in "sx"]
    made = [value_info(f"{tag}{n}", array.dtype, shape) for n in "uv"]
    body = helper.make_graph(nodes, "body", given, made)
    attrs: dict[str, Any] = {"scan_input_directions": [1]} if p.chance(0.3) else {}
    return p.try_node("Scan", [state, x], 2, body=body, num_scan_inputs=1, **attrs)
