"""Reproducers: what a failed pass leaves repeats the failure, from every entrance."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper
from tools_kit import PASSES, opt
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, f32
from xdsl.passes import ModulePass

import igniter
from igniter import CompileOptions, registry
from igniter.analysis.machine import TYPICAL, MachineModel
from igniter.dialects.loop import KernelOp, NestOp
from igniter.dialects.onnx.base import constant_weight
from igniter.dialects.onnx.stand_ins import StandIn
from igniter.dialects.onnx.types import element_type
from igniter.errors import IgniterError, reproducer_of
from igniter.passes import PassError
from igniter.reproducers import FACTS, MOST_FILES, Recorder, split_reproducer
from igniter.targets import backend_for
from igniter.toolbox.reproducing import read_reproducer

HERE = "test_reproducers"


@dataclass(frozen=True)
class CrashOnNest(ModulePass):
    """Raises a bare KeyError for a kernel with a nest called `on`."""

    name = "crash-on-nest"
    on: str = "reducesum"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for nest in op.walk():
            if isinstance(nest, NestOp) and nest.label == self.on:
                raise KeyError("axis")


@dataclass(frozen=True)
class CrashOnWeight(ModulePass):
    """Fails if a weight has the value `value`."""

    name = "crash-on-weight"
    value: int = 7

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        weights = [constant_weight(op.results[0]) for op in op.walk() if op.name == "onnx.Constant"]
        if any(w is not None and (w.array() == self.value).any() for w in weights):
            raise ZeroDivisionError("division by zero")


@pytest.fixture
def more_passes(bad_passes: None, monkeypatch: pytest.MonkeyPatch) -> None:
    for this in (CrashOnNest, CrashOnWeight):
        monkeypatch.setitem(registry.PASSES, this.name, f"{HERE}:{this.__name__}")


@pytest.fixture
def wide(tmp_path: Path) -> Path:
    """A product with a weight of 256 elements, one of them 7."""
    weight = np.arange(256, dtype=np.float32).reshape(16, 16)
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        "wide",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["n", 16])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["n", 16])],
        [numpy_helper.from_array(weight, "w")],
    )
    path = tmp_path / "wide.onnx"
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def facts_of(path: Path | str) -> dict[str, str]:
    found = read_reproducer(path)
    assert found is not None
    return dict(found.facts)


def test_a_failed_pass_leaves_the_ir_before_it_and_the_rest(bad_passes: None, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "left.mlir"
    done = opt(model, "-p", "infer-shapes,crash,cse", f"--crash-reproducer={file}", "--sizes=batch=4")
    assert done.status == 4  # The pass is a plug-in's.
    assert f"note: reproducer: {file}" in done.err
    facts = facts_of(file)
    assert set(facts) <= set(FACTS)
    assert facts["pipeline"] == "crash,cse"
    assert json.loads(facts["sizes"]) == {"batch": 4}
    # The shapes are inferred: this is the IR behind the first pass.
    assert "tensor<*xf32>" not in file.read_text()
    again = opt(file, "--run-reproducer")
    assert again.status == 4
    assert again.err.startswith("igniter-opt: error: pass 'crash': KeyError: 'crashed 1 times' (tools_kit.py:")
    # For every other purpose the file is ordinary IR.
    assert opt(file, "-p", "cse", "--emit=none").status == 0


def test_mlirs_spellings_and_the_failing_pass_alone(bad_passes: None, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "left.mlir"
    flags = [f"--mlir-pass-pipeline-crash-reproducer={file}", "--mlir-pass-pipeline-local-reproducer"]
    assert opt(model, "-p", "infer-shapes,crash{times=3},cse", *flags).status == 4
    assert facts_of(file)["pipeline"] == "crash{times=3}"


def test_the_machine_is_that_of_the_run(bad_passes: None, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "left.mlir"
    opt(model, "-p", "crash", "--target=x86-64-v3", f"--crash-reproducer={file}")
    said = json.loads(facts_of(file)["machine"])
    assert MachineModel.of_values(said) == backend_for("x86-64-v3").machine_for("x86-64-v3")
    assert MachineModel.of_values({}) == TYPICAL
    with pytest.raises(IgniterError, match="no figure 'wheels'"):
        MachineModel.of_values({"wheels": 4})


def test_invalid_ir_and_changed_results_are_failures_too(bad_passes: None, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "left.mlir"
    opt(model, "-p", "cse,corrupt", f"--crash-reproducer={file}")
    assert "left IR that does not verify" in opt(file, "--run-reproducer").err
    opt(model, "-p", "break-relu", "--check-each", "--check-seed=3", f"--crash-reproducer={file}")
    facts = facts_of(file)
    assert (facts["check_each"], facts["seed"], facts["weights"]) == ("true", "3", "kept")
    assert "changed graph @main" in opt(file, "--run-reproducer", "--emit=none").err


def test_a_run_that_succeeds_leaves_nothing(model: Path, tmp_path: Path) -> None:
    file = tmp_path / "left.mlir"
    assert opt(model, "-p", "cse", f"--crash-reproducer={file}", "--emit=none").status == 0
    assert not file.exists()
    # A file of an earlier run is not this run's.
    file.write_text("earlier")
    assert opt(model, "-p", "", f"--crash-reproducer={file}", "--emit=none").status == 0
    assert file.read_text() == "earlier"


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--local-reproducer"], "--local-reproducer is about the file of --crash-reproducer"),
        (["--reproducer-weights=keep"], "--reproducer-weights is about the file of --crash-reproducer"),
        (["--crash-reproducer=x.txt"], "name a file *.mlir, not 'x.txt'"),
        (["--run-reproducer", "-p", "cse"], "--passes is given by the file of --run-reproducer"),
        (["--run-reproducer", "--sizes=n=1"], "--sizes is given by the file of --run-reproducer"),
        (["--run-reproducer"], "<stdin> is no reproducer"),
    ],
)
def test_options_without_effect_are_refused(flags: list[str], said: str) -> None:
    done = opt(*flags, text="builtin.module {}\n")
    assert done.status == 1
    assert said in done.err


def test_weights_are_elided_unless_the_failure_needs_them(more_passes: None, wide: Path, tmp_path: Path) -> None:
    file = tmp_path / "left.mlir"
    opt(wide, "-p", "crash", f"--crash-reproducer={file}")
    assert facts_of(file)["weights"] == "elided"
    assert "tensor<16x16xf32, elided>" in file.read_text()
    opt(wide, "-p", "crash", f"--crash-reproducer={file}", "--reproducer-weights=keep")
    assert facts_of(file)["weights"] == "kept"
    opt(wide, "-p", "crash-on-weight", f"--crash-reproducer={file}")
    assert facts_of(file)["weights"] == "kept"
    assert "division by zero" in opt(file, "--run-reproducer").err
    opt(wide, "-p", "crash-on-weight", f"--crash-reproducer={file}", "--reproducer-weights=elide")
    assert opt(file, "--run-reproducer", "--emit=none").status == 0


def test_an_elided_weight_runs_with_the_same_values_each_time(wide: Path, tmp_path: Path) -> None:
    text = opt(wide, "-p", "elide-weights").out
    file = tmp_path / "left.mlir"
    file.write_text(f'{text}{{-# external_resources: {{ igniter_reproducer: {{ pipeline: "cse" }} }} #-}}\n')
    assert opt(file, "--run-reproducer").out == text
    done = opt(file, "--run-reproducer", "--check-each", "--emit=none")
    assert (done.status, "1 results agree" in done.err) == (0, True)
    weight = StandIn((2, 3), element_type(f32), 5)
    assert (weight.compute() == weight.compute()).all()


def test_the_kernel_that_fails_is_alone_in_the_file(more_passes: None, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "left.mlir"
    levels = "cpu-onnx,cpu-fusion,cpu-loop"
    nested = 'schedule-kernels{passes="canonicalize-loop,crash-on-nest,choose-schedule"}'
    assert opt(model, "-p", f"{levels},{nested}", f"--crash-reproducer={file}", "--emit=none").status == 4
    assert facts_of(file)["pipeline"].startswith("crash-on-nest,choose-schedule")
    module = igniter.load(file).ir
    assert [type(op) for op in module.ops] == [KernelOp]
    assert "'axis'" in opt(file, "--run-reproducer").err


def test_a_crash_of_native_code_leaves_the_file_too(tmp_path: Path, model: Path) -> None:
    file = tmp_path / "left.mlir"
    script = (
        "import os, signal, sys\nfrom dataclasses import dataclass\nfrom xdsl.passes import ModulePass\n"
        "from igniter import registry\nfrom igniter.tools.igniter_opt import run\n"
        "@dataclass(frozen=True)\nclass Native(ModulePass):\n    name = 'native'\n"
        "    def apply(self, ctx, op):\n        os.kill(os.getpid(), signal.SIGSEGV)\n"
        "registry.PASSES['native'] = '__main__:Native'\n"
        "run(sys.argv[1:], sys.stdin.buffer, sys.stdout, sys.stderr)\n"
    )
    args = [str(model), "-p", "cse,native", f"--crash-reproducer={file}"]
    done = subprocess.run([sys.executable, "-c", script, *args], capture_output=True, check=False)
    assert done.returncode < 0
    assert facts_of(file)["pipeline"] == "native"
    assert "the process ended while the pass 'native' ran" in facts_of(file)["error"]


# -- compile and Python -----------------------------------------------------------------------------------------------


def test_a_compile_that_crashes_names_its_reproducer(bad_passes: None, model: Path, tmp_path: Path) -> None:
    options = CompileOptions(onnx_passes="infer-shapes,crash,cse")
    with pytest.raises(PassError, match="crashed 1 times") as caught:
        igniter.compile(model, options=options, cache=False)
    path = Path(caught.value.reproducer)
    assert path.parent == tmp_path / "cache" / "reproducers"
    assert facts_of(path)["pipeline"].startswith("crash,cse")
    assert "crashed 1 times" in opt(path, "--run-reproducer").err


def test_a_kernel_that_crashes_costs_its_region_and_leaves_its_reproducer(more_passes: None, model: Path) -> None:
    options = CompileOptions(schedule_passes="canonicalize-loop,crash-on-nest,cpu-schedule")
    artifact = igniter.compile(model, options=options, cache=False, verify=False)
    (reason,) = {entry["reason"] for entry in artifact.report["left_to_onnxruntime"] if entry["kind"] == "failed"}
    path = reason.rpartition("reproducer: ")[2]
    assert [type(op) for op in igniter.load(path).ir.ops] == [KernelOp]
    assert "'axis'" in opt(path, "--run-reproducer").err
    with pytest.raises(PassError, match="axis") as caught:
        igniter.compile(model, options=options, cache=False, verify=False, strict=True)
    assert caught.value.reproducer == path


def test_an_emission_that_crashes_leaves_its_kernel(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    backend = backend_for("native")
    monkeypatch.setattr(backend, "emit_func", lambda *_: {}["register"])
    with pytest.raises(KeyError) as caught:
        igniter.compile(model, cache=False, verify=False, strict=True)
    facts = facts_of(reproducer_of(caught.value))
    assert (facts.get("pipeline"), facts["emit"]) == ("", "llvm")


def test_errors_of_the_user_and_the_switch_leave_nothing(
    bad_passes: None, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(IgniterError) as caught:
        igniter.compile(model, fusion_author="nobody", cache=False)
    assert caught.value.reproducer == ""
    monkeypatch.setenv("IGNITER_REPRODUCERS", "off")
    with pytest.raises(PassError) as failed:
        igniter.compile(model, options=CompileOptions(onnx_passes="crash"), cache=False)
    assert failed.value.reproducer == ""
    assert not (tmp_path / "cache" / "reproducers").exists()
    monkeypatch.setenv("IGNITER_REPRODUCERS", str(tmp_path / "own"))
    with pytest.raises(PassError) as failed:
        igniter.compile(model, options=CompileOptions(onnx_passes="crash"), cache=False)
    assert Path(failed.value.reproducer).parent == tmp_path / "own"


def test_run_passes_leaves_one_on_request(bad_passes: None, model: Path, tmp_path: Path) -> None:
    file = tmp_path / "left.mlir"
    with pytest.raises(PassError) as caught:
        igniter.load(model).run_passes("infer-shapes,crash", target="x86-64-v3", reproducer=file)
    assert caught.value.reproducer == str(file)
    assert facts_of(file)["pipeline"] == "crash"
    with pytest.raises(PassError) as caught:
        igniter.load(model).run_passes("crash")
    assert caught.value.reproducer == ""


@pytest.fixture
def many(tmp_path: Path) -> Iterator[Path]:
    for number in range(MOST_FILES + 3):
        path = tmp_path / f"igniter-{number:012}.mlir"
        path.write_text("")
        os.utime(path, (number, number))
    yield tmp_path


def test_a_folder_of_reproducers_does_not_grow(bad_passes: None, model: Path, many: Path) -> None:
    module = igniter.load(model)
    left = Recorder(folder=str(many)).leave(module.ctx, module.ir, registry_passes(), ValueError("no"))
    assert len(list(many.glob("*.mlir"))) == MOST_FILES
    assert Path(left).exists()
    assert not (many / f"igniter-{0:012}.mlir").exists()


def registry_passes() -> tuple[ModulePass, ...]:
    return (registry.load(PASSES["crash"])(),)


def test_a_damaged_section_is_an_error() -> None:
    text = 'builtin.module {}\n{-# external_resources: { igniter_reproducer: { pipeline: "\\q" } } #-}\n'
    with pytest.raises(IgniterError, match="cannot read the reproducer at its end"):
        split_reproducer(text, "x.mlir")
    assert split_reproducer("// igniter_reproducer\nbuiltin.module {}\n", "x")[1] is None
