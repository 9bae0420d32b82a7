"""A model that cuts a table to its sequence refuses sequences longer than the table, as ONNX Runtime does."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import TensorProto, helper, numpy_helper

import igniter

ROWS, WIDTH = 8, 4


def model() -> onnx.ModelProto:
    table = np.arange(ROWS * WIDTH, dtype=np.float32).reshape(1, ROWS, WIDTH)
    nodes = [
        helper.make_node("Shape", ["x"], ["length"], start=1, end=2),
        helper.make_node("Slice", ["table", "zero", "length", "one"], ["positions"]),
        helper.make_node("Add", ["x", "positions"], ["embedded"]),
        helper.make_node("LayerNormalization", ["embedded", "scale"], ["y"]),
    ]
    weights = {
        "table": table,
        "zero": np.array([0]),
        "one": np.array([1]),
        "scale": np.ones(WIDTH, np.float32),
    }
    graph = helper.make_graph(
        nodes,
        "positions",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "sequence", WIDTH])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)


def test_sequence_longer_than_the_table(tmp_path: Path) -> None:
    source = model()
    artifact = igniter.compile(source, tmp_path / "model", verify=False, strict=True)
    assert artifact.report["regions"] == 1
    ours, theirs = artifact.session(), ort.InferenceSession(source.SerializeToString())
    for length in (1, 2, ROWS):
        x = np.random.default_rng(0).standard_normal((2, length, WIDTH)).astype(np.float32)
        np.testing.assert_allclose(ours.run(None, {"x": x})[0], theirs.run(None, {"x": x})[0], rtol=1e-5, atol=1e-5)
    x = np.zeros((2, ROWS + 1, WIDTH), np.float32)
    for session in (ours, theirs):
        with pytest.raises(Exception, match=f"{ROWS}"):
            session.run(None, {"x": x})
