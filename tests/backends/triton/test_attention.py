"""Attention in one launch, in Triton's interpreter beside ONNX Runtime: sizes, masks, rows that see no key, infinities,
heads that share keys, types; and what its registers come to."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from igniter.backends.triton.compiler import compile_source, resources_of, signature_of
from igniter.backends.triton.python_source import print_kernel
from igniter.dialects import triton as tt
from igniter.dialects.loop import LaunchOp
from tests.backends.triton.programs import check, func_of, kernels_of, lowered, model, values

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

FLOAT, HALF, BOOL = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BOOL
TYPES = {FLOAT: np.float32, HALF: np.float16}


def heads(
    kind: int = FLOAT, mask: str = "", q: Any = "s", k: Any = "s", head: int = 16, features: int = 16, count: int = 2
) -> onnx.ModelProto:
    """Attention as exporters write it, over [batch, sequence, heads, features]; `mask` is added, chosen by, or none."""
    node = helper.make_node
    inputs: dict[str, tuple[int, list[Any]]] = {
        "q": (kind, ["b", q, count, head]),
        "k": (kind, ["b", k, count, head]),
        "v": (kind, ["b", k, count, features]),
    }
    masks = {"added": ("m", kind, ["b", 1, 1, k]), "chosen": ("c", BOOL, [q, k])}
    if mask:
        name, of, dims = masks[mask]
        inputs[name] = (of, dims)
    nodes = [
        node("Transpose", ["q"], ["qt"], perm=[0, 2, 1, 3]),
        node("Transpose", ["k"], ["kt"], perm=[0, 2, 3, 1]),
        node("Transpose", ["v"], ["vt"], perm=[0, 2, 1, 3]),
        node("MatMul", ["qt", "kt"], ["raw"]),
        node("Mul", ["raw", "scale"], ["scaled"]),
        *([node("Add", ["scaled", "m"], ["s"])] if mask == "added" else []),
        *([node("Where", ["c", "scaled", "none"], ["s"])] if mask == "chosen" else []),
        node("Softmax", ["s" if mask else "scaled"], ["p"], axis=-1),
        node("MatMul", ["p", "vt"], ["o"]),
        node("Transpose", ["o"], ["y"], perm=[0, 2, 1, 3]),
    ]
    scalars = {"scale": np.array(head**-0.5, TYPES[kind]), "none": np.array(-np.inf, TYPES[kind])}
    return model(nodes, inputs, scalars if mask == "chosen" else {"scale": scalars["scale"]})


def given(
    b: int, q: int, k: int, kind: int = FLOAT, head: int = 16, features: int = 16, count: int = 2
) -> dict[str, Any]:
    of = TYPES[kind]
    return {
        "q": values(of, b, q, count, head),
        "k": values(of, b, k, count, head, seed=1),
        "v": values(of, b, k, count, features, seed=2),
    }


@pytest.mark.slow
def test_any_number_of_rows_and_keys() -> None:
    sizes = [(1, 1, 1), (2, 17, 33), (1, 5, 100), (1, 40, 3), (0, 4, 4), (2, 0, 5), (1, 3, 0)]
    check(heads(q="s", k="t"), *(given(*s) for s in sizes), launches=1, rtol=1e-5)


def test_heads_of_odd_sizes() -> None:
    """Lanes behind the end of a head's depth, and of the features."""
    found = heads(q="s", k="t", head=13, features=21)
    check(found, *(given(1, q, k, head=13, features=21) for q, k in ((7, 35), (20, 1))), launches=1, rtol=1e-5)


def test_keys_that_a_block_has_wholly() -> None:
    for k in 9, 32:
        check(heads(q="s", k=k), given(2, 11, k), given(1, 1, k), launches=1, rtol=1e-5)


@pytest.mark.slow
def test_masks_that_are_added() -> None:
    runs: list[dict[str, Any]] = []
    for q, least in (20, -np.inf), (70, np.float32(-3.4e38)), (5, np.float32(-10000)):
        mask = np.where(np.random.default_rng(q).random((2, 1, 1, q)) < 0.5, least, 0).astype(np.float32)
        mask[:, :, :, 0] = 0
        runs.append({**given(2, q, q), "m": mask})
    # The keys of the first blocks are none that are seen.
    late = np.full((1, 1, 1, 100), -np.inf, np.float32)
    late[..., 97:] = 1
    runs.append({**given(1, 100, 100), "m": late})
    check(heads(mask="added"), *runs, launches=1, rtol=1e-5)


def test_rows_that_see_no_key_and_infinite_scores() -> None:
    """NaN, as without blocks; rows beside them are as they were."""
    causal = np.tril(np.ones((50, 50), bool))
    causal[7] = False
    check(heads(mask="chosen"), {**given(1, 50, 50), "c": causal}, launches=1, rtol=1e-5)
    feeds = given(1, 40, 40)
    feeds["k"][0, 36, 0, 0] = np.inf
    feeds["k"][0, 2, 1, 0] = np.nan
    feeds["v"][0, 5, 0, 3] = np.inf
    feeds["q"] = np.abs(feeds["q"])
    check(heads(), feeds, launches=1, rtol=1e-5)


def test_scores_far_from_zero() -> None:
    """A maximum that grows by thousands, and one that is so low that exp would not end well without it."""
    feeds = given(1, 20, 80)
    feeds["k"] *= np.linspace(0, 400, 80, dtype=np.float32)[None, :, None, None]
    low = given(1, 20, 80)
    low["q"][:] = 30
    low["k"][:] = -30 - np.abs(low["k"])
    check(heads(q="s", k="t"), feeds, low, launches=1, rtol=1e-4)


def test_halves() -> None:
    mask = np.zeros((2, 1, 1, 40), np.float16)
    mask[1, ..., 25:] = -np.inf
    feeds = {**given(2, 40, 40, HALF), "m": mask}
    # ONNX Runtime rounds scores and weights between its nodes; here the weights of a row are rounded before they are
    # scaled, which is as near.
    check(heads(HALF, "added"), feeds, launches=1, rtol=4e-3)
    (kernel,) = kernels_of(lowered(heads(HALF, "added", head=64, features=64)))
    dots = [op for op in kernel.walk() if isinstance(op, tt.DotOp)]
    assert len(dots) == 4, "two loops with two products each: for full blocks of keys, and for a partial one"
    assert {str(tt.element_type(d.a.type)) for d in dots} == {"f16"}


@pytest.mark.parametrize("kind", [HALF, TensorProto.BFLOAT16], ids=["f16", "bf16"])
def test_the_op_of_halves_multiplies_halves(kind: int) -> None:
    """`Attention` keeps its weights in f32, and a product of f32 goes without tensor cores, in 30 times the time."""
    dims = [2, 4, 40, 64]
    nodes = [helper.make_node("Attention", ["q", "k", "v"], ["y"])]
    made = model(nodes, {name: (kind, list(dims)) for name in "qkv"}, opset=23)
    (kernel,) = kernels_of(lowered(made))
    dots = [op for op in kernel.walk() if isinstance(op, tt.DotOp)]
    wanted = "f16" if kind == HALF else "bf16"
    # Two products for each loop over keys: whole blocks, and the partial one.
    assert len(dots) in (2, 4)
    assert {(str(tt.element_type(d.a.type)), str(tt.element_type(d.b.type))) for d in dots} == {(wanted, wanted)}
    if kind == HALF:
        check(made, {name: values(np.float16, *dims, seed=k) for k, name in enumerate("qkv")}, launches=1, rtol=4e-3)


def grouped(kind: int = FLOAT) -> onnx.ModelProto:
    """Four heads of queries for each head of keys, by repeating these, and a causal mask that is made of positions."""
    node = helper.make_node
    nodes = [
        node("Unsqueeze", ["k", "two"], ["k5"]),
        node("Expand", ["k5", "wide"], ["ke"]),
        node("Reshape", ["ke", "shape"], ["kr"]),
        node("Unsqueeze", ["v", "two"], ["v5"]),
        node("Expand", ["v5", "wide"], ["ve"]),
        node("Reshape", ["ve", "shape"], ["vr"]),
        node("Transpose", ["kr"], ["kt"], perm=[0, 1, 3, 2]),
        node("MatMul", ["q", "kt"], ["raw"]),
        node("Mul", ["raw", "scale"], ["scaled"]),
        node("Where", ["c", "scaled", "none"], ["s"]),
        node("Softmax", ["s"], ["p"], axis=-1),
        node("MatMul", ["p", "vr"], ["y"]),
    ]
    of = TYPES[kind]
    weights = {
        "two": np.array([2], np.int64),
        "wide": np.array([1, 1, 4, 1, 1], np.int64),
        "shape": np.array([0, 8, -1, 16], np.int64),
        "scale": np.array(0.25, of),
        "none": np.array(np.finfo(of).min, of),
    }
    inputs: dict[str, tuple[int, list[Any]]] = {
        "q": (kind, ["b", 8, "s", 16]),
        "k": (kind, ["b", 2, "t", 16]),
        "v": (kind, ["b", 2, "t", 16]),
        "c": (BOOL, ["s", "t"]),
    }
    return model(nodes, inputs, weights)


@pytest.mark.slow
def test_heads_that_share_keys() -> None:
    runs = [
        {
            "q": values(np.float32, b, 8, s, 16),
            "k": values(np.float32, b, 2, t, 16, seed=1),
            "v": values(np.float32, b, 2, t, 16, seed=2),
            "c": np.tril(np.ones((s, t), bool), t - s),
        }
        for b, s, t in ((1, 9, 9), (2, 1, 40), (1, 20, 37))
    ]
    check(grouped(), *runs, launches=1, rtol=1e-5)


@pytest.mark.parametrize("kind", [FLOAT, pytest.param(HALF, marks=pytest.mark.full)])
def test_a_step_of_decoding_has_no_rows(kind: int) -> None:
    """One query for each head: blocks are of keys and features. Programs share the keys, and a second kernel joins."""
    found = heads(kind, "added", q=1, k="t", head=24, features=40)
    runs: list[dict[str, Any]] = []
    for b, t in (2, 1), (1, 300), (1, 530), (3, 77):
        mask = np.where(np.random.default_rng(t).random((b, 1, 1, t)) < 0.5, -np.inf, 0).astype(TYPES[kind])
        mask[..., t // 2] = 0
        runs.append({**given(b, 1, t, kind, head=24, features=40), "m": mask})
    check(found, *runs, launches=2, rtol=1e-5 if kind == FLOAT else 4e-3)
    check(heads(q=1, k="t"), given(0, 1, 4), given(2, 1, 0), launches=2)
    check(heads(q=1, k=300), given(2, 1, 300), launches=1, rtol=1e-5)


@pytest.mark.full
def test_parts_without_a_key_to_be_seen_and_more_parts_than_a_block_has() -> None:
    """The keys of whole parts are masked, or make NaN; 19 parts are two blocks of them."""
    found = heads(mask="added", q=1, k="t", count=1)
    length = 18 * 512 + 5
    late = np.full((1, 1, 1, length), -np.inf, np.float32)
    late[..., 3000:3100] = 0
    none = np.full((1, 1, 1, 600), -np.inf, np.float32)
    infinite = given(1, 1, 600, count=1)
    infinite["k"][0, 590, 0, 0] = np.inf
    runs = [
        {**given(1, 1, length, count=1), "m": late},
        {**given(1, 1, 600, count=1), "m": none},
        {**infinite, "m": np.zeros((1, 1, 1, 600), np.float32)},
    ]
    check(found, *runs, launches=2, rtol=1e-5)


def test_what_follows_a_step_of_decoding_is_computed_where_parts_are_joined() -> None:
    found = heads(q=1, k="t", head=16, features=16)
    found.graph.node.append(helper.make_node("Add", ["y", "q"], ["r"]))
    found.graph.output[0].name = "r"
    check(found, given(2, 1, 700), launches=2, rtol=1e-5)


@pytest.mark.slow
def test_a_step_of_decoding_with_heads_that_share_keys() -> None:
    """The queries of a head of keys are its rows, fewer than a block has."""
    found = grouped()
    for value, dims in (("q", ("b", 8, 1, 16)), ("c", (1, "t"))):
        (info,) = [v for v in found.graph.input if v.name == value]
        info.CopyFrom(helper.make_tensor_value_info(value, info.type.tensor_type.elem_type, dims))
    runs = [
        {
            "q": values(np.float32, b, 8, 1, 16),
            "k": values(np.float32, b, 2, t, 16, seed=1),
            "v": values(np.float32, b, 2, t, 16, seed=2),
            "c": np.random.default_rng(t).random((1, t)) < 0.7,
        }
        for b, t in ((1, 1), (2, 130), (1, 1030))
    ]
    check(found, *runs, launches=2, rtol=1e-5)


def test_what_follows_is_in_the_launch() -> None:
    found = heads()
    found.graph.node.append(helper.make_node("Add", ["y", "q"], ["r"]))
    found.graph.output[0].name = "r"
    check(found, given(2, 19, 19), launches=1, rtol=1e-5)


@pytest.mark.slow
def test_weights_that_somebody_else_reads_are_in_memory() -> None:
    found = heads()
    found.graph.output.append(helper.make_empty_tensor_value_info("p"))
    check(found, given(2, 19, 19), rtol=1e-5)
    assert len(kernels_of(lowered(found))) > 1


def test_a_division_by_the_sum_of_the_row() -> None:
    """A softmax that is written out."""
    node = helper.make_node
    nodes = [
        node("MatMul", ["q", "k"], ["s"]),
        node("ReduceMax", ["s"], ["m"], keepdims=1, axes=[-1]),
        node("Sub", ["s", "m"], ["d"]),
        node("Exp", ["d"], ["e"]),
        node("ReduceSum", ["e", "last"], ["l"], keepdims=1),
        node("Div", ["e", "l"], ["p"]),
        node("MatMul", ["p", "v"], ["y"]),
    ]
    inputs: dict[str, tuple[int, list[Any]]] = {
        "q": (FLOAT, ["b", "s", 16]),
        "k": (FLOAT, ["b", 16, "t"]),
        "v": (FLOAT, ["b", "t", 24]),
    }
    found = model(nodes, inputs, {"last": np.array([-1], np.int64)}, opset=13)
    runs = [
        {
            "q": values(np.float32, b, s, 16),
            "k": values(np.float32, b, 16, t, seed=1),
            "v": values(np.float32, b, t, 24, seed=2),
        }
        for b, s, t in ((2, 18, 45), (1, 1, 7))
    ]
    check(found, *runs, launches=1, rtol=1e-5)


SHARED = {80: 163, 90: 227, 100: 227, 120: 99}
"""The KiB of shared memory of a block, by the GPU."""


@pytest.mark.slow
@pytest.mark.parametrize("arch", [80, 90, 100, 120])
@pytest.mark.parametrize("kind, head", [(HALF, 64), (HALF, 128), (FLOAT, 64), (FLOAT, 128)])
def test_no_kernel_spills(arch: int, kind: int, head: int) -> None:
    module = lowered(heads(kind, "added", head=head, features=head, count=12), f"cuda:sm_{arch}")
    (kernel,) = kernels_of(module)
    (launch,) = [op for op in func_of(module).walk() if isinstance(op, LaunchOp)]
    compiled = compile_source(print_kernel(kernel), signature_of(kernel), launch.warps, launch.stages, arch)
    found = resources_of(compiled, arch)
    assert found.spills == 0
    assert not found.serialized
    # `cuda` is the code for sm_80, and runs on GPUs with less shared memory.
    assert compiled.shared <= (SHARED[arch] if arch > 80 else 99) << 10
    assert kind != HALF or "mma" in compiled.ptx


WRITTEN_OUT = [
    helper.make_node("ReduceMax", ["s", "last"], ["m"], keepdims=1),
    helper.make_node("Sub", ["s", "m"], ["d"]),
    helper.make_node("Exp", ["d"], ["e"]),
    helper.make_node("ReduceSum", ["e", "last"], ["l"], keepdims=1),
    helper.make_node("Div", ["e", "l"], ["p"]),
]
SCORES, VALUES = helper.make_node("MatMul", ["q", "k"], ["s"]), helper.make_node("MatMul", ["p", "v"], ["y"])


def written_out(
    nodes: list[Any], rows: Any = "s", outputs: tuple[str, ...] = (), **inputs: tuple[int, list[Any]]
) -> onnx.ModelProto:
    """An attention in single nodes, whose inputs have no heads."""
    given: dict[str, tuple[int, list[Any]]] = {
        "q": (FLOAT, ["b", rows, 16]),
        "k": (FLOAT, ["b", 16, "t"]),
        "v": (FLOAT, ["b", "t", 24]),
        **inputs,
    }
    weights = {
        "last": np.array([-1], np.int64),
        "c": np.float32(8),
        "half": np.float32(0.5),
        "inf": np.float32(-np.inf),
    }
    found = model(nodes, given, weights)
    found.graph.output.extend(helper.make_empty_tensor_value_info(name) for name in outputs)
    return found


def fed(b: int = 1, s: int = 18, t: int = 45) -> dict[str, Any]:
    shapes = {"q": (b, s, 16), "k": (b, 16, t), "v": (b, t, 24)}
    return {name: values(np.float32, *shape, seed=k) for k, (name, shape) in enumerate(shapes.items())}


def test_maxima_and_sums_that_somebody_else_reads_are_in_memory() -> None:
    check(written_out([SCORES, *WRITTEN_OUT, VALUES], outputs=("m", "l")), fed(), launches=1, rtol=1e-5)
    check(written_out([SCORES, *WRITTEN_OUT, VALUES], 1, ("m", "l")), fed(2, 1, 600), launches=2, rtol=1e-5)


def test_a_maximum_of_other_scores_is_none() -> None:
    """What is subtracted is a multiple of it: exponentials of the scores less it would be too large, or 0."""
    nodes = [
        SCORES,
        WRITTEN_OUT[0],
        helper.make_node("Mul", ["s", "c"], ["sc"]),
        helper.make_node("Mul", ["m", "c"], ["mc"]),
        helper.make_node("Sub", ["sc", "mc"], ["d"]),
        *WRITTEN_OUT[2:],
        VALUES,
    ]
    check(written_out(nodes), fed(), rtol=1e-5)


@pytest.mark.parametrize(
    "between",
    [
        [
            helper.make_node("Sub", ["s", "m"], ["d0"]),
            helper.make_node("Sub", ["d0", "half"], ["d"]),
        ],
        [
            helper.make_node("Mul", ["m", "half"], ["low"]),
            helper.make_node("Greater", ["s", "low"], ["above"]),
            helper.make_node("Where", ["above", "s", "inf"], ["s2"]),
            helper.make_node("Sub", ["s2", "m"], ["d"]),
        ],
    ],
    ids=["shifted", "near the maximum"],
)
def test_scores_that_hang_on_the_maximum_are_no_attention(between: list[Any]) -> None:
    nodes = [SCORES, WRITTEN_OUT[0], *between, *WRITTEN_OUT[2:], VALUES]
    check(written_out(nodes), fed(), rtol=1e-5)


@pytest.mark.parametrize("width", [24, 20])
def test_what_reads_sums_in_front_of_the_values(width: int) -> None:
    """It may be in the launch, along its features, or not."""
    nodes = [SCORES, *WRITTEN_OUT, helper.make_node("Add", ["z", "l"], ["w"]), VALUES]
    found = written_out(nodes, outputs=("w",), z=(FLOAT, ["b", "s", width]))
    feeds = fed()
    check(found, {**feeds, "z": values(np.float32, 1, 18, width, seed=5)}, rtol=1e-5)
