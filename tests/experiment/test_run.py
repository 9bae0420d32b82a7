"""A small experiment from end to end: rows, files, continuation, archive and replay."""

from __future__ import annotations

import csv
import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import onnx
import onnx.parser
import pytest

import igniter
from igniter.errors import IgniterError
from igniter.toolbox.experiment import peers
from igniter.toolbox.experiment.archive import ARCHIVE, Again, replay, unpack_spec
from igniter.toolbox.experiment.plots import draw
from igniter.toolbox.experiment.request import ExperimentRequest
from igniter.toolbox.experiment.results import ExperimentResult
from igniter.toolbox.experiment.runs import require_folder
from igniter.toolbox.experiment.spec_reading import spec_of
from igniter.toolbox.experiment.subjects import benchmark_models, require_models

TEXT = """<ir_version: 8, opset_import: ["" : 17]> net (float[batch, 64] x) => (float[batch, 64] y) {
    a = Exp (x)
    b = Tanh (a)
    y = Softmax (b)
}"""

PACKAGE = Path(__file__).parents[2] / "docs" / "examples" / "my_package"

SPEC: dict[str, Any] = {
    "title": "small & quick",
    "models": ["net.onnx"],
    "sizes": [{"batch": 3}],
    "base": "none",
    "ir": ["fusion"],
    "measure": {"rounds": 2, "launches": 1, "seconds": 0.001, "resamples": 100, "limit": 120},
    "variant": [
        {"name": "none", "fusion": "by-kind{fuse=none}"},
        {"name": "all", "fusion": "by-kind{fuse=all}"},
        {"name": "same", "fusion": "by-kind{fuse=none small-flops=1}"},
        {"name": "broken", "fusion": "by-kind{fuse=nothing}"},
        {"name": "openvino", "system": "openvino"},
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("experiment")


@pytest.fixture(scope="module")
def result(folder: Path) -> ExperimentResult:
    onnx.save(onnx.parser.parse_model(TEXT), folder / "net.onnx")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        patched.setattr(peers, "unavailable", lambda peer: f"{peer} is not installed")
        return igniter.experiment(SPEC)


@pytest.mark.slow
def test_every_variant_has_a_row(result: ExperimentResult):
    status = {row.variant: row.status for row in result.rows}
    timed = ("faster", "slower", "inconclusive")
    assert status.pop("all") in timed
    assert status == {"none": "base", "same": "unchanged", "broken": "failed", "openvino": "unavailable"}
    assert result.means == () and [r.variant for r in result.failures] == ["broken"]


def test_a_row_has_its_figures(result: ExperimentResult):
    (none,), (fused,) = result.of("none"), result.of("all")
    assert (none.regions, fused.regions) == (3, 1) and none.left == fused.left == 0
    # Three nodes: the two tensors between them are written and read no more, at the sizes of the run.
    assert fused.bytes_saved == 2 * 2 * 3 * 64 * 4 and none.bytes_saved == 0
    assert fused.bytes_formula == "1024*batch" and fused.bytes_exact
    assert fused.ms and fused.compile_seconds and fused.code_bytes and fused.peak_memory
    assert fused.ratio is not None and fused.ratio.low <= fused.ratio.value <= fused.ratio.high


def test_reasons_say_what_is_wrong(result: ExperimentResult):
    (broken,), (same,), (openvino,) = (result.of(name) for name in ("broken", "same", "openvino"))
    assert "fuse" in broken.reason and "nothing" in broken.reason
    assert same.reason == "its kernels are those of 'none', to the byte" and same.ms is None
    assert openvino.reason == "openvino is not installed"


def test_the_files_of_a_run(result: ExperimentResult, folder: Path):
    root = folder / result.folder
    lines = list(csv.DictReader((root / "results.csv").open()))
    assert [line["variant"] for line in lines] == [v["name"] for v in SPEC["variant"]]
    assert lines[1]["bytes_formula"] == "1024*batch" and lines[1]["sizes"] == "batch=3"
    latex = (root / "table.tex").read_text()
    assert latex.count(r"\\") == 6 and "\\begin{tabular}" in latex and "net & batch=3" in latex
    with zipfile.ZipFile(root / ARCHIVE) as archive:
        names = set(archive.namelist())
        index = json.loads(archive.read("experiment.json"))
    assert {"models/net.onnx", "builds/net--all/ir/fusion.mlir", "builds/net--all/remarks.json"} <= names
    assert {f"cases/net--batch=3--threads=1/{name}.json" for name in ("case", "checks", "launch-0")} <= names
    assert index["versions"]["onnxruntime"] and not [name for name in names if name.endswith((".so", ".npz"))]


def test_a_finished_run_does_nothing_again(result: ExperimentResult, folder: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(peers, "unavailable", lambda peer: f"{peer} is not installed")
    said: list[str] = []
    assert igniter.experiment(SPEC, progress=said.append) == result
    assert said == []


@pytest.mark.slow
def test_an_interrupted_run_continues_with_what_is_missing(
    result: ExperimentResult, folder: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.chdir(folder)
    monkeypatch.setattr(peers, "unavailable", lambda peer: f"{peer} is not installed")
    shutil.copytree(folder / result.folder, folder / "cut", dirs_exist_ok=True)
    case = folder / "cut" / "cases" / "net--batch=3--threads=1"
    # A record that is not whole is none.
    (case / "launch-0.json").write_text((case / "launch-0.json").read_text()[:100])
    checks = (case / "checks.json").read_text()
    (fused,) = replay(folder / "cut").result.of("all")
    assert fused.status == "failed" and "run it again to continue" in fused.reason and fused.regions == 1
    said: list[str] = []
    again = igniter.experiment(SPEC, "cut", progress=said.append)
    assert [text.partition(": ")[2] for text in said] == ["timing 2 variants, launch 1 of 1"]
    assert (case / "checks.json").read_text() == checks and again.of("all")[0].ratio is not None


def test_a_replay_makes_the_same_table_from_raw_times(result: ExperimentResult, folder: Path, tmp_path: Path):
    archive = tmp_path / "moved.zip"
    shutil.copy(folder / result.folder / ARCHIVE, archive)
    found = replay(archive)
    assert found.reproduced and found.result.rows == result.rows
    assert ExperimentRequest(replay=str(archive), json=True).run() == 0


def test_a_replay_notices_a_changed_table(result: ExperimentResult, folder: Path, tmp_path: Path):
    shutil.copytree(folder / result.folder, tmp_path / "run")
    table = tmp_path / "run" / "results.csv"
    table.write_text(table.read_text().replace("unchanged", "faster"))
    assert not replay(tmp_path / "run").reproduced


def test_an_archive_has_what_a_run_needs(result: ExperimentResult, folder: Path, tmp_path: Path):
    spec = unpack_spec(folder / result.folder / ARCHIVE, tmp_path)
    assert (tmp_path / "models" / "net.onnx").read_bytes() == (folder / "net.onnx").read_bytes()
    assert [v.name for v in spec.variants] == [v["name"] for v in SPEC["variant"]]
    assert spec.models[0].sizes == ({"batch": 3},)
    require_models(spec)
    # A rerun begins in the folder that has its models.
    require_folder(tmp_path)


def test_two_runs_agree_if_their_intervals_overlap(result: ExperimentResult):
    (row,), (other,) = result.of("all"), result.of("broken")
    assert Again(row, row).agrees and not Again(row, other).agrees


def test_a_notebook_draws_it(result: ExperimentResult):
    text = result._repr_html_()
    assert "small &amp; quick" in text and "unchanged" in text and text.count("<tr>") == 6
    figure = result.figure()
    assert figure["groups"] == ["net"] and figure["series"][0]["variant"] == "all"
    assert json.loads(json.dumps(figure)) == figure
    assert repr(result) == "<igniter experiment 'small & quick': 5 variants, 5 rows>"


def test_plots_name_their_extra_or_are_written(result: ExperimentResult, folder: Path):
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        with pytest.raises(IgniterError, match=r"onnx-igniter\[experiment\]"):
            draw(result.figure())
    else:
        assert (folder / result.folder / "plot.svg").read_text().startswith("<?xml")
        assert (folder / result.folder / "plot.pdf").read_bytes().startswith(b"%PDF")


def test_an_unknown_model_is_an_error_before_any_work(tmp_path: Path):
    with pytest.raises(IgniterError, match=r"there is no model 'mixr'.*did you mean 'mixer'"):
        igniter.experiment({**SPEC, "models": ["mixr"]}, tmp_path / "new")
    assert not (tmp_path / "new").exists()


def test_a_folder_with_other_things_is_refused(tmp_path: Path):
    (tmp_path / "mine.txt").write_text("keep")
    with pytest.raises(IgniterError, match="is no experiment: give -o another folder"):
        igniter.experiment({**SPEC, "models": ["mixer"]}, tmp_path)


def test_a_folder_without_models_is_an_error(tmp_path: Path):
    (tmp_path / "models").mkdir()
    with pytest.raises(IgniterError, match="has no model"):
        igniter.experiment({**SPEC, "models": [str(tmp_path / "models")]}, tmp_path / "new")


def test_names_of_the_benchmark_are_known_in_a_checkout():
    names = benchmark_models()
    if not names:
        pytest.skip("the models of the benchmark need packages that are not installed")
    require_models(spec_of({**SPEC, "models": ["resnet50"]}))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "give a specification"),
        ({"spec": "fusions"}, "there is no specification 'fusions'.*did you mean 'fusion'"),
        ({"spec": "fusion", "rerun": True}, "give --replay"),
        ({"replay": "a.zip", "spec": "fusion"}, "leave out spec"),
        ({"replay": "a.zip"}, "cannot read the archive"),
        ({"spec": "fusion", "shapes": ("batch=1",)}, "--shape gives sizes to the models of --model"),
        ({"spec": "fusion", "rounds": 1}, "--rounds must be from 2"),
    ],
)
def test_command_lines_that_make_no_sense(given: dict[str, Any], message: str):
    with pytest.raises(IgniterError, match=message):
        ExperimentRequest(**given).run()
