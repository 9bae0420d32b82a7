"""Counts of single nodes: operations, bytes of operands and results, and the readers' agreement."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

import igniter
from igniter.analysis.fusion.cost import CostModel
from igniter.analysis.onnx.op_counts import count_op, flops_or_elements
from igniter.analysis.typical_sizes import TypicalSizes
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import main_graph
from igniter.dialects.sym.expr import Expr
from igniter.toolbox.split.cuts import split_stages

N = Expr.of("n")


def nodes_of(text: str) -> dict[str, OnnxOp]:
    """The nodes of a graph by op, with the types that inference finds."""
    header = '<ir_version: 10, opset_import: ["" : 21, "local" : 1]>'
    module = igniter.load(onnx.parser.parse_model(f"{header}\n{text}")).run_passes("infer-shapes").ir
    found = [op for op in main_graph(module).body.ops if isinstance(op, OnnxOp)]
    return {op.qualified_name: op for op in found if op.op_type != "Constant"}


@pytest.mark.parametrize(
    ("text", "op", "flops", "reads", "writes"),
    [
        ("g (float[n, 8] x) => (float[n, 8] y) { y = Relu(x) }", "Relu", 8 * N, [32 * N], [32 * N]),
        ("g (float[n, 8] x) => (float[8, n] y) { y = Transpose(x) }", "Transpose", 0, [32 * N], [32 * N]),
        ("g (float[n, 8] x) => (float[a] y) <int64[1] s = {-1}> { y = Reshape(x, s) }", "Reshape", 0, [0, 0], [0]),
        ("g (float[n, 8] x) => (int64[2] y) { y = Shape(x) }", "Shape", 0, [0], [16]),
        (
            "g (float[n, 8] x, int64[3] i) => (float[3, 8] y) { y = Gather(x, i) }",
            "Gather",
            0,
            [Expr.parse("min(32*n, 96)"), 24],
            [96],
        ),
        ("g (uint4[n, 3] x) => (uint4[3, n] y) { y = Transpose(x) }", "Transpose", 0, [(12 * N).ceildiv(8)] * 1, None),
        ("g (bool[n] x) => (bool[n] y) { y = Not(x) }", "Not", N, [N], [N]),
        ("g (string[n] x) => (string[n] y) { y = Identity(x) }", "Identity", 0, [0], [0]),
        ("g (float[0, n] x) => (float[0, n] y) { y = Relu(x) }", "Relu", 0, [0], [0]),
    ],
)
def test_a_node_is_counted_by_its_op(
    text: str, op: str, flops: Expr | int, reads: list[Expr | int], writes: list[Expr | int] | None
) -> None:
    node = nodes_of(text)[op]
    count = count_op(node)
    assert count.uncounted == "" and count.flops == flops
    assert list(count.reads) == reads
    assert list(count.writes) == (reads if writes is None else writes)


def test_an_op_without_a_rule_is_uncounted_and_assumed_to_cost_its_elements() -> None:
    node = nodes_of("g (float[n, 8] x) => (float[n, 8] y) { y = local.Mystery(x) }")["local.Mystery"]
    count = count_op(node)
    assert "register an OpSpec" in count.uncounted and count.flops == 0
    assert flops_or_elements(node) == Expr.of("mystery_0_0") * Expr.of("mystery_0_1")
    assert CostModel(typical_dim=3).flops(node) == 9


def test_a_value_of_unknown_rank_is_said() -> None:
    node = nodes_of("g (float x) => (float y) { h = local.Mystery(x) y = Softmax(h) }")["Softmax"]
    count = count_op(node)
    assert count.reads == (None,)
    assert count.uncounted == "Softmax: the rank of a tensor that it reads or makes is not known"


SCAN = """g (float[4] s, float[n, 4] xs) => (float[4] last, float[n, 4] all)
{
    last, all = Scan<num_scan_inputs = 1, body = b (float[4] a, float[4] x) => (float[4] t, float[4] o) {
        t = Add(a, x)
        o = Exp(t)
    }>(s, xs)
}"""


LOOP = """g (float[4] s, float[n, 4] xs) => (float[4] last)
<int64 zero = {0}, bool yes = {1}>
{
    shape = Shape(xs)
    rows = Gather(shape, zero)
    last = Loop<body = b (int64 i, bool c, float[4] a) => (bool d, float[4] o) {
        d = Identity(c)
        t = Add(a, a)
        o = Exp(t)
    }>(rows, yes, s)
}"""


@pytest.mark.parametrize("text", [SCAN, LOOP])
def test_the_split_counts_a_body_as_often_as_the_profile_does(text: str) -> None:
    header = '<ir_version: 10, opset_import: ["" : 21]>'
    module = igniter.load(onnx.parser.parse_model(f"{header}\n{text}"))
    before = str(module.ir)
    stages = split_stages(module.ir, 1, sizes={"n": 10})
    assert str(module.ir) == before
    assert stages.costs[0]["flops"] == module.profile({"n": 10}).total.cost.flops.constant == 10 * (4 + 4 * 10)


def test_a_size_that_divides_by_zero_counts_nothing() -> None:
    size = Expr.parse("128 floordiv (n - 128)")
    assert CostModel().estimate(size) == 0 == TypicalSizes().value(size, 128)
