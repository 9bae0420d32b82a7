"""Selections of rows move above products and normalisations, and every result stays the same."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from xdsl.dialects.builtin import ModuleOp

import igniter
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import main_graph
from igniter.dialects.sym import dims_of
from tests.transforms.onnx.onnx_cases import check, floats, parse, run, run_passes

PASSES = ("infer-shapes", "hoist-selections", "infer-shapes", "eliminate-dead-nodes")

WEIGHTS = "float[8, 8] w = {" + ", ".join(str(k % 7 - 3) for k in range(64)) + "}"
SCALE = "float[8] g = {1, 2, 3, 4, 5, 6, 7, 8}"
BODY = "p = MatMul(x, w) s = Add(p, x) n = LayerNormalization(s, g) q = MatMul(n, w) t = Relu(q) h = Add(t, s)"


def model(tail: str, inputs: str = "float[b, n, 8] x", body: str = BODY, opset: int = 18) -> onnx.ModelProto:
    return parse(f"m ({inputs}) => (float y) <{WEIGHTS}, {SCALE}> {{ {body} {tail} }}", opset)


def rows_of_products(module: ModuleOp) -> set[str]:
    ops = [op for op in main_graph(module).body.ops if isinstance(op, OnnxOp)]
    return {str(dims_of(op.results[0].type)[-2]) for op in ops if op.op_type in ("MatMul", "Gemm")}


SELECTIONS = {
    "the last row": ("i = Constant<value = int64 {-1}>() y = Gather<axis = 1>(h, i)", "1"),
    "the first row, its axis from the end": ("i = Constant<value = int64 {0}>() y = Gather<axis = -2>(h, i)", "1"),
    "two rows": ("i = Constant<value = int64[2] {2, 0}>() y = Gather<axis = 1>(h, i)", "2"),
    "a slice": (
        "o = Constant<value = int64[1] {-1}>() e = Constant<value = int64[1] {9223372036854775807}>() "
        "a = Constant<value = int64[1] {-2}>() y = Slice(h, o, e, a)",
        "max(0, n - max(0, n - 1))",
    ),
}


def test_the_constants_of_a_slice_may_stand_behind_the_products() -> None:
    tail = (
        "o = Constant<value = int64[1] {-1}>() e = Constant<value = int64[1] {-9999}>() "
        "a = Constant<value = int64[1] {1}>() k = Constant<value = int64[1] {-4}>() y = Slice(h, o, e, a, k)"
    )
    module = check(model(tail, "float[b, 9, 8] x"), [{"x": floats(2, 9, 8)}], PASSES, exact=False)
    assert rows_of_products(module) == {"3"}


@pytest.mark.parametrize("name", SELECTIONS)
def test_products_compute_the_selected_rows(name: str) -> None:
    tail, rows = SELECTIONS[name]
    runs = [{"x": floats(b, n, 8, seed=b + n)} for b, n in ((1, 3), (3, 5), (0, 4))]
    module = check(model(tail), runs, PASSES, exact=False)
    assert rows_of_products(module) == {rows}


def test_a_slice_with_attributes() -> None:
    body = "p = MatMul(x, w) s = Add(p, x)"
    source = model("y = Slice<axes = [1], starts = [0], ends = [1]>(s)", "float[b, 6, 8] x", body, opset=9)
    module = check(source, [{"x": floats(2, 6, 8)}], PASSES, exact=False)
    assert rows_of_products(module) == {"1"}


def test_a_layer_with_a_bias_of_rows() -> None:
    tail = "i = Constant<value = int64[1] {4}>() y = Gather(h, i)"
    source = model(tail, "float[6, 8] x, float[6, 8] c, float[1, 8] d", "p = Gemm(x, w, c) h = Gemm(p, w, d)")
    module = check(
        source, [{"x": floats(6, 8), "c": floats(6, 8, seed=1), "d": floats(1, 8, seed=2)}], PASSES, exact=False
    )
    assert rows_of_products(module) == {"1"}


OPERANDS = {
    "added rows of all of the batch": ("float[1, 5, 8] k", "SkipLayerNormalization", ""),
    "added rows without a batch": ("float[5, 8] k", "SkipSimplifiedLayerNormalization", ""),
    "scales of rows": ("float[5, 8] k", "", "LayerNormalization(p, k)"),
    "scales of the batch": ("float[4, 1, 8] k", "", "LayerNormalization(p, k)"),
    "scales of all": ("float[4, 5, 8] k", "", "LayerNormalization(p, k)"),
    "slopes of rows": ("float[5, 1] k", "", "PRelu(p, k)"),
    "scales along an axis": ("float[4] k", "", "DequantizeLinear<axis = 0>(z, k)"),
}
"""Operands with the rows, with others, and with rows that broadcast or belong to an axis that the node names."""


@pytest.mark.parametrize("axis", (0, 1))
@pytest.mark.parametrize("name", OPERANDS)
def test_operands_keep_their_rows(name: str, axis: int) -> None:
    operand, contrib, node = OPERANDS[name]
    last = f"h = com.microsoft.{contrib}(p, k, g)" if contrib else f"h = {node}"
    if "(z" in node:
        last = f"z = QuantizeLinear<axis = 0>(p, k) {last}"
    tail = f"i = Constant<value = int64 {{3}}>() y = Gather<axis = {axis}>(h, i)"
    graph = f"m (float[4, 5, 8] x, {operand}) => (float y) <{WEIGHTS}, {SCALE}> {{ p = MatMul(x, w) {last} {tail} }}"
    shape = tuple(int(n) for n in operand[operand.index("[") + 1 : operand.index("]")].split(","))
    given = {"x": floats(4, 5, 8), "k": abs(floats(*shape, seed=1)) + 0.5}
    check(parse(graph, 18, microsoft=True), [given], PASSES, exact=False)


def test_an_old_operand_whose_axis_is_named() -> None:
    body = "p = MatMul(x, w) h = Add<axis = 0, broadcast = 1>(p, k) i = Constant<value = int64 {3}>() y = Gather(h, i)"
    source = parse(f"m (float[4, 8] x, float[4] k) => (float y) <{WEIGHTS}> {{ {body} }}", 6)
    assert rows_of_products(run_passes(source, PASSES)) == {"4"}


KEPT = {
    "another reader": (
        BODY + " z = MatMul(s, w) u = Add(h, z)",
        "r = ReduceMax<keepdims = 0>(z) v = Gather<axis = 1>(h, i)",
    ),
    "rows that are summed": (
        "f = MatMul(w, x) h = Relu(f)",
        "v = Gather<axis = 1>(h, i) r = Constant<value = float {0.0}>()",
    ),
    "columns": ("h = MatMul(x, w)", "v = Gather<axis = 2>(h, i) r = Constant<value = float {0.0}>()"),
}


@pytest.mark.parametrize("name", KEPT)
def test_other_rows_are_computed_if_something_reads_them(name: str) -> None:
    body, tail = KEPT[name]
    source = model(f"i = Constant<value = int64 {{0}}>() {tail} y = Add(v, r)", "float[b, 8, 8] x", body)
    module = check(source, [{"x": floats(2, 8, 8)}], PASSES, exact=False)
    assert "8" in rows_of_products(module)


def test_a_step_of_one_row_stays() -> None:
    """With a size of one given for the rows, nothing is saved."""
    source = model(SELECTIONS["the last row"][0])
    module = igniter.load(source).run_passes("infer-shapes,hoist-selections", sizes={"n": 1})
    assert not [r for r in module.remarks if r.pass_name == "hoist-selections"]
    assert rows_of_products(module.ir) == {"n"}


def test_a_compiled_model_equals_the_runtime() -> None:
    source = model(SELECTIONS["the last row"][0])
    artifact = igniter.load(source).compile(verify=False)
    assert artifact.report["nodes_after"] == 1
    session = artifact.session(intra_op_num_threads=1)
    for b, n in ((1, 1), (2, 7), (5, 33)):
        x = floats(b, n, 8, seed=n)
        (wanted,) = run(source, {"x": x})
        np.testing.assert_allclose(session.run(None, {"x": x})[0], wanted, rtol=1e-5, atol=1e-5)
