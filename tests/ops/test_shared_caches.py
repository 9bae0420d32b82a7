"""Caches that a caller passes as past and present in one buffer, as onnxruntime-genai does: rows are written in place.

The graph is that of its builder: packed operands, rotary embeddings, lengths from a mask, `total_sequence_length` from
the shape of the mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter

Array = np.ndarray[Any, Any]
HEADS, SHARED, SIZE, CAPACITY = 4, 2, 16, 64
TYPES = {TensorProto.FLOAT: np.float32, TensorProto.FLOAT16: np.float16}
TOLERANCES = {TensorProto.FLOAT: 2e-6, TensorProto.FLOAT16: 4e-3}


def decoder(kind: int = TensorProto.FLOAT, layers: int = 1, **attributes: Any) -> onnx.ModelProto:
    """Attention of some layers on the same packed operands, with the dims that the builder writes."""
    angles = np.arange(CAPACITY)[:, None] / 100 ** (np.arange(SIZE // 2) / SIZE)
    weights = {"cos": np.cos(angles).astype(TYPES[kind]), "sin": np.sin(angles).astype(TYPES[kind])}
    weights |= {"one": np.array([1]), "axis": np.array(1)}
    nodes = [
        helper.make_node("ReduceSum", ["mask", "one"], ["sum"], keepdims=0),
        helper.make_node("Sub", ["sum", "one"], ["last"]),
        helper.make_node("Cast", ["last"], ["lengths"], to=TensorProto.INT32),
        helper.make_node("Shape", ["mask"], ["dims"]),
        helper.make_node("Gather", ["dims", "axis"], ["count"]),
        helper.make_node("Cast", ["count"], ["total"], to=TensorProto.INT32),
    ]
    info = helper.make_tensor_value_info
    inputs = [info("qkv", kind, ["batch", "new", (HEADS + 2 * SHARED) * SIZE])]
    inputs.append(info("mask", TensorProto.INT64, ["batch", "total_length"]))
    outputs: list[onnx.ValueInfoProto] = []
    for k in range(layers):
        caches = [f"past_key{k}", f"past_value{k}", f"present_key{k}", f"present_value{k}"]
        nodes.append(
            helper.make_node(
                "GroupQueryAttention",
                ["qkv", "", "", *caches[:2], "lengths", "total", "cos", "sin"],
                [f"y{k}", *caches[2:]],
                domain="com.microsoft",
                **{"num_heads": HEADS, "kv_num_heads": SHARED, "do_rotary": 1, **attributes},
            )
        )
        inputs += [info(name, kind, ["batch", SHARED, "past", "kv_cache_dim"]) for name in caches[:2]]
        outputs.append(info(f"y{k}", kind, ["batch", "new", HEADS * SIZE]))
        outputs += [info(name, kind, ["batch", SHARED, "total_length", "kv_cache_dim"]) for name in caches[2:]]
    initializers = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "decoder", inputs, outputs, initializers)
    imports = [helper.make_opsetid("", 22), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=10)


@cache
def artifact(kind: int, layers: int, attributes: tuple[tuple[str, Any], ...]) -> igniter.Artifact:
    return igniter.load(decoder(kind, layers, **dict(attributes))).compile(verify=False)


def feeds(
    lengths: Sequence[int], new: int, kind: int = TensorProto.FLOAT, layers: int = 1, seed: int = 0
) -> dict[str, Array]:
    """Inputs; `lengths` count the keys of each batch element, with the new ones. A cache holds NaN behind its old keys,
    as memory that was never written may."""
    rng, batch = np.random.default_rng(seed), len(lengths)
    found: dict[str, Array] = {
        "qkv": rng.standard_normal((batch, new, (HEADS + 2 * SHARED) * SIZE)).astype(TYPES[kind]),
        "mask": (np.arange(max(lengths)) < np.array(lengths)[:, None]).astype(np.int64),
    }
    for name in [f"past_{part}{k}" for k in range(layers) for part in ("key", "value")]:
        found[name] = rng.standard_normal((batch, SHARED, CAPACITY, SIZE)).astype(TYPES[kind])
        for b, length in enumerate(lengths):
            found[name][b, :, max(0, length - new) :] = np.nan
    return found


def in_place(session: Any, given: dict[str, Array]) -> dict[str, Array]:
    """Runs a session with one buffer for each past and present; returns the outputs."""
    import onnxruntime as ort

    values: dict[str, Any] = {name: ort.OrtValue.ortvalue_from_numpy(array.copy()) for name, array in given.items()}
    binding = session.io_binding()
    for name, value in values.items():
        binding.bind_ortvalue_input(name, value)
    names = [output.name for output in session.get_outputs()]
    for name in names:
        if name.startswith("y"):
            binding.bind_output(name)
        else:
            binding.bind_ortvalue_output(name, values[name.replace("present", "past")])
    session.run_with_iobinding(binding)
    return {name: array.copy() for name, array in zip(names, binding.copy_outputs_to_cpu(), strict=True)}


def reference(model: onnx.ModelProto, given: dict[str, Array]) -> dict[str, Array]:
    import onnxruntime as ort

    session: Any = ort.InferenceSession(model.SerializeToString())
    zeros = {name: np.where(np.isnan(array), 0, array).astype(array.dtype) for name, array in given.items()}
    return dict(zip([o.name for o in session.get_outputs()], session.run(None, zeros), strict=True))


def compare(found: dict[str, Array], wanted: dict[str, Array], lengths: Sequence[int], kind: int, new: int) -> None:
    """Compares outputs and the rows of caches up to the lengths; all rows behind the new ones hold NaN as before."""
    for name, theirs in wanted.items():
        mine = found[name]
        assert mine.shape == theirs.shape
        for b, length in enumerate(lengths):
            end = max(length, new)
            ours, expected = (a[b] if name.startswith("y") else a[b, :, :end] for a in (mine, theirs))
            np.testing.assert_allclose(
                ours.astype(np.float64), expected.astype(np.float64), rtol=TOLERANCES[kind], atol=TOLERANCES[kind]
            )
            if not name.startswith("y"):
                assert np.isnan(mine[b, :, end:]).all(), "a row behind the new ones was written"


CASES = [((7,), 1), ((40, 17, 1), 1), ((9,), 3), ((33,), 33), ((5, 5), 5), ((5, 3, 1), 5), ((64,), 2)]
FORMS: list[dict[str, Any]] = [{}, {"local_window_size": 5}, {"softcap": 1.5}, {"rotary_interleaved": 1, "scale": 0.3}]


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({}, TensorProto.FLOAT),
        *(pytest.param(form, TensorProto.FLOAT, marks=pytest.mark.full) for form in FORMS[1:]),
        ({}, TensorProto.FLOAT16),
    ],
)
def test_rows_are_written_in_place(attributes: dict[str, Any], kind: int, threads: int) -> None:
    made, model = artifact(kind, 1, tuple(attributes.items())), decoder(kind, **attributes)
    assert made.report["nodes_after"] == 1
    session: Any = made.session(intra_op_num_threads=threads)
    for lengths, new in CASES:
        given = feeds(lengths, new, kind)
        wanted = reference(model, given)
        compare(in_place(session, given), wanted, lengths, kind, new)


@pytest.mark.slow
def test_buffers_of_their_own() -> None:
    """A caller without a shared buffer gets zeros behind the rows, as from ONNX Runtime."""
    session: Any = artifact(TensorProto.FLOAT, 1, ()).session()
    for lengths, new in CASES:
        given = feeds(lengths, new)
        wanted = reference(decoder(), given)
        for mine, theirs in zip(session.run(None, given), wanted.values(), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=2e-6, atol=2e-6)


def test_a_past_without_room_is_copied() -> None:
    """A past that ends before the new keys is no buffer of the present."""
    session: Any = artifact(TensorProto.FLOAT, 1, ()).session()
    for past, new in ((6, 1), (0, 5), (3, 2)):
        given = feeds((past + new,), new)
        given = {name: a[:, :, :past] if name.startswith("past") else a for name, a in given.items()}
        wanted = reference(decoder(), given)
        for mine, theirs in zip(session.run(None, given), wanted.values(), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=2e-6, atol=2e-6)


@pytest.mark.slow
def test_concurrent_runs_have_their_own_buffers() -> None:
    session: Any = artifact(TensorProto.FLOAT, 2, ()).session(intra_op_num_threads=2)
    model = decoder(layers=2)

    def run(seed: int) -> None:
        lengths = (10 + seed, 3 + seed)
        for turn in range(5):
            given = feeds(lengths, 1, layers=2, seed=10 * seed + turn)
            compare(in_place(session, given), reference(model, given), lengths, TensorProto.FLOAT, 1)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(run, range(8)))


def test_more_keys_than_the_total_length_are_an_error() -> None:
    """`total_sequence_length` is the largest number of keys: attention covers no others."""
    given = feeds((5,), 1)
    given["mask"][0, 0] = 4
    with pytest.raises(Exception, match="not less than total_sequence_length, idx=7"):
        artifact(TensorProto.FLOAT, 1, ()).session().run(None, given)
