"""Compiles with bounds on memory and time: they end with an error that names the step and what grew."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from typer.testing import CliRunner

import igniter
from igniter.compiler.bounded import Bounds
from igniter.errors import IgniterError
from igniter.memory import BoundReached, bytes_text
from igniter.tools.main import app
from tests.hostile.base import FLOAT, info, model_of
from tests.hostile.growth import DOUBLING, _constant, growth
from tests.hostile.writing import Write

from .models import FEED, expected, small_model


def left_in(folder: Path, keeping: Sequence[str]) -> list[str]:
    """What a compile left beside the files that were there before, hidden folders included."""
    return sorted(p.name for p in folder.iterdir() if p.name not in keeping)


def large_output(folder: Path) -> Path:
    """A model of 200 bytes whose output has 8 GiB."""
    nodes = [helper.make_node("Expand", ["x", "shape"], ["e"], "grow"), helper.make_node("Relu", ["e"], ["y"], "relu")]
    weights = {"shape": np.array([1 << 29, 4], np.int64)}
    model = model_of(nodes, [info("x", FLOAT, [1, 4])], [info("y", FLOAT, None)], weights)
    onnx.save(model, folder / "model.onnx")
    return folder / "model.onnx"


@pytest.mark.slow
def test_constants_that_double_forty_times(tmp_path: Path) -> None:
    """ONNX Runtime computes them when it loads the original; no exception of Python's could interrupt it."""
    path = _constant(DOUBLING["ConstantOfShape"], 40)(tmp_path)
    with pytest.raises(BoundReached) as caught:
        igniter.compile(path, tmp_path / "out", max_memory="700M", cache=False)
    message = caught.value.message
    assert "the compile was ended while the original was loaded: it takes" in message
    assert "more than max_memory (700.0 MB); the largest value of known size is 'v" in message
    assert "(ConstantOfShape)" in message
    assert left_in(tmp_path, ["model.onnx"]) == []


@pytest.mark.full
def test_a_verification_of_outputs_that_do_not_fit(tmp_path: Path) -> None:
    """Its size is known beforehand, so nothing runs, and the command says which value it is."""
    path = large_output(tmp_path)
    asked = ["compile", str(path), "-o", str(tmp_path / "out"), "--max-memory=1G", "--no-cache", "--json"]
    done = CliRunner().invoke(app, asked)
    error = json.loads(done.stdout)["error"]
    assert done.exit_code == 1 and error["code"] == BoundReached.code
    assert "the stage 'verify' cannot keep to max_memory (1.0 GB): the value 'e' takes 8192 MB" in error["message"]
    assert left_in(tmp_path, ["model.onnx"]) == []


@pytest.mark.slow
def test_a_bound_on_time_leaves_nothing_behind(tmp_path: Path) -> None:
    path = small_model(tmp_path / "small.onnx")
    stages: list[str] = []
    start = time.monotonic()
    with pytest.raises(BoundReached, match=r"while .*: it takes longer than max_seconds \(1.5 s\)"):
        igniter.compile(path, tmp_path / "out", max_seconds=1.5, cache=False, progress=stages.append)
    assert time.monotonic() - start < 10
    assert left_in(tmp_path, ["small.onnx"]) == []


@pytest.mark.parametrize("given", ["path", pytest.param("bytes", marks=pytest.mark.full)])
def test_a_compile_within_its_bounds(tmp_path: Path, given: str) -> None:
    path = small_model(tmp_path / "small.onnx")
    stages: list[str] = []
    artifact = igniter.compile(
        path if given == "path" else path.read_bytes(),
        tmp_path / "out" if given == "path" else None,
        max_memory="4G",
        max_seconds=600.0,
        progress=stages.append,
    )
    (found,) = artifact.session().run(None, FEED)
    assert np.allclose(found, expected(), rtol=1e-4)
    assert {"llvm", "verify"} <= {*stages}
    assert artifact.report["verification"]["ok"]
    assert left_in(tmp_path, ["small.onnx"]) == (["out"] if given == "path" else [])


@pytest.mark.full
def test_errors_are_those_of_a_compile_without_bounds(tmp_path: Path) -> None:
    (tmp_path / "text.onnx").write_text("no model")
    messages: list[str] = []
    for bounds in ({}, {"max_seconds": 100.0}):
        with pytest.raises(IgniterError) as caught:
            igniter.compile(tmp_path / "text.onnx", tmp_path / "out", **bounds)  # type: ignore[arg-type]
        messages.append(f"{type(caught.value)} {caught.value.message}")
    assert messages[0] == messages[1]


@pytest.mark.parametrize(
    ("memory", "seconds", "said"),
    [("2 parsecs", None, "is not a size"), (0, None, "max_memory is 0"), (None, -1.0, "max_seconds is -1")],
)
def test_wrong_bounds(memory: int | str | None, seconds: float | None, said: str) -> None:
    with pytest.raises(IgniterError, match=said):
        Bounds.of(memory, seconds)


def test_what_acts_in_this_process_is_refused(tmp_path: Path) -> None:
    path = small_model(tmp_path / "small.onnx")
    done = CliRunner().invoke(app, ["compile", str(path), "--pass-timing", "--max-seconds=9"])
    assert done.exit_code == 1 and "'observers' act in this process" in done.stderr
    done = CliRunner().invoke(app, ["compile", str(path), "--emit=llvm", "--max-memory=9G"])
    assert done.exit_code == 1 and "not --emit=llvm" in done.stderr


def test_sizes_in_words() -> None:
    assert [bytes_text(n) for n in (12, 1 << 20, 3 << 29, 1 << 300)] == ["12 bytes", "1.0 MB", "1.5 GB", "2^300 bytes"]


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name, _ in growth()])
def test_every_growing_file_ends_or_is_refused(name: str, tmp_path: Path) -> None:
    write: Write = dict(growth())[name]
    path = write(tmp_path)
    try:
        igniter.compile(path, tmp_path / "out", max_memory="1G", max_seconds=60.0, cache=False)
    except IgniterError:
        assert left_in(tmp_path, ["model.onnx"]) == []
