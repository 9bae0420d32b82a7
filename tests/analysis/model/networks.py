"""Networks of papers and small models with one thing in them, made by code."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[int, Sequence[Any] | None]],
    outputs: Mapping[str, tuple[int, Sequence[Any] | None]],
    weights: Mapping[str, np.ndarray] | Sequence[onnx.TensorProto] = (),
    functions: Sequence[onnx.FunctionProto] = (),
    opset: int = 20,
    domains: Sequence[str] = (),
) -> onnx.ModelProto:
    """A model; shapes hold numbers and names."""
    ports = [
        [helper.make_tensor_value_info(n, t, shape) for n, (t, shape) in given.items()] for given in (inputs, outputs)
    ]
    made = (
        [numpy_helper.from_array(a, n) for n, a in weights.items()] if isinstance(weights, Mapping) else list(weights)
    )
    imports = [helper.make_opsetid("", opset), *(helper.make_opsetid(d, 1) for d in domains)]
    graph = helper.make_graph(list(nodes), "g", *ports, made)
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=10)


def empty_weight(name: str, *dims: int, kind: int = F32) -> onnx.TensorProto:
    """A weight of zeros in the message's own field for them: what it holds is not asked."""
    return numpy_helper.from_array(np.zeros(dims, helper.tensor_dtype_to_np_dtype(kind)), name)


def mobilenet_v2() -> onnx.ModelProto:
    """MobileNetV2 (Sandler et al., 2018), width 1.0, 224 x 224, batch normalisation folded into biases."""
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    value, channels = "x", 3

    def conv(out: int, kernel: int, stride: int, groups: int, act: bool) -> None:
        nonlocal value, channels
        name = f"conv{len(weights) // 2}"
        weights.append(empty_weight(f"{name}.w", out, channels // groups, kernel, kernel))
        weights.append(empty_weight(f"{name}.b", out))
        pads = [kernel // 2] * 4
        nodes.append(
            helper.make_node(
                "Conv",
                [value, f"{name}.w", f"{name}.b"],
                [name],
                name,
                kernel_shape=[kernel, kernel],
                strides=[stride, stride],
                pads=pads,
                group=groups,
            )
        )
        value, channels = name, out
        if act:
            nodes.append(helper.make_node("Relu", [value], [f"{name}.r"], f"{name}.relu"))
            value = f"{name}.r"

    conv(32, 3, 2, 1, True)
    for expand, out, repeat, stride in (
        *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
        *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
    ):
        for k in range(repeat):
            before, first = value, channels
            if expand > 1:
                conv(channels * expand, 1, 1, 1, True)
            conv(channels, 3, stride if k == 0 else 1, channels, True)
            conv(out, 1, 1, 1, False)
            if k and first == out:
                nodes.append(helper.make_node("Add", [before, value], [f"{value}.sum"]))
                value = f"{value}.sum"
    conv(1280, 1, 1, 1, True)
    nodes.append(helper.make_node("GlobalAveragePool", [value], ["pool"]))
    nodes.append(helper.make_node("Flatten", ["pool"], ["flat"]))
    weights.extend((empty_weight("fc.w", 1000, 1280), empty_weight("fc.b", 1000)))
    nodes.append(helper.make_node("Gemm", ["flat", "fc.w", "fc.b"], ["y"], "fc", transB=1))
    return model_of(nodes, {"x": (F32, [1, 3, 224, 224])}, {"y": (F32, [1, 1000])}, weights)


def bert(layers: int = 12, hidden: int = 768, heads: int = 12, inner: int = 3072) -> onnx.ModelProto:
    """The encoder of BERT-base (Devlin et al., 2018), with symbolic batch and seq; layers have paths as names."""
    nodes: list[onnx.NodeProto] = []
    weights: list[onnx.TensorProto] = []
    size = hidden // heads
    weights.append(numpy_helper.from_array(np.array([0, 0, heads, size], np.int64), "split"))
    weights.append(numpy_helper.from_array(np.array([0, 0, hidden], np.int64), "join"))
    value = "x"

    def node(op: str, inputs: list[str], name: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(op, inputs, [name], name, **attributes))
        return name

    def linear(x: str, name: str, rows: int, columns: int) -> str:
        weights.append(empty_weight(f"{name}.w", rows, columns))
        weights.append(empty_weight(f"{name}.b", columns))
        return node("Add", [node("MatMul", [x, f"{name}.w"], f"{name}/MatMul"), f"{name}.b"], f"{name}/Add")

    for k in range(layers):
        at = f"/encoder/layer.{k}/attention"
        q, key, v = (
            node(
                "Transpose",
                [node("Reshape", [linear(value, f"{at}/{part}", hidden, hidden), "split"], f"{at}/{part}/Reshape")],
                f"{at}/{part}/Transpose",
                perm=[0, 2, 3, 1] if part == "key" else [0, 2, 1, 3],
            )
            for part in ("query", "key", "value")
        )
        scores = node("Softmax", [node("MatMul", [q, key], f"{at}/MatMul")], f"{at}/Softmax", axis=-1)
        mixed = node("Transpose", [node("MatMul", [scores, v], f"{at}/MatMul_1")], f"{at}/T", perm=[0, 2, 1, 3])
        out = linear(node("Reshape", [mixed, "join"], f"{at}/R"), f"{at}/output", hidden, hidden)
        value = node("Add", [value, out], f"{at}/Add")
        at = f"/encoder/layer.{k}/mlp"
        inside = node("Gelu", [linear(value, f"{at}/up", hidden, inner)], f"{at}/Gelu")
        value = node("Add", [value, linear(inside, f"{at}/down", inner, hidden)], f"{at}/Add")
    dims = ["batch", "seq", hidden]
    return model_of(nodes, {"x": (F32, dims)}, {value: (F32, dims)}, weights)


def decoder(layers: int = 2, hidden: int = 64, heads: int = 4, new: int | str = "new") -> onnx.ModelProto:
    """A decoder whose caches of keys and values come back longer: projections, Concat, attention."""
    nodes: list[onnx.NodeProto] = []
    size = hidden // heads
    weights = [
        numpy_helper.from_array(np.array([0, 0, heads, size], np.int64), "split"),
        numpy_helper.from_array(np.array([0, 0, hidden], np.int64), "join"),
        empty_weight("embed", 100, hidden),
        empty_weight("head", hidden, 100),
    ]
    inputs: dict[str, tuple[int, Sequence[Any] | None]] = {"input_ids": (I64, ["batch", new])}
    outputs: dict[str, tuple[int, Sequence[Any] | None]] = {}
    nodes.append(helper.make_node("Gather", ["embed", "input_ids"], ["x"]))
    value = "x"
    for k in range(layers):
        for part in ("q", "k", "v", "o"):
            weights.append(empty_weight(f"{part}{k}.w", hidden, hidden))
        for part in ("q", "k", "v"):
            nodes.append(helper.make_node("MatMul", [value, f"{part}{k}.w"], [f"{part}{k}.m"]))
            nodes.append(helper.make_node("Reshape", [f"{part}{k}.m", "split"], [f"{part}{k}.r"]))
            nodes.append(helper.make_node("Transpose", [f"{part}{k}.r"], [f"{part}{k}"], perm=[0, 2, 1, 3]))
        for part, name in (("k", "key"), ("v", "value")):
            past, present = f"past_key_values.{k}.{name}", f"present.{k}.{name}"
            inputs[past] = (F32, ["batch", heads, "past", size])
            outputs[present] = (F32, None)
            nodes.append(helper.make_node("Concat", [past, f"{part}{k}"], [present], axis=2))
        nodes.append(helper.make_node("Transpose", [f"present.{k}.key"], [f"kt{k}"], perm=[0, 1, 3, 2]))
        nodes.append(helper.make_node("MatMul", [f"q{k}", f"kt{k}"], [f"s{k}"]))
        nodes.append(helper.make_node("Softmax", [f"s{k}"], [f"p{k}"], axis=-1))
        nodes.append(helper.make_node("MatMul", [f"p{k}", f"present.{k}.value"], [f"c{k}"]))
        nodes.append(helper.make_node("Transpose", [f"c{k}"], [f"t{k}"], perm=[0, 2, 1, 3]))
        nodes.append(helper.make_node("Reshape", [f"t{k}", "join"], [f"j{k}"]))
        nodes.append(helper.make_node("MatMul", [f"j{k}", f"o{k}.w"], [f"y{k}"]))
        value = f"y{k}"
    nodes.append(helper.make_node("MatMul", [value, "head"], ["logits"]))
    outputs = {"logits": (F32, None), **outputs}
    return model_of(nodes, inputs, outputs, weights)


def grouped_decoder(heads: int = 4, kv_heads: int = 2, size: int = 16) -> onnx.ModelProto:
    """A layer with GroupQueryAttention as ONNX Runtime's model builder writes it: the length of the cache that comes
    back is a dim of the mask, with a name of its own."""
    nodes = [
        helper.make_node("Shape", ["attention_mask"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["total64"]),
        helper.make_node("Cast", ["total64"], ["total"], to=TensorProto.INT32),
        helper.make_node("ReduceSum", ["attention_mask", "axis"], ["lengths"], keepdims=0),
        helper.make_node("Sub", ["lengths", "one"], ["last"]),
        helper.make_node("Cast", ["last"], ["seqlens"], to=TensorProto.INT32),
        helper.make_node("Gather", ["embed", "input_ids"], ["x"]),
        *(helper.make_node("MatMul", ["x", f"w{p}"], [p]) for p in "qkv"),
        helper.make_node(
            "GroupQueryAttention",
            ["q", "k", "v", "past_key_values.0.key", "past_key_values.0.value", "seqlens", "total"],
            ["y", "present.0.key", "present.0.value"],
            "attention",
            domain="com.microsoft",
            num_heads=heads,
            kv_num_heads=kv_heads,
        ),
        helper.make_node("MatMul", ["y", "head"], ["logits"]),
    ]
    width, narrow = heads * size, kv_heads * size
    weights = [
        numpy_helper.from_array(np.array(1, np.int64), "one"),
        numpy_helper.from_array(np.array([1], np.int64), "axis"),
        empty_weight("embed", 100, width),
        empty_weight("wq", width, width),
        *(empty_weight(f"w{p}", width, narrow) for p in "kv"),
        empty_weight("head", width, 100),
    ]
    cache = ["batch_size", kv_heads, "past_sequence_length", size]
    grown = ["batch_size", kv_heads, "total_sequence_length", size]
    inputs = {
        "input_ids": (I64, ["batch_size", "sequence_length"]),
        "attention_mask": (I64, ["batch_size", "total_sequence_length"]),
        **{f"past_key_values.0.{n}": (F32, cache) for n in ("key", "value")},
    }
    outputs = {"logits": (F32, None), **{f"present.0.{n}": (F32, grown) for n in ("key", "value")}}
    return model_of(nodes, inputs, outputs, weights, domains=["com.microsoft"])
