"""The igniter command."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper
from typer.testing import CliRunner

import igniter
from igniter.backends.cpu.codegen import parse as parse_llvm
from igniter.tools.main import app
from igniter.transforms.fusion.form_fusion_regions import FormFusionRegions

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


def invoke(*args: object) -> Any:
    return CliRunner().invoke(app, [str(a) for a in args])


@pytest.fixture
def compiled(model: Path, tmp_path: Path) -> Path:
    target = tmp_path / "out.igniter"
    assert invoke("compile", model, "-o", target, "--no-verify").exit_code == 0
    return target


def test_compile_says_what_it_did(model: Path, tmp_path: Path) -> None:
    done = invoke("compile", model, "-o", tmp_path / "out", "--explain")
    assert done.exit_code == 0, done.output
    assert "nodes became" in done.stdout
    assert "verified against ONNX Runtime at" in done.stdout
    assert f"take every symbolic dim to be {FormFusionRegions.typical_dim}" in done.stdout
    assert "main:" in done.stdout or "@r0" in done.stdout
    assert (tmp_path / "out" / "report.json").exists()


@pytest.mark.slow
def test_a_compile_without_a_terminal_writes_a_line_per_stage(model: Path, tmp_path: Path) -> None:
    done = invoke("compile", model, "-o", tmp_path / "out")
    lines = [line for line in done.stderr.splitlines() if line.startswith("compiling: ")]
    stages = [line.split()[1].rstrip(",") for line in lines]
    assert stages[:3] == ["reading", "onnx", "fusion"]
    assert stages[-1] == "load"
    assert all(line.endswith(" s") for line in lines)
    assert "compiling" not in done.stdout
    assert not invoke("compile", model, "-o", tmp_path / "out", "--json").stderr


@pytest.mark.slow
def test_bytes_are_at_the_sizes_asked_for(model: Path, tmp_path: Path) -> None:
    def saved(*sizes: str) -> int:
        done = invoke("compile", model, "-o", tmp_path / "out", "--explain", "--json", "--no-verify", *sizes)
        assert done.exit_code == 0, done.output
        return sum(r["bytes_saved"] for s in json.loads(done.stdout)["fusion"] for r in s["regions"])

    name = next(dim for dims in _dims(model) for dim in dims if not dim.isdigit())
    assert saved(f"--sizes={name}={FormFusionRegions.typical_dim}") == saved() == 128 * saved(f"--sizes={name}=1") > 0
    done = invoke("compile", model, "-o", tmp_path / "out", "--explain", "--sizes", f"{name}=7")
    assert f"take {name}=7, and every other symbolic dim to be 128" in done.stdout
    for options, said in (
        (["--explain", "--sizes", "wrong=1"], "the model has no dim wrong; its dims are"),
        (["--explain", "--sizes", f"{name}=many"], "is not a choice of sizes"),
        (["--sizes", f"{name}=7", "--emit=onnx"], "--sizes decides about a level behind --emit=onnx"),
    ):
        done = invoke("compile", model, "-o", tmp_path / "out", *options)
        assert done.exit_code == 1 and said in done.stderr


def _dims(model: Path) -> list[list[str]]:
    inputs = onnx.load(model).graph.input
    return [[d.dim_param or str(d.dim_value) for d in v.type.tensor_type.shape.dim] for v in inputs]


def test_compile_writes_beside_the_caller(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert invoke("compile", model, "--no-verify").exit_code == 0
    assert (tmp_path / "tiny.igniter" / "model.onnx").exists()


@pytest.mark.slow
def test_json_is_json_and_nothing_else(model: Path, tmp_path: Path) -> None:
    report = json.loads(invoke("compile", model, "-o", tmp_path / "out", "--json").stdout)
    assert report["verification"]["ok"]
    assert "remarks" not in report
    report = json.loads(invoke("compile", model, "-o", tmp_path / "out", "--json", "--remarks").stdout)
    assert report["remarks"]


@pytest.mark.parametrize(
    ("level", "sign"),
    [
        ("onnx", "onnx.graph"),
        ("fusion", "fusion.region"),
        ("loop", "loop.kernel"),
        ("scheduled", "loop.func"),
        ("llvm", "define "),
        ("asm", ".text"),
    ],
)
def test_emit_stops_anywhere(model: Path, tmp_path: Path, level: str, sign: str) -> None:
    done = invoke("compile", model, f"--emit={level}")
    assert done.exit_code == 0, done.output
    assert sign in done.stdout
    target = tmp_path / "text"
    assert invoke("compile", model, f"--emit={level}", "-o", target).stdout == ""
    assert sign in target.read_text()
    found = json.loads(invoke("compile", model, f"--emit={level}", "--json").stdout)
    assert sign in found[level]


def test_what_is_emitted_is_whole(tmp_path: Path) -> None:
    """Every level reads back, for a model of several kernels too."""
    deep = tmp_path / "deep.onnx"
    igniter.parse((EXAMPLES / "two_regions.mlir").read_text()).save(deep)
    for level in ("onnx", "fusion", "loop", "scheduled"):
        text = invoke("compile", deep, f"--emit={level}").stdout
        assert str(igniter.parse(text)) + "\n" == text
    defined = [f.name for f in parse_llvm(invoke("compile", deep, "--emit=llvm").stdout).functions]
    assert {"r0", "r1"} <= set(defined)
    target = tmp_path / "kernels.o"
    done = invoke("compile", deep, "--emit=obj", "-o", target)
    assert done.exit_code == 0, done.output
    data = target.read_bytes()
    assert data.startswith(b"\x7fELF") and b"\0r0\0" in data and b"\0r1\0" in data
    assert list(tmp_path.glob(".*")) == []


def test_emit_code_of_a_model_without_any(tmp_path: Path) -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["" : 17]> g (string[2] x) => (string[2] y) { y = Identity(x) }'
    )
    onnx.save(model, tmp_path / "strings.onnx")
    done = invoke("compile", tmp_path / "strings.onnx", "--emit=obj", "-o", tmp_path / "x.o")
    assert done.exit_code == 1 and "no node of the model compiles" in done.stderr
    assert not (tmp_path / "x.o").exists()


@pytest.mark.slow
def test_verify(compiled: Path) -> None:
    done = invoke("verify", compiled, "--shape", "batch=2", "--shape", "batch=5")
    assert done.exit_code == 0, done.output
    assert "batch=5" in done.stdout
    assert "all outputs agree" in done.stdout
    found = json.loads(invoke("verify", compiled, "--json").stdout)
    assert found["ok"]


@pytest.mark.slow
def test_verify_against_another_model_fails(compiled: Path, model: Path, tmp_path: Path) -> None:
    import onnx

    other = onnx.load(model)
    next(n for n in other.graph.node if n.op_type == "Relu").op_type = "Abs"
    onnx.save(other, tmp_path / "other.onnx")
    done = invoke("verify", compiled, "--reference", tmp_path / "other.onnx")
    assert done.exit_code == 1
    assert "the outputs differ" in done.stdout


@pytest.mark.slow
def test_bench_a_folder_and_a_model(compiled: Path, model: Path) -> None:
    for path in (compiled, model):
        (row,) = json.loads(invoke("bench", path, "--rounds=2", "--shape", "batch=4", "--json").stdout)
        assert row["shapes"] == {"batch": 4}
        assert row["onnxruntime"]["ms"] > 0
        assert row["igniter"]["ms"] > 0
        assert row["control"]["ratio"] > 0


@pytest.mark.slow
def test_bench_prints_a_table(compiled: Path) -> None:
    done = invoke("bench", compiled, "--rounds=1")
    assert done.exit_code == 0, done.output
    assert "speedup" in done.stdout


def test_inspect_all_it_knows(compiled: Path, model: Path) -> None:
    found = json.loads(invoke("inspect", model, "--json").stdout)
    assert found["ops"]["Relu"] == 1
    assert found["nodes"] == 6
    assert list(found["inputs"]) == ["x", "w", "ids"]
    found = json.loads(invoke("inspect", compiled, "--json").stdout)
    assert found["regions"] > 0
    (library,) = compiled.glob("*.so")
    found = json.loads(invoke("inspect", library, "--json").stdout)
    assert found["ops"]
    assert "Relu" in invoke("inspect", model).stdout


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("compile", "missing.onnx"), "missing.onnx"),
        (("compile", "{model}", "--target=pdp-11"), "pdp-11"),
        (("compile", "{model}", "--shape", "batch"), "write dim=number"),
        (("bench", "{model}", "--shape", "height=3"), "no dim height; its dims are batch"),
        (("verify", "{model}"), "takes the folder"),
        (("verify", "missing"), "missing"),
        (("inspect", "missing.txt"), "neither"),
        (("inspect", "missing.so"), "missing.so"),
    ],
)
def test_an_error_is_one_paragraph(model: Path, tmp_path: Path, args: tuple[str, ...], said: str) -> None:
    done = invoke(*(a.replace("{model}", str(model)) for a in args))
    assert done.exit_code == 1
    assert done.stderr.startswith("igniter: error: ")
    assert said in done.stderr
    assert "Traceback" not in done.stderr
    assert "Traceback" in invoke(*(a.replace("{model}", str(model)) for a in args), "--debug").stderr


@pytest.mark.slow
def test_the_demo_prints_its_line() -> None:
    done = invoke("demo", "--layers=2", "--rounds=1", "--sequence=8")
    assert done.exit_code == 0, done.output
    last = done.stdout.splitlines()[-1]
    assert last.startswith("benchmark model: >>> mobilebert-demo >>> : time-cost changes from ")
    assert "every output agrees" in done.stdout
    found = json.loads(invoke("demo", "--layers=1", "--rounds=1", "--sequence=8", "--json").stdout)
    assert found["nodes_after"] < found["nodes_before"]


def test_version_and_help() -> None:
    from igniter import __version__

    assert invoke("--version").stdout == f"igniter {__version__}\n"
    assert "compile" in invoke("--help").stdout


def test_json_is_printed_after_a_failure_too(tmp_path: Path) -> None:
    done = invoke("compile", tmp_path / "missing.onnx", "--json")
    assert done.exit_code == 1
    assert json.loads(done.stdout)["error"] == {
        "kind": "error",
        "code": "IGN0001",
        "message": f"cannot read {tmp_path / 'missing.onnx'}: No such file or directory",
    }
    for command in ("verify", "bench", "inspect"):
        assert "error" in json.loads(invoke(command, tmp_path / "missing.onnx", "--json").stdout)


def test_no_threads_below_none(model: Path) -> None:
    done = invoke("bench", model, "--threads", -3)
    assert done.exit_code == 2
    assert "--threads" in done.stderr


def test_an_invalid_node_is_named(tmp_path: Path) -> None:
    node = onnx.helper.make_node("Add", ["x"], ["y"], "lonely")
    values = [onnx.helper.make_tensor_value_info(name, 1, [2]) for name in "xy"]
    proto = onnx.helper.make_model(onnx.helper.make_graph([node], "g", values[:1], values[1:]))
    onnx.save(proto, tmp_path / "bad.onnx")
    for level in ("library", "fusion"):
        done = invoke("compile", tmp_path / "bad.onnx", "-o", tmp_path / "out", "--emit", level)
        assert done.exit_code == 1
        assert "bad.onnx is not a valid model: node 'lonely' (Add) of the main graph is not valid" in done.stderr


def test_a_hint_names_a_thing_once(model: Path) -> None:
    said = invoke("compile", model, "--target", "x86-46").stderr
    assert "did you mean 'x86-64' or 'x86-64-" in said


def test_compile_takes_ir(model: Path, tmp_path: Path) -> None:
    ir = tmp_path / "model.mlir"
    ir.write_text(str(igniter.load(model).run_passes("cpu-onnx,cpu-fusion")))
    done = invoke("compile", ir, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output
    assert "verified against ONNX Runtime at" in done.stdout
    assert "fusion.region" in invoke("compile", ir, "--emit=fusion").stdout
    assert "fusion.region" not in invoke("compile", ir, "--emit=onnx").stdout
    ir.write_text("not ir")
    done = invoke("compile", ir)
    assert done.exit_code == 1 and "model.mlir" in done.stderr


@pytest.mark.slow
def test_a_profile_is_of_the_folder_that_is_given(model: Path, tmp_path: Path) -> None:
    stamped = tmp_path / "stamped"
    assert invoke("compile", model, "-o", stamped, "--no-verify", "--profile").exit_code == 0
    before = {p.name: p.stat().st_mtime_ns for p in stamped.iterdir()}
    (model).rename(tmp_path / "moved.onnx")  # nothing is left to compile again
    args = ("--profile", "--json", "--shape", "batch=4", "--reference", tmp_path / "moved.onnx")
    (row,) = json.loads(invoke("bench", stamped, *args).stdout)
    assert row["steps"]
    assert before == {p.name: p.stat().st_mtime_ns for p in stamped.iterdir()}


@pytest.mark.slow
def test_a_folder_with_convolutions_in_tiles_is_profiled(tmp_path: Path) -> None:
    """A report names the pipelines that ran; given as options, they alone would decide about tiles."""
    conv = helper.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])
    x, y = (helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["batch", 64, 28, 28]) for name in "xy")
    weight = numpy_helper.from_array(np.random.default_rng(0).standard_normal((64, 64, 3, 3), np.float32), "w")
    graph = helper.make_graph([conv], "tiles", [x], [y], [weight])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), tmp_path / "m.onnx")
    options = igniter.CompileOptions(target="x86-64-v3", machine={"l2_bytes": 1 << 20}, sizes={"batch": 3}, winograd=2)
    for chosen in (replace(options, winograd="auto"), options):
        artifact = igniter.compile(tmp_path / "m.onnx", tmp_path / "out", options=chosen, verify=False)
        assert igniter.CompileOptions.of_report(artifact.report["options"]) == chosen
        assert [r for r in artifact.report["remarks"] if r["pass"] == "winograd"]
        done = invoke("bench", tmp_path / "out", "--profile", "--json", "--shape", "batch=1")
        assert done.exit_code == 0 and json.loads(done.stdout)[0]["steps"], done.stderr
        assert artifact.verify_every_value().status == "passed"


@pytest.mark.slow
def test_a_schedule_of_ones_own_is_not_profiled_as_another(model: Path, tmp_path: Path) -> None:
    module = igniter.load(model)
    module.run_passes("cpu-onnx,form-fusion-regions{siblings=false max-nodes=1 singletons=all}")
    module.compile(tmp_path / "own", verify=False)
    done = invoke("bench", tmp_path / "own", "--profile")
    assert done.exit_code == 1
    assert "are not those that Igniter makes of the original" in done.stderr
    options = igniter.CompileOptions(profile=True)
    module.compile(tmp_path / "own", verify=False, options=options)
    assert invoke("bench", tmp_path / "own", "--profile").exit_code == 0


def test_reprs_are_short(model: Path, tmp_path: Path) -> None:
    module = igniter.load(model)
    assert repr(module) == f"<igniter.Module of {model}: 6 nodes>"
    artifact = module.compile(tmp_path / "out", verify=False)
    assert repr(artifact).startswith(f"<igniter.Artifact {tmp_path / 'out'}: 6 nodes became ")
    assert len(repr(artifact)) < 300


@pytest.mark.parametrize("option", ["--seed=-1", "--rtol=-0.1", "--atol=-1", "--budget=-5"])
def test_what_cannot_be_negative_is_refused(model: Path, tmp_path: Path, option: str) -> None:
    done = invoke("compile", model, "-o", tmp_path / "out", option)
    assert done.exit_code == 1 and "it is not negative" in done.stderr


def test_a_place_that_is_taken_is_refused_before_anything_is_compiled(
    model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("igniter.compiler.compile_model.lower_to_kernels", lambda c: pytest.fail("compiled"))
    done = invoke("compile", model, "-o", model, "--no-cache")
    assert done.exit_code == 1 and "is a file; a compiled model is a folder" in done.stderr
