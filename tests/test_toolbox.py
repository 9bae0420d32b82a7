"""Verbs of the toolbox one behind another, and what a changed model is compared with."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import numpy_helper

import igniter
from igniter.errors import IgniterError
from igniter.toolbox.edit.verified import EditCheck

Change = Callable[[igniter.Module], Any]

TEXT = """<ir_version: 8, opset_import: ["" : 17]> net (float[batch, 64] x) => (float[batch, 64] y) {
    a = MatMul (x, w)
    sizes = Shape (x)
    r = Reshape (a, sizes)
    h = Tanh (r)
    b = MatMul (h, w)
    y = Relu (b)
}"""


@pytest.fixture
def module(tmp_path: Path) -> igniter.Module:
    """A module of a file."""
    proto = onnx.parser.parse_model(TEXT)
    weight = np.random.default_rng(0).standard_normal((64, 64), np.float32) / 8
    proto.graph.initializer.append(numpy_helper.from_array(weight, "w"))
    onnx.save(proto, tmp_path / "model.onnx")
    return igniter.load(tmp_path / "model.onnx")


def quantize(module: igniter.Module, name: str = "x") -> igniter.Module:
    """The module on 8 bits."""
    module.quantize([{name: np.random.default_rng(1).standard_normal((4, 64), np.float32)}])
    return module


CHANGES: dict[str, Change] = {
    "rename": lambda m: m.rename({"x": "in", "y": "out"}),
    "fix": lambda m: m.fix_dims(batch=3),
    "expose": lambda m: m.expose("h"),
    "sizes": lambda m: m.compute_graph({"batch": 3}),
    "compress": lambda m: m.compress("int8", min_elements=1),
    "quantize": quantize,
    "compute graph": lambda m: m.compute_graph().rename({"x": "in"}),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_changed_model_compiles(module: igniter.Module, change: Change):
    change(module)
    artifact = module.compile()
    assert artifact.report["verification"]["status"] == "passed"
    assert artifact.verify(shapes=[{} if "batch" not in str(module.ir) else {"batch": 5}])


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m.compress("int8", min_elements=1).rename({"x": "in"}),
        lambda m: m.rename({"x": "in"}).compress("int8", min_elements=1).rename({"in": "first"}),
        lambda m: quantize(m.rename({"x": "in"}), "in").rename({"in": "first"}),
        lambda m: m.compute_graph({"batch": 3}).rename({"x": "in"}),
        lambda m: m.compute_graph().rename({"x": "in"}),
    ],
)
def test_edits_are_checked_against_the_model_before_them(module: igniter.Module, change: Change):
    assert change(module).check_edits().status == "passed"


def test_without_an_original_there_is_nothing_to_check(module: igniter.Module):
    with pytest.raises(IgniterError, match="nothing to compare with"):
        module.rename({"x": "in"}).compress("int8", min_elements=1).check_edits()


@pytest.mark.slow
def test_an_edited_model_is_reported_and_split(module: igniter.Module, tmp_path: Path):
    module.rename({"x": "in"})
    module.report(tmp_path / "report.html", {"batch": 2}, verify=False)
    assert (tmp_path / "report.html").stat().st_size > 10_000
    manifest, check = module.split(tmp_path / "stages", 2)
    assert manifest.inputs == ("in",) and check is not None and check.ok, check


def test_stages_that_differ_are_said_to(module: igniter.Module, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    found = EditCheck("differs", reason="'y': the largest error is 1")
    monkeypatch.setattr("igniter.toolbox.split.stages.splitting.check_stages", lambda *_: found)
    assert module.split(tmp_path / "stages", 2)[1] is found
    assert not (tmp_path / "stages").exists()
