"""Integers are exact in what a compiled model is compared with, and in what it leaves to ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import igniter
from igniter.runtime.session import make_session
from igniter.verification.graph_facts import model_facts
from igniter.verification.original import Original
from igniter.verification.verify import Candidate, VerifyOptions, verify_models
from tests.ops.exact_integers import extremes, reduced, wrapped

SUM = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (int64[m,k] x) => (int64[m] y) <int64[1] axes = {1}, int64 p = {31}> {
        z = Mul (x, p)
        y = ReduceSum <keepdims = 0> (z, axes)
    }
"""
HASH = """
    <ir_version: 8, opset_import: ["" : 18]>
    g (int64[n,4] ids, float[1021,8] table) => (float[n,8] y)
    <int64[4] factors = {1000003, 10007, 31, 7}, int64[1] axes = {1}, int64 size = {1021}> {
        p = Mul (ids, factors)
        h = ReduceSum <keepdims = 0> (p, axes)
        i = Mod (h, size)
        y = Gather (table, i)
    }
"""
"""Any ids are fine: what they index with is a remainder."""


def parsed(text: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(text)


@pytest.mark.slow
@pytest.mark.parametrize(("text", "node"), [(SUM, "ReduceSum of 'y'"), (HASH, "ReduceSum of 'h'")])
def test_models_with_sums_of_large_integers_are_verified(text: str, node: str) -> None:
    artifact = igniter.load(parsed(text)).compile(cache=False)
    assert artifact.report["verification"]["status"] == "passed"
    assert any(case["kind"] == "large integers" for case in artifact.report["verification"]["cases"])
    assert artifact.report["verification"]["inexact"] == [node]


def test_a_hash_of_large_ids_is_exact() -> None:
    session = igniter.load(parsed(HASH)).compile(cache=False).session()
    ids = np.concatenate(extremes((3, 4), np.int64))
    table = np.random.default_rng(0).standard_normal((1021, 8)).astype(np.float32)
    products = ids.astype(object) * np.array([1000003, 10007, 31, 7], object)
    rows = [wrapped(sum(wrapped(int(v), np.int64) for v in row), np.int64) % 1021 for row in products]
    np.testing.assert_array_equal(session.run(None, {"ids": ids, "table": table})[0], table[rows])


def test_what_rounds_as_onnx_runtime_does_differs() -> None:
    """The model itself in ONNX Runtime, in the place of the compiled one."""
    model = parsed(SUM).SerializeToString()
    candidate = Candidate(lambda _threads, _cut: make_session(model, log_severity_level=4))
    found = verify_models(Original(model), candidate, model_facts(model), VerifyOptions())
    assert found.status == "differs"
    assert any("differ" in line for line in found.failures)
    assert found.inexact == ("ReduceSum of 'y'",)


@pytest.mark.parametrize("op", ["ReduceSum", "ReduceProd", "ReduceMean"])
def test_nodes_that_are_left_to_onnx_runtime_are_exact(op: str) -> None:
    model = parsed(SUM.replace("ReduceSum", op))
    options = igniter.CompileOptions(fusion_passes="form-fusion-regions{singletons=none max-nodes=1}")
    artifact = igniter.compile(model, options=options, cache=False)
    assert artifact.report["regions"] == 0
    x = np.stack(extremes((7,), np.int64))
    with np.errstate(over="ignore"):
        expected = reduced(op, x * 31, (1,), keepdims=False)
    np.testing.assert_array_equal(artifact.session().run(None, {"x": x})[0], expected)


def test_products_of_dims_stay_with_onnx_runtime() -> None:
    text = """
        <ir_version: 8, opset_import: ["" : 18]>
        g (float[m,k] x, float[a] z) => (int64 y, float[a] w) {
            dims = Shape (x)
            y = ReduceProd <keepdims = 0> (dims)
            w = Neg (z)
        }
    """
    options = igniter.CompileOptions(fusion_passes="form-fusion-regions{singletons=none}")
    artifact: Any = igniter.compile(parsed(text), options=options, cache=False)
    nodes = [node.op_type for node in onnx.load(artifact.model_path).graph.node]
    assert "Loop" not in nodes


@pytest.mark.parametrize(("op", "code"), [("ReduceMean", "uint64"), ("ReduceSumSquare", "uint32")])
def test_unsigned_integers_are_exact_where_onnx_has_others(op: str, code: str) -> None:
    """ONNX Runtime has no kernel for them, and ONNX's reference evaluator wraps a sum, or gives another type."""
    text = f"""
        <ir_version: 8, opset_import: ["" : 18]>
        g ({code}[m,k] x) => ({code}[m] y) <int64[1] axes = {{1}}> {{ y = {op} <keepdims = 0> (x, axes) }}
    """
    found = igniter.load(parsed(text)).compile(cache=False).report["verification"]
    assert found["status"] == "passed" and found["against"] == "ONNX's reference evaluator"
    assert any(case["kind"] == "large integers" for case in found["cases"])
