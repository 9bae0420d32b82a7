"""Attention: heads, masks, pasts, soft caps and lengths, of ONNX's op and of those that ONNX Runtime adds.

Batches are 3, queries 5 and keys 7 long, unless a case says otherwise: these become symbols, heads and features do not.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter
from igniter.verification.interp.arithmetic import InterpreterError
from tests.ops.single_node import check, compare, reference, refusal

Array = np.ndarray[Any, Any]
HEADS, SHARED, SIZE, WIDE = 4, 2, 8, 6
LEAST = np.finfo(np.float32).min
FIXED = {HEADS, SHARED, SIZE, WIDE, *(n * s for n in (1, SHARED, HEADS) for s in (SIZE, WIDE))}
MICROSOFT = {"domain": "com.microsoft"}


def normal(*dims: int, dtype: str = "float32", seed: int = 0) -> Array:
    return np.random.default_rng(seed).standard_normal(dims).astype(dtype)


def ones(*dims: int, seed: int = 5, least: int = 1) -> Array:
    """Zeros and ones, with a one in each row."""
    made = np.random.default_rng(seed).integers(0, 2, dims).astype(np.int32)
    made[..., 0] = least
    return made


def attention(
    attrs: dict[str, Any] | None = None,
    *extra: Array | None,
    heads: int = HEADS,
    shared: int = HEADS,
    batch: int = 3,
    queries: int = 5,
    keys: int = 7,
    joined: bool = False,
    dtype: str = "float32",
    opset: int = 23,
    outputs: int = 1,
    **options: Any,
) -> None:
    """Checks ONNX's op; `extra` are the operands from the mask on."""
    q = normal(batch, heads, queries, SIZE, dtype=dtype)
    k = normal(batch, shared, keys, SIZE, dtype=dtype, seed=1)
    v = normal(batch, shared, keys, WIDE, dtype=dtype, seed=2)
    attrs = dict(attrs or {})
    if joined:
        q, k, v = (np.swapaxes(a, 1, 2).reshape(batch, a.shape[2], -1) for a in (q, k, v))
        attrs |= {"q_num_heads": heads, "kv_num_heads": shared}
    options = {"tolerance": 1e-5, "fixed": FIXED} | options
    check("Attention", [q, k, v, *extra], attrs, opset=opset, outputs=outputs, **options)


# -- Attention --------------------------------------------------------------------------------------------------------

KINDS: list[dict[str, Any]] = [
    {},
    {"is_causal": 1},
    {"scale": 0.7},
    {"softcap": 1.5},
    {"softcap": 1.5, "is_causal": 1, "scale": 2.0},
    {"softmax_precision": 11},
]


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("shared", [HEADS, SHARED, 1])
@pytest.mark.parametrize("attrs", KINDS)
def test_attention(attrs: dict[str, Any], shared: int, joined: bool) -> None:
    attention(attrs, shared=shared, joined=joined)


@pytest.mark.parametrize(("queries", "keys"), [(1, 1), (1, 7), (7, 1), (13, 9), (5, 5)])
def test_attention_lengths(queries: int, keys: int) -> None:
    attention({"is_causal": 1}, queries=queries, keys=keys)
    attention(queries=queries, keys=keys, batch=1, joined=True)


def test_attention_in_double_precision() -> None:
    attention({"is_causal": 1}, dtype="float64", shared=SHARED, joined=True)


def test_attention_without_batch_is_refused() -> None:
    """As ONNX Runtime does."""
    nothing = [np.zeros((0, HEADS, 5, WIDE), np.float32)]
    with pytest.raises(InterpreterError, match="its query, key or value has no elements"):
        attention({"is_causal": 1}, batch=0, expected=nothing)


MASKS = [(5, 7), (1, 5, 7), (HEADS, 5, 7), (3, 1, 5, 7), (3, HEADS, 5, 7), (1, 1, 5, 7)]


@pytest.mark.parametrize("causal", [0, 1])
@pytest.mark.parametrize("dims", MASKS)
def test_masks(dims: tuple[int, ...], causal: int) -> None:
    attention({"is_causal": causal}, normal(*dims, seed=3))
    attention({"is_causal": causal, "softcap": 2.0}, ones(*dims).astype(bool), joined=True)


@pytest.mark.parametrize("row", [[LEAST] * 7, [-np.inf] * 7, [LEAST, *[-np.inf] * 6], [LEAST / 2] * 7])
@pytest.mark.parametrize("causal", [0, 1])
def test_a_query_that_sees_no_key_gives_zeros(row: list[float], causal: int) -> None:
    mask = np.zeros((5, 7), np.float32)
    mask[0] = mask[2] = row
    attention({"is_causal": causal, "qk_matmul_output_mode": 3}, mask, outputs=4)


def test_a_query_whose_mask_is_false_gives_zeros() -> None:
    mask = np.ones((3, 1, 5, 7), bool)
    mask[1, 0, 3] = False
    attention({}, mask)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("boolean", [False, True])
def test_16_bit_floats_are_rounded_once(dtype: str, boolean: bool) -> None:
    """Whatever is between the operands and the result is f32, and a query that sees no key gives zeros."""
    narrow = np.dtype(dtype) if dtype == "float16" else np.dtype(ml_dtypes.bfloat16)
    q, k, v = (normal(3, 2, n, SIZE, seed=n).astype(narrow) for n in (5, 7, 8))
    v = v[:, :, :7]
    seen = ones(5, 7).astype(bool)
    seen[2] = False
    bias = np.where(seen, 0, -np.inf).astype(narrow)
    with np.errstate(invalid="ignore"):
        exact = plain(*(a.astype(np.float64) for a in (q, k, v)), bias.astype(np.float64))
    exact[:, :, 2] = 0
    want, mask = exact.astype(narrow), seen if boolean else bias
    # One unit in the last place of either type, of results below 4.
    unit = {"float16": 2.0**-10, "bfloat16": 2.0**-7}[dtype]
    check("Attention", [q, k, v, mask], opset=23, fixed=FIXED, expected=[want], tolerance=2 * unit)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_masks_that_are_no_numbers(value: float) -> None:
    mask = np.zeros((5, 7), np.float32)
    mask[1, 2] = value
    attention({}, mask)
    attention({"is_causal": 1}, mask)


def test_short_and_narrow_masks() -> None:
    # ONNX Runtime has neither; keys beyond a mask are not seen.
    q, k, v = (normal(3, 2, n, SIZE, seed=n) for n in (5, 7, 7))
    mask = normal(5, 4, seed=3)
    options: dict[str, Any] = {"opset": 23, "tolerance": 1e-5, "fixed": FIXED}
    check("Attention", [q, k, v, mask], **options, expected=[plain(q, k[:, :, :4], v[:, :, :4], mask)])
    for seen in (np.ones((5, 4), bool), np.ones((1, 4), bool), np.ones(4, bool)):
        check("Attention", [q, k, v, seen], **options, expected=[plain(q, k[:, :, :4], v[:, :, :4])])


def plain(q: Array, k: Array, v: Array, bias: Any = 0.0) -> Array:
    """Attention in numpy."""
    scores = np.einsum("bhid,bhjd->bhij", q, k) / np.sqrt(q.shape[-1]) + bias
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return (weights / weights.sum(-1, keepdims=True) @ v).astype(q.dtype)


@pytest.mark.parametrize("joined", [False, True])
@pytest.mark.parametrize("past", [1, 9, 0])
@pytest.mark.parametrize("mode", [0, 1, 3])
def test_past_and_present(past: int, joined: bool, mode: int) -> None:
    before = [normal(3, SHARED, past, n, seed=n) for n in (SIZE, WIDE)]
    attrs = {"is_causal": 1, "softcap": 1.0, "qk_matmul_output_mode": mode}
    attention(attrs, None, *before, shared=SHARED, joined=joined, outputs=4)
    attention({}, normal(5, 7 + past), *before, shared=SHARED, joined=joined, outputs=3, dynamic=[False])


@pytest.mark.parametrize("joined", [False, True])
def test_present_without_a_past(joined: bool) -> None:
    attention({}, joined=joined, shared=SHARED, outputs=3)


def test_a_past_whose_present_is_no_output() -> None:
    # ONNX Runtime wants the present.
    q, k, v = normal(3, HEADS, 5, SIZE), normal(3, HEADS, 7, SIZE, seed=1), normal(3, HEADS, 7, WIDE, seed=2)
    past = [normal(3, HEADS, 9, n, seed=n) for n in (SIZE, WIDE)]
    wanted = plain(q, *(np.concatenate(pair, 2) for pair in zip(past, (k, v), strict=True)))
    check("Attention", [q, k, v, None, *past], opset=23, tolerance=1e-5, fixed=FIXED, expected=[wanted])


@pytest.mark.parametrize("causal", [0, 1])
def test_lengths_of_what_is_no_padding(causal: int) -> None:
    lengths = np.array([7, 5, 2], np.int64)
    attention({"is_causal": causal}, None, None, None, lengths, opset=24)
    attention({"is_causal": causal}, ones(5, 7).astype(bool), None, None, lengths - 2, opset=24, joined=True)


def test_what_attention_refuses() -> None:
    q = normal(3, HEADS, 5, SIZE)
    assert "3 query heads are not known" in refusal("Attention", [q[:, :3], q[:, :2], q[:, :2]], opset=23)
    assert "n4 query heads are not known" in refusal(
        "Attention", [q, q[:, :2], q[:, :2]], opset=23, dynamic=True, fixed=[SIZE]
    )
    flat = q.reshape(3, 5, -1)
    assert "number of heads" in refusal("Attention", [flat, flat, flat], opset=23)
    assert "32 features are not known to be" in refusal(
        "Attention", [flat, flat, flat], {"q_num_heads": 5, "kv_num_heads": 5}, opset=23
    )
    mask = normal(2, 1, 5, 5)
    assert "its mask: dim n2 is not known to be 1" in refusal(
        "Attention", [q, q, q, mask], opset=23, dynamic=True, fixed=FIXED - {2}
    )
    assert "its masked scores" in refusal(
        "Attention", [q, q, q], {"is_causal": 1, "qk_matmul_output_mode": 2}, opset=23, outputs=4
    )
    lengths = np.array([1, 1, 1], np.int64)
    assert "both a past and lengths" in refusal("Attention", [q, q, q, None, q, q, lengths], opset=24)


# -- MultiHeadAttention -----------------------------------------------------------------------------------------------


def multi_head(
    attrs: dict[str, Any] | None = None,
    *extra: Array | None,
    queries: int = 5,
    keys: int = 7,
    size: int = WIDE,
    batch: int = 3,
    **options: Any,
) -> None:
    """Checks the op; `extra` are the operands from the bias on, `size` that of a head of the values."""
    q, k = normal(batch, queries, HEADS * SIZE), normal(batch, keys, HEADS * SIZE, seed=1)
    v = normal(batch, keys, HEADS * size, seed=2)
    options = {"tolerance": 1e-5, "fixed": FIXED | {2 * HEADS * SIZE + HEADS * size}} | options
    check("MultiHeadAttention", [q, k, v, *extra], {"num_heads": HEADS, **(attrs or {})}, **MICROSOFT, **options)


ALL_BIASES = normal(HEADS * (2 * SIZE + WIDE), seed=4)
MULTI_HEAD_KINDS: list[dict[str, Any]] = [
    {},
    {"scale": 0.6},
    {"scale": -0.5},
    {"unidirectional": 1},
    {"unidirectional": 1, "mask_filter_value": -2.0},
]


@pytest.mark.parametrize("attrs", MULTI_HEAD_KINDS)
@pytest.mark.parametrize("bias", [None, ALL_BIASES])
@pytest.mark.parametrize(("queries", "keys"), [(5, 7), (1, 7), (7, 7), (7, 1), (1, 1)])
def test_multi_head(attrs: dict[str, Any], bias: Array | None, queries: int, keys: int) -> None:
    multi_head(attrs, bias, queries=queries, keys=keys)


@pytest.mark.parametrize("attrs", MULTI_HEAD_KINDS)
@pytest.mark.parametrize(
    "mask",
    [
        ones(3, 7),
        ones(3, 7) * 0,
        ones(3, 7) * -2 + 1,
        ones(3, 5, 7),
        np.array([7, 3, 1], np.int32),
        np.array([0, 9, 2], np.int32),
        np.array([7, 3, 1, 0, 5, 10, 15, 0, 7, 14, 21], np.int32),
    ],
)
def test_padding(attrs: dict[str, Any], mask: Array) -> None:
    # Where -10000 is added to all scores of a row, their last bits are lost, other ones in another order.
    options: dict[str, Any] = {"tolerance": 3e-3, "dynamic": dynamic_of(mask)}
    multi_head(attrs, None, mask, **options)
    multi_head(attrs, ALL_BIASES, mask, normal(1, HEADS, 5, 7), **options)


def dynamic_of(mask: Array | None) -> list[bool]:
    """A length that is a multiple of the batch is no symbol of its own."""
    return [False] if mask is not None and mask.ndim == 1 and len(mask) > 3 else [False, True]


@pytest.mark.parametrize("dims", [(1, 1, 5, 7), (3, 1, 5, 7), (1, HEADS, 5, 7), (3, HEADS, 5, 7)])
def test_score_biases(dims: tuple[int, ...]) -> None:
    bias = normal(*dims, seed=6)
    multi_head({}, None, None, bias)
    bias[:, :, 1], bias[:, :, 2], bias[:, :, 3, 1], bias[:, :, 4, 2] = -np.inf, LEAST, -np.inf, np.nan
    multi_head({"unidirectional": 1}, None, None, bias)


@pytest.mark.parametrize("past", [1, 10])
@pytest.mark.parametrize("attrs", MULTI_HEAD_KINDS)
def test_multi_head_past(attrs: dict[str, Any], past: int) -> None:
    before = [normal(3, HEADS, past, SIZE, seed=n) for n in (3, 4)]
    bias = normal(3 * HEADS * SIZE, seed=7)
    multi_head(attrs, bias, None, None, *before, queries=1, keys=1, size=SIZE, outputs=3)
    multi_head(attrs, None, None, None, *before, size=SIZE, outputs=3)
    multi_head(attrs, None, ones(3, 7 + past), None, *before, size=SIZE, outputs=3)
    multi_head(attrs, None, None, normal(1, 1, 5, 7 + past), *before, size=SIZE, outputs=3, dynamic=[False])


def test_multi_head_present_without_a_past() -> None:
    multi_head({}, ALL_BIASES, outputs=3)


def test_keys_of_another_attention() -> None:
    q, k, v = normal(3, 5, HEADS * SIZE), normal(3, HEADS, 7, SIZE), normal(3, HEADS, 7, SIZE, seed=1)
    for bias in (None, normal(3 * HEADS * SIZE)):
        check(
            "MultiHeadAttention", [q, k, v, bias], {"num_heads": HEADS}, **MICROSOFT, tolerance=1e-5,
            fixed=FIXED | {3 * HEADS * SIZE},
        )  # fmt: skip


def test_multi_head_of_nothing() -> None:
    multi_head({"unidirectional": 1}, batch=0)
    multi_head(queries=0)


def test_what_multi_head_refuses() -> None:
    q = normal(3, 5, 32)
    attrs = {"num_heads": HEADS}
    packed = normal(3, 5, HEADS, 3, SIZE)
    assert "packed" in refusal("MultiHeadAttention", [packed], attrs, **MICROSOFT)
    assert "packed" in refusal("MultiHeadAttention", [q, packed[:, :, :, :2].copy()], attrs, **MICROSOFT)
    length = np.array([1], np.int32)
    shared = [q, q, q, None, None, None, None, None, length]
    assert "share a buffer" in refusal("MultiHeadAttention", shared, attrs, **MICROSOFT)
    assert "mask, with dims [4]" in refusal("MultiHeadAttention", [q, q, q, None, ones(4)], attrs, **MICROSOFT)


# -- Attention of com.microsoft ---------------------------------------------------------------------------------------


def self_attention(attrs: dict[str, Any] | None = None, *extra: Array | None, length: int = 5, **options: Any) -> None:
    """Checks the op; `extra` are the operands from the mask on."""
    x, weights, bias = normal(3, length, 10), normal(10, 3 * HEADS * SIZE, seed=1), normal(3 * HEADS * SIZE, seed=2)
    options = {"tolerance": 2e-5, "fixed": FIXED | {10, 3 * HEADS * SIZE}} | options
    check("Attention", [x, weights, bias, *extra], {"num_heads": HEADS, **(attrs or {})}, **MICROSOFT, **options)


SELF_MASKS = [
    None,
    ones(3, 5),
    ones(3, 5, 5),
    ones(3, 1),
    ones(1, 1) * 0,
    np.array([5, 2, 1], np.int32),
    np.array([5, 4, 3, 0, 1, 2], np.int32),
    np.array([5, 2, 1, 0, 5, 10, 15, 0, 5, 10, 15], np.int32),
]


@pytest.mark.parametrize("attrs", MULTI_HEAD_KINDS)
@pytest.mark.parametrize("mask", SELF_MASKS)
def test_self_attention(attrs: dict[str, Any], mask: Array | None) -> None:
    self_attention(attrs, mask, dynamic=dynamic_of(mask))
    self_attention(attrs, mask, None, normal(1, HEADS, 5, 5), dynamic=dynamic_of(mask))


@pytest.mark.parametrize("length", [1, 5])
@pytest.mark.parametrize("past", [1, 9])
@pytest.mark.parametrize("attrs", MULTI_HEAD_KINDS)
def test_self_attention_past(attrs: dict[str, Any], past: int, length: int) -> None:
    before = normal(2, 3, HEADS, past, SIZE, seed=3)
    self_attention(attrs, None, before, length=length, outputs=2)
    self_attention(attrs, ones(3, past + length), before, length=length, outputs=2)


def test_self_attention_present_without_a_past() -> None:
    self_attention({}, outputs=2)


def test_self_attention_sizes() -> None:
    sizes = [HEADS * SIZE, HEADS * SIZE, HEADS * WIDE]
    x, weights, bias = normal(3, 5, 10), normal(10, sum(sizes), seed=1), normal(sum(sizes), seed=2)
    attrs = {"num_heads": HEADS, "qkv_hidden_sizes": sizes}
    check("Attention", [x, weights, bias], attrs, **MICROSOFT, tolerance=2e-5, fixed={10, sum(sizes)})


def test_what_self_attention_refuses() -> None:
    operands = [normal(3, 5, 10), normal(10, 96), normal(96)]
    assert "rotates" in refusal("Attention", operands, {"num_heads": 4, "do_rotary": 1}, **MICROSOFT)
    assert "32 features are not known to be" in refusal("Attention", operands, {"num_heads": 5}, **MICROSOFT)
    assert "[3, 1, 9, 9]" in refusal("Attention", [*operands, ones(3, 1, 9, 9)], {"num_heads": 4}, **MICROSOFT)


# -- GroupQueryAttention ----------------------------------------------------------------------------------------------


def grouped(
    attrs: dict[str, Any],
    lengths: list[int],
    total: int,
    *extra: Array | None,
    new: int = 5,
    past: int | None = None,
    shared: int = SHARED,
    packed: bool = False,
    size: int = 16,
    wanted: Any = None,
    **options: Any,
) -> None:
    """Checks the op; `lengths` are those of the batches with what is new, `extra` the operands from the cosines on."""
    batch = len(lengths)
    q, k, v = (normal(batch, new, n * size, seed=n + s) for s, n in enumerate((HEADS, shared, shared)))
    operands: list[Array | None] = [np.concatenate([q, k, v], 2), None, None] if packed else [q, k, v]
    cache = [None if past is None else normal(batch, shared, past, size, seed=s) for s in (8, 9)]
    given = [*operands, *cache, np.array(lengths, np.int32) - 1, np.array(total, np.int32), *extra]
    attrs = {"num_heads": HEADS, "kv_num_heads": shared, **attrs}
    fixed = {n * size for n in (HEADS, shared, HEADS + 2 * shared)} | {HEADS, shared, size, 8}
    options = {"tolerance": 1e-5, "fixed": fixed, "constant": [6], "outputs": 3} | options
    check("GroupQueryAttention", given, attrs, **MICROSOFT, **options)


GROUPED_KINDS: list[dict[str, Any]] = [
    {},
    {"scale": 0.6},
    {"softcap": 1.5},
    {"local_window_size": 3},
    {"local_window_size": 1},
    {"causal": 0},
]


@pytest.mark.parametrize("shared", [1, SHARED, HEADS])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("attrs", GROUPED_KINDS)
def test_prompts(attrs: dict[str, Any], packed: bool, shared: int) -> None:
    grouped(attrs, [5, 5, 5], 5, packed=packed, shared=shared)
    grouped(attrs, [5, 5, 5], 5, packed=packed, shared=shared, past=11)


@pytest.mark.parametrize("attrs", GROUPED_KINDS)
def test_decoding(attrs: dict[str, Any]) -> None:
    grouped(attrs, [7, 4, 2], 7, past=6, new=1)
    grouped(attrs, [7, 4, 2], 7, past=11, new=1)
    grouped(attrs, [9], 9, past=6, new=3)
    grouped(attrs, [9], 9, past=11, new=3)


def test_one_key() -> None:
    grouped({}, [1], 1, new=1)
    grouped({}, [1, 1, 1], 1, new=1, past=0)


@pytest.mark.parametrize("dims", [(1, 1), (3, 1), (1, HEADS), (3, HEADS)])
def test_grouped_score_biases(dims: tuple[int, int]) -> None:
    bias = normal(*dims, 5, 5, seed=3)
    grouped({"softcap": 1.0}, [5, 5, 5], 5, None, None, None, bias)
    grouped({}, [7, 4, 2], 7, None, None, None, normal(*dims, 1, 7), past=6, new=1)


@pytest.mark.parametrize("width", [8, 16])
@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("packed", [False, True])
def test_rotated_queries_and_keys(packed: bool, interleaved: int, width: int) -> None:
    attrs = {"do_rotary": 1, "rotary_interleaved": interleaved}
    tables = normal(13, width // 2 if width == 16 else 8, seed=1), normal(13, width // 2 if width == 16 else 8, seed=2)
    size = 16 if width == 16 else 32
    grouped(attrs, [5, 5, 5], 5, *tables, packed=packed, size=size)
    grouped(attrs, [7, 4, 2], 7, *tables, packed=packed, past=6, new=1, size=size)
    grouped(attrs, [9], 9, *tables, packed=packed, past=6, new=3, size=size)


@pytest.mark.slow
def test_a_total_that_is_the_length_of_a_mask() -> None:
    # As exporters have it: a symbol of its own, of which it is not known that it is that of the past and the new keys.
    kv, cache = ["b", "s", SHARED * 16], ["b", SHARED, "p", 16]
    named = {
        "q": ["b", "s", HEADS * 16],
        "k": kv,
        "v": kv,
        "pk": cache,
        "pv": cache,
        "lengths": ["b"],
        "mask": ["b", "t"],
    }
    codes = {"lengths": TensorProto.INT32, "mask": TensorProto.INT64}
    nodes = [
        helper.make_node("Shape", ["mask"], ["dims"]),
        helper.make_node("Gather", ["dims", "one"], ["length"]),
        helper.make_node("Cast", ["length"], ["total"], to=TensorProto.INT32),
        helper.make_node(
            "GroupQueryAttention", ["q", "k", "v", "pk", "pv", "lengths", "total"], ["y", "nk", "nv"],
            domain="com.microsoft", num_heads=HEADS, kv_num_heads=SHARED,
        ),
    ]  # fmt: skip
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info(n, codes.get(n, TensorProto.FLOAT), dims) for n, dims in named.items()],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in ("y", "nk", "nv")],
        [numpy_helper.from_array(np.array(1), "one")],
    )
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=9)
    options = igniter.CompileOptions(fusion_passes="form-fusion-regions{contractions=all singletons=all}")
    artifact = igniter.load(model).compile(options=options, verify=False)
    assert artifact.report["nodes_after"] == artifact.report["regions"]
    for batch, new, past in ((3, 1, 9), (1, 5, 9), (2, 5, 0)):
        sizes = {"b": batch, "s": new, "p": past, "t": new + past}
        feeds = {n: normal(*(sizes.get(d, d) for d in dims)) for n, dims in named.items() if n not in codes}
        feeds["lengths"] = np.full(batch, new + past - 1, np.int32)
        feeds["mask"] = np.ones((batch, new + past), np.int64)
        compare(artifact.session().run(None, feeds), reference(model, feeds), 1e-5)


@pytest.mark.parametrize("attrs", GROUPED_KINDS)
def test_a_prompt_that_is_padded(attrs: dict[str, Any]) -> None:
    grouped(attrs, [5, 3, 1], 5)
    grouped(attrs, [5, 3, 1], 5, past=11)
    tables = normal(13, 8, seed=1), normal(13, 8, seed=2)
    grouped({**attrs, "do_rotary": 1}, [5, 3, 1], 5, *tables, packed=True)


def test_what_grouped_attention_refuses() -> None:
    q, k = normal(3, 5, HEADS * 8), normal(3, 5, SHARED * 8)
    operands = [q, k, k, None, None, np.array([4, 4, 4], np.int32), np.array(5, np.int32)]
    attrs = {"num_heads": HEADS, "kv_num_heads": SHARED}

    def why(given: list[Array | None], known: list[int], **more: Any) -> str:
        return refusal("GroupQueryAttention", given, {**attrs, **more}, **MICROSOFT, constant=known, outputs=3)

    assert "total sequence length is known only at run time" in why(operands, [])
    assert "slides, and it has no past" in why(operands, [6], sliding_window_cache=1, local_window_size=2)
    cached = [*operands[:3], *(normal(3, SHARED, 7, 8) for _ in range(2)), *operands[5:]]
    assert "slides without one" in why(cached, [6], sliding_window_cache=1)
    assert "window is empty" in why(operands, [6], local_window_size=0)
    assert "its positions has dims" in why(
        [*operands, normal(9, 4), normal(9, 4), np.zeros((3, 1), np.int64)], [6], do_rotary=1
    )
    weights = [*operands, *[None] * 7, normal(8), normal(8)]
    assert "its keys are normalised" in why(weights, [6])
    scales, forms = [*[None] * 5, *[np.ones(1, np.float32)] * 2], {f"{k}_quant_type": "PER_TENSOR" for k in "kv"}

    def scaled(size: int) -> list[Array | None]:
        codes = [np.zeros((3, SHARED, 7, size), np.int8)] * 2
        return [*operands[:3], *codes, *operands[5:], *scales]

    assert "hold no numbers of 4 bits" in why(scaled(4), [6], **forms, kv_cache_bit_width=4)
    assert "its keys or values alone" in why(scaled(8), [6], k_quant_type="PER_TENSOR")
    assert "which is not quantised" in why([*cached, *scales], [6])
    assert "not known to match pairs" in why([*operands, normal(9, 8), normal(9, 8)], [6], do_rotary=1)


# -- RotaryEmbedding --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interleaved", [0, 1])
@pytest.mark.parametrize("turned", [0, 4, SIZE])
@pytest.mark.parametrize("joined", [False, True])
def test_rotary_embedding(joined: bool, turned: int, interleaved: int) -> None:
    x, pairs = normal(3, 5, HEADS * SIZE) if joined else normal(3, HEADS, 5, SIZE), (turned or SIZE) // 2
    attrs = {"interleaved": interleaved, "rotary_embedding_dim": turned} | ({"num_heads": HEADS} if joined else {})
    positions = np.random.default_rng(0).integers(0, 13, (3, 5))
    options: dict[str, Any] = {"tolerance": 1e-6, "fixed": FIXED | {pairs}}
    tables = normal(13, pairs, seed=1), normal(13, pairs, seed=2)
    check("RotaryEmbedding", [x, *tables, positions], attrs, opset=23, **options)
    check("RotaryEmbedding", [x, normal(3, 5, pairs, seed=1), normal(3, 5, pairs, seed=2)], attrs, opset=23, **options)
    if turned and not joined:
        attrs["num_heads"] = HEADS
    for where in (positions, np.array([6])):
        check("RotaryEmbedding", [x, where, *tables], attrs, **MICROSOFT, **options)


def test_rotary_embedding_of_heads_that_are_not_counted() -> None:
    # They have as many features as the tables have cosines and sines.
    x, tables = normal(3, 5, HEADS * SIZE), (normal(13, SIZE // 2, seed=1), normal(13, SIZE // 2, seed=2))
    check("RotaryEmbedding", [x, np.array([2]), *tables], {}, **MICROSOFT, tolerance=1e-6, fixed=FIXED)


def test_what_rotary_embedding_refuses() -> None:
    x, tables = normal(3, 5, HEADS * SIZE), [normal(3, 5, SIZE // 2), normal(3, 5, SIZE // 2)]
    assert "number of heads" in refusal("RotaryEmbedding", [x, *tables], {}, opset=23)
    assert "not known to match 8 pairs" in refusal("RotaryEmbedding", [x, *tables], {"num_heads": 2}, opset=23)
    packed = [x, np.array([0]), tables[0][0], tables[1][0]]
    assert "packed" in refusal("RotaryEmbedding", packed, {"num_heads": HEADS, "is_packed_batching": 1}, **MICROSOFT)


@pytest.mark.parametrize("plain", [True, False])
def test_values_near_the_largest_float(plain: bool) -> None:
    """The division by the sum of the weights may come after the values are weighed, but must not be too late."""
    nodes = [
        onnx.helper.make_node("MatMul", ["q", "k"], ["s"]),
        onnx.helper.make_node("Mul", ["s", "c"], ["t"]),
        onnx.helper.make_node("Softmax", ["t"], ["p"], axis=-1),
        onnx.helper.make_node("MatMul", ["p", "v"], ["y"]),
    ]
    dims = {"q": ["b", 4, "m", 16], "k": ["b", 4, 16, "n"], "v": ["b", 4, "n", 16]}
    inputs = [onnx.helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, d) for n, d in dims.items()]
    scale = onnx.numpy_helper.from_array(np.float32(0.25), "c")
    graph = onnx.helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name="y")], [scale])
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    rng = np.random.default_rng(0)
    q, k = rng.normal(size=(1, 4, 8, 16)).astype(np.float32), rng.normal(size=(1, 4, 16, 64)).astype(np.float32)
    v = (rng.uniform(size=(1, 4, 64, 16)) * 3e38).astype(np.float32)
    passes = "cpu-fusion" if plain else "form-fusion-regions{contractions=all singletons=all}"
    options = igniter.CompileOptions(fusion_passes=passes)
    (got,) = igniter.compile(model, options=options, verify=False).session().run(None, {"q": q, "k": k, "v": v})
    scores = np.einsum("bhmd,bhdn->bhmn", q.astype(np.float64), k) * 0.25
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    np.testing.assert_allclose(got, weights / weights.sum(-1, keepdims=True) @ v.astype(np.float64), rtol=1e-5)
