"""Experiments that take longer or need an optional package: kills, plug-ins, tuning, ONNX Runtime, peers, Ray."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

import igniter
from igniter.toolbox.experiment.archive import ARCHIVE
from igniter.toolbox.experiment.request import ExperimentRequest

from .test_run import PACKAGE, SPEC, TEXT

pytestmark = pytest.mark.full


def spec_with(*variants: dict[str, Any], **change: Any) -> dict[str, Any]:
    return {**SPEC, "title": "full", "base": variants[0]["name"], "variant": list(variants), **change}


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    onnx.save(onnx.parser.parse_model(TEXT), tmp_path / "net.onnx")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_killed_run_continues(here: Path):
    measure = {**SPEC["measure"], "launches": 3}
    spec = spec_with({"name": "a"}, {"name": "ort", "system": "onnxruntime"}, measure=measure)
    (here / "spec.json").write_text(json.dumps(spec))
    code = "import igniter, json; igniter.experiment(json.load(open('spec.json')), 'run', progress=print)"
    process = subprocess.Popen([sys.executable, "-c", code], start_new_session=True, env={**os.environ})
    first = here / "run" / "cases" / "net--batch=3--threads=1" / "launch-0.json"
    limit = time.monotonic() + 300
    while not first.is_file() and time.monotonic() < limit and process.poll() is None:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    assert first.is_file()
    kept = first.read_text()
    result = igniter.experiment(json.loads((here / "spec.json").read_text()), "run")
    assert first.read_text() == kept and not result.failures
    assert all(row.ratio is not None for row in result.rows)


def test_onnx_runtime_with_options_is_a_variant(here: Path):
    options = {"graph_optimization_level": "ORT_DISABLE_ALL"}
    ort = {"name": "plain", "system": "onnxruntime", "options": options}
    wrong = {"name": "wrong", "system": "onnxruntime", "options": {"graph_optimization_level": "NONE"}}
    result = igniter.experiment(spec_with({"name": "ort", "system": "onnxruntime"}, ort, wrong))
    assert [row.status for row in result.of("ort")] == ["base"] and result.of("plain")[0].ms
    assert "graph_optimization_level is 'NONE'" in result.of("wrong")[0].reason


def test_a_plug_in_is_seen_by_its_variant_only(here: Path):
    mine = {"name": "mine", "fusion": "heavy-edges", "plugins": [str(PACKAGE)]}
    result = igniter.experiment(spec_with({"name": "default"}, mine, {"name": "without", "fusion": "heavy-edges"}))
    assert result.of("mine")[0].regions == 1 and not result.of("mine")[0].reason
    assert "no fusion author called 'heavy-edges'" in result.of("without")[0].reason


def test_a_variant_whose_process_crashes_costs_its_own_rows(here: Path):
    (here / "bad").mkdir()
    (here / "bad" / "pyproject.toml").write_text(
        '[project]\nname = "bad"\nversion = "1"\n[project.entry-points."igniter.fusion_authors"]\nbad = "bad:Bad"\n'
    )
    (here / "bad" / "bad.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    bad = {"name": "bad", "fusion": "bad", "plugins": ["bad"]}
    result = igniter.experiment(spec_with({"name": "default"}, bad, {"name": "ort", "system": "onnxruntime"}))
    assert "SIGSEGV" in result.of("bad")[0].reason and result.of("ort")[0].ratio is not None


def test_tuning_is_a_variant(here: Path):
    pytest.importorskip("optuna", reason="tuning needs Optuna")
    result = igniter.experiment(spec_with({"name": "default"}, {"name": "tuned", "tune": 2, "sizes": "run"}))
    assert result.of("tuned")[0].status in ("faster", "slower", "inconclusive", "unchanged")


def test_a_rerun_of_an_archive_is_beside_it(here: Path, capsys: pytest.CaptureFixture[str]):
    igniter.experiment(spec_with({"name": "a"}, {"name": "b", "fusion": "by-kind{fuse=none}"}), "run")
    (here / "net.onnx").unlink()
    assert ExperimentRequest(replay=f"run/{ARCHIVE}", rerun=True, json=True).run() == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["agree"]) == 2 and [r["variant"] for r in found["after"]["rows"]] == ["a", "b"]


@pytest.mark.parametrize("peer", ["openvino", "iree", "tvm"])
def test_a_peer_takes_part_if_it_is_installed(here: Path, peer: str):
    (row,) = igniter.experiment(spec_with({"name": "igniter"}, {"name": peer, "system": peer})).of(peer)
    if row.status == "unavailable":
        pytest.skip(row.reason)
    assert row.ms and row.ratio is not None


def test_comparisons_are_spread_over_a_ray_cluster(here: Path):
    if find_spec("ray") is None:
        pytest.skip("Ray is not installed: pip install 'onnx-igniter[ray]'")
    asked = spec_with({"name": "a"}, {"name": "b", "fusion": "by-kind{fuse=none}"}, sizes=[{"batch": 2}, {"batch": 5}])
    result = igniter.experiment(asked, "run", ray="local")
    assert len(result.rows) == 4 and not result.failures and len(result.means) == 1
    said: list[str] = []
    assert igniter.experiment(asked, "run", ray="local", progress=said.append).rows == result.rows
    assert not [text for text in said if "sent" in text]


def test_plots_are_files(here: Path):
    pytest.importorskip("matplotlib", reason="plots need matplotlib: the extra 'experiment'")
    igniter.experiment(spec_with({"name": "a"}, {"name": "b", "fusion": "by-kind{fuse=none}"}), "run")
    assert "<svg" in (here / "run" / "plot.svg").read_text() and (here / "run" / "plot.pdf").read_bytes()[:4] == b"%PDF"
