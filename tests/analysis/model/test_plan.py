"""Lifetimes, shared buffers and totals of memory plans."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import TensorProto, helper

import igniter
from igniter.analysis.scheduled.placement import Conflicts, Span, place
from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.toolbox.plan.plan import Activation, MemoryPlan
from tests.analysis.model.models import LIGHT, F, branches, diamond, loop_model, model_of
from tests.examples import examples

PUBLIC = {
    "light_bvlc_alexnet": 2239488,
    "light_densenet121": 8429568,
    "light_inception_v1": 6422528,
    "light_inception_v2": 6422528,
    "light_resnet50": 9633792,
    "light_shufflenet": 2885120,
    "light_squeezenet": 6308352,
    "light_vgg19": 25690112,
    "light_zfnet512": 9124608,
}
"""The lower bounds of a public tool's plans, in bytes: a buffer for each value, weights folded."""


def plan_of(model: bytes | Path, /, **options: object) -> MemoryPlan:
    return igniter.load(model).plan(**options)  # type: ignore[arg-type]


def named(plan: MemoryPlan) -> dict[str, Activation]:
    return {a.name: a for a in plan.activations}


def kept(plan: MemoryPlan, name: str) -> tuple[int, int]:
    found = named(plan)[name]
    return found.first, found.last


@pytest.mark.slow
def test_networks_are_planned_at_the_lower_bound() -> None:
    for name, bound in PUBLIC.items():
        plan = plan_of(LIGHT / f"{name}.onnx", views=False, in_place=False)
        assert (plan.lower_bound, plan.total) == (bound, bound), name
        shared = plan_of(LIGHT / f"{name}.onnx")
        for each in (plan, shared):
            assert each.at_bound and each.overlaps() == []
        assert plan.native == shared.native and shared.value(shared.total) <= bound


def test_what_is_kept_from_where_to_where() -> None:
    plan = plan_of(diamond(), views=False, in_place=False)
    assert [s.name for s in plan.steps] == ["n_a", "n_c", "n_b", "n_d", "n_y"]
    assert [kept(plan, n) for n in "abcdy"] == [(0, 2), (2, 3), (1, 3), (3, 4), (4, 4)]
    assert named(plan)["y"].kind == "output" and named(plan)["d"].kind == "result"
    assert "x" not in named(plan)


def test_inputs_count_where_they_are_asked_for() -> None:
    found = named(plan_of(diamond(), inputs=True))["x"]
    assert (found.kind, found.first, found.last) == ("input", 0, 0)


def test_sizes_are_expressions_and_numbers_where_they_are_given() -> None:
    plan = plan_of(diamond(), align=1)
    assert str(plan.native) == "60*rows" and str(plan.lower_bound) == "36*rows" and plan.total == plan.lower_bound
    assert plan.typical == {"rows": 128} and plan.value(plan.native) == 60 * 128
    at = plan_of(diamond(), sizes={"rows": 5}, align=1)
    assert at.native == 300 and at.total == 180 and at.typical == {} and at.sizes == {"rows": 5}
    assert plan.at(rows=5).total == 180 and plan.at(rows=5).native == 300


def test_an_empty_dim_takes_nothing() -> None:
    plan = plan_of(diamond(), sizes={"rows": 0})
    assert plan.native == 0 and plan.total == 0 and plan.at_bound and plan.overlaps() == []


def test_buffers_are_aligned() -> None:
    plan = plan_of(diamond(), sizes={"rows": 5}, align=256)
    assert {b.offset.constant % 256 for b in plan.buffers if b.offset.constant is not None} == {0}
    assert all(b.size == 256 for b in plan.buffers)
    with pytest.raises(IgniterError, match="cannot be aligned to 0 bytes"):
        plan_of(diamond(), align=0)


def test_a_size_of_no_dim_is_named() -> None:
    with pytest.raises(IgniterError, match="the model has no dim row; its dims are rows"):
        plan_of(diamond(), sizes={"row": 3})


def test_views_and_elementwise_results_are_in_the_buffer_of_what_they_read() -> None:
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], "n_a"),
        helper.make_node("Reshape", ["a", "shape"], ["v"], "n_v"),
        helper.make_node("Relu", ["v"], ["r"], "n_r"),
        helper.make_node("Softmax", ["r"], ["y"], "n_y"),
    ]
    model = onnx.load_from_string(model_of(nodes, {"x": [2, 8]}, ["y"]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array([4, 4]), "shape"))
    both = plan_of(model.SerializeToString())
    assert named(both)["v"].shares == "view of a" and named(both)["r"].shares == "in place of v"
    assert len(both.buffers) == 2 and both.buffers[0].values == ("a", "v", "r")
    assert (both.buffers[0].first, both.buffers[0].last) == (0, 3)
    assert len(plan_of(model.SerializeToString(), views=False).buffers) == 3
    assert len(plan_of(model.SerializeToString(), in_place=False).buffers) == 3
    assert len(plan_of(model.SerializeToString(), views=False, in_place=False).buffers) == 4


def test_what_is_read_again_is_not_written_over() -> None:
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], "n_a"),
        helper.make_node("Relu", ["a"], ["b"], "n_b"),
        helper.make_node("MatMul", ["a", "b"], ["y"], "n_y"),
    ]
    plan = plan_of(model_of(nodes, {"x": [4, 4]}, ["y"]))
    assert named(plan)["b"].shares == ""


def test_a_view_that_is_read_later_keeps_its_buffer() -> None:
    """The view's reader comes after the elementwise node: the buffer is not free for that."""
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], "n_a"),
        helper.make_node("Identity", ["a"], ["v"], "n_v"),
        helper.make_node("Relu", ["a"], ["r"], "n_r"),
        helper.make_node("MatMul", ["r", "v"], ["y"], "n_y"),
    ]
    plan = plan_of(model_of(nodes, {"x": [4, 4]}, ["y"]), order="model")
    assert named(plan)["v"].shares == "view of a" and named(plan)["r"].shares == ""


def test_broadcasting_and_other_widths_are_not_in_place() -> None:
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], "n_a"),
        helper.make_node("Softmax", ["z"], ["c"], "n_c"),
        helper.make_node("Add", ["a", "c"], ["b"], "n_b"),
        helper.make_node("Cast", ["b"], ["d"], "n_d", to=TensorProto.DOUBLE),
        helper.make_node("Softmax", ["d"], ["y"], "n_y"),
    ]
    plan = plan_of(model_of(nodes, {"x": [1, 4], "z": [4, 4]}, ["y"], y=TensorProto.DOUBLE))
    assert named(plan)["b"].shares == "in place of c"
    assert named(plan)["d"].shares == ""


def test_inputs_weights_and_outputs_are_nobodys_buffer() -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["a"], "n_a"),
        helper.make_node("Relu", ["a"], ["b"], "n_b"),
        helper.make_node("Identity", ["x"], ["c"], "n_c"),
        helper.make_node("Neg", ["b"], ["d"], "n_d"),
    ]
    plan = plan_of(model_of(nodes, {"x": [4]}, ["b", "c", "d"]), inputs=True)
    assert all(not a.shares for a in plan.activations if a.name != "b")
    assert kept(plan, "b")[1] == len(plan.steps) - 1


def test_branches_share_memory_and_write_the_result() -> None:
    plan = plan_of(branches())
    graphs = {s.name: s.graph for s in plan.steps}
    assert graphs["then_1"] == "choice.then_branch" and graphs["other_2"] == "choice.else_branch"
    assert graphs["choice"] == "" and [s.name for s in plan.steps].index("choice") > 4
    found = named(plan)
    assert found["then_y"].shares == "branch of z" and found["other_y"].shares == "branch of z"
    assert found["then_y"].buffer == found["z"].buffer == found["other_y"].buffer
    # `a` is read by the later branch for the last time; the intermediate of the other is gone by then.
    early, late = sorted((found["then_t"], found["other_t"]), key=lambda t: t.first)
    assert found["a"].last == late.first and early.last < late.first
    assert plan.overlaps() == [] and plan.at_bound


def test_what_a_loop_reads_is_kept_for_its_next_iteration() -> None:
    plan = plan_of(loop_model())
    found, end = named(plan), [s.name for s in plan.steps].index("around")
    first = [s.name for s in plan.steps].index("b_1")
    assert found["a"].last == end
    assert (found["v"].kind, found["v"].first, found["v"].last) == ("carried", min(first, found["v"].first), end)
    assert found["v_next"].last == end and found["row"].last == end and found["t"].last < end
    assert found["rows"].first <= first and found["last"].first == end
    assert str(found["rows"].bytes).startswith("24*")
    assert plan.overlaps() == []


def test_a_scan_has_its_slices_and_its_states() -> None:
    body = helper.make_graph(
        [helper.make_node("Add", ["s", "e"], ["s_next"], "b_1"), helper.make_node("Softmax", ["s_next"], ["o"], "b_2")],
        "body",
        [helper.make_tensor_value_info(n, F, [3]) for n in ("s", "e")],
        [helper.make_tensor_value_info(n, F, [3]) for n in ("s_next", "o")],
    )
    nodes = [
        helper.make_node("Scan", ["s0", "x"], ["s_end", "os"], "scan", body=body, num_scan_inputs=1),
        helper.make_node("Softmax", ["os"], ["y"], "n_y"),
    ]
    plan = plan_of(model_of(nodes, {"s0": [3], "x": ["n", 3]}, ["s_end", "y"]))
    found = named(plan)
    assert [s.name for s in plan.steps] == ["b_1", "b_2", "scan", "n_y"]
    assert (found["s"].first, found["s"].last) == (0, 2) == (found["e"].first, found["e"].last)
    assert found["os"].first == 0 and found["s_end"].first == 2 and str(found["os"].bytes) == "12*n"


def test_weights_that_are_computed_are_no_activations() -> None:
    nodes = [
        helper.make_node("Exp", ["w"], ["e"], "n_e"),
        helper.make_node("MatMul", ["x", "e"], ["y"], "n_y"),
    ]
    model = onnx.load_from_string(model_of(nodes, {"x": [2, 4]}, ["y"]))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones((4, 4), np.float32), "w"))
    folded, whole = (plan_of(model.SerializeToString(), fold=fold) for fold in (True, False))
    assert [s.name for s in folded.steps] == ["n_y"] and folded.folded == 1
    assert [s.name for s in whole.steps] == ["n_e", "n_y"] and whole.folded == 0 and "e" in named(whole)


def test_functions_are_looked_into() -> None:
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("local", 1)]
    inner = [helper.make_node("Softmax", ["p"], ["t"], "f_1"), helper.make_node("Softmax", ["t"], ["q"], "f_2")]
    function = helper.make_function("local", "Twice", ["p"], ["q"], inner, opsets[:1])
    graph = helper.make_graph(
        [helper.make_node("Twice", ["x"], ["y"], "call", domain="local")],
        "g",
        [helper.make_tensor_value_info("x", F, [2, 3])],
        [helper.make_tensor_value_info("y", F, [2, 3])],
    )
    model = helper.make_model(graph, functions=[function], opset_imports=opsets, ir_version=10)
    plan = plan_of(model.SerializeToString())
    assert [s.op for s in plan.steps] == ["Softmax", "Softmax"] and len(plan.activations) == 2


@pytest.mark.parametrize(
    ("dtype", "size"),
    [
        (TensorProto.FLOAT16, 2),
        (TensorProto.BFLOAT16, 2),
        (TensorProto.DOUBLE, 8),
        (TensorProto.INT8, 1),
        (TensorProto.UINT16, 2),
        (TensorProto.BOOL, 1),
        (TensorProto.INT64, 8),
    ],
)
def test_bytes_of_types(dtype: int, size: int) -> None:
    nodes = [helper.make_node("Transpose", ["x"], ["y"], "n_y")]
    (found,) = plan_of(model_of(nodes, {"x": [3, 5]}, ["y"], x=dtype, y=dtype)).activations
    assert found.bytes == 15 * size


def test_elements_of_less_than_a_byte_are_packed() -> None:
    nodes = [helper.make_node("Transpose", ["x"], ["y"], "n_y")]
    (found,) = plan_of(model_of(nodes, {"x": [3, 5]}, ["y"], x=TensorProto.INT4, y=TensorProto.INT4)).activations
    assert found.bytes == 8


def test_values_without_a_size_are_listed() -> None:
    nodes = [
        helper.make_node("Identity", ["x"], ["s"], "n_s"),
        helper.make_node("SequenceConstruct", ["z"], ["q"], "n_q"),
        helper.make_node("SequenceLength", ["q"], ["y"], "n_y"),
    ]
    plan = plan_of(
        model_of(
            nodes, {"x": [3], "z": [2]}, ["s", "y"], x=TensorProto.STRING, s=TensorProto.STRING, y=TensorProto.INT64
        )
    )
    told = dict(plan.uncounted)
    assert "strings" in told["s"] and "no tensor" in told["q"]
    assert list(named(plan)) == ["y"]


def test_a_model_without_nodes_has_an_empty_plan() -> None:
    plan = plan_of(model_of([], {"x": [3]}, ["x"]))
    assert plan.steps == () and plan.total == 0 and plan.peak is None and plan.to_dict()["buffers"] == []


@pytest.mark.slow
@examples(60)
@given(st.integers(0, 10_000))
def test_no_two_buffers_overlap_at_any_size(seed: int) -> None:
    """Random lifetimes with sizes that cannot be compared: offsets hold for all values of the symbols."""
    chance = random.Random(seed)
    spans = [
        Span(
            Expr.of("n") * chance.randrange(4) * 64
            + Expr.of("m") * chance.randrange(4) * 64
            + 64 * chance.randrange(3),
            first,
            first + chance.randrange(4),
        )
        for first in (chance.randrange(12) for _ in range(chance.randrange(1, 16)))
    ]
    apart = [
        {j for j, b in enumerate(spans) if j != k and a.first <= b.last and b.first <= a.last}
        for k, a in enumerate(spans)
    ]
    conflicts = Conflicts(apart, [set() for _ in spans])
    offsets, total = place(spans, conflicts, lambda e: e.evaluate({"n": 8, "m": 8}), 0, 500)
    for n, m in ((0, 0), (1, 0), (0, 9), (3, 1000), (1000, 3), (8, 8)):
        at = [
            (o.evaluate({"n": n, "m": m}), s.size.evaluate({"n": n, "m": m}))
            for o, s in zip(offsets, spans, strict=True)
        ]
        assert all(o + s <= total.evaluate({"n": n, "m": m}) for o, s in at)
        for k, others in enumerate(apart):
            assert all(at[k][0] + at[k][1] <= at[j][0] or at[j][0] + at[j][1] <= at[k][0] for j in others)


def test_overlaps_are_found() -> None:
    """The check that plans are tested with sees a plan that is wrong."""
    plan = plan_of(diamond(), sizes={"rows": 100}, views=False, in_place=False)
    moved = replace(plan, buffers=tuple(replace(b, offset=Expr.of(0)) for b in plan.buffers))
    assert plan.overlaps() == [] and moved.overlaps()


def test_a_longer_search_finds_what_orders_miss() -> None:
    """Random lifetimes whose plan the orders and their mending leave above the bound, and the search does not."""
    chance = random.Random(33)
    spans: list[Span] = []
    for _ in range(20):
        first = chance.randrange(20)
        last = min(19, first + chance.choice([1, 1, 2, 3, chance.randrange(1, 10)]))
        spans.append(Span(Expr.of(chance.randrange(1, 64)), first, last))
    apart = [
        {j for j, b in enumerate(spans) if j != k and a.first <= b.last and b.first <= a.last}
        for k, a in enumerate(spans)
    ]
    conflicts = Conflicts(apart, [set() for _ in spans])
    bound = max(sum(s.size.evaluate({}) for s in spans if s.first <= t <= s.last) for t in range(20))
    (_, short), (offsets, long) = (place(spans, conflicts, lambda e: e.evaluate({}), bound, n) for n in (0, 20_000))
    assert short.evaluate({}) > bound == long.evaluate({})
    at = [(o.evaluate({}), s.size.evaluate({})) for o, s in zip(offsets, spans, strict=True)]
    assert all(
        at[k][0] + at[k][1] <= at[j][0] or sum(at[j]) <= at[k][0] for k, other in enumerate(apart) for j in other
    )
