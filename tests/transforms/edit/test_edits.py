"""Every edit does what it says, and says why where it does not; what it does not touch stays."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
import pytest
from onnx import helper

import igniter
from igniter.errors import IgniterError

from . import models


def load(model: onnx.ModelProto) -> igniter.Module:
    return igniter.load(model)


def edited(module: igniter.Module) -> onnx.ModelProto:
    made = module.to_onnx()
    onnx.checker.check_model(made)
    return made


def refused(make: Callable[[], object]) -> str:
    with pytest.raises(IgniterError) as error:
        make()
    return error.value.message


# -- names ------------------------------------------------------------------------------------------------------------


def test_values_are_renamed_wherever_they_are():
    names = {"x": "image", "y": "scores", "tab": "table", "h": "hidden", "ty": "inner"}
    made = edited(load(models.branches()).rename(names))
    feed = models.feed_of_branches()
    wanted = models.run(models.branches(), feed)
    found = models.run(made, {("image" if k == "x" else k): v for k, v in feed.items()})
    assert list(found) == ["scores", "z"]
    np.testing.assert_array_equal(found["scores"], wanted["y"])
    branch = next(a.g for n in made.graph.node if n.op_type == "If" for a in n.attribute if a.name == "then_branch")
    assert branch.output[0].name == "inner" and branch.node[0].output[0] == "inner"
    assert [t.name for t in made.graph.initializer] == ["table", "w"]


def test_names_can_be_swapped():
    made = edited(load(models.branches()).rename({"e": "h", "h": "e"}))
    add = next(n for n in made.graph.node if n.op_type == "Add")
    assert list(add.input) == ["x", "h"] and list(add.output) == ["e"]


def test_annotations_and_defaults_follow_a_rename():
    made = edited(load(models.quantised()).rename({"p": "product_out", "ws": "scale_of_w", "gain": "factor"}))
    annotation = made.graph.quantization_annotation[0]
    assert annotation.tensor_name == "product_out"
    assert annotation.quant_parameter_tensor_names[0].value == "scale_of_w"
    assert "factor" in [t.name for t in made.graph.initializer]


def test_a_rename_that_cannot_be_says_why():
    module = load(models.branches())
    assert "did you mean 'tab'" in refused(lambda: module.rename({"tabb": "t"}))
    assert "there is a value called 'h' already" in refused(lambda: module.rename({"e": "h"}))
    assert "which it is" in refused(lambda: module.rename({"e": "e"}))
    assert "nothing is named" in refused(lambda: module.rename())


def test_nodes_are_renamed_by_what_they_compute():
    made = edited(load(models.branches()).rename(nodes={"h": "add"}))
    assert [n.name for n in made.graph.node] == ["", "add", "", "", ""]
    assert "there is no node called" in refused(lambda: load(models.branches()).rename(nodes={"q": "add"}))
    assert "no node computes it" in refused(lambda: load(models.branches()).rename(nodes={"tab": "add"}))


# -- dims -------------------------------------------------------------------------------------------------------------


def dims(value: onnx.ValueInfoProto) -> list[int | str]:
    return [d.dim_param or d.dim_value for d in value.type.tensor_type.shape.dim]


def test_dims_are_renamed_fixed_and_bound():
    made = edited(load(models.branches()).rename(dims={"batch": "rows"}))
    assert dims(made.graph.input[0]) == ["rows", 4] and dims(made.graph.output[1]) == ["rows", 3]
    made = edited(load(models.loop()).fix_dims(batch=2))
    assert dims(made.graph.input[2]) == [2, 4] and dims(made.graph.output[1]) == ["n", 2, 4]
    two = helper.make_graph(
        [helper.make_node("Concat", ["a", "b"], ["y"], axis=0)],
        "g",
        [helper.make_tensor_value_info(n, 1, [n, "k" if n == "a" else None]) for n in "ab"],
        [helper.make_tensor_value_info("y", 1, ["c", None])],
    )
    model = helper.make_model(two, opset_imports=[helper.make_opsetid("", 17)])
    made = edited(load(model).bind_dims({"b:1": "k", "b": "a"}))
    assert [dims(v) for v in made.graph.input] == [["a", "k"], ["a", "k"]]
    made = edited(load(model).bind_dims(b="a + 1"))
    assert dims(made.graph.input[1])[0] == "a + 1"


def test_a_dim_that_cannot_be_set_says_why():
    assert "no dim of an input: it follows" in refused(
        lambda: load(models.branches()).replace("z", "z = MatMul (r, w)") and load(_computed()).fix_dims(found=3)
    )
    assert "there is no dim called 'bach'; there are batch" in refused(lambda: load(models.branches()).fix_dims(bach=1))
    assert "not negative" in refused(lambda: load(models.branches()).fix_dims(batch=-1))
    assert "is 4: it can be freed" in refused(lambda: load(models.branches()).fix_dims({"x:1": 1}))
    assert "has 2 dims" in refused(lambda: load(models.branches()).fix_dims({"x:2": 1}))
    assert "depends on it" in refused(lambda: load(models.branches()).bind_dims(batch="batch + 1"))


def _computed() -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("NonZero", ["x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, ["n"])],
        [helper.make_tensor_value_info("y", 7, [1, "found"])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def test_a_size_that_a_node_refuses_is_refused():
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "table"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", 1, ["seq", 4])],
        [helper.make_tensor_value_info("y", 1, ["seq", 4])],
        [onnx.numpy_helper.from_array(np.ones((8, 4), np.float32), "table")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    assert "the model does not run with seq=9" in refused(lambda: load(model).fix_dims(seq=9))


def reshaped(target: list[int], batch: int = 2) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Reshape", ["x", "shape"], ["y"], "flatten")],
        "g",
        [helper.make_tensor_value_info("x", 1, [batch, 3, 4])],
        [helper.make_tensor_value_info("y", 1, [None, None])],
        [onnx.numpy_helper.from_array(np.array(target, np.int64), "shape")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_numbers_are_freed_where_that_is_legal():
    module = load(reshaped([-1, 12]))
    made = edited(module.free_dims({"x:0": "batch"}))
    assert dims(made.graph.input[0]) == ["batch", 3, 4]
    x = np.arange(60, dtype=np.float32).reshape(5, 3, 4)
    np.testing.assert_array_equal(models.run(made, {"x": x})["y"], x.reshape(5, 12))


@pytest.mark.parametrize(
    ("target", "why"),
    [([2, 12], "Reshape 'flatten' needs"), ([2, -1], "which would put 'batch' into another dim")],
)
def test_numbers_are_not_freed_where_a_node_takes_no_other(target: list[int], why: str):
    message = refused(lambda: load(reshaped(target)).free_dims({"x:0": "batch"}))
    assert "'batch' (now 2) cannot be free" in message and why in message and "flatten" in message


def test_a_dim_beside_a_weight_is_not_freed():
    message = refused(lambda: load(models.branches()).free_dims({"x:1": "width"}))
    assert "'width' (now 4) cannot be free: Add 'h' has it beside 4" in message
    assert "it is free already" in refused(lambda: load(models.branches()).free_dims({"x:0": "n"}))


# -- types ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", ["int32", "int16", "uint8", "float", "double", "int8", "uint64"])
def test_input_types_change_with_a_cast(type_: str):
    made = edited(load(models.branches()).change_types(ids=type_))
    feed = models.feed_of_branches()
    wanted = models.run(models.branches(), feed)
    kind = {"float": "float32", "double": "float64"}.get(type_, type_)
    found = models.run(made, {**feed, "ids": feed["ids"].astype(kind)})
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value)


@pytest.mark.parametrize("type_", ["float16", "double", "int32", "bfloat16"])
def test_output_types_change_and_the_name_stays(type_: str):
    made = edited(load(models.branches()).change_types({"y": type_, "z": type_}))
    assert [v.name for v in made.graph.output] == ["y", "z"]
    if type_ != "bfloat16":
        kind = {"double": "float64"}.get(type_, type_)
        found = models.run(made, models.feed_of_branches())
        wanted = models.run(models.branches(), models.feed_of_branches())
        np.testing.assert_array_equal(found["y"], wanted["y"].astype(kind))


def test_a_default_is_converted_with_its_input():
    made = edited(load(models.quantised()).change_types(gain="double"))
    x = np.ones((2, 4), np.float32)
    wanted = models.run(models.quantised(), {"x": x})["y"]
    np.testing.assert_allclose(models.run(made, {"x": x})["y"], wanted)


def test_a_type_that_is_none_or_no_change_is_refused():
    module = load(models.branches())
    assert "there is no type called 'int31'" in refused(lambda: module.change_types(ids="int31"))
    assert "which it is" in refused(lambda: module.change_types(ids="int64"))
    assert "'h' is a value of the model, but no output" in refused(lambda: module.change_types(h="double"))


# -- nodes ------------------------------------------------------------------------------------------------------------


def test_nodes_are_dropped():
    made = edited(load(models.branches()).drop("r"))
    feed = models.feed_of_branches()
    assert "Relu" not in [n.op_type for n in made.graph.node]
    whole = np.log(models.run(models.branches(), {**feed, "c": np.array(False)})["y"])
    np.testing.assert_allclose(models.run(made, feed)["y"], -whole, rtol=1e-5, atol=1e-6)
    made = edited(load(models.branches()).drop(by={"h": "x"}))
    # The table and its Gather were read by the dropped node alone.
    assert [n.op_type for n in made.graph.node] == ["Relu", "If", "MatMul"] and len(made.graph.initializer) == 1
    np.testing.assert_array_equal(models.run(made, feed)["y"], -np.maximum(feed["x"], 0))


def test_a_node_that_cannot_be_dropped_says_why():
    module = load(models.branches())
    assert "2 inputs have the type of its result: 'x', 'e'" in refused(lambda: module.drop("h"))
    assert "no input has the type of its result" in refused(lambda: module.drop("z"))
    assert "it is tensor" in refused(lambda: module.drop(by={"h": "ids"}))


def test_nodes_are_inserted_behind_a_value_for_all_or_some():
    feed = models.feed_of_branches(c=False)
    h = np.log(models.run(models.branches(), feed)["y"])
    made = edited(load(models.branches()).insert("h = Neg (h)"))
    np.testing.assert_allclose(models.run(made, feed)["y"], np.exp(-h), rtol=1e-5)
    made = edited(load(models.branches()).insert("h = Neg (h)", ["r"]))
    found = models.run(made, feed)
    np.testing.assert_allclose(found["y"], np.exp(h), rtol=1e-5)
    w = onnx.numpy_helper.to_array(models.branches().graph.initializer[1])
    np.testing.assert_allclose(found["z"], np.maximum(-h, 0) @ w, rtol=1e-4, atol=1e-5)


def test_nodes_are_inserted_inside_of_a_branch():
    made = edited(load(models.branches()).insert("ty = Abs (ty)"))
    feed = models.feed_of_branches()
    np.testing.assert_array_equal(models.run(made, feed)["y"], -models.run(models.branches(), feed)["y"])


def test_an_inserted_node_imports_its_domain():
    made = edited(load(models.branches()).replace("r", "r = com.microsoft.Gelu (h)"))
    assert {e.domain for e in made.opset_import} == {"", "com.microsoft"}
    models.run(made, models.feed_of_branches())


def test_a_node_that_cannot_be_inserted_says_why():
    module = load(models.branches())
    assert "cannot read the node `h = Relu h`" in refused(lambda: module.insert("h = Relu h"))
    assert "there is no value called 'q'" in refused(lambda: module.insert("h = Relu (q)"))
    assert "MatMul 'z' does not read 'h'" in refused(lambda: module.insert("h = Relu (h)", ["z"]))
    assert "would depend on its own result" in refused(lambda: module.insert("h = Add (h, r)"))
    assert "it is tensor<2xi64>" in refused(lambda: module.insert("h = Shape (h)"))
    assert "'alpha'" in refused(lambda: module.insert("h = Relu <alpha = 1.0> (h)"))
    assert "inside of another graph" in refused(lambda: module.insert("h = Add (h, ty)"))


def test_nodes_are_replaced():
    feed = models.feed_of_branches()
    made = edited(load(models.branches()).rename(nodes={"r": "act"}).replace("act", "r = LeakyRelu <alpha = 0.0> (h)"))
    assert [n.name for n in made.graph.node if n.op_type == "LeakyRelu"] == ["act"]
    np.testing.assert_array_equal(models.run(made, feed)["y"], models.run(models.branches(), feed)["y"])
    assert "does not compute 'r'" in refused(lambda: load(models.branches()).replace("r", "q = Relu (h)"))
    assert "in the place of" in refused(lambda: load(models.branches()).replace("r", "r = Shape (h)"))


def test_a_refused_edit_leaves_the_module():
    module = load(models.branches())
    before = str(module)
    refused(lambda: module.insert("h = Add (h, r)"))
    assert str(module) == before and module.edits == ()


# -- outputs and inputs -----------------------------------------------------------------------------------------------


def test_values_are_exposed_by_name_pattern_or_all():
    feed = models.feed_of_branches()
    made = edited(load(models.branches()).expose("h"))
    assert [v.name for v in made.graph.output] == ["y", "z", "h"] and dims(made.graph.output[2]) == ["batch", 4]
    np.testing.assert_array_equal(np.maximum(models.run(made, feed)["h"], 0), -models.run(models.branches(), feed)["y"])
    assert len(edited(load(models.branches()).expose(pattern="^[eh]$")).graph.output) == 4
    assert len(edited(load(models.branches()).expose(all=True)).graph.output) == 5
    assert len(edited(load(models.loop()).expose("x")).graph.output) == 3


def test_what_cannot_be_exposed_says_why():
    module = load(models.branches())
    assert "inside of If 'y', where it is computed once an iteration" in refused(lambda: module.expose("ty"))
    assert "is an output already" in refused(lambda: module.expose("y"))
    assert "has 'qq' in its name" in refused(lambda: module.expose(pattern="qq"))
    assert "is no regular expression" in refused(lambda: module.expose(pattern="("))


def test_outputs_and_inputs_are_removed():
    made = edited(load(models.branches()).remove_outputs("y").remove_inputs("c"))
    assert [v.name for v in made.graph.input] == ["x", "ids"]
    assert [n.op_type for n in made.graph.node] == ["Gather", "Add", "Relu", "MatMul"]
    assert "read by If 'y'" in refused(lambda: load(models.branches()).remove_inputs("c"))
    assert "one has to stay" in refused(lambda: load(models.branches()).remove_outputs("y", "z"))
    made = edited(load(models.quantised()).remove_inputs("gain"))
    assert [v.name for v in made.graph.input] == ["x"]
    x = np.ones((1, 4), np.float32)
    np.testing.assert_array_equal(models.run(made, {"x": x})["y"], models.run(models.quantised(), {"x": x})["y"])
