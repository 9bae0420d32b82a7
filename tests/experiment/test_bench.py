"""`igniter.bench` from Python."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnx.parser
import pytest

import igniter
from igniter.errors import IgniterError
from igniter.toolbox.bench.bench import BenchResult, BenchRow

from .test_run import TEXT


@pytest.mark.full
def test_the_times_of_a_model_are_rows_that_a_notebook_draws(tmp_path: Path):
    onnx.save(onnx.parser.parse_model(TEXT), tmp_path / "net.onnx")
    found = igniter.bench(tmp_path / "net.onnx", sweep={"batch": [3]}, rounds=2)
    assert [dict(row.sizes) for row in found.rows] == [{"batch": 3}]
    assert all(row.speedup and row.onnxruntime_ms and row.igniter_ms and not row.error for row in found.rows)
    assert found.figure()["groups"] == ["batch=3"]
    assert found.to_csv().splitlines()[0] == "batch,threads,onnxruntime_ms,igniter_ms,speedup,noise,error"


def test_a_notebook_draws_times():
    times = BenchRow({"batch": 3}, 1, 2.0, 1.0, 2.0, 0.01)
    found = BenchResult("net.onnx", (times, BenchRow({"batch": 4}, 1, error="too <large>")))
    assert found._repr_html_().count("<tr>") == 3 and "2.00x" in found._repr_html_()
    assert "too &lt;large&gt;" in found._repr_html_()
    assert found.figure()["groups"] == ["batch=3", "batch=4"] and found.figure()["series"][0]["ms"] == [2.0, None]
    assert found.to_csv().splitlines()[1:] == ["3,1,2.0,1.0,2.0,0.01,", "4,1,,,,,too <large>"]
    with pytest.raises(AttributeError):
        times.threads = 2  # pyright: ignore[reportAttributeAccessIssue]


def test_a_missing_model_is_an_error():
    with pytest.raises(IgniterError, match="there is no model "):
        igniter.bench("nowhere.onnx")
