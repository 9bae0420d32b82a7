"""`igniter shapes`: what it prints and writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import onnx
import pytest
from typer.testing import CliRunner

from igniter.tools.main import app
from tests.analysis.model.kit import FOUND, HEADS, model


def shapes(*arguments: str) -> str:
    done = CliRunner().invoke(app, ["shapes", *arguments])
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.fixture
def heads(tmp_path: Path) -> str:
    path = tmp_path / "heads.onnx"
    onnx.save(model(HEADS), path)
    return str(path)


def test_a_table_with_symbols_and_sizes(heads: str) -> None:
    assert "[batch, 2, seq, 4]" in shapes(heads)
    sized = shapes(heads, "--sizes", "batch=3,seq=7", "--value", "he*")
    assert "[3, 2, 7, 4]" in sized and "places" not in sized


def test_json_and_csv(heads: str, tmp_path: Path) -> None:
    table = tmp_path / "shapes.csv"
    found = json.loads(shapes(heads, "--sizes", "batch=3,seq=7", "--json", "--csv", str(table)))
    rows = {row["value"]: row for row in found["values"]}
    assert found["symbols"] == ["batch", "seq"] and found["sizes"] == {"batch": 3, "seq": 7}
    assert rows["heads"]["shape"] == ["batch", 2, "seq", 4] and rows["heads"]["at_sizes"] == [3, 2, 7, 4]
    assert rows["heads"]["kind"] == "output" and rows["x"]["kind"] == "input" and "first" not in rows
    with open(table, newline="") as file:
        written = {row["value"]: row for row in csv.DictReader(file)}
    assert written.keys() == rows.keys() and written["heads"]["at_sizes"] == "[3, 2, 7, 4]"
    assert "first" in {row["value"] for row in json.loads(shapes(heads, "--weights", "--json"))["values"]}


def test_data_dependent_is_said(tmp_path: Path) -> None:
    onnx.save(model(FOUND), tmp_path / "found.onnx")
    assert "by the data of NonZero 'nonzero_0'" in shapes(str(tmp_path / "found.onnx"))


def test_the_compute_graph_is_written(heads: str, tmp_path: Path) -> None:
    out = tmp_path / "out.onnx"
    found = json.loads(shapes(heads, "--json", "--compute-graph", str(out), "--sizes", "batch=3,seq=7"))
    assert found["compute_graph"]["nodes_after"] == {"nodes": 2, "shape": 0, "constant": 0, "data": 2}
    assert [n.op_type for n in onnx.load(out).graph.node] == ["Reshape", "Transpose"]


ERRORS = [
    (("--value", "head"), "no value called 'head'; did you mean 'heads'"),
    (("--sizes", "batch=1"), "no size for 'seq'"),
    (("--sizes", "batch=x"), "'batch=x' is not a choice of sizes"),
]


@pytest.mark.parametrize(("arguments", "message"), ERRORS)
def test_errors(heads: str, arguments: tuple[str, ...], message: str) -> None:
    done = CliRunner().invoke(app, ["shapes", heads, *arguments])
    assert done.exit_code == 1 and message in done.output


def test_a_folder_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["shapes", str(tmp_path)])
    assert done.exit_code == 1 and "give an ONNX model" in done.output
