"""`igniter explain`: parts, reasons and times of two compilations of a model."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from onnx import ModelProto, TensorProto, helper
from typer.testing import CliRunner

import igniter
from igniter.errors import IgniterError
from igniter.toolbox.bench.time_profile import Profile, StepTime
from igniter.toolbox.experiment.records import FORMAT
from igniter.toolbox.explain.experiment import case_of
from igniter.toolbox.explain.explanation import explain
from igniter.toolbox.explain.matching import parts_of
from igniter.toolbox.explain.measurement import Times
from igniter.toolbox.explain.show import _print
from igniter.toolbox.explain.sides import Side, SideStep
from igniter.tools.main import app


def side(name: str, steps: list[tuple[str, str]], schedules: dict[str, dict[str, str]], **left: str) -> Side:
    """Returns a side whose steps are (kernel, its nodes as letters)."""
    made = [
        SideStep(("p0", k), kernel, tuple(nodes), tuple(nodes), "4*n", "8*n") for k, (kernel, nodes) in enumerate(steps)
    ]
    artifact: Any = SimpleNamespace(report={"versions": {"igniter": "1"}, "options": {"fusion_author": name}})
    return Side(name, artifact, tuple(made), left, schedules, name)


def profile(steps: Side, times: list[float], rest: float) -> Profile:
    made = [
        StepTime("p0", "", s.kernel, "", 0.0, ms, 0.0, None, None) for s, ms in zip(steps.steps, times, strict=True)
    ]
    return Profile(tuple(made), rest, rest + sum(times), 1)


A = side("a", [("k0", "xy"), ("k1", "z"), ("k2", "w")], {"k0": {"add": '[i threads fuse "g0"]'}, "k1": {"max": "[i]"}})
B = side(
    "b", [("k0", "x"), ("k1", "yz")], {"k0": {"add": '[i vector 8 fuse "g7"]'}, "k1": {"max": "[i]"}}, w="too small"
)


def test_parts_are_the_smallest_sets_of_whole_steps():
    found = [("".join(p.nodes), len(p.a), len(p.b)) for p in parts_of(A, B)]
    assert found == [("xyz", 2, 2), ("w", 1, 0)]


def test_shares_and_reasons_follow_from_the_times():
    rounds = 5
    before = [profile(A, [4.0, 2.0, 1.0 + 0.001 * k], 0.5) for k in range(rounds)]
    after = [profile(B, [1.0, 1.0], 1.5) for _ in range(rounds)]
    found = explain(A, B, Times(before, before, after), {"n": 10})
    assert found.is_clear and found.total.ms == pytest.approx(-4.002)
    assert found.kernel_share == pytest.approx((7.002 + 2) / (7.502 + 3.5))
    xyz, w, rest = found.parts
    assert (xyz.difference.ms, xyz.share) == (-4.0, pytest.approx(4.0 / 4.002))
    assert xyz.reasons == ("nest 'add': [i threads fuse] in A, [i vector 8 fuse] in B",)
    assert w.reasons == ("1 region in A, no regions in B", "left to ONNX Runtime in B: w (too small)")
    assert rest.difference.ms == 1.0 and "0 nodes left to ONNX Runtime in A, 1 in B" in rest.reasons
    assert sum(p.share or 0 for p in found.parts) == pytest.approx(1, abs=0.01)
    assert "option fusion_author: 'a' in A, 'b' in B" in found.notes


def test_a_difference_within_the_noise_is_not_shared_out():
    one, other = (
        [profile(A, [1.0, 1.0, 1.0 + 0.5 * (k % 2)], 1.0) for k in range(6)],
        [profile(A, [1.0, 1.0, 1.1], 1.0)] * 6,
    )
    found = explain(A, A, Times(one, list(reversed(one)), other), {"n": 1})
    assert not found.is_clear and found.same_code
    assert all(p.share is None for p in found.parts)


def test_likewise_parts_are_one_row():
    twice = side("a", [("k0", "a"), ("k0", "a")], {})
    layers = Side(
        "a",
        twice.artifact,
        tuple(SideStep(("p0", k), "k0", (f"add_{k}",), ("Add",), "n", "n") for k in range(3)),
        {},
        {},
        "a",
    )
    times = [profile(layers, [1.0, 2.0, 3.0], 0.0)] * 3
    found = explain(layers, layers, Times(times, times, times), {"n": 1})
    assert [p.what for p in found.parts if p.nodes] == ["3 x Add (add_0)"]


def model() -> ModelProto:
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", 512]) for name in "xy")
    nodes = [
        helper.make_node("Softmax", ["x"], ["s"], name="softmax", axis=-1),
        helper.make_node("Exp", ["s"], ["e"], name="exp"),
        helper.make_node("LpNormalization", ["e"], ["y"], name="norm", axis=-1, p=1),
    ]
    return helper.make_model(helper.make_graph(nodes, "g", [x], [y]), opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.slow
def test_two_compilations_of_a_model(tmp_path: Path):
    (tmp_path / "m.onnx").write_bytes(model().SerializeToString())
    source, a, b = (str(tmp_path / name) for name in ("m.onnx", "a", "b"))
    igniter.compile(source, a, verify=False)
    options = igniter.CompileOptions(fusion_passes="form-fusion-regions{max-nodes=1 singletons=all}")
    igniter.compile(source, b, options=options, verify=False)
    args = ["explain", a, b, "--shape", "n=256", "--rounds", "2", "--json"]
    out = CliRunner().invoke(app, args)
    assert out.exit_code == 0, out.output
    found = json.loads(out.stdout)
    assert found["sizes"] == {"n": 256} and found["a_ms"] > 0 and found["b_ms"] > 0
    named = {node for part in found["parts"] for node in part["nodes"]}
    assert {"softmax", "exp"} <= named
    assert any("1 region in A, " in reason for part in found["parts"] for reason in part["reasons"])
    shown = CliRunner().invoke(app, [*args[:-1], "--count", "1"])
    assert shown.exit_code == 0 and "B - A is" in shown.output
    assert shown.output.count("medians of the differences within a round") == 1
    assert "--shape" not in shown.output


def test_small_kernels_at_default_sizes_suggest_others(capsys: pytest.CaptureFixture[str]):
    times = [profile(A, [0.01, 0.01, 0.01], 5.0)] * 2
    found = explain(A, A, Times(times, times, times), {"n": 1})
    _print(found, 3, chosen=False)
    said = " ".join(capsys.readouterr().out.split())
    assert (
        "kernels take 1% of the time at these sizes, ONNX Runtime the rest: give larger sizes with --shape n=N" in said
    )
    _print(found, 3, chosen=True)
    assert "--shape" not in capsys.readouterr().out


def test_a_missing_folder_is_one_message(tmp_path: Path):
    nothing = str(tmp_path / "nothing.igniter")
    for verb in (
        ["explain", nothing, nothing],
        ["bench", nothing],
        ["bench", "--profile", nothing],
        ["verify", nothing],
    ):
        found = CliRunner().invoke(app, verb)
        assert found.exit_code == 1 and f"there is no folder {nothing}: give one that" in found.stderr, verb


def test_what_is_no_side_is_an_error(tmp_path: Path):
    with pytest.raises(IgniterError, match="is no experiment"):
        case_of(str(tmp_path), "", "a", "b")
    out = CliRunner().invoke(app, ["explain", str(tmp_path), str(tmp_path), "--case", "x"])
    assert out.exit_code != 0 and "--case names a comparison of an experiment" in " ".join(out.output.split())


def test_the_beginning_of_a_comparisons_name_suffices(tmp_path: Path):
    names = ["unet--batch=1", "encoder--seq=8", "encoder--seq=16"]
    index = {"format": FORMAT, "cases": names, "subjects": [{"name": "m", "path": "m.onnx"}]}
    (tmp_path / "experiment.json").write_text(json.dumps(index))
    for name in names:
        (tmp_path / "cases" / name).mkdir(parents=True)
        (tmp_path / "cases" / name / "case.json").write_text(json.dumps({"model": "m"}))
        (tmp_path / "cases" / name / "checks.json").write_text(json.dumps({"builds": {"a": {"build": "x"}}}))
    assert "unet--batch=1" in case_of(str(tmp_path), "unet", "a", "a").inputs
    assert "encoder--seq=16" in case_of(str(tmp_path), "encoder--seq=16", "a", "a").inputs
    with pytest.raises(IgniterError, match="no finished comparison 'encoder'; it has: unet--batch=1, encoder"):
        case_of(str(tmp_path), "encoder", "a", "a")
