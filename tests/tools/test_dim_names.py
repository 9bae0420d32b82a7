"""One name for a dim in every command: that of the model, or its place where the model gives it none; and sizes by the
shape of an input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

import igniter
from igniter.toolbox.output import parse_shapes
from igniter.tools.main import app


@pytest.fixture(scope="module")
def nameless(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """x [none, "?", "unk__749", 8] by a weight, and the Tanh of z:0 ["unk__3", seq]."""
    dims = {"x": [None, "?", "unk__749", 8], "z:0": ["unk__3", "seq"], "y": [None, "?", "unk__749", 4], "u": None}
    x, z, y, u = (helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in dims.items())
    w = numpy_helper.from_array(np.random.default_rng(0).standard_normal((8, 4)).astype(np.float32), "w")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"]), helper.make_node("Tanh", ["z:0"], ["u"])]
    graph = helper.make_graph(nodes, "nameless", [x, z], [y, u], [w])
    path = tmp_path_factory.mktemp("nameless") / "m.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    assert invoke("compile", path, "-o", path.with_suffix(".igniter"), "--no-verify").exit_code == 0
    return path


def invoke(*args: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in args], env={"COLUMNS": "200"})


NAMES = ("x.0", "x.1", "x.2", "z:0.0", "seq")


def test_commands_call_a_dim_the_same(nameless: Path) -> None:
    folder = nameless.with_suffix(".igniter")
    assert "x: f32 [x.0, x.1, x.2, 8]" in invoke("inspect", nameless).stdout
    assert "z:0: f32 [z:0.0, seq]" in invoke("inspect", folder).stdout
    assert f"symbols: {', '.join(NAMES)}" in invoke("shapes", nameless).stdout
    for command in (
        ("verify", folder, "--shape"),
        ("bench", nameless, "--shape"),
        ("compile", nameless, "-o", folder, "--shape"),
        ("compile", nameless, "-o", folder, "--sizes"),
        ("plan", nameless, "--sizes"),
        ("profile", nameless, "--sizes"),
        ("shapes", nameless, "--sizes"),
    ):
        said = " ".join(invoke(*command, "nope=3").stderr.split())
        assert "nope" in said and "unk_" not in said, said
        assert all(name in said for name in NAMES), said


@pytest.mark.slow
def test_a_size_goes_to_any_name_of_a_dim(nameless: Path) -> None:
    found = json.loads(invoke("shapes", nameless, "--sizes", "x:0=2,x.1=3,unk__749=5,z:0.0=6,seq=7", "--json").stdout)
    sized = {v["name"]: v["sizes"] for v in found["values"]} if "sizes" in found["values"][0] else None
    text = invoke("shapes", nameless, "--sizes", "x:0=2,x.1=3,unk__749=5,z:0.0=6,seq=7").stdout
    assert "[2, 3, 5, 4]" in text and "[6, 7]" in text and (sized is None or sized["y"] == [2, 3, 5, 4])
    assert text == invoke("shapes", nameless, "--sizes", "x=2x3x5x8,z:0=6x7").stdout
    folder = nameless.with_suffix(".igniter")
    (case,) = json.loads(invoke("bench", folder, "--profile", "--json", "--shape", "x=2x3x5x8,z:0=6x7").stdout)
    assert case["shapes"] == {"x.0": 2, "x.1": 3, "x.2": 5, "z:0.0": 6, "seq": 7}
    assert invoke("verify", folder, "--shape", "x.0=2,x=2x3x5x8,unk__3=6,seq=7").exit_code == 0
    assert igniter.load(nameless).plan({"x.0": 2, "x:1": 3, "unk__749": 5, "z:0.0": 6, "seq": 7}).total.constant


@pytest.mark.parametrize(
    ("shape", "says"),
    [
        ("x=2x3x5", "input 'x' has 4 dims, but 3 sizes are given"),
        ("x=2x3x5x9", "x:3 is 8 in the model; it cannot be 9"),
        ("x.0=1,x=2x3x5x8", "x:0 is x.0, which cannot be 1 and 2"),
        ("x=2x?x5x8", "write dim=number,... as in batch=1,seq=128, or the shape of an input"),
        ("w=8x4", "the model has no dim w:0, w:1"),
    ],
)
def test_a_shape_that_does_not_fit_is_refused(nameless: Path, shape: str, says: str) -> None:
    done = invoke("verify", nameless.with_suffix(".igniter"), "--shape", shape)
    assert done.exit_code == 1 and says in " ".join(done.stderr.split())


def test_sizes_as_text() -> None:
    assert parse_shapes(["batch=1, seq=128", "a=b=3"]) == [{"batch": 1, "seq": 128}, {"a=b": 3}]
    assert parse_shapes(["image=1x3x224"]) == [{"image:0": 1, "image:1": 3, "image:2": 224}]
    assert parse_shapes([]) is None
