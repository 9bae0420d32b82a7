"""Decoders with caches: verification runs at steps and prompts, none of which ONNX Runtime refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import igniter
from igniter.frontend import surgery
from igniter.frontend.diagnosis import why_invalid
from igniter.verification.cache_facts import STEPS
from igniter.verification.graph_facts import model_facts
from igniter.verification.original import Original
from tests.ops.test_shared_caches import CAPACITY, decoder


def test_the_dims_that_an_attention_ties() -> None:
    facts = model_facts(decoder().SerializeToString()).caches
    assert facts is not None
    assert (facts.batch, facts.new, facts.past, facts.total) == ("batch", "new", "past", "total_length")
    assert facts.masks == {"mask"}


def test_a_model_without_caches_has_none() -> None:
    node = helper.make_node("Relu", ["x"], ["y"])
    info = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n"])
    result = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n"])
    model = helper.make_model(helper.make_graph([node], "g", [info], [result]), ir_version=10)
    assert model_facts(model.SerializeToString()).caches is None


@pytest.mark.slow
def test_every_case_is_one_that_the_original_runs() -> None:
    """The table of the rotary embeddings ends at 64 positions; one prompt is longer."""
    verification = igniter.load(decoder()).compile(verify=False).verify(seed=3)
    assert verification.ok
    assert [refusal.shapes["new"] for refusal in verification.refused] == [67]
    ran = {tuple(case.shapes.values()) for case in verification.cases}
    assert {(batch, new, total, past, 16) for _, batch, new, past, total in STEPS if new < CAPACITY} <= ran


def test_rounded_values_are_nudged_at_an_opset_without_random_ops() -> None:
    """ONNX Runtime has no RandomUniformLike of opset 22."""
    weight = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    dims: list[Any] = ["n", 4]
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, dims) for name in "xy"]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    session: Any = Original(model.SerializeToString()).nudged
    runs = [session.run(None, {"x": np.full((3, 4), 0.1, np.float32)})[0] for _ in range(2)]
    assert np.abs(runs[0] - runs[1]).max() > 0
    np.testing.assert_allclose(runs[0], 0.4, rtol=1e-5)


@pytest.mark.parametrize("op", ["SimplifiedLayerNormalization", "com.microsoft.SkipSimplifiedLayerNormalization"])
def test_values_of_the_runtimes_ops_are_nudged(op: str) -> None:
    *domain, name = op.rsplit(".", 1)
    operands = ["x", "x", "w"] if domain else ["x", "w"]
    node = helper.make_node(name, operands, ["y"], domain="".join(domain), epsilon=1e-5)
    infos = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, [1, 2, 4]) for n in "xy"]
    graph = helper.make_graph([node], "g", infos[:1], infos[1:], [numpy_helper.from_array(np.ones(4, "f"), "w")])
    imports = [helper.make_opsetid("", 22), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=imports, ir_version=10)
    assert "RandomUniformLike" in {each.op_type for each in surgery.with_nudged_values(model, 0).graph.node}
    assert why_invalid(model) is None


@pytest.mark.parametrize("level", [0, 4])
def test_operands_that_a_product_rounds_are_nudged(level: int) -> None:
    """By less than a step of 8 bits, and only at the level at which ONNX Runtime rounds them."""
    from tests.language_models.decoders import llama

    made = surgery.with_nudged_values(llama(4, level), 0)
    operands = {node.input[0] for node in made.graph.node if node.op_type == "MatMulNBits"}
    assert all(name.endswith(".near") == (level == 4) for name in operands)


GROWING = """
<ir_version: 10, opset_import: ["": 22]>
decoder (float[batch, new, 8] query, float[batch, 2, past, 8] past_key, {kind}[batch, {length}] attention_mask)
    => (float[batch, 2, new, total] scores, float[batch, 2, present, 8] present_key)
{{
    axis = Constant <value_ints = [1]> ()
    keys = Unsqueeze (query, axis)
    two = Constant <value_ints = [1, 2, 1, 1]> ()
    heads = Tile (keys, two)
    present_key = Concat <axis = -2> (past_key, heads)
    back = Transpose <perm = [0, 1, 3, 2]> (present_key)
    products = MatMul (heads, back)
    axes = Constant <value_ints = [1, 2]> ()
    row = Unsqueeze (attention_mask, axes)
    floats = Cast <to = 1> (row)
    masked = Mul (products, floats)
    scores = Identity (masked)
}}
"""


def test_a_past_that_new_keys_are_concatenated_to() -> None:
    """As exported from PyTorch: the length of the mask is a symbol of its own, that the original refuses but for one
    value."""
    model = onnx.parser.parse_model(GROWING.format(kind="int64", length="total"))
    verification = igniter.load(model).compile(verify=False).verify(seed=1)
    assert verification.ok and not verification.refused
    ran = [(case.shapes["past"], case.shapes["new"], case.shapes["total"]) for case in verification.cases]
    assert (0, 5, 5) in ran and len(ran) > 5 and all(past + new == total for past, new, total in ran)


@pytest.mark.parametrize(("kind", "length"), [("int64", "past"), ("int64", "batch"), ("int64", "4"), ("float", "new")])
def test_a_mask_of_another_length_ties_nothing(kind: str, length: str) -> None:
    model = onnx.parser.parse_model(GROWING.format(kind=kind, length=length))
    assert model_facts(model.SerializeToString()).caches is None
