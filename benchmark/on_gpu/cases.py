"""What is timed on a GPU: single ops and chains beside torch, and whole models."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from benchmark.models import half, vision

F32, F16, BF16 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16
NAMES = {F32: "f32", F16: "f16", BF16: "bf16"}


@dataclass(frozen=True)
class Case:
    """A model, what it is compiled for, and the dims of its inputs at each size that is timed."""

    name: str
    make: Callable[[], onnx.ModelProto]
    beside: tuple[Any, ...] = ()
    """What torch computes beside it: the name of a function in `beside`, and its arguments."""
    targets: tuple[str, ...] = ("cuda",)
    sizes: Sequence[Mapping[str, int]] = field(default_factory=lambda: [{}])
    flops: float = 0.0
    """Of a run, where it is bound by them."""
    chosen: bool = True
    """True if schedules are chosen for the first of the sizes; False if no sizes are said."""


def model(
    nodes: Sequence[onnx.NodeProto],
    inputs: Mapping[str, tuple[int, Sequence[int | str]]],
    weights: Mapping[str, Any] | None = None,
) -> onnx.ModelProto:
    """A model whose result is that of the last node."""
    graph = helper.make_graph(
        list(nodes),
        "g",
        [helper.make_tensor_value_info(name, kind, list(dims)) for name, (kind, dims) in inputs.items()],
        [helper.make_empty_tensor_value_info(nodes[-1].output[0])],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in (weights or {}).items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 23)], ir_version=10)


def _of(value: float, kind: int) -> onnx.TensorProto:
    return helper.make_tensor("c", kind, [], [value])


def _constant(name: str, value: float, kind: int) -> onnx.NodeProto:
    return helper.make_node("Constant", [], [name], value=_of(value, kind))


def chain(count: int, kind: int = F32) -> onnx.ModelProto:
    """So many pointwise ops, one after the other."""
    nodes = [_constant("a", 1.01, kind), _constant("b", 0.01, kind)]
    at = "x"
    for k in range(count):
        op, other = (("Mul", ["a"]), ("Add", ["b"]), ("Tanh", []))[k % 3]
        nodes.append(helper.make_node(op, [at, *other], [f"v{k}"]))
        at = f"v{k}"
    return model(nodes, {"x": (kind, [4096, 4096])})


def bias_gelu(kind: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", "b"], ["s"]), helper.make_node("Gelu", ["s"], ["y"])]
    return model(nodes, {"x": (kind, [4096, 3072]), "b": (kind, [3072])})


def residual_norm(kind: int) -> onnx.ModelProto:
    nodes = [
        helper.make_node("Add", ["x", "r"], ["s"]),
        helper.make_node("LayerNormalization", ["s", "w", "b"], ["y"], axis=-1, epsilon=1e-5),
    ]
    return model(
        nodes, {"x": (kind, [4096, 1024]), "r": (kind, [4096, 1024]), "w": (kind, [1024]), "b": (kind, [1024])}
    )


def mask_softmax(kind: int) -> onnx.ModelProto:
    nodes = [helper.make_node("Add", ["x", "m"], ["s"]), helper.make_node("Softmax", ["s"], ["y"], axis=-1)]
    return model(nodes, {"x": (kind, [16, 12, 512, 512]), "m": (kind, [16, 1, 1, 512])})


def norm_swiglu(kind: int) -> onnx.ModelProto:
    nodes = [
        helper.make_node("RMSNormalization", ["x", "w"], ["n"], axis=-1, epsilon=1e-5),
        helper.make_node("Sigmoid", ["n"], ["s"]),
        helper.make_node("Mul", ["n", "s"], ["a"]),
        helper.make_node("Mul", ["a", "u"], ["y"]),
    ]
    return model(nodes, {"x": (kind, [4096, 4096]), "w": (kind, [4096]), "u": (kind, [4096, 4096])})


def transposed(kind: int) -> onnx.ModelProto:
    nodes = [
        _constant("one", 1.0, kind),
        helper.make_node("Transpose", ["x"], ["t"], perm=[1, 0]),
        helper.make_node("Add", ["t", "one"], ["y"]),
    ]
    return model(nodes, {"x": (kind, [4096, 4096])})


def column_sum(kind: int) -> onnx.ModelProto:
    axes = np.asarray([0], np.int64)
    node = helper.make_node("ReduceSum", ["x", "axes"], ["y"], keepdims=0)
    return model([node], {"x": (kind, [8192, 4096])}, {"axes": axes})


def launches(count: int) -> onnx.ModelProto:
    """So many kernels that do next to nothing: rows and columns are normalised in turn."""
    at, nodes = "x", list[onnx.NodeProto]()
    for k in range(count):
        nodes.append(helper.make_node("Softmax", [at], [f"v{k}"], axis=k % 2))
        at = f"v{k}"
    return model(nodes, {"x": (F32, [64, 64])})


def product(rows: int, kind: int, epilogue: bool = False, size: int = 4096) -> onnx.ModelProto:
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    inputs: dict[str, tuple[int, Sequence[int | str]]] = {"x": (kind, [rows, size]), "w": (kind, [size, size])}
    if epilogue:
        nodes += [helper.make_node("Add", ["y", "b"], ["s"]), helper.make_node("Gelu", ["s"], ["z"])]
        inputs["b"] = kind, [size]
    return model(nodes, inputs)


def depth_last(size: int, kind: int) -> onnx.ModelProto:
    """A product whose weights have the depth as the last dim, as `turn-weights` stores constant ones."""
    node = helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)
    return model([node], {"x": (kind, [size, size]), "w": (kind, [size, size])})


def attention(
    batch: int, heads: int, shared: int, rows: int, keys: int, head: int, causal: bool = False, kind: int = F16
) -> onnx.ModelProto:
    node = helper.make_node("Attention", ["q", "k", "v"], ["y"], is_causal=int(causal))
    return model(
        [node],
        {
            "q": (kind, [batch, heads, rows, head]),
            "k": (kind, [batch, shared, keys, head]),
            "v": (kind, [batch, shared, keys, head]),
        },
    )


def file(path: Path) -> Callable[[], onnx.ModelProto]:
    """A model in a file."""
    return lambda: onnx.load(path)


def cases() -> list[Case]:
    """All of them."""
    both = ("cuda", "cuda:sm_90")
    found = [Case(f"chain of {n} f32", lambda n=n: chain(n), ("chain", n)) for n in (3, 10, 100)]
    for kind in (F32, F16):
        said = NAMES[kind]
        found += [
            Case(f"bias + Gelu {said}", lambda kind=kind: bias_gelu(kind), ("bias_gelu",)),
            Case(f"residual + LayerNorm {said}", lambda kind=kind: residual_norm(kind), ("residual_norm",)),
            Case(f"mask + softmax {said}", lambda kind=kind: mask_softmax(kind), ("mask_softmax",)),
            Case(f"RMSNorm + SwiGLU {said}", lambda kind=kind: norm_swiglu(kind), ("norm_swiglu",)),
        ]
    found += [
        Case("transpose + add f32", lambda: transposed(F32), ("transposed",)),
        Case("column sum f32", lambda: column_sum(F32), ("column_sum",)),
        Case("100 launches", lambda: launches(100)),
    ]
    for rows in (1, 16, 128, 4096):
        name, flops = f"product {rows}x4096x4096 f16", 2.0 * rows * 4096 * 4096
        found.append(Case(name, lambda rows=rows: product(rows, F16), ("product",), both, flops=flops))
    whole = 2.0 * 4096**3
    found += [
        Case("product 4096^3 bf16", lambda: product(4096, BF16), ("product",), both, flops=whole),
        Case(
            "product 4096^3 f16 + bias + Gelu", lambda: product(4096, F16, True), ("product", True), both, flops=whole
        ),
        Case("product 4096^3 f32 by tf32", lambda: product(4096, F32), ("product",), ("cuda+tf32",), flops=whole),
        Case(
            "product 4096^3 f32 by tf32, depth last",
            lambda: depth_last(4096, F32),
            ("depth_last",),
            ("cuda:sm_90+tf32",),
            flops=whole,
        ),
        Case("product 4096^3 f32 by tf32x3", lambda: product(4096, F32), ("product",), ("cuda+tf32x3",), flops=whole),
        Case("product 4096^3 f32", lambda: product(4096, F32), ("product",), flops=whole),
    ]
    for keys in (128, 1024, 4096, 16384):
        batch = max(1, 16384 // keys // 4)
        flops = 4.0 * batch * 16 * keys * keys * 64
        name = f"attention {batch}x16x{keys}x64 f16"
        found.append(
            Case(
                name,
                lambda batch=batch, keys=keys: attention(batch, 16, 16, keys, keys, 64),
                ("attention",),
                both,
                flops=flops,
            )
        )
    found += [
        Case(
            "attention 2x16x4096x64 f16 causal",
            lambda: attention(2, 16, 16, 4096, 4096, 64, True),
            ("attention", True),
            flops=4.0 * 2 * 16 * 4096 * 4096 * 64 / 2,
        ),
        Case(
            "attention 1x32/8x4096x128 f16 causal",
            lambda: attention(1, 32, 8, 4096, 4096, 128, True),
            ("attention", True),
            both,
            flops=4.0 * 32 * 4096 * 4096 * 128 / 2,
        ),
        Case(
            "attention 1x32/8x4096x128 f16",
            lambda: attention(1, 32, 8, 4096, 4096, 128),
            ("attention",),
            both,
            flops=4.0 * 32 * 4096 * 4096 * 128,
        ),
        Case("decoding 8x32/8x1 of 4096x128 f16", lambda: attention(8, 32, 8, 1, 4096, 128), ("attention",), both),
        Case("decoding 1x32/8x1 of 16384x128 f16", lambda: attention(1, 32, 8, 1, 16384, 128), ("attention",), both),
    ]
    return found


def models(folder: Path) -> list[Case]:
    """Whole models; those that torch exported are looked for in `folder`."""
    bert = [{"batch": b, "sequence": s} for b, s in ((1, 128), (8, 128), (32, 128), (8, 512))]
    found = [
        Case("bert-base f16", lambda: half.to_half(half.bert()), ("bert", "f16"), ("cuda", "cuda:sm_90"), bert),
        Case(
            "bert-base f16, no sizes said",
            lambda: half.to_half(half.bert()),
            ("bert", "f16"),
            ("cuda:sm_90",),
            bert,
            chosen=False,
        ),
        Case(
            "bert-base f16, chosen for 32 x 128",
            lambda: half.to_half(half.bert()),
            ("bert", "f16"),
            ("cuda:sm_90",),
            [bert[2], bert[1], bert[3]],
        ),
        Case("bert-base f32", half.bert, ("bert", "f32"), sizes=bert),
        Case("bert-base f32 by tf32", half.bert, ("bert", "tf32"), ("cuda+tf32",), sizes=bert),
        Case("resnet50 f32", vision.resnet50, ("resnet50",), sizes=[{"batch": 1}, {"batch": 8}]),
    ]
    for name, sizes in (
        ("gpt2-decode-dynamo", {"batch": 1, "past": 512}),
        ("llama-small-decode-dynamo", {"batch": 1, "past": 512}),
        ("llama-small-dynamo", {"batch": 1, "sequence": 128}),
    ):
        path = folder / name / "model.onnx"
        if path.exists():
            found.append(Case(name.removesuffix("-dynamo"), file(path), sizes=[sizes]))
    return found
