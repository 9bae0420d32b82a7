"""`igniter compress` and `igniter quantize`: what they write, print, and refuse."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

from igniter.tools.main import app


@pytest.fixture
def model(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    nodes = [
        helper.make_node("MatMul", ["x", "u"], ["h"], "up"),
        helper.make_node("Relu", ["h"], ["r"], "relu"),
        helper.make_node("MatMul", ["r", "v"], ["y"], "down"),
    ]
    weights = {"u": rng.standard_normal((64, 96)), "v": rng.standard_normal((96, 64))}
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 64])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 64])],
        [numpy_helper.from_array(w.astype(np.float32), name) for name, w in weights.items()],
    )
    path = tmp_path / "model.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def invoke(*arguments: Any) -> Any:
    return CliRunner().invoke(app, [str(a) for a in arguments])


def test_compress(model: Path, tmp_path: Path):
    small, table = tmp_path / "small.onnx", tmp_path / "t.csv"
    made = invoke("compress", model, "-o", small, "--weights", "int4", "--granularity", "block:32", "--csv", table)
    assert made.exit_code == 0, made.output
    assert "2 weights" in made.output
    assert "error of 1 outputs in ONNX Runtime" in made.output
    assert small.stat().st_size < 0.3 * model.stat().st_size
    rows = table.read_text(encoding="utf-8").splitlines()
    assert rows[0].startswith("weight,shape,form,before,after")
    assert len(rows) == 3


@pytest.mark.slow
def test_compress_says_all_in_json_and_times(model: Path, tmp_path: Path):
    small = tmp_path / "small.onnx"
    options = ("--weights", "int8", "--except", "down", "--time", "--rounds", 1, "--shape", "n=1", "--json")
    made = invoke("compress", model, "-o", small, *options)
    found = json.loads(made.stdout)
    assert [w["weight"] for w in found["weights"]] == ["u"]
    assert found["left"] == [{"weight": "v", "reason": "'down' is to be left"}]
    assert 0 < found["outputs"][0]["errors"][0]["mean"] < 0.02
    times = found["times"][0]
    assert times["igniter, compressed"]["ms"] > 0
    assert times["onnxruntime, original"]["ratio"] == 1.0


def test_quantize(model: Path, tmp_path: Path):
    data = tmp_path / "data"
    data.mkdir()
    for number in range(3):
        x = np.random.default_rng(number).standard_normal((2 + number, 64)).astype(np.float32)
        np.savez(data / f"{number}.npz", x=x)
    made, table = tmp_path / "q.onnx", tmp_path / "q.csv"
    said = invoke("quantize", model, "-o", made, "--data", data, "--calibrate", "best", "--csv", table)
    assert said.exit_code == 0, said.output
    assert "2 of 2 nodes quantised, 3 samples" in said.output
    assert made.stat().st_size < 0.4 * model.stat().st_size
    assert len(table.read_text(encoding="utf-8").splitlines()) == 3
    found = json.loads(invoke("quantize", model, "-o", made, "--data", data, "--except", "up", "--json").stdout)
    assert [n["node"] for n in found["nodes"]] == ["down"]
    assert 0 < found["errors"]["y"] < 0.02


def test_what_cannot_be_is_said(model: Path, tmp_path: Path):
    same = invoke("compress", model, "-o", model, "--weights", "int8")
    assert same.exit_code == 1
    assert "is the model itself: write to another file" in same.stderr
    none = invoke("quantize", model, "-o", tmp_path / "q.onnx", "--data", tmp_path / "nothing")
    assert none.exit_code == 1
    assert "there are no samples at" in none.stderr
    assert not (tmp_path / "q.onnx").exists()
