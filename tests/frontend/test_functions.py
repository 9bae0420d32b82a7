"""Calls of model-local functions, and the same computation with them inlined."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from onnx import AttributeProto, TensorProto
from onnx import helper as h
from runtime_equality import original_outputs, outputs, same_bits
from xdsl.dialects.builtin import ModuleOp

from igniter.context import IgniterContext
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.structure import functions
from igniter.errors import IgniterError
from igniter.frontend import export_model, import_model
from igniter.remarks import Remarks
from igniter.transforms.onnx.inline_functions import InlineFunctions

FLOAT = TensorProto.FLOAT


def _scale(opset: int = 21) -> onnx.FunctionProto:
    """b = LeakyRelu<slope>(a * factor), and a branch inside."""
    body = [
        h.make_node("Constant", [], ["k"]),
        h.make_node("Mul", ["a", "k"], ["m"], name="inner"),
        h.make_node("LeakyRelu", ["m"], ["l"]),
        h.make_node("Constant", [], ["yes"], value=h.make_tensor("t", TensorProto.BOOL, [], [True])),
    ]
    body[0].attribute.add(name="value_float", type=AttributeProto.FLOAT, ref_attr_name="factor")
    body[2].attribute.add(name="alpha", type=AttributeProto.FLOAT, ref_attr_name="slope")
    out = [onnx.ValueInfoProto(name="r")]
    then = h.make_graph([h.make_node("Add", ["l", "a"], ["r"])], "then", [], out)
    other = h.make_graph([h.make_node("Neg", ["l"], ["r"])], "else", [], out)
    body.append(h.make_node("If", ["yes"], ["b"], then_branch=then, else_branch=other))
    return h.make_function(
        "local",
        "Scale",
        ["a"],
        ["b"],
        body,
        [h.make_opsetid("", opset)],
        attributes=["factor"],
        attribute_protos=[h.make_attribute("slope", 0.5)],
    )


def _twice() -> onnx.FunctionProto:
    body = [
        h.make_node("Scale", ["a"], ["b"], domain="local", factor=2.0),
        h.make_node("Scale", ["b"], ["c"], domain="local", factor=3.0, slope=0.25),
    ]
    return h.make_function("local", "Twice", ["a"], ["c"], body, [h.make_opsetid("", 21), h.make_opsetid("local", 1)])


def _model(*local: onnx.FunctionProto, calls: int = 2) -> onnx.ModelProto:
    names = ["x", *(f"v{i}" for i in range(1, calls)), "y"]
    given = {"factor": 4.0} if len(local) == 1 else {}
    nodes = [
        h.make_node(local[-1].name, [a], [b], domain="local", name=f"call {b}", **given)
        for a, b in itertools.pairwise(names)
    ]
    values = [h.make_tensor_value_info(n, FLOAT, ["n"]) for n in ("x", "y")]
    graph = h.make_graph(nodes, "g", values[:1], values[1:])
    imports = [h.make_opsetid("", 21), h.make_opsetid("local", 1)]
    return h.make_model(graph, opset_imports=imports, ir_version=10, functions=list(local))


def _inlined(module: ModuleOp) -> tuple[onnx.ModelProto, Remarks]:
    ctx = IgniterContext(remarks=Remarks())
    InlineFunctions().apply(ctx, module)
    module.verify()
    return export_model(module), ctx.remarks


@pytest.mark.parametrize("local", [[_scale()], [_scale(), _twice()]], ids=["flat", "nested"])
def test_inlining_computes_the_same(local: list[onnx.FunctionProto]) -> None:
    before = _model(*local)
    module = import_model(before)
    after, _ = _inlined(module)
    assert not functions(module) and not after.functions
    onnx.checker.check_model(after, full_check=True)
    feeds = {"x": np.array([1, -2, 3], np.float32)}
    assert same_bits(original_outputs(before, feeds), outputs(after, feeds))
    assert after.graph.output[0] == before.graph.output[0]
    made = {name for node in after.graph.node for name in node.output}
    assert {"v1", "y"} <= made


def test_a_call_stays_where_the_opsets_disagree_on_an_op() -> None:
    body = [h.make_node("Softmax", ["a"], ["b"])]
    local = h.make_function("local", "Old", ["a"], ["b"], body, [h.make_opsetid("", 11)])
    module = import_model(_model(local, _pass_through("Old")))
    after, remarks = _inlined(module)
    assert [f.name for f in after.functions] == ["Old"]
    assert {op.qualified_name for op in module.walk() if isinstance(op, OnnxOp)} == {"Softmax", "local.Old"}
    assert "Softmax differs between opset 11" in remarks.items[0].message


def _pass_through(inner: str) -> onnx.FunctionProto:
    body = [h.make_node(inner, ["a"], ["c"], domain="local")]
    return h.make_function("local", "Outer", ["a"], ["c"], body, [h.make_opsetid("local", 1)])


def test_an_opset_that_differs_without_consequence_is_no_obstacle() -> None:
    body = [h.make_node("Mul", ["a", "a"], ["b"])]
    local = h.make_function("local", "Square", ["a"], ["b"], body, [h.make_opsetid("", 18), h.make_opsetid("new", 3)])
    after, _ = _inlined(import_model(_model(local, _pass_through("Square"))))
    assert [n.op_type for n in after.graph.node] == ["Mul", "Mul"]
    assert {o.domain: o.version for o in after.opset_import} == {"": 21, "local": 1, "new": 3}


def test_recursion_is_refused() -> None:
    with pytest.raises(IgniterError, match=r"function local\.Outer calls itself"):
        _inlined(import_model(_model(_pass_through("Outer"), _pass_through("Outer"))))


def test_omitted_and_passed_through_values() -> None:
    body = [h.make_node("Clip", ["a", "low", "high"], ["b"])]
    local = h.make_function("local", "Limit", ["a", "low", "high"], ["b", "a"], body, [h.make_opsetid("", 21)])
    nodes = [h.make_node("Limit", ["x", "", "h"], ["y", "z"], domain="local")]
    nodes.append(h.make_node("Limit", ["y"], ["w"], domain="local"))
    values = {n: h.make_tensor_value_info(n, FLOAT, [] if n == "h" else ["n"]) for n in "xhyzw"}
    graph = h.make_graph(nodes, "g", [values["x"], values["h"]], [values["y"], values["z"], values["w"]])
    imports = [h.make_opsetid("", 21), h.make_opsetid("local", 1)]
    before = h.make_model(graph, opset_imports=imports, ir_version=10, functions=[local])
    after, _ = _inlined(import_model(before))
    onnx.checker.check_model(after, full_check=True)
    feeds = {"x": np.array([1, 5], np.float32), "h": np.array(2, np.float32)}
    assert same_bits(outputs(after, feeds), [np.array([1, 2], np.float32), feeds["x"], np.array([1, 2], np.float32)])
