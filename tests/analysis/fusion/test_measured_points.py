"""Measured points: the files, the predictions, and the choice between a region and ONNX Runtime."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from typer.testing import CliRunner

import igniter
from benchmark.sweep.calibrate import leave_one_out
from igniter.analysis.authors import AuthorError
from igniter.analysis.fusion import measured_points
from igniter.analysis.fusion.measured_points import (
    FOLDER,
    FORMAT,
    Measured,
    Point,
    from_json,
    measured,
    to_json,
)
from igniter.analysis.fusion.region_features import RegionFeatures
from igniter.analysis.machine import ISAS, isa_of, pass_figures
from igniter.dialects.fusion import RegionOp
from igniter.errors import IgniterError
from igniter.targets import described_machines
from igniter.tools.main import app

FILES = sorted(FOLDER.glob("*.json"))
KIND = "Conv depthwise window=3x3 (f32[....], const f32[....]) -> f32[....]"
FREE = "Conv depthwise window=3x3 (f32[?...], const f32[....]) -> f32[?...]"
TARGET = "x86-64-v3"


# -- the files --------------------------------------------------------------------------------------------------------


def test_there_are_files() -> None:
    assert {file.stem for file in FILES} >= {"avx2", "avx512-amx"}
    assert {file.stem for file in FILES} <= set(ISAS)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
class TestFile:
    def test_it_is_well_formed(self, file: Path) -> None:
        text = file.read_text()
        points = from_json(json.loads(text))
        assert points.isa == file.stem
        assert {"igniter", "onnxruntime", "cpu", "date", "command"} <= points.about.keys()
        assert to_json(points) == text, "it is sorted, and written by --calibrate"
        assert len(text) < 200_000
        for kind, of_kind in points.kinds.items():
            assert len({len(p.sizes) for p in of_kind}) == 1, kind
            assert any(p.ratio > 1 for p in of_kind), f"{kind} decides nothing"
            for point in of_kind:
                assert min(point.work, point.igniter_us, point.ort_us, *point.sizes) > 0
                assert 0 <= point.noise < 2

    def test_each_point_decides_about_itself(self, file: Path) -> None:
        points = from_json(json.loads(file.read_text()))
        for kind, of_kind in points.kinds.items():
            for point in of_kind:
                same = [p for p in of_kind if p.sizes == point.sizes]
                found = points.predict(RegionFeatures(kind, point.sizes, point.work))
                assert found is not None
                assert found.points == len(same)
                if len(same) == 1:
                    assert found.ratio == pytest.approx(point.ratio)
                    assert found.is_behind == point.is_behind

    def test_each_point_is_predicted_from_the_others(self, file: Path) -> None:
        found = leave_one_out(from_json(json.loads(file.read_text())))
        assert found.decided >= 20
        assert found.share >= 0.8, found
        assert found.lost == 0, found


# -- predictions ------------------------------------------------------------------------------------------------------


def point(ratio: float, *sizes: int, noise: float = 0.01, ort_us: float = 100.0) -> Point:
    return Point(sizes, int(np.prod(sizes)), ratio * ort_us, ort_us, noise)


def points(*given: Point, kind: str = KIND) -> Measured:
    about = {"format": FORMAT, "isa": "avx2", "igniter": "0", "onnxruntime": "0", "cpu": "", "date": "", "command": ""}
    return Measured("avx2", {kind: given}, about)


def features(*sizes: int | None, kind: str = KIND) -> RegionFeatures:
    return RegionFeatures(kind, sizes, 0 if None in sizes else int(np.prod([s or 0 for s in sizes])))


def test_near_points_decide() -> None:
    some = points(point(2.0, 64, 28), point(1.5, 64, 56))
    exact = some.predict(features(64, 28))
    assert exact is not None
    assert (exact.points, exact.is_behind) == (1, True)
    assert exact.ratio == pytest.approx(2.0)
    between = some.predict(features(64, 40))
    assert between is not None
    assert 1.5 < between.ratio < 2.0
    assert between.points == 2
    assert some.predict(features(64 * 64, 28)) is None, "no point is near"
    assert some.predict(features(64, 28, kind="Relu (f32[..]) -> f32[..]")) is None
    assert points(point(2.0, 64, 28)).predict(features(64, 60)) is None, "a single point has to be close"


def test_time_follows_the_work() -> None:
    found = points(point(1.5, 64, 28, ort_us=50.0)).predict(features(64, 56))
    assert found is not None
    assert found.ort_us == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("given", "behind"),
    [
        ([point(1.09, 64, 28)], False),
        ([point(1.15, 64, 28, noise=0.10)], False),
        ([point(1.25, 64, 28, noise=0.10)], True),
        ([point(3.0, 64, 30), point(0.9, 64, 26)], False),
        ([point(3.0, 64, 30), point(1.2, 64, 26)], True),
    ],
    ids=["level", "noise", "beyond the noise", "a point against it", "two points"],
)
def test_what_is_behind(given: list[Point], behind: bool) -> None:
    found = points(*given).predict(features(64, 28))
    assert found is not None
    assert found.is_behind == behind


def test_unknown_sizes_need_every_point_of_the_kind() -> None:
    behind = [point(1.5, 64, n) for n in (7, 14, 28)]
    found = points(*behind).predict(features(64, None))
    assert found is not None
    assert found.is_behind
    assert found.ort_us is None
    assert points(*behind[:2]).predict(features(64, None)) is None
    assert points(*behind, point(0.9, 4, 1000)).predict(features(64, None)) is None


def test_names_of_points() -> None:
    assert measured("") is None
    assert measured("off") is None
    with pytest.raises(AuthorError, match="no measured points of 'avx3'; name one of off, avx2"):
        measured("avx3")
    with pytest.raises(AuthorError, match="format 0"):
        from_json({"format": 0})


def test_instruction_sets() -> None:
    isa = {name: isa_of(described_machines(name, None)[0]) for name in ("x86-64-v3", "x86-64-v4", "sapphirerapids")}
    assert isa == {"x86-64-v3": "avx2", "x86-64-v4": "avx512", "sapphirerapids": "avx512-amx"}
    assert isa_of(described_machines("aarch64", None)[0]) == ""
    assert isa_of(described_machines("x86-64-v2", None)[0]) == ""
    machines = [described_machines(name, None)[0] for name in ("x86-64-v3", "znver3", "x86-64-v4")]
    assert pass_figures(machines[:2])["points"] == "avx2"
    assert pass_figures(machines)["points"] == "", "no points hold for both"


# -- the choice in a model --------------------------------------------------------------------------------------------


def convolutions(batch: int | str = 1, count: int = 1, chain: bool = True) -> onnx.ModelProto:
    """Depthwise convolutions of 96 channels on 28 x 28, each of the one before, or all of the input."""
    rng = np.random.default_rng(0)
    weights = [
        numpy_helper.from_array(rng.standard_normal((96, 1, 3, 3)).astype(np.float32), f"w{k}") for k in range(count)
    ]
    nodes = [
        helper.make_node(
            "Conv", [f"c{k - 1}" if chain and k else "x", f"w{k}"], [f"c{k}"], f"conv{k}", pads=[1] * 4, group=96
        )
        for k in range(count)
    ]
    shape = [batch, 96, 28, 28]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(f"c{k}", TensorProto.FLOAT, shape) for k in range(count)],
        weights,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=10)


SIZES = (1, 96, 28, 28, 96, 1, 3, 3)


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of points in place of Igniter's; its `avx2.json` is written by `write`."""
    monkeypatch.setattr(measured_points, "FOLDER", tmp_path)
    measured.cache_clear()
    return tmp_path / "avx2.json"


@pytest.fixture(autouse=True)
def fresh() -> object:
    yield
    measured.cache_clear()


def write(file: Path, ratio: float = 2.0, kind: str = KIND, ort_us: float = 100.0) -> None:
    work = 2 * 96 * 28 * 28 * 9
    batches = [Point((n, *SIZES[1:]), n * work, n * ratio * ort_us, n * ort_us, 0.01) for n in (1, 2, 4)]
    file.write_text(to_json(points(*batches, kind=kind)))


def regions(model: onnx.ModelProto, author: str = "", options: str = "", **more: object) -> tuple[int, list[str]]:
    """The number of regions, and the reasons of the nodes left by points."""
    module = igniter.load(model)
    given = f'author="{author}" {options}' if author else options
    module.run_passes(f"cpu-onnx,form-fusion-regions{{{given}}}", target=TARGET, **more)  # type: ignore[arg-type]
    remarks = module.ctx.remarks.of("form-fusion-regions", "missed")
    left = [r.message for r in remarks if r.node.startswith("conv") and r.details["reason"] == "measured"]
    return sum(isinstance(op, RegionOp) for op in module.ir.walk()), left


def test_a_region_alone_is_left(file: Path) -> None:
    write(file)
    count, left = regions(convolutions())
    assert count == 0
    assert left == [
        "Conv is left to ONNX Runtime: a kernel was measured at 2.00 of its time (avx2, 1 point near)",
    ]
    write(file, ratio=1.05)
    measured.cache_clear()
    assert regions(convolutions()) == (1, [])


def test_other_targets_and_machines_without_points(file: Path) -> None:
    write(file)
    module = igniter.load(convolutions())
    module.run_passes("cpu-onnx,form-fusion-regions", target="x86-64-v4")
    assert sum(isinstance(op, RegionOp) for op in module.ir.walk()) == 1


@pytest.mark.parametrize("options", ["singletons=all", "points=off"])
def test_switches(file: Path, options: str) -> None:
    write(file)
    assert regions(convolutions(), options=options) == (1, [])
    assert regions(convolutions(), author=f"default{{{options}}}") == (1, [])


def test_a_wrong_name_is_an_error(file: Path) -> None:
    write(file)
    with pytest.raises(IgniterError, match="no measured points of 'avx'"):
        regions(convolutions(), options="points=avx")


def test_nodes_that_must_be_compiled(file: Path) -> None:
    write(file)
    assert regions(convolutions(), options="required=Conv") == (1, [])


def test_symbolic_sizes(file: Path) -> None:
    write(file, kind=FREE)
    model = convolutions("batch")
    count, left = regions(model)
    assert count == 0, "every point of the kind is behind"
    assert "3 points near" in left[0]
    given = points(*(Point((n, *SIZES[1:]), n, 2.0, 1.0, 0.0) for n in (1, 2)), kind=FREE)
    file.write_text(to_json(given))
    measured.cache_clear()
    assert regions(model) == (1, []), "two points say too little of a kind"
    assert regions(model, sizes={"batch": 1})[0] == 0
    assert regions(model, sizes={"batch": 1000}) == (1, []), "no point is near"


def test_neighbours_count(file: Path) -> None:
    write(file, ratio=1.3)
    assert regions(convolutions(count=3, chain=False))[0] == 0, "each stands alone"
    # A change of layout of 300 kB takes 75 us: a ratio of 1.3 of 100 us does not pay for it, one of 40 does.
    assert regions(convolutions(count=3)) == (3, [])
    write(file, ratio=40.0)
    measured.cache_clear()
    assert regions(convolutions(count=3))[0] == 0


def test_two_compiles_are_the_same(file: Path, tmp_path: Path) -> None:
    write(file)
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        artifact = igniter.compile(convolutions(), folder, target=TARGET, cache=False, verify=False)
        assert artifact.report["regions"] == 0
        (left,) = artifact.report["left_to_onnxruntime"]
        assert left["choice"]
        assert "measured at 2.00" in left["reason"]
    first, second = ((folder / "model.onnx").read_bytes() for folder in folders)
    assert first == second


@pytest.mark.slow
def test_the_command_line_says_so(file: Path, tmp_path: Path) -> None:
    write(file)
    model = tmp_path / "model.onnx"
    onnx.save(convolutions(), model)
    options = ["--target", TARGET, "--no-verify", "--no-load", "--no-cache", "-o", str(tmp_path / "out"), "--explain"]
    done = CliRunner().invoke(app, ["compile", str(model), *options])
    assert done.exit_code == 0, done.output
    assert "1 nodes were measured faster in ONNX Runtime, and stay (1 Conv); --explain says why" in done.output
    assert "conv0 (Conv): Conv is left to ONNX Runtime: a kernel was measured at 2.00 of its time" in done.output
    off = ["--fusion-author", "default{points=off}"]
    done = CliRunner().invoke(app, ["compile", str(model), *options, *off])
    assert done.exit_code == 0, done.output
    assert "measured faster" not in done.output


def test_to_json_is_in_order() -> None:
    a, b = point(2.0, 64, 28), point(1.5, 32, 28)
    text = to_json(points(a, b))
    assert text == to_json(points(b, a))
    assert from_json(json.loads(text)).kinds == {KIND: (b, a)}
    assert to_json(replace(points(a, b), kinds={})).endswith("}\n")
