"""`igniter diff`: what it prints, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

import igniter
from igniter.tools.main import app
from tests.analysis.model.kit import model
from tests.analysis.model.test_diff import NET, change_weight, replace, scrambled


def diff(*arguments: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["diff", *arguments])
    return done.exit_code, done.output


@pytest.fixture
def files(tmp_path: Path) -> Path:
    onnx.save(model(NET), tmp_path / "a.onnx")
    onnx.save(scrambled(model(NET), 3), tmp_path / "same.onnx")
    for edit in (change_weight, replace):
        other = model(NET)
        edit(other)
        onnx.save(other, tmp_path / f"{edit.__name__}.onnx")
    return tmp_path


def test_exit_status(files: Path) -> None:
    a = str(files / "a.onnx")
    assert diff(a, str(files / "same.onnx"))[0] == 0
    status, said = diff(a, str(files / "replace.onnx"))
    assert status == 1 and "replaced: node 'relu_2': Relu in A, Sigmoid in B" in said
    assert diff(a, str(files / "nothing.onnx"))[0] == 2
    status, said = diff(a, a, "--shape", "n=3")
    assert status == 2 and "are for --run" in said


def test_outputs_are_compared(files: Path) -> None:
    a = str(files / "a.onnx")
    status, said = diff(a, str(files / "same.onnx"), "--run", "--shape", "n=3", "--json")
    found = json.loads(said)
    assert status == 0 and found["same"] and found["outputs"]["status"] == "passed"
    status, said = diff(a, str(files / "change_weight.onnx"), "--run", "--json")
    found = json.loads(said)
    assert status == 1 and found["outputs"]["status"] == "differs" and found["weights"][0]["elements"] == 1
    assert "the outputs differ" in diff(a, str(files / "change_weight.onnx"), "--run")[1]


@pytest.mark.slow
def test_compiled_folders(files: Path) -> None:
    igniter.compile(files / "a.onnx", files / "out", verify=False)
    status, said = diff(str(files / "a.onnx"), str(files / "out"), "--run", "--json")
    found = json.loads(said)
    assert status == 1 and found["outputs"]["status"] == "passed" and found["nodes"]
    assert diff(str(files / "out"), str(files / "out"))[0] == 0
    status, said = diff(str(files / "a.onnx"), str(files))
    assert status == 2
