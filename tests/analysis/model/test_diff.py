"""The differences of two models: nothing under other names and in another order, and each change for what it is."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnx.helper
import onnx.numpy_helper
import pytest

import igniter
from igniter.dialects.onnx.weights import Weight
from igniter.toolbox.diff.diff import ModelDiff
from igniter.toolbox.diff.weight_difference import same_bytes, weight_difference

from .kit import BRANCHES, HEADS, model

NET = """
net (float[n, 4] x) => (float[n, 4] y, float[n, 4] z)
<float[4, 4] w = {1,2,3,4, 5,6,7,8, 1,1,1,1, 2,2,2,2}, float[4] b = {1,2,3,4}>
{
    p = MatMul(x, w)
    q = Add(p, b)
    r = Relu(q)
    s = Softmax<axis = 1>(r)
    y = Mul(s, x)
    t = Tanh(q)
    z = Add(t, r)
}
"""


def diff(a: onnx.ModelProto, b: onnx.ModelProto) -> ModelDiff:
    return igniter.load(a).diff(igniter.load(b))


def scrambled(proto: onnx.ModelProto, seed: int) -> onnx.ModelProto:
    """The same with other names inside, the nodes in another order, and operands that commute exchanged."""
    made, rng = onnx.ModelProto(), random.Random(seed)
    made.CopyFrom(proto)
    graph = made.graph
    kept = {v.name for v in (*graph.input, *graph.output)}
    names: dict[str, str] = {"": ""}

    def rename(name: str) -> str:
        return name if name in kept else names.setdefault(name, f"v{rng.random()}")

    for tensor in graph.initializer:
        tensor.name = rename(tensor.name)
    for node in graph.node:
        node.name = f"n{rng.random()}"
        inputs = [rename(n) for n in node.input]
        node.input[:] = inputs[::-1] if node.op_type in ("Add", "Mul") and rng.random() < 0.5 else inputs
        node.output[:] = [rename(n) for n in node.output]
    left, known, order = (
        list(graph.node),
        {*kept, *(t.name for t in graph.initializer)} - {v.name for v in graph.output},
        [],
    )
    while left:
        node = rng.choice([n for n in left if set(n.input) <= known | {""}])
        left.remove(node)
        known |= set(node.output)
        order.append(node)
    del graph.node[:]
    graph.node.extend(order)
    del graph.value_info[:]
    return made


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("text", [NET, HEADS])
def test_names_and_order_do_not_count(text: str, seed: int) -> None:
    proto = model(text)
    found = diff(proto, scrambled(proto, seed))
    assert not found, found
    assert found.matched == len(proto.graph.node)


def node(proto: onnx.ModelProto, name: str) -> onnx.NodeProto:
    return next(n for n in proto.graph.node if name in n.output)


def change_attribute(p: onnx.ModelProto) -> None:
    node(p, "s").attribute[0].i = 0


def change_weight(p: onnx.ModelProto) -> None:
    array = onnx.numpy_helper.to_array(p.graph.initializer[1]).copy()
    array[2] += 0.5
    p.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(array, "b"))


def insert(p: onnx.ModelProto) -> None:
    made = onnx.helper.make_node("Exp", ["r"], ["e"], name="new")
    node(p, "s").input[0] = "e"
    p.graph.node.insert(3, made)


def drop(p: onnx.ModelProto) -> None:
    node(p, "s").input[0] = "q"
    node(p, "z").input[1] = "q"
    p.graph.node.remove(node(p, "r"))


def replace(p: onnx.ModelProto) -> None:
    node(p, "r").op_type = "Sigmoid"


def rewire(p: onnx.ModelProto) -> None:
    node(p, "t").input[0] = "p"


def reshape_weight(p: onnx.ModelProto) -> None:
    array = onnx.numpy_helper.to_array(p.graph.initializer[1]).reshape(1, 4)
    p.graph.initializer[1].CopyFrom(onnx.numpy_helper.from_array(array, "b"))


ADD, MATMUL = "result 0 of Add 'add_1'", "result 0 of MatMul 'matmul_0'"
CHANGES: list[tuple[Callable[[Any], None], list[tuple[str, str, str]], int]] = [
    (change_attribute, [("attributes", "Softmax", "axis is 1 in A and 0 in B")], 0),
    (change_weight, [], 1),
    (reshape_weight, [], 1),
    (
        insert,
        [
            ("rewired", "Softmax", "operand 0 is result 0 of Relu 'relu_2' in A and result 0 of Exp 'new' in B"),
            ("added", "Exp", ""),
        ],
        0,
    ),
    (
        drop,
        [("removed", "Relu", ""), ("rewired", "Softmax", f"{ADD} in B"), ("rewired", "Add", f"{ADD} in B")],
        0,
    ),
    (replace, [("replaced", "Relu", "Relu in A, Sigmoid in B")], 0),
    (rewire, [("rewired", "Tanh", f"operand 0 is {ADD} in A and {MATMUL} in B")], 0),
]


@pytest.mark.parametrize(("edit", "nodes", "weights"), CHANGES, ids=[c[0].__name__ for c in CHANGES])
@pytest.mark.parametrize("seed", [None, 1, 2])
def test_each_change_is_told(
    edit: Callable[[Any], None], nodes: list[tuple[str, str, str]], weights: int, seed: int | None
) -> None:
    proto, other = model(NET), model(NET)
    edit(other)
    found = diff(proto, other if seed is None else scrambled(other, seed))
    assert [(c.kind, c.op) for c in found.nodes] == [(kind, op) for kind, op, _ in nodes]
    if seed is None:
        for change, (_, _, detail) in zip(found.nodes, nodes, strict=True):
            assert detail in "; ".join(change.details)
    assert len(found.weights) == weights and not found.interface and not found.header


def test_the_figures_of_a_weight() -> None:
    other = model(NET)
    change_weight(other)
    (change,) = diff(model(NET), other).weights
    assert (change.a, change.b, change.elements) == ("b", "b", 1)
    assert change.absolute == pytest.approx(0.5) and change.relative == pytest.approx(0.5 / 3)
    assert change.type_a == "float32 [4]" and change.reader == "Add 'add_1'"


def test_inputs_outputs_opsets_and_metadata() -> None:
    other = model(NET.replace("x)", "x, float[2] extra)", 1).replace("float[n, 4] z", "float[n, 5] z"), opset=18)
    other.metadata_props.add(key="made_by", value="me")
    other.producer_name = "somebody"
    found = diff(model(NET), other)
    assert not found.nodes and not found.weights
    assert found.interface == (
        "input 'extra' float32 [2] is only in B",
        "output 'z' is float32 [n, 4] in A and float32 [n, 5] in B",
    )
    assert found.header == (
        "opset of 'ai.onnx' is 17 in A and 18 in B",
        "producer_name is '' in A and 'somebody' in B",
        "metadata 'made_by' is none in A and me in B",
    )


def test_an_attribute_at_its_default_is_no_difference() -> None:
    assert not diff(model(NET.replace("<axis = 1>", "")), model(NET.replace("<axis = 1>", "<axis = -1>")))


def test_nested_graphs_and_functions() -> None:
    found = diff(model(BRANCHES), model(BRANCHES.replace("Exp", "Log")))
    assert [(c.kind, c.where) for c in found.nodes] == [("replaced", "if_0/else_branch")]
    function = '<domain: "local", opset_import: ["" : 17]> Twice (a) => (b) { t = Add(a, a) b = Exp(t) }'
    call = "g (float[n, 4] x) => (float[n, 4] y) { y = local.Twice(x) }"
    found = diff(model(call, functions=function), model(call, functions=function.replace("Exp", "Log")))
    assert [(c.kind, c.where) for c in found.nodes] == [("replaced", "function local.Twice")]


DTYPES = ["float32", "float16", "bfloat16", "float64", "int8", "uint8", "int64", "bool", "int4", "uint4", "complex64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_weights_of_every_type(dtype: str) -> None:
    import ml_dtypes

    kind = np.dtype(dtype if dtype not in ("bfloat16", "int4", "uint4") else getattr(ml_dtypes, dtype))
    a = np.array([0, 1, 1, 0, 1], kind)
    b = a.copy()
    assert same_bytes(Weight.of(a), Weight.of(b))
    b[2] = 0
    assert not same_bytes(Weight.of(a), Weight.of(b))
    found = weight_difference(Weight.of(a), Weight.of(b))
    assert (found.elements, found.absolute, found.relative) == (1, 1.0, 1.0)


def test_weights_that_are_odd() -> None:
    nan = np.array([np.nan, 1.0, 0.0], np.float32)
    assert weight_difference(Weight.of(nan), Weight.of(nan.copy())).elements == 0
    found = weight_difference(Weight.of(nan), Weight.of(np.array([1.0, 1.0, 2.0], np.float32)))
    assert found.elements == 2 and found.absolute == found.relative == float("inf")
    assert weight_difference(Weight.of(nan), Weight.of(nan[:2])).elements is None
    empty = np.zeros((0, 3), np.float32)
    assert same_bytes(Weight.of(empty), Weight.of(empty.copy()))
    words = np.array(["a", "b"], object)
    assert (
        same_bytes(Weight.of(words), Weight.of(words.copy()))
        and weight_difference(Weight.of(words), Weight.of(np.array(["a", "c"], object))).elements is None
    )
