"""Bodies of If, Loop and Scan are compiled inside, and run in stock ONNX Runtime."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter

F, B, I = TensorProto.FLOAT, TensorProto.BOOL, TensorProto.INT64  # noqa: E741
RNG = np.random.default_rng(0)


def value(name: str, type_: int, shape: Any) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, type_, shape)


def chain(source: str, result: str) -> list[onnx.NodeProto]:
    """tanh(x) * w + x, whose weight is outside of the graph that the nodes are in."""
    return [
        helper.make_node("Tanh", [source], [f"{result}_t"]),
        helper.make_node("Mul", [f"{result}_t", "w"], [f"{result}_m"]),
        helper.make_node("Add", [f"{result}_m", source], [result]),
    ]


def branches() -> tuple[list[onnx.NodeProto], list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    then = helper.make_graph(chain("x", "a"), "then", [], [value("a", F, ["n", 8])])
    other = helper.make_graph([helper.make_node("Neg", ["x"], ["b"])], "else", [], [value("b", F, ["n", 8])])
    node = helper.make_node("If", ["c"], ["y"], then_branch=then, else_branch=other)
    return [node], [value("c", B, []), value("x", F, ["n", 8])], [value("y", F, ["n", 8])]


def loop() -> tuple[list[onnx.NodeProto], list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    nodes = [helper.make_node("Identity", ["go"], ["go_on"]), *chain("h", "h_next")]
    body = helper.make_graph(
        [*nodes, helper.make_node("Identity", ["h_next"], ["row"])],
        "body",
        [value("i", I, []), value("go", B, []), value("h", F, ["n", 8])],
        [value("go_on", B, []), value("h_next", F, ["n", 8]), value("row", F, ["n", 8])],
    )
    node = helper.make_node("Loop", ["trips", "", "x"], ["y", "rows"], body=body)
    return [node], [value("trips", I, []), value("x", F, ["n", 8])], [value("y", F, ["n", 8]), value("rows", F, None)]


def scan() -> tuple[list[onnx.NodeProto], list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    """Through a type that no kernel computes with: otherwise the loop would be part of a program."""
    text = helper.make_node("Cast", ["s"], ["s_t"], to=TensorProto.STRING)
    back = helper.make_node("Cast", ["s_t"], ["v"], to=F)
    nodes = [text, back, *chain("v", "s_x"), helper.make_node("Add", ["s_x", "h"], ["h_next"])]
    body = helper.make_graph(
        [*nodes, helper.make_node("Identity", ["h_next"], ["row"])],
        "body",
        [value("h", F, [8]), value("s", F, [8])],
        [value("h_next", F, [8]), value("row", F, [8])],
    )
    node = helper.make_node("Scan", ["h0", "x"], ["y", "rows"], body=body, num_scan_inputs=1)
    return [node], [value("h0", F, [8]), value("x", F, ["n", 8])], [value("y", F, [8]), value("rows", F, ["n", 8])]


@pytest.mark.parametrize("make", [branches, loop, scan])
def test_bodies_are_compiled(make: Any) -> None:
    nodes, inputs, outputs = make()
    weight = numpy_helper.from_array(RNG.standard_normal(8).astype(np.float32), "w")
    graph = helper.make_graph(nodes, "g", inputs, outputs, [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    artifact = igniter.compile(model, verify=False)
    assert artifact.report["regions"] >= 1
    compiled = onnx.load(str(artifact.model_path))
    assert not any(n.domain.startswith("libigniter_") for n in compiled.graph.node), "the region is in the body"
    left = {entry["op"] for entry in artifact.report["left_to_onnxruntime"]}
    assert nodes[0].op_type in left
    assert not left & {"Tanh", "Mul", "Add"}
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    session = artifact.session(intra_op_num_threads=1)
    for n, c, trips in ((3, True, 4), (1, False, 1), (17, True, 0)):
        feed = {
            "c": np.array(c),
            "trips": np.array(trips),
            "x": RNG.standard_normal((n, 8)).astype(np.float32),
            "h0": RNG.standard_normal(8).astype(np.float32),
        }
        given = {i.name: feed[i.name] for i in inputs}
        for want, got in zip(reference.run(None, given), session.run(None, given), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-6)


def test_a_state_whose_rank_varies() -> None:
    """PaddlePaddle declares a state of a Loop as scalar that an If makes a tensor of one element from the second
    iteration on. ONNX Runtime only warns of it; what the body computes from the state has no rank that is known."""
    then = helper.make_graph([helper.make_node("Add", ["s_i", "one"], ["a"])], "then", [], [value("a", I, [])])
    other = helper.make_graph([helper.make_node("Identity", ["s_i"], ["b"])], "else", [], [value("b", I, [])])
    body = helper.make_graph(
        [
            helper.make_node("Identity", ["go"], ["go_on"]),
            helper.make_node("Mul", ["s", "s"], ["s_s"]),
            helper.make_node("Add", ["s_s", "s"], ["s_f"]),
            helper.make_node("Cast", ["s_f"], ["s_i"], to=I),
            helper.make_node("If", ["go"], ["t"], then_branch=then, else_branch=other),
            helper.make_node("Mul", ["t", "t"], ["u"]),
            helper.make_node("Cast", ["u"], ["s_next"], to=F),
            helper.make_node("Add", ["h", "s_next"], ["h_next"]),
        ],
        "body",
        [value("i", I, []), value("go", B, []), value("s", F, []), value("h", F, [3])],
        [value("go_on", B, []), value("s_next", F, []), value("h_next", F, [3])],
    )
    node = helper.make_node("Loop", ["trips", "", "s0", "x"], ["s_last", "y"], body=body)
    inputs = [value("trips", I, []), value("s0", F, []), value("x", F, [3])]
    one = numpy_helper.from_array(np.array([1]), "one")
    graph = helper.make_graph([node], "g", inputs, [value("s_last", F, None), value("y", F, [3])], [one])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = igniter.compile(model, verify=False).session(intra_op_num_threads=1, log_severity_level=4)
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for trips in (0, 1, 3):
        feed = {"trips": np.array(trips), "s0": np.array(0.5, np.float32), "x": np.arange(3, dtype=np.float32)}
        for want, got in zip(reference.run(None, feed), session.run(None, feed), strict=True):
            np.testing.assert_array_equal(got, want)


def recurrent_loop() -> tuple[list[onnx.NodeProto], list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    """Weights are states that every step hands on."""
    nodes = [
        helper.make_node("MatMul", ["h", "w"], ["product"]),
        helper.make_node("Tanh", ["product"], ["h_on"]),
        *(helper.make_node("Identity", [n], [f"{n}_on"]) for n in ("go", "w", "k")),
    ]
    body = helper.make_graph(
        nodes,
        "body",
        [value("i", I, []), value("go", B, []), value("k", F, [2]), value("h", F, ["m", 8]), value("w", F, [8, 8])],
        [
            value(n, t, s)
            for n, t, s in (("go_on", B, []), ("k_on", F, [2]), ("h_on", F, ["m", 8]), ("w_on", F, [8, 8]))
        ],
    )
    node = helper.make_node("Loop", ["trips", "", "k", "x", "weight"], ["k_after", "y", "w_after"], body=body)
    outputs = [value("k_after", F, [2]), value("y", F, ["n", 8]), value("w_after", F, [8, 8])]
    return [node], [value("trips", I, []), value("k", F, [2]), value("x", F, ["n", 8])], outputs


def recurrent_scan() -> tuple[list[onnx.NodeProto], list[onnx.ValueInfoProto], list[onnx.ValueInfoProto]]:
    nodes = [
        helper.make_node("MatMul", ["s", "v"], ["product"]),
        helper.make_node("Add", ["product", "h"], ["h_next"]),
        *(helper.make_node("Identity", [n], [m]) for n, m in (("h_next", "row"), ("v", "v_next"))),
    ]
    body = helper.make_graph(
        nodes,
        "body",
        [value("v", F, [8, 8]), value("h", F, [8]), value("s", F, [8])],
        [value("v_next", F, [8, 8]), value("h_next", F, [8]), value("row", F, [8])],
    )
    node = helper.make_node("Scan", ["weight", "h0", "x"], ["w_after", "y", "rows"], body=body, num_scan_inputs=1)
    outputs = [value("y", F, [8]), value("rows", F, ["n", 8]), value("w_after", F, [8, 8])]
    return [node], [value("h0", F, [8]), value("x", F, ["n", 8])], outputs


@pytest.mark.parametrize("make", [recurrent_loop, recurrent_scan])
def test_states_that_no_iteration_changes(make: Any) -> None:
    """Keras hands the weights of a recurrence from step to step: they are constants, which can be packed."""
    nodes, inputs, outputs = make()
    weight = numpy_helper.from_array(RNG.standard_normal((8, 8)).astype(np.float32), "weight")
    graph = helper.make_graph(nodes, "g", inputs, outputs, [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    session = igniter.compile(model, verify=False).session(intra_op_num_threads=1)
    reference = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    for rows, trips in ((3, 5), (1, 1), (4, 0)):
        given = {"trips": np.array(trips), "k": np.array([1, 2]), "h0": np.ones(8), "x": RNG.standard_normal((rows, 8))}
        types = {i.name: np.int64 if i.type == "tensor(int64)" else np.float32 for i in reference.get_inputs()}
        feeds = {name: given[name].astype(types[name]) for name in types}
        for got, want in zip(session.run(None, feeds), reference.run(None, feeds), strict=True):
            np.testing.assert_allclose(got, want, 1e-5, 1e-6)
