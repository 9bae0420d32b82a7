"""Versions of ONNX's format and ops: all that the onnx package knows compile, newer ones are refused in words."""

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import igniter
from igniter.errors import IgniterError

NEWEST = onnx.defs.onnx_opset_version()


def model_of(opset: int, ir_version: int, **more: Any) -> onnx.ModelProto:
    x, y = (helper.make_tensor_value_info(n, TensorProto.FLOAT, ["n", 8]) for n in "xy")
    nodes = [helper.make_node("Exp", ["x"], ["a"]), helper.make_node("Add", ["a", "x"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version, **more)


@pytest.mark.parametrize(
    ("opset", "ir_version"), [(7, 3), (NEWEST - 1, onnx.IR_VERSION - 1), (NEWEST, onnx.IR_VERSION)]
)
def test_versions_that_onnx_has_compile_and_load(opset: int, ir_version: int) -> None:
    artifact = igniter.load(model_of(opset, ir_version)).compile(verify=False)
    assert not artifact.report["left_to_onnxruntime"]
    assert artifact.report["loads"]["tried"]


def test_a_newer_opset_is_refused() -> None:
    for name in ("", "ai.onnx"):
        model = model_of(NEWEST + 1, onnx.IR_VERSION)
        model.opset_import[0].domain = name
        with pytest.raises(
            IgniterError, match=rf"imports opset {NEWEST + 1} of ai\.onnx, but .* supports up to {NEWEST};"
        ):
            igniter.load(model)


def test_a_newer_opset_of_a_function_or_of_another_domain_is_refused() -> None:
    body = helper.make_node("Neg", ["a"], ["b"])
    function = helper.make_function("mine", "f", ["a"], ["b"], [body], [helper.make_opsetid("", NEWEST + 1)])
    with pytest.raises(IgniterError, match=f"imports opset {NEWEST + 1} of ai.onnx"):
        igniter.load(model_of(17, 10, functions=[function]))
    model = model_of(17, 10)
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 99))
    with pytest.raises(IgniterError, match=r"imports opset 99 of ai\.onnx\.ml"):
        igniter.load(model)


def test_a_newer_format_is_refused() -> None:
    with pytest.raises(
        IgniterError, match=f"version {onnx.IR_VERSION + 1} of ONNX's format, but .* install a newer onnx"
    ):
        igniter.load(model_of(17, onnx.IR_VERSION + 1))


def test_versions_of_other_domains_are_their_own() -> None:
    model = model_of(17, 10)
    model.opset_import.append(helper.make_opsetid("mine", 1000))
    igniter.load(model).compile(verify=False)
