"""Watching passes: dumps in files, times and counts in files, and observers from Python."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import Result
from tools_kit import opt
from typer.testing import CliRunner
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

import igniter
from igniter.observation import PassWatcher, Unit
from igniter.observation.times import PassTimes
from igniter.observation.units import UnitFilter
from igniter.tools.main import app
from tests.docs.transcripts import ROOT


def invoke(*args: object) -> Result:
    """Runs `igniter` in this process."""
    return CliRunner().invoke(app, [str(a) for a in args])


NESTED = str(ROOT / "lit_tests" / "tools" / "nested.mlir")
RUN = (NESTED, "-p", "schedule-kernels", "--emit=none")
TWO = '%0 = arith.constant 1 : i32\n%1 = arith.constant 1 : i32\n"test.op"(%0, %1) : (i32, i32) -> ()\n'


def test_printed_ir_goes_to_a_tree_of_files(tmp_path: Path) -> None:
    found = opt(*RUN, "--print-ir-after-all", f"--print-ir-tree-dir={tmp_path}")
    assert found.err == ""
    once = tmp_path / "builtin_module" / "loop_kernel_once"
    assert (once / "0_0_after_canonicalize-loop.mlir").exists()
    text = next(once.glob("*_after_lower-to-loops.mlir")).read_text()
    assert text.startswith("// -----// IR Dump After lower-to-loops on loop.kernel @once //----- //\n")
    assert opt(text=text).status == 0
    assert "loop.func @twice" in (tmp_path / "builtin_module" / "0_after_schedule-kernels.mlir").read_text()


def test_times_and_counts_go_to_a_file(tmp_path: Path) -> None:
    file = tmp_path / "info.txt"
    found = opt(*RUN, "--timing", "--pass-statistics", f"--info-output-file={file}")
    assert found.err == ""
    text = file.read_text()
    assert text.startswith("canonicalize-loop\n") and "loop.kernel x 2" in text
    assert "--info-output-file is for" in opt(*RUN, f"--info-output-file={file}").err


def test_parts_of_a_split_file_share_a_file(tmp_path: Path) -> None:
    file = tmp_path / "times.txt"
    parts = f"{TWO}// -----\n{TWO}"
    assert opt("--cse", "--split-input-file", "--timing", f"--info-output-file={file}", text=parts).status == 0
    assert file.read_text().count("total") == 2


def test_an_option_with_an_optional_value_takes_no_file(tmp_path: Path) -> None:
    file = tmp_path / "a.mlir"
    file.write_text(TWO)
    found = opt("--timing", "-cse", str(file))
    assert found.status == 0 and '"test.op"(%0, %0)' in found.out
    assert json.loads(opt("--remarks", "json", str(file)).err) == []


def test_the_ir_of_a_failed_pass_is_printed_once(bad_passes: None) -> None:
    found = opt("-p", "cse,crash", "--print-ir-after-failure", text=TWO)
    assert found.err.count("IR Dump") == 1
    assert "// -----// IR Dump After crash Failed //----- //\nbuiltin.module {" in found.err


def test_a_nested_failure_names_its_kernel(bad_passes: None) -> None:
    pipeline = 'schedule-kernels{passes="canonicalize-loop,crash"}'
    found = opt(NESTED, "-p", pipeline, "--print-ir-after-failure")
    assert found.status == 4
    assert [line for line in found.err.splitlines() if "IR Dump" in line] == [
        "// -----// IR Dump After crash Failed on loop.kernel @once //----- //"
    ]


def test_remarks_name_the_kernel_of_their_run() -> None:
    found = json.loads(opt(*RUN, "--remarks=json").err)
    assert {remark["kernel"] for remark in found} == {"once", "twice"}


def test_times_add_up_to_the_pass_around_them() -> None:
    times = json.loads(opt(*RUN, "--timing=json").err)
    (scheduled,) = [step for step in times["steps"] if step["name"] == "schedule-kernels"]
    kernels = scheduled["steps"]
    assert [k["name"] for k in kernels] == ["@once", "@twice"]
    assert sum(k["seconds"] for k in kernels) <= scheduled["seconds"]
    for kernel in kernels:
        assert sum(step["seconds"] for step in kernel["steps"]) <= kernel["seconds"]
    rows = opt(*RUN, "--timing=list").err.splitlines()[1:]
    shown = [float(row.split()[0]) for row in rows]
    assert sum(shown[:-1]) == pytest.approx(shown[-1], abs=0.01 * len(rows))


class Names(PassWatcher):
    """Records the order of events."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def before(self, this: ModulePass, module: ModuleOp) -> None:
        self.events.append(this.name)

    def enter(self, unit: Unit) -> None:
        self.events.append(f"enter {unit}")

    def leave(self, unit: Unit) -> None:
        self.events.append(f"leave {unit}")


class Outer:
    """An observer that knows nothing of nested passes, and sees none."""

    def __init__(self) -> None:
        self.names: list[str] = []

    def before(self, this: ModulePass, module: ModuleOp) -> None:
        self.names.append(this.name)

    def after(self, this: ModulePass, module: ModuleOp) -> None:
        self.names.append(this.name)


def test_python_observers_see_nested_passes() -> None:
    names, outer, times = Names(), Outer(), PassTimes(UnitFilter.of(["once"]))
    module = igniter.parse(Path(NESTED).read_text())
    module.run_passes('schedule-kernels{passes="canonicalize-loop,lower-to-loops"}', observers=(names, outer, times))
    assert names.events == [
        "schedule-kernels",
        *("enter loop.kernel @once", "canonicalize-loop", "lower-to-loops", "leave loop.kernel @once"),
        *("enter loop.kernel @twice", "canonicalize-loop", "lower-to-loops", "leave loop.kernel @twice"),
    ]
    assert outer.names == ["schedule-kernels", "schedule-kernels"]
    (scheduled,) = (step for step in times.root.steps if step.name == "schedule-kernels")
    assert [step.name for step in scheduled.steps] == ["@once"]
    assert module.ctx.statistics.by_unit()["twice"]["canonicalize-loop"]


@pytest.mark.slow
def test_a_compile_shows_the_times_of_its_passes(model: Path, tmp_path: Path) -> None:
    done = invoke("compile", model, "-o", tmp_path / "out", "--pass-timing", "--no-verify")
    assert done.exit_code == 0, done.stderr
    rows = [line.split() for line in done.stdout.splitlines()]
    names = [" ".join(row[2:]) for row in rows if len(row) > 2]
    assert names.index("(onnx)") < names.index("infer-shapes") < names.index("(llvm)") < names.index("fuse-loops")
    assert "from the cache" not in done.stdout
    again = invoke("compile", model, "-o", tmp_path / "out", "--pass-timing", "--no-verify", "--json")
    report = json.loads(again.stdout)
    (stage,) = (step for step in report["passes"]["steps"] if step["name"] == "(llvm)")
    assert report["cached_kernels"] == report["kernels"] > 0
    assert not any(step["kind"] == "kernel" for step in stage["steps"])
    refused = invoke("compile", model, "--pass-timing", "--emit=onnx")
    assert refused.exit_code == 1 and "--pass-timing times a compile to a library" in refused.stderr


def test_observers_of_a_compile_see_every_pass(model: Path) -> None:
    names = Names()
    igniter.compile(model, cache=False, verify=False, observers=(names,))
    assert names.events.index("form-fusion-regions") < names.events.index("vectorize-loops")
    assert any(event.startswith("enter loop.kernel @") for event in names.events)


@pytest.mark.parametrize("option", ["--timing=kernels", "--timing", "--pass-statistics"])
def test_a_kernel_is_selected_from_passes_that_run_kernel_by_kernel(option: str) -> None:
    whole = opt(NESTED, "-p", "canonicalize-loop,choose-schedule", option, "--filter-kernel=once", "--emit=none")
    assert (whole.status, whole.out, whole.err.count("\n")) == (1, "", 1)
    assert "'cpu-kernels' in the place of 'cpu-schedule' has them" in whole.err
    # Printed IR and remarks name kernels in passes over whole modules, too.
    for shown in ("--remarks", "--print-ir-after-all"):
        flat = option.partition("=")[0]
        there = opt(NESTED, "-p", "choose-schedule", flat, shown, "--filter-kernel=once", "--emit=none")
        assert there.status == 0


@pytest.mark.parametrize("option", ["--timing=kernels", "--pass-statistics=kernels"])
def test_rows_of_kernels_need_passes_that_run_kernel_by_kernel(option: str) -> None:
    found = opt(NESTED, "-p", "canonicalize-loop,choose-schedule", option, "--emit=none")
    assert (found.status, found.out, found.err.count("\n")) == (1, "", 1)
    assert (
        f"{option} shows the passes that run kernel by kernel, and this pipeline has none: 'cpu-kernels'" in found.err
    )
