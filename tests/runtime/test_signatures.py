"""The compiled model takes what the original takes: its inputs have the dims that the model gives them, and nothing
that only some runs obey narrows them."""

from __future__ import annotations

from typing import Any

import onnx
import onnxruntime as ort
import pytest

import igniter
from tests.runtime.test_requirements import EVERY, agree, floats, model_of, node


def input_dims(artifact: Any) -> dict[str, list[Any]]:
    return {i.name: i.shape for i in artifact.session().get_inputs()}


@pytest.mark.parametrize("text", ["?", "None", "-1", "unk__7", "unknown"])
def test_dims_without_a_name_are_different_dims(text: str) -> None:
    """A picture of 48 x 192 whose dims are all called `?`."""
    nodes = [node("Transpose", ["x"], ["a"], perm=[0, 2, 1]), node("Exp", ["a"], ["y"])]
    model = model_of(nodes, {"x": [text, text, text]})
    assert agree(model, [{"x": floats(2, 5, 7)}, {"x": floats(3, 3, 3)}, {"x": floats(1, 8, 2)}]) == [None] * 3
    assert input_dims(igniter.compile(model, verify=False)) == {"x": [text, text, text]}


def test_facts_do_not_narrow_the_signature() -> None:
    """The product asks for n = 5, and the model says n all the same; the error is that of a node."""
    nodes = [node("MatMul", ["x", "w"], ["a"]), node("Exp", ["a"], ["y"])]
    model = model_of(nodes, {"x": ["m", "n"]}, constants={"w": floats(5, 6)})
    messages = agree(model, [{"x": floats(2, 5)}, {"x": floats(2, 4)}, {"x": floats(0, 5)}])
    assert [m is None for m in messages] == [True, False, True]
    assert input_dims(igniter.compile(model, verify=False)) == {"x": ["m", "n"]}


def test_concat_takes_no_notice_of_parts_without_elements() -> None:
    """As ONNX Runtime: their other dims may be anything where they add nothing along the axis."""
    concat = node("Concat", ["a", "c", "a"], ["b"], axis=1)
    model = model_of(
        [node("Neg", ["x"], ["a"]), concat, node("Exp", ["b"], ["y"])], {"x": ["n", "m"]}, constants={"c": floats(3, 2)}
    )
    shapes = ((3, 4), (3, 0), (0, 0), (7, 0), (2, 4), (3, 1))
    messages = agree(model, [{"x": floats(*s)} for s in shapes])
    assert [m is None for m in messages] == [True, True, True, True, False, True]
    # A part that is always empty says nothing of the others.
    concat = node("Concat", ["c", "a", "a"], ["b"], axis=1)
    model = model_of(
        [node("Neg", ["x"], ["a"]), concat, node("Exp", ["b"], ["y"])], {"x": ["n", "m"]}, constants={"c": floats(3, 0)}
    )
    shapes = ((3, 4), (2, 4), (7, 1))
    assert agree(model, [{"x": floats(*s)} for s in shapes]) == [None] * len(shapes)


def test_an_empty_first_input_gives_its_dims_where_all_are_empty() -> None:
    """ONNX Runtime's Concat has elements that nobody wrote then; their number agrees, which is all that can."""
    for first, rest in (("c", "a"), ("a", "c")):
        nodes = [
            node("Neg", ["x"], ["a"]),
            node("Concat", [first, "a", rest], ["b"], axis=1),
            node("Shape", ["b"], ["y"]),
        ]
        model = model_of(nodes, {"x": ["n", "m"]}, constants={"c": floats(3, 0)})
        model.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.INT64
        shapes = ((3, 4), (2, 4), (0, 4), (0, 0), (2, 0))
        assert agree(model, [{"x": floats(*s)} for s in shapes]) == [None] * len(shapes)


REDUCTIONS = (
    *("ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean", "ReduceMin", "ReduceProd"),
    *("ReduceSum", "ReduceSumSquare"),
)


@pytest.mark.parametrize("fusion", ["cpu-fusion", EVERY])
def test_reductions_over_no_axes(fusion: str) -> None:
    """No axis is reduced, but squares, absolute values and logarithms are taken all the same."""
    nodes: list[onnx.NodeProto] = [node("Neg", ["x"], ["a"])]
    nodes += [node(op, ["a", "axes"], [f"y{k}"], noop_with_empty_axes=1) for k, op in enumerate(REDUCTIONS)]
    outputs = [f"y{k}" for k in range(len(REDUCTIONS))]
    model = model_of(nodes, {"x": ["n", 3]}, outputs, {"axes": []}, opset=18)
    for t in model.graph.initializer:
        t.data_type = onnx.TensorProto.INT64
    ort.set_default_logger_severity(4)
    agree(model, [{"x": -abs(floats(n, 3))} for n in (2, 1, 0)], fusion)
