"""Inputs that are no tensors: values are made up for sequences and optional inputs, read from files, and stored."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

import igniter
from igniter.frontend.ort_values import gathered, storable
from igniter.tools.igniter_opt import run as run_opt
from igniter.tools.main import app
from igniter.verification.original import Original

WEIGHT = numpy_helper.from_array(np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32), "w")


def tensor(name: str) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b", 64])


def model(kind: str) -> onnx.ModelProto:
    if kind == "sequence":
        given = [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, ["b", 64])]
        nodes = [
            helper.make_node("SequenceAt", ["s", "i"], ["x"]),
            helper.make_node("MatMul", ["x", "w"], ["p"]),
            helper.make_node("Relu", ["p"], ["y"]),
            helper.make_node("SequenceInsert", ["s", "y"], ["t"]),
        ]
        results = [tensor("y"), helper.make_tensor_sequence_value_info("t", TensorProto.FLOAT, None)]
        constants = [WEIGHT, numpy_helper.from_array(np.array(1, np.int64), "i")]
    else:
        element = helper.make_tensor_type_proto(TensorProto.FLOAT, ["b", 64])
        given = [helper.make_value_info("s", helper.make_optional_type_proto(element))]
        nodes = [
            helper.make_node("OptionalGetElement", ["s"], ["x"]),
            helper.make_node("MatMul", ["x", "w"], ["p"]),
            helper.make_node("Relu", ["p"], ["y"]),
        ]
        results, constants = [tensor("y")], [WEIGHT]
    graph = helper.make_graph(nodes, "g", given, results, constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


@pytest.mark.parametrize("kind", ["sequence", "optional"])
def test_values_are_made_up(kind: str) -> None:
    compiled = igniter.compile(model(kind))
    checked = compiled.verify()
    assert checked.status == "passed" and len(checked.cases) > 1
    spec = Original(model(kind).SerializeToString()).specs[0]
    assert (spec.dims, spec.is_sequence) == (("b", 64), kind == "sequence")


@pytest.mark.parametrize("kind", ["sequence", "optional"])
def test_passes_are_checked_on_such_models(kind: str, tmp_path: Path) -> None:
    onnx.save(model(kind), tmp_path / "model.onnx")
    output, errors = io.StringIO(), io.StringIO()
    arguments = [str(tmp_path / "model.onnx"), "-p", "infer-shapes", "--check-each", "--emit=none"]
    assert run_opt(arguments, io.BytesIO(), output, errors) == 0, errors.getvalue()
    assert "check: infer-shapes:" in errors.getvalue() and "agree" in errors.getvalue()


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sequence", "optional"])
def test_commands_take_such_models(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(kind), path)
    for command in (
        ["edit", path, "--rename-dim", "b=batch", "-o", tmp_path / "edited.onnx"],
        ["compress", path, "--weights", "int8", "-o", tmp_path / "small.onnx"],
        ["report", path, "-o", tmp_path / "report.html"],
        ["bench", path, "--rounds", "1"],
    ):
        done = CliRunner().invoke(app, [str(word) for word in command])
        assert done.exit_code == 0, done.output


def test_a_file_has_elements_by_number(tmp_path: Path) -> None:
    feed: dict[str, Any] = {"s": [np.ones((2, 64), np.float32), np.zeros((3, 64), np.float32)], "n": np.array(3)}
    stored = storable(feed)
    assert list(stored) == ["s[0]", "s[1]", "n"]
    again = gathered(stored, ["s", "n"])
    assert [e.shape for e in again["s"]] == [(2, 64), (3, 64)] and again["n"] == 3
    assert gathered({"s[0]": 1}, ["s", "s[0]"]) == {"s[0]": 1}
    np.savez(tmp_path / "inputs.npz", **storable({"s": feed["s"]}))
    assert igniter.compile(model("sequence"), verify=False).verify(tmp_path / "inputs.npz").status == "passed"
