"""The sweep: its graphs are valid models, its rows say what happened, and a wrong value is a failure."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import shape_inference

from benchmark.sweep import calibrate as calibration
from benchmark.sweep import measure as measuring
from benchmark.sweep.__main__ import main
from benchmark.sweep.graph import FORMS, STATIC, SYMBOLIC, Graph, Sketch
from benchmark.sweep.groups import GROUPS, all_graphs
from benchmark.sweep.measure import FEWEST_ROUNDS, Setting, measure, turns
from benchmark.sweep.report import key, read, report
from igniter.analysis.fusion import measured_points
from igniter.analysis.fusion.measured_points import from_json

GRAPHS = all_graphs()
SHARE = 12
"""Every twelfth graph is built in the quick run."""


def check(graph: Graph, seed: int = 0) -> None:
    """Both forms are valid, say their shapes, and have the same inputs."""
    static, symbolic = (graph.make(form, seed) for form in FORMS)
    for made in (static, symbolic):
        onnx.checker.check_model(made.model)
        inferred = shape_inference.infer_shapes(made.model, check_type=True, strict_mode=True)
        assert all(output.type.tensor_type.HasField("shape") for output in inferred.graph.output), graph.name
    dims = {d.dim_param for i in symbolic.model.graph.input for d in i.type.tensor_type.shape.dim if d.dim_param}
    assert not any(d.dim_param for i in static.model.graph.input for d in i.type.tensor_type.shape.dim)
    assert set(symbolic.sizes) <= dims
    for name, value in static.feeds().items():
        assert np.array_equal(value, symbolic.feeds()[name], equal_nan=True), graph.name


@pytest.mark.slow
def test_the_graphs() -> None:
    names = [graph.name for graph in GRAPHS]
    assert len(names) >= 700
    assert len(set(names)) == len(names)
    assert {graph.group for graph in GRAPHS} == set(GROUPS)
    page = (Path(__file__).parents[2] / "docs/how-to/benchmarks.md").read_text()
    assert all(f"| `{group}` |" in page for group in GROUPS)
    for graph in GRAPHS[::SHARE]:
        check(graph)


@pytest.mark.full
@pytest.mark.parametrize("seed", [0, 1])
def test_all_graphs(seed: int) -> None:
    for graph in GRAPHS:
        check(graph, seed)


def test_another_seed_has_other_sizes() -> None:
    graph = next(g for g in GRAPHS if g.name == "conv/window 3x3 64>64 on 56x56")
    shapes = [graph.make(STATIC, seed).feeds()["x"].shape for seed in (0, 1, 2)]
    assert shapes[0] == (1, 64, 56, 56)
    assert len(set(shapes)) == 3
    assert graph.make(STATIC, 1).model == graph.make(STATIC, 1).model


def test_two_graphs_from_end_to_end(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "sweep.jsonl"
    chosen = [
        "--filter",
        "Softmax in parts 512x1000",
        "Einsum ij,jk->ik",
        "--seconds",
        "0.02",
        "--out",
        str(out),
        "--cache",
        "--kernels",
    ]
    assert main(chosen) == 0
    assert "all" in capsys.readouterr().out
    rows = read(out)
    assert [(r["group"], r["form"]) for r in rows] == [(g, f) for g in ("products", "rows") for f in FORMS]
    for row in rows:
        assert row["status"] == "ok"
        assert row["error"] < 1e-4
        assert row["regions"] == 1, "no point leaves a region"
        assert row["left"] == 0
        assert min(row["igniter_us"], row["ort_us"], row["ratio"], row["control"], row["compile_seconds"]) > 0
    size = out.stat().st_size
    assert main(chosen) == 0, "a second run measures nothing again"
    assert out.stat().st_size == size
    assert main(["--report", str(out)]) == 0


def test_calibration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows become points; a model is compared with them by the same features."""
    monkeypatch.setattr(calibration, "FOLDER", tmp_path)
    names = ["conv/depthwise 3x3 384>384 on 14x14", "rows/Softmax over axis 1 of 512x1000", "conv/conv + SiLU"]
    rows = [
        {
            "name": name, "group": name.split("/")[0], "form": form, "seed": 0, "target": "native", "threads": 1,
            "kernels": True, "status": "ok", "regions": 1, "left": 0, "igniter_us": 150.0, "ort_us": 100.0,
            "ratio": 1.5, "control": 0.98, "least_ratio": 1.45, "cpu": "this", "date": "today",
        }
        for name in names
        for form in FORMS
    ]  # fmt: skip
    rows.append(rows[0] | {"seed": 1, "kernels": False})
    rows.append(rows[0] | {"seed": 2, "left": 1})
    file = tmp_path / "rows.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    chosen = ["--calibrate", str(file), "--target", "x86-64-v3", "--about", "igniter=abc"]
    assert main(chosen) == 0
    assert "4 points of 4 kinds on avx2" in capsys.readouterr().out
    written = tmp_path / "avx2.json"
    text = written.read_text()
    assert main(chosen) == 0
    assert written.read_text() == text, "the same rows give the same file"
    points = from_json(json.loads(text))
    assert {n: points.about[n] for n in ("igniter", "cpu", "date", "onnxruntime")} == {
        "igniter": "abc", "cpu": "this", "date": "today", "onnxruntime": "not recorded",
    }  # fmt: skip
    assert points.about["command"].startswith("python -m benchmark.sweep --calibrate rows.jsonl --target")
    assert list(points.kinds) == [
        "Conv depthwise window=3x3 (f32[....], const f32[....]) -> f32[....]",
        "Conv depthwise window=3x3 (f32[?.??], const f32[....]) -> f32[?.??]",
        "Softmax axis=1 (f32[..]) -> f32[..]",
        "Softmax axis=1 (f32[?.]) -> f32[?.]",
    ]
    (point,) = points.kinds["Conv depthwise window=3x3 (f32[....], const f32[....]) -> f32[....]"]
    assert (point.sizes, point.ratio, point.noise) == ((1, 384, 14, 14, 384, 1, 3, 3), 1.5, 0.05)
    # Fusion reads the same graph alike: the point leaves it, and --kernels compiles it.
    monkeypatch.setattr(measured_points, "FOLDER", tmp_path)
    measured_points.measured.cache_clear()
    graph = next(g for g in GRAPHS if g.name == names[0])
    found = {
        kernels: measure(graph, STATIC, Setting(target="x86-64-v3", seconds=0.01, cache=True, kernels=kernels))
        for kernels in (True, False)
    }
    measured_points.measured.cache_clear()
    assert {kernels: (row["status"], row["regions"], row["left"]) for kernels, row in found.items()} == {
        True: ("ok", 1, 0),
        False: ("ok", 0, 1),
    }


def test_calibration_needs_rows(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    file.write_text("")
    with pytest.raises(SystemExit, match="no row of these files is a point"):
        main(["--calibrate", str(file), "--target", "x86-64-v3"])
    with pytest.raises(SystemExit, match="no points are kept for aarch64"):
        main(["--calibrate", str(file), "--target", "aarch64"])
    for wrong in (["--about", "cpu=x"], ["--without", "x"], ["--calibrate", "none"], ["--about", "x"]):
        with pytest.raises(SystemExit, match="2"):
            main(wrong)


def scaled(factor: float) -> Graph:
    def build(g: Sketch) -> str:
        return g.op("Mul", g.op("Exp", g.input("x", ("n", 100))), g.number(factor))

    return Graph("pointwise", "scaled", build)


def test_measured_compiles_measure_at_the_timed_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[dict[str, object]] = []

    def refuse(_model: onnx.ModelProto, _folder: Path, **options: object) -> None:
        asked.append(options)
        raise ValueError("enough")

    monkeypatch.setattr(measuring.igniter, "compile", refuse)
    graph = scaled(1.0)
    rows = [measure(graph, form, Setting(threads=2, measured=True)) for form in (STATIC, SYMBOLIC)]
    assert [(o["measure"], o["threads"]) for o in asked] == [(True, 2)] * 2
    assert [o["shapes"] for o in asked] == [None, [graph.make(SYMBOLIC).sizes]]
    plain = measure(graph, STATIC, Setting(threads=2))
    assert "measure" not in asked[-1] and len({key(row) for row in (*rows, plain)}) == 3


def test_a_wrong_value_and_an_error_are_failures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    graph, other = scaled(1.0), scaled(1.001)

    def wrong(model: onnx.ModelProto, *arguments: object, **options: object) -> object:
        return compiled(other.make().model, *arguments, **options)  # type: ignore[arg-type]

    compiled = measuring.igniter.compile
    monkeypatch.setattr(measuring.igniter, "compile", wrong)
    row = measure(graph, STATIC, Setting(cache=True))
    assert row["status"] == "FAILED"
    assert "largest error" in row["reason"]
    assert "ratio" not in row

    def broken(*_: object, **__: object) -> None:
        raise ValueError("no")

    monkeypatch.setattr(measuring.igniter, "compile", broken)
    row = measure(graph, SYMBOLIC, Setting())
    assert (row["status"], row["reason"]) == ("FAILED", "ValueError: no")
    file = tmp_path / "f.jsonl"
    file.write_text(json.dumps(row) + "\n" + json.dumps({**row, "name": "ended", "status": "begun"}) + '\n{"name')
    assert [r["status"] for r in read(file)] == ["FAILED", "FAILED"]
    running = {**row, "name": "running", "status": "begun", "process": os.getppid()}
    with file.open("a") as lines:
        lines.write("\n" + json.dumps(running) + "\n")
    assert len(read(file)) == 2
    assert "the process ended" in report(read(file))
    assert main(["--report", str(file)]) == 1


def test_the_report_counts_beyond_the_noise() -> None:
    row = {
        "name": "pools/a", "group": "pools", "form": STATIC, "status": "ok", "ratio": 1.3, "control": 1.0, "left": 0,
        "igniter_us": 13.0, "ort_us": 10.0, "compile_seconds": 1.0,
    }  # fmt: skip
    rows = [row, {**row, "name": "pools/b", "control": 0.75}, {**row, "name": "pools/c", "ratio": 0.5}]
    lines = report(rows).splitlines()
    assert lines[1].split() == ["pools", "3", "1", "1", "1", "0", "0.95", "0%", "3"]
    assert [line.split()[-1] for line in lines if "pools/" in line] == ["pools/a"]


def test_turns_end_in_time() -> None:
    found = turns([lambda: None, lambda: sum(range(1000))], 0.05)
    assert len(found[0]) == len(found[1]) >= measuring.FEWEST_ROUNDS
    assert min(found[1]) > min(found[0])


def test_names_of_options(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list", "--groups", "pools", "--every", "10"]) == 0
    listed = capsys.readouterr().out.splitlines()
    assert listed == [g.name for g in GRAPHS if g.group == "pools"][::10]
    with pytest.raises(SystemExit):
        main(["--every", "3", "--offset", "3"])
    with pytest.raises(SystemExit, match="no graph"):
        main(["--filter", "nothing has this"])


def test_turns_of_a_clock_that_stands_still_are_left_out() -> None:
    ticks = iter(range(10_000))
    found = turns([lambda: None, lambda: None], 0.0, lambda: float(next(ticks) // 3))
    assert min(map(len, found)) >= FEWEST_ROUNDS and all(took > 0 for runs in found for took in runs)
