"""The embedded model: valid, shaped as an exporter leaves it, and dynamic."""

from __future__ import annotations

from collections import Counter

import numpy as np
import onnx
import pytest

import igniter
from igniter.runtime.session import make_session
from igniter.tools.demo_model import Shape, build_demo_model

SMALL = Shape(layers=2, vocabulary=100, positions=64)


def test_it_is_a_valid_model_with_an_exporters_patterns() -> None:
    model = build_demo_model(SMALL)
    onnx.checker.check_model(model, full_check=True)
    names = [n.name for n in model.graph.node]
    assert len(set(names)) == len(names)
    kinds = Counter(n.op_type for n in model.graph.node)
    # Two bottlenecks, q, k, v, out, four times two, and one to widen, and two without weights; one embedding.
    assert kinds["MatMul"] == SMALL.layers * (2 + 4 + 8 + 1 + 2) + 1
    assert kinds["Softmax"] == SMALL.layers
    assert kinds["Shape"] > 8 * SMALL.layers


def test_the_seed_decides_the_weights() -> None:
    a, b = (build_demo_model(SMALL).SerializeToString() for _ in range(2))
    assert a == b


def test_no_norm_is_not_the_identity() -> None:
    vectors = [onnx.numpy_helper.to_array(t) for t in build_demo_model(SMALL).graph.initializer if len(t.dims) == 1]
    floats = [v for v in vectors if v.dtype == np.float32]
    assert floats
    assert all(np.abs(v - 1).max() > 0.01 and np.abs(v).max() > 0.01 for v in floats)


def test_padding_changes_nothing_before_it() -> None:
    session = make_session(build_demo_model(SMALL).SerializeToString())
    rng = np.random.default_rng(0)
    ids = rng.integers(0, 100, (1, 9))
    zeros = np.zeros_like(ids)
    short = session.run(None, {"input_ids": ids, "attention_mask": zeros + 1, "token_type_ids": zeros})[0]
    padded = [np.concatenate([a, np.zeros((1, 4), np.int64)], 1) for a in (ids, zeros + 1, zeros)]
    long = session.run(None, dict(zip(("input_ids", "attention_mask", "token_type_ids"), padded, strict=True)))[0]
    # The last word sees the next word's embedding.
    np.testing.assert_allclose(long[:, :8], short[:, :8], atol=2e-2)


@pytest.mark.slow
def test_it_compiles() -> None:
    artifact = igniter.compile(build_demo_model(SMALL))
    assert {entry["op"] for entry in artifact.report["left_to_onnxruntime"] if entry["kind"] == "illegal"} <= {"Slice"}
    assert artifact.report["verification"]["ok"]
    assert artifact.report["nodes_after"] < artifact.report["nodes_before"] / 2
