"""`igniter bench --sweep`: a model timed at the product of sizes, as a table, as CSV and as JSON."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import igniter
from igniter.errors import IgniterError
from igniter.toolbox.bench.sweep import MOST_POINTS, parse_sweep, sweep_points
from igniter.toolbox.tables import csv_text
from igniter.tools.main import app

TWO_DIMS = """
builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {
  onnx.graph @main(%x: tensor<?x?xf32, #sym.dims<batch, seq>>) attributes {input_names = ["x"], output_names = ["y"]} {
    %b = onnx.Constant() {value = #onnx.tensor<1x12xf32, [1., 2., 3., 4., 5., 6., 7., 8., 9., 10., 11., 12.]>}
      : () -> tensor<1x12xf32>
    %s = onnx.Shape(%x) {start = 1 : i64, end = 2 : i64} : (tensor<?x?xf32, #sym.dims<batch, seq>>) -> tensor<1xi64>
    %zero = onnx.Constant() {value = #onnx.tensor<1xi64, [0]>} : () -> tensor<1xi64>
    %axis = onnx.Constant() {value = #onnx.tensor<1xi64, [1]>} : () -> tensor<1xi64>
    %c = onnx.Slice(%b, %zero, %s, %axis)
      : (tensor<1x12xf32>, tensor<1xi64>, tensor<1xi64>, tensor<1xi64>) -> tensor<*xf32>
    %a = onnx.Add(%x, %c) : (tensor<?x?xf32, #sym.dims<batch, seq>>, tensor<*xf32>) -> tensor<*xf32>
    %y = onnx.Softmax(%a) {axis = -1 : i64} : (tensor<*xf32>) -> tensor<?x?xf32, #sym.dims<batch, seq>>
    onnx.return %y : tensor<?x?xf32, #sym.dims<batch, seq>>
  }
}
"""
"""A model that runs at sequences of 12 and less: a table of positions has no more."""


def invoke(*args: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in args])


@pytest.fixture(scope="module")
def positions(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sweep") / "positions.onnx"
    igniter.parse(TWO_DIMS).save(path)
    return path


def test_what_is_written_is_a_product() -> None:
    swept = parse_sweep(["batch=1,8 seq=64,128", "heads=2"])
    assert swept == {"batch": [1, 8], "seq": [64, 128], "heads": [2]}
    assert parse_sweep(["batch=1,8", "seq=64"]) == parse_sweep(["batch=1,8  seq=64"])
    assert sweep_points({"batch": [1, 8], "seq": [64, 128]}) == [
        {"batch": 1, "seq": 64},
        {"batch": 1, "seq": 128},
        {"batch": 8, "seq": 64},
        {"batch": 8, "seq": 128},
    ]
    assert sweep_points({"seq": [3, 4]}, [{"batch": 1}, {"batch": 2}])[2] == {"batch": 2, "seq": 3}


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["batch"], "'batch' is no dim with its sizes"),
        (["batch="], "'batch=' is no dim with its sizes"),
        (["batch=1,,2"], "no dim with its sizes"),
        (["batch=1,-2"], "no dim with its sizes"),
        (["=1"], "no dim with its sizes"),
        (["batch=1, 8"], "'batch=1,' is no dim with its sizes"),
        (["batch=1", "batch=2"], "gives 'batch' sizes twice"),
        (["batch=1,2,1"], "has 1 twice"),
        ([" "], "names no dim"),
    ],
)
def test_what_is_no_sweep(texts: list[str], message: str) -> None:
    with pytest.raises(IgniterError, match=message):
        parse_sweep(texts)


def test_points_that_are_too_many_or_contradict() -> None:
    with pytest.raises(IgniterError, match="both give sizes of seq"):
        sweep_points({"seq": [1]}, [{"batch": 1, "seq": 2}])
    with pytest.raises(IgniterError, match="10,201 choices of sizes"):
        sweep_points({"a": list(range(101)), "b": list(range(101))})
    assert MOST_POINTS == 10_000


def test_csv_is_quoted_where_it_has_to_be() -> None:
    assert csv_text(["a,b", "c"], [{"a,b": 1, "c": 'say "x"'}, {"c": ""}]) == '"a,b",c\n1,"say ""x"""\n,\n'


@pytest.mark.slow
def test_a_sweep_is_timed(positions: Path, tmp_path: Path) -> None:
    table = tmp_path / "times.csv"
    done = invoke("bench", positions, "--sweep", "batch=1,3", "--sweep", "seq=4,20", "--rounds=1", "--csv", table)
    # At a sequence of 20 the model does not run; the other sizes are timed all the same, and the status says so.
    assert done.exit_code == 1, done.output
    assert done.stdout.count("not timed") == 2
    assert "batch=1, seq=20: " in done.stdout
    rows = list(csv.DictReader(table.open()))
    assert [(r["batch"], r["seq"], bool(r["error"])) for r in rows] == [
        ("1", "4", False),
        ("1", "20", True),
        ("3", "4", False),
        ("3", "20", True),
    ]
    for row in rows:
        figures = [row[name] for name in ("onnxruntime_ms", "igniter_ms", "speedup", "noise")]
        assert all(figures) != bool(row["error"])
        assert row["error"] or float(row["onnxruntime_ms"]) > 0 < float(row["speedup"])
    assert not list(tmp_path.glob(".times*"))


@pytest.mark.slow
def test_json_of_a_sweep_beside_a_shape(positions: Path) -> None:
    done = invoke("bench", positions, "--shape", "batch=2", "--sweep", "seq=3,5", "--rounds=1", "--json")
    assert done.exit_code == 0, done.output
    assert [row["shapes"] for row in json.loads(done.stdout)] == [{"batch": 2, "seq": 3}, {"batch": 2, "seq": 5}]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (("--sweep", "length=1,2"), "the model has no dim length; its dims are batch, seq"),
        (("--sweep", "seq"), "is no dim with its sizes"),
        (("--sweep", "seq=1", "--shape", "seq=2"), "both give sizes of seq"),
        (("--sweep", "seq=1", "--inputs", "x.npz"), "--inputs gives the sizes"),
        (("--sweep", "seq=1", "--profile"), "leave out --profile"),
        (("--csv", "times.csv", "--trace", "t.json"), "leave out --profile"),
    ],
)
def test_what_cannot_be_swept(positions: Path, args: tuple[str, ...], message: str) -> None:
    done = invoke("bench", positions, *args)
    assert done.exit_code == 1
    assert message in done.output
