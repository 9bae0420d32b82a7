"""Findings of the fuzzer, a node each: at every feed Igniter computes what ONNX Runtime does, or both refuse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.fuzz.wild.pool import Array, make_model, value_info
from tests.fuzz.wild.run import Wild, run_wild


def zeros(*shape: int, dtype: Any = np.float32) -> Array:
    return np.zeros(shape, dtype)


def ones(*shape: int, dtype: Any = np.float32) -> Array:
    return (np.arange(1, 1 + np.prod(shape, dtype=int)).reshape(shape) / 4).astype(dtype)


def ints(*values: int) -> Array:
    return np.array(values, np.int64)


def outcome(
    op: str,
    feeds: Sequence[Sequence[Array | None]],
    weights: Sequence[Array] = (),
    opset: int = 17,
    outputs: int = 1,
    **attrs: Any,
) -> tuple[str, int]:
    """What becomes of a node whose operands are the arrays of a feed, then the weights, and how many feeds both refuse.

    Dims that change from feed to feed are symbols, the same one where they change alike.
    """
    domain, _, short = op.rpartition(".")
    named = tuple({f"x{k}": a for k, a in enumerate(feed) if a is not None} for feed in feeds)
    operands = [f"x{k}" if a is not None else "" for k, a in enumerate(feeds[0])]
    node = helper.make_node(
        short,
        [*operands, *(f"w{k}" for k in range(len(weights)))],
        [f"y{k}" for k in range(outputs)],
        name="node",
        domain=domain,
        **attrs,
    )

    def dims(name: str, rank: int) -> list[int | str]:
        sizes = [[feed[name].shape[k] for feed in named] for k in range(rank)]
        return [s[0] if len(set(s)) == 1 else "n" + "_".join(map(str, s)) for s in sizes]

    graph = helper.make_graph(
        [node],
        "found",
        [value_info(n, a.dtype, dims(n, a.ndim)) for n, a in named[0].items()],
        [onnx.ValueInfoProto(name=o) for o in node.output],
        [numpy_helper.from_array(a, f"w{k}") for k, a in enumerate(weights)],
    )
    model = make_model(graph, opset)
    found = run_wild(Wild(0, model, model, named, "every", "native", shipped=False))
    assert found.left == 0, "the node is not compiled"
    return f"{found.status} {found.message}".strip(), found.refusals


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
def test_a_pool_of_an_empty_batch_of_no_places(op: str) -> None:
    feeds = [[ones(1, 2, 4, 5)], [zeros(0, 2, 0, 0)], [zeros(0, 2, 5, 0)], [zeros(0, 2, 1, 1)], [zeros(1, 2, 0, 3)]]
    assert outcome(op, feeds, kernel_shape=[2, 2], strides=[2, 2]) == ("ok", 1)
    assert outcome(op, feeds, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1]) == ("ok", 1)


@pytest.mark.parametrize("op", ["LayerNormalization", "RMSNormalization"])
def test_rows_without_elements_are_not_normalised(op: str) -> None:
    feeds = [[ones(2, 3), ones(3)], [zeros(0, 3), ones(3)], [zeros(2, 0), zeros(0)], [zeros(0, 0), zeros(0)]]
    assert outcome(op, feeds, opset=23) == ("ok", 2)


def test_nothing_is_wrapped() -> None:
    feeds = [[ones(3, 2)], [zeros(0, 2)], [zeros(2, 0)]]
    assert outcome("Pad", feeds, [ints(0, 1, 0, 0)], mode="wrap", opset=19) == ("ok", 2)


@pytest.mark.parametrize("sizes", [(2, 3), (0, 3)])
def test_nothing_is_resized_to_something(sizes: tuple[int, int]) -> None:
    feeds = [[ones(2, 2), None, None], [zeros(0, 2), None, None], [zeros(2, 0), None, None]]
    found, refused = outcome("Resize", feeds if sizes[0] else feeds[1:], [ints(*sizes)])
    assert (found, refused) == ("ok", 2 if sizes[0] else 1)


def test_lengths_of_sequences_are_within_the_sequence() -> None:
    feeds = [[ones(3, 2), ints(3, 0)], [ones(3, 2), ints(4, 1)], [ones(3, 2), ints(-1, 1)], [zeros(0, 2), ints(1, 0)]]
    assert outcome("ReverseSequence", feeds) == ("ok", 3)


def test_lengths_of_recurrences_are_within_the_sequence() -> None:
    lengths = [np.array(v, np.int32) for v in ((2, 0), (3, 1), (-1, 1))]
    weights = [ones(1, 3, 2), ones(1, 3, 3) / 9, zeros(1, 6)]
    feeds = [[ones(2, 2, 2), *weights, n] for n in lengths]
    assert outcome("RNN", feeds, hidden_size=3, outputs=2) == ("ok", 2)


def test_features_are_picked_from_those_there_are() -> None:
    feeds = [[ones(3, 4), ints(3, 0)], [ones(3, 4), ints(4, 0)], [zeros(0, 4), ints(7)], [zeros(3, 0), ints(0)]]
    assert outcome("ai.onnx.ml.ArrayFeatureExtractor", feeds) == ("ok", 3)


@pytest.mark.parametrize("widths", [(1, 4), (3, 2), (9, 1)])
def test_features_are_joined_whatever_their_shape(widths: tuple[int, int]) -> None:
    """A vector is one row, features that lack are 0, and those beyond the width are left out."""
    name = "ai.onnx.ml.FeatureVectorizer"
    feeds = [[ones(2, 3), ones(2, 2)], [ones(1, 3), ones(1, 1)], [ones(3, 2), ones(2, 2)]]
    assert outcome(name, feeds, inputdimensions=widths) == ("ok", 1)
    assert outcome(name, [[ones(5), ones(1, 2, 2)], [ones(1), ones(1, 1, 2)]], inputdimensions=widths) == ("ok", 0)


def test_a_tree_looks_at_features_that_there_are() -> None:
    attrs = {
        "n_targets": 1,
        "tree_roots": [0],
        "nodes_modes": numpy_helper.from_array(np.zeros(1, np.uint8)),
        "nodes_featureids": [2],
        "nodes_splits": numpy_helper.from_array(ones(1)),
        "nodes_truenodeids": [0],
        "nodes_trueleafs": [1],
        "nodes_falsenodeids": [1],
        "nodes_falseleafs": [1],
        "leaf_targetids": [0, 0],
        "leaf_weights": numpy_helper.from_array(ones(2)),
    }
    feeds = [[ones(3, 3)], [ones(3, 2)], [ones(1, 4)]]
    assert outcome("ai.onnx.ml.TreeEnsemble", feeds, **attrs) == ("ok", 1)


@pytest.mark.parametrize("opset", [7, 10, 12])
def test_the_mask_of_a_dropout(opset: int) -> None:
    assert outcome("Dropout", [[ones(3)], [zeros(0)]], outputs=2, opset=opset) == ("ok", 0)


def test_concat_of_empty_shapes_that_differ() -> None:
    """ONNX Runtime joins a [0, 0] and a [5, 0], of which the elements are known: there are none."""
    feeds = [[ones(2, 3), ones(1, 3)], [zeros(0, 0), zeros(5, 0)], [zeros(2, 0), zeros(0, 3)]]
    assert outcome("Concat", feeds, axis=0) == ("ok", 0)


@pytest.mark.slow
def test_what_is_interpolated_is_an_image() -> None:
    feeds = [[ones(2, 3, 2, 2), None, None], [ones(1, 3, 2, 2), None, None], [ones(2, 3, 3, 1), None, None]]
    for mode in ("linear", "cubic"):
        assert outcome("Resize", feeds, [ints(2, 3, 4, 4)], opset=18, mode=mode) == ("ok", 1)
    assert outcome("Resize", feeds, [ints(2, 3, 4, 4)], opset=18, mode="nearest") == ("ok", 0)


def test_nothing_is_sampled() -> None:
    feeds = [[ones(2, 1, n, 3), ones(2, 2, 2, 2) / 9] for n in (2, 0)]
    assert outcome("GridSample", feeds, opset=20) == ("ok", 1)


@pytest.mark.parametrize("op", ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"])
def test_what_is_skipped_has_the_dims_of_the_input(op: str) -> None:
    name = f"com.microsoft.{op}"
    same = [[ones(b, 3, 4), ones(b, 3, 4), ones(4)] for b in (2, 1)]
    assert outcome(name, [*same, [zeros(2, 3, 0), zeros(2, 3, 0), zeros(0)]]) == ("ok", 1)
    assert outcome(name, [[ones(n, 3, 4), ones(1, 3, 4), ones(4)] for n in (1, 2)]) == ("ok", 0)
    assert outcome(name, [[ones(2, n, 4), ones(2, 1, 4), ones(4)] for n in (1, 2)]) == ("ok", 1)


@pytest.mark.parametrize("op", ["BiasGelu", "FastGelu"])
def test_a_bias_is_as_long_as_a_row(op: str) -> None:
    assert outcome(f"com.microsoft.{op}", [[ones(2, n), ones(1)] for n in (1, 3)]) == ("ok", 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["MatMul", "com.microsoft.FusedMatMul"])
def test_a_batch_of_1_is_broadcast_to_none(name: str) -> None:
    """As ONNX Runtime does from 1.32 on; versions before refuse most of these."""
    assert outcome(name, [[ones(n, 3, 4), ones(4, 5)] for n in (2, 0)]) == ("ok", 0)
    assert outcome(name, [[ones(2, n, 3, 4), ones(1, 4, 5)] for n in (2, 0)]) == ("ok", 0)
    assert outcome(name, [[ones(m, n, 3, 4), ones(m, 1, 4, 5)] for m, n in ((2, 3), (2, 0), (1, 0))]) == ("ok", 0)
    assert outcome(name, [[ones(3, 4), ones(n, 4, 5)] for n in (2, 0)]) == ("ok", 0)
    if name != "MatMul":
        assert outcome(name, [[ones(n, 4, 3), ones(4, 5)] for n in (2, 0)], transA=1) == ("ok", 0)
        assert outcome(name, [[ones(n, 3, 4), ones(5, 4)] for n in (2, 0)], transB=1) == ("ok", 0)


def test_what_is_unpooled_had_places() -> None:
    places = [np.arange(a.size).reshape(a.shape) for a in (ones(1, 2, 3, 2), zeros(0, 2, 3, 2), zeros(1, 2, 0, 2))]
    feeds = [[(p / 4).astype(np.float32), p] for p in places]
    assert outcome("MaxUnpool", feeds, opset=11, kernel_shape=[2, 2], strides=[2, 2]) == ("ok", 1)
    assert outcome("MaxUnpool", feeds, opset=11, kernel_shape=[2, 2]) == ("ok", 0)


def test_a_transform_of_nothing() -> None:
    feeds = [[ones(2, 4, 1)], [zeros(2, 0, 1)], [zeros(0, 0, 1)]]
    assert outcome("DFT", feeds, opset=17, axis=1, onesided=1) == ("ok", 1)
    assert outcome("DFT", feeds, opset=17, axis=1) == ("ok", 0)


@pytest.mark.slow
def test_attention_is_paid_to_something() -> None:
    shapes = [(2, 3, 4, 5, 6, 7), (2, 0, 4, 5, 6, 7), (2, 3, 0, 5, 6, 7), (2, 3, 4, 0, 6, 7), (2, 3, 4, 5, 6, 0)]
    feeds = [[ones(b, h, q, d), ones(b, h, k, d), ones(b, h, k, v)] for b, h, q, k, d, v in shapes if h]
    assert outcome("Attention", feeds, opset=23) == ("ok", 3)


def test_a_reflection_of_nothing_adds_as_much_as_it_likes() -> None:
    feeds = [[ones(3, 2)], [zeros(1, 0)], [ones(2, 2)], [ones(1, 2)], [zeros(0, 2)], [zeros(0, 0)]]
    assert outcome("Pad", feeds, [ints(2, 0, 1, 0)], mode="reflect") == ("ok", 4)


def test_a_pad_of_what_has_no_known_rank() -> None:
    """True if it wraps anything is not known then, and it stays."""
    unranked = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, None)
    node = helper.make_node("Pad", ["x", "pads"], ["y"], mode="wrap", name="node")
    weights = [numpy_helper.from_array(ints(0, 0), "pads")]
    graph = helper.make_graph([node], "found", [unranked], [onnx.ValueInfoProto(name="y")], weights)
    model = make_model(graph, 19)
    assert run_wild(Wild(0, model, model, ({"x": ones(3)},), "every", "native", shipped=False)).status == "ok"


@pytest.mark.parametrize("target", ["native", "x86-64-v2"])
def test_one_factor_of_two_products_has_two_zero_points(target: str) -> None:
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, Array] = {}
    for k, zero in enumerate((131, 126)):
        weights |= {
            f"w{k}": np.arange(16 * k, 16 * k + 16, dtype=np.uint8).reshape(4, 4),
            f"z{k}": np.array(zero, np.uint8),
        }
        nodes.append(helper.make_node("MatMulInteger", ["x", f"w{k}", f"z{k}"], [f"y{k}"], name=f"product{k}"))
    graph = helper.make_graph(
        nodes,
        "found",
        [value_info("x", np.uint8, ["rows", 4])],
        [onnx.ValueInfoProto(name=f"y{k}") for k in range(2)],
        [numpy_helper.from_array(a, n) for n, a in weights.items()],
    )
    model, feed = make_model(graph, 17), {"x": np.arange(120, 140, dtype=np.uint8).reshape(5, 4)}
    found = run_wild(Wild(0, model, model, (feed,), "every", target, shipped=False))
    assert (found.status, found.left) == ("ok", 0)


def test_tables_of_a_rotation_have_one_shape() -> None:
    x, cos, places = ones(1, 2, 8), ones(5, 4), np.array([[1, 0]], np.int64)
    feeds = [[x, cos, cos + 1, places], [x, cos, ones(3, 4), places]]
    assert outcome("RotaryEmbedding", feeds, opset=23, num_heads=1) == ("ok", 1)


def test_bytes_without_channels_are_pooled() -> None:
    """ONNX Runtime pools floats without elements only where there is no batch; bytes where there is a window."""
    bytes_of = [[ones(*shape, dtype=np.uint8)] for shape in ((2, 3, 4, 5), (2, 0, 4, 5), (2, 3, 0, 5))]
    weights = [np.float32(0.5), np.uint8(3)] * 2
    assert outcome("com.microsoft.QLinearGlobalAveragePool", bytes_of, weights, channels_last=0) == ("ok", 1)
    floats = [[array.astype(np.float32) for array in feed] for feed in bytes_of]
    assert outcome("GlobalAveragePool", floats) == ("ok", 2)


def test_groups_of_nothing_are_refused() -> None:
    feeds = [[ones(*shape)] for shape in ((2, 4, 3), (0, 4, 3), (2, 4, 0))]
    weights = [ones(2), ones(2)]
    assert outcome("GroupNormalization", feeds, weights, opset=18, num_groups=2) == ("ok", 2)


@pytest.mark.parametrize("op", ["ReduceMin", "ReduceMax"])
def test_no_bools_have_no_extreme(op: str) -> None:
    feeds = [[np.ones(shape, bool)] for shape in ((2, 3), (4, 0), (0, 4))]
    assert outcome(op, feeds, [ints(1)], opset=20) == ("ok", 1)
