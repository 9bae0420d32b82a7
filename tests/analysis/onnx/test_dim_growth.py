"""Dims that multiply sums: a model of k factors is compiled in a time that does not double with every factor."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from igniter.analysis.onnx.shape_inference import infer_shapes
from igniter.dialects.sym.expr import MAX_TERMS, Expr, product
from igniter.frontend import import_model


def chain(factors: int) -> onnx.ModelProto:
    """Pairs of inputs of a_k and b_k elements, joined and multiplied: (a_0 + b_0)(a_1 + b_1)... elements."""
    nodes: list[onnx.NodeProto] = []
    inputs: list[onnx.ValueInfoProto] = []
    made = ""
    for k in range(factors):
        for name in ("a", "b"):
            inputs.append(helper.make_tensor_value_info(f"{name}{k}", TensorProto.FLOAT, [f"d{name}{k}"]))
        nodes.append(helper.make_node("Concat", [f"a{k}", f"b{k}"], [f"s{k}"], axis=0))
        if made:
            nodes += [
                helper.make_node("Unsqueeze", [made, "one"], [f"p{k}"]),
                helper.make_node("Mul", [f"p{k}", f"s{k}"], [f"m{k}"]),
                helper.make_node("Reshape", [f"m{k}", "flat"], [f"f{k}"]),
            ]
        made = f"f{k}" if made else f"s{k}"
    integers = [numpy_helper.from_array(np.array([v]), n) for n, v in (("one", 1), ("flat", -1))]
    graph = helper.make_graph(nodes, "g", inputs, [onnx.ValueInfoProto(name=made)], integers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_dims_stay_small() -> None:
    """Multiplied out, the last dim would have 2^40 terms, and inference would not end."""
    facts = infer_shapes(import_model(chain(40)))
    assert not facts.failures
    dims = [d for t in facts.types.values() for d in getattr(getattr(t, "encoding", None), "data", ())]
    assert max(len(d.terms) for d in dims) <= MAX_TERMS


def test_what_is_small() -> None:
    sums = [Expr.of(f"a{k}") + f"b{k}" for k in range(6)]
    assert product(sums[:5]).is_small
    assert not product(sums).is_small
    # One symbol is small whatever it is called.
    assert Expr.of("n" * 10000).is_small
