"""`convert-opset`: the same outputs in another opset, nothing lost, and a clear error where there is no conversion."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper, parser

import igniter
from igniter.errors import IgniterError

from . import models

CASES = {
    "reduce-sum": ('y = ReduceSum <axes = [1], keepdims = 0> (x)', 11, 13),
    "softmax": ('y = Softmax <axis = 1> (x)', 11, 13),
    "squeeze": ('u = Unsqueeze <axes = [0]> (x) y = Squeeze <axes = [0]> (u)', 11, 18),
    "split": ('a, b = Split <axis = 1, split = [1, 3]> (x) y = Concat <axis = 1> (b, a)', 11, 18),
    "clip": ('y = Clip <min = 0.0, max = 1.0> (x)', 10, 13),
    "reduce-max": ('y = ReduceMax <axes = [1]> (x)', 13, 18),
    "only-versions": ('y = Relu (x)', 13, 21),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_a_converted_model_computes_the_same(name: str):
    body, old, new = CASES[name]
    out = "float[n]" if name == "reduce-sum" else "float[n,m]"
    text = f'<ir_version: 7, opset_import: ["": {old}]> g (float[n,4] x) => ({out} y) {{ {body} }}'
    model = parser.parse_model(text)
    model.graph.node[0].name = "first"
    module = igniter.load(model).convert_opset(new)
    made = module.to_onnx()
    onnx.checker.check_model(made)
    assert [(e.domain, e.version) for e in made.opset_import] == [("", new)]
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    np.testing.assert_array_equal(models.run(made, {"x": x})["y"], models.run(model, {"x": x})["y"])
    assert any(n.name == "first" for n in made.graph.node)


def test_nodes_inside_of_branches_and_functions_are_converted():
    text = """<ir_version: 8, opset_import: ["": 11, "local": 1]>
g (float[n,4] x, bool c) => (float[n] y) {
  y = If (c) <
    then_branch = t () => (float[n] a) { a = ReduceSum <axes = [1], keepdims = 0> (x) },
    else_branch = e () => (float[n] b) { s = local.F (x) b = ReduceSum <axes = [1], keepdims = 0> (s) }
  >
}
<domain: "local", opset_import: ["": 11]> F (a) => (b) { b = Softmax <axis = 1> (a) }"""
    model = parser.parse_model(text)
    made = igniter.load(model).convert_opset(13).to_onnx()
    onnx.checker.check_model(made)
    assert made.functions[0].opset_import[0].version == 13
    x = np.random.default_rng(0).standard_normal((3, 4)).astype(np.float32)
    for c in (True, False):
        feed = {"x": x, "c": np.array(c)}
        np.testing.assert_allclose(models.run(made, feed)["y"], models.run(model, feed)["y"], rtol=1e-6)


def test_an_older_opset():
    model = helper.make_model(
        helper.make_graph(
            [helper.make_node("ReduceSum", ["x", "axes"], ["y"], "sum", keepdims=0)],
            "g",
            [helper.make_tensor_value_info("x", 1, ["n", 4])],
            [helper.make_tensor_value_info("y", 1, ["n"])],
            [numpy_helper.from_array(np.array([1], np.int64), "axes")],
        ),
        opset_imports=[helper.make_opsetid("", 13)],
        ir_version=7,
    )
    made = igniter.load(model).convert_opset(11).to_onnx()
    onnx.checker.check_model(made)
    assert not made.graph.initializer and len(made.graph.node[0].input) == 1
    x = np.ones((2, 4), np.float32)
    np.testing.assert_array_equal(models.run(made, {"x": x})["y"], [4, 4])


def test_what_cannot_be_converted_says_which_node():
    model = parser.parse_model(
        '<ir_version: 9, opset_import: ["": 20]> g (float[n,4] x) => (float[n,4] y) { y = Gelu (x) }'
    )
    model.graph.node[0].name = "act"
    with pytest.raises(IgniterError, match="Gelu 'act'"):
        igniter.load(model).convert_opset(13)
    with pytest.raises(IgniterError, match="the model is in opset 20"):
        igniter.load(model).convert_opset(20)
    with pytest.raises(IgniterError, match="there is no opset 99"):
        igniter.load(model).convert_opset(99)


def test_what_is_not_converted_keeps_everything():
    model = models.loop()
    model.graph.node[0].doc_string = "told"
    model.metadata_props.add(key="a", value="b")
    made = igniter.load(model).convert_opset(21).to_onnx()
    assert made.graph.node[0].doc_string == "told" and made.metadata_props[0].key == "a"
    feed = models.feed_of_loop()
    for name, value in models.run(model, feed).items():
        np.testing.assert_array_equal(models.run(made, feed)[name], value)
