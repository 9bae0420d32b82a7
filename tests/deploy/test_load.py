"""`igniter bench --sessions`: models under load."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from igniter.compiler.artifact import Artifact
from igniter.toolbox.bench import load
from igniter.tools.main import app

from .models import FEED


def test_percentiles_and_throughput() -> None:
    found = load.Load(np.array([0.001] * 90 + [0.002] * 9 + [0.1]), 0.5).to_dict()
    assert found["per_second"] == 200 and found["calls"] == 100
    assert found["p50_ms"] == 1 and 1 <= found["p90_ms"] <= 2 and found["p99_ms"] > 2


def test_a_turn_calls_each_session_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load, "SECONDS", 0.05)
    counts = [0, 0, 0]

    def caller(number: int) -> None:
        counts[number] += 1

    calls, seconds = load._turn([lambda n=n: caller(n) for n in range(3)])
    assert len(calls) == sum(counts) and min(counts) > 0 and 0.05 <= seconds < 5


@pytest.mark.slow
def test_systems_under_load(small: Artifact) -> None:
    table = small.folder.with_name("load.csv")
    asked = ["bench", str(small.folder), "--sessions=2", "--rounds=1", "--json", f"--csv={table}"]
    done = CliRunner().invoke(app, asked)
    assert done.exit_code == 0, done.output
    (row,) = json.loads(done.stdout)
    assert row["sessions"] == 2
    for name in ("onnxruntime", "igniter"):
        assert row[name]["per_second"] > 0 and 0 < row[name]["p50_ms"] <= row[name]["p90_ms"] <= row[name]["p99_ms"]
    lines = list(csv.DictReader(table.read_text().splitlines()))
    assert [line["system"] for line in lines][:2] == ["onnxruntime", "igniter"]
    for line in lines:
        assert float(line["p99_ms"]) == pytest.approx(row[line["system"]]["p99_ms"], rel=1e-5)


def test_options_that_do_not_go_together(small: Artifact) -> None:
    for other in ("--profile", "--trace=x.json"):
        done = CliRunner().invoke(app, ["bench", str(small.folder), "--sessions=2", other])
        assert done.exit_code == 1 and "--sessions" in done.stderr


@pytest.mark.full
def test_openvino_beside_it(small: Artifact) -> None:
    pytest.importorskip("openvino", reason="openvino is not installed")
    models: dict[str, tuple[str | Path | bytes, list[str | Path]]] = {"onnxruntime": (str(small.source), [])}
    found = load.measure_load(models, FEED, 2, rounds=1)
    assert found["openvino"].to_dict()["per_second"] > 0
