"""Machines given to the tools: what `igniter machine` prints and writes, and what `--machine` changes."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tools_kit import opt
from typer.testing import CliRunner

import igniter
from igniter.analysis.machine import TYPICAL, MachineError, MachineModel, figures, override
from igniter.backends.cpu.machine import machine_for
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.driver import compile_kernel
from igniter.errors import IgniterError
from igniter.runtime.cache import Cache
from igniter.toolbox.machine import measurement as machine_measurement
from igniter.toolbox.machine.measurement import Measurement, measure
from igniter.tools.main import app

EXAMPLES = Path(__file__).parents[2] / "lit_tests" / "examples"
ATTENTION, SOFTMAX = str(EXAMPLES / "attention.mlir"), str(EXAMPLES / "softmax.mlir")


def machine(*args: str) -> Any:
    """The output of `igniter machine --json`."""
    done = CliRunner().invoke(app, ["machine", *args, "--json"])
    assert done.exit_code == 0, done.output
    return json.loads(done.stdout)


def write(folder: Path, **given: object) -> str:
    path = folder / "machine.json"
    path.write_text(json.dumps(given))
    return str(path)


# -- igniter machine --------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("this_machine")
@pytest.mark.parametrize("target", ["x86-64-v3", "znver4", "aarch64", "native"])
def test_json(target: str) -> None:
    found = machine(f"--target={target}")
    assert found["key"] == machine_for(target).key()
    assert set(found["machine"]) == {f.name for f in figures()}
    assert found["machine"]["vector_bytes"] == {
        "value": machine_for(target).vector_bytes,
        "unit": "bytes",
        "source": "llvm",
    }
    assert (found["machine"]["cores"]["source"] == "sysfs") == (target == "native")


def test_table() -> None:
    done = CliRunner().invoke(app, ["machine", "--target=znver4"])
    assert done.exit_code == 0
    for figure in figures():
        assert figure.name in done.stdout
    assert "1 MiB" in done.stdout and "manuals" in done.stdout and "tanh 16" in done.stdout
    assert "measured" not in done.stdout


def test_round_trip(tmp_path: Path) -> None:
    file, given = tmp_path / "m.json", write(tmp_path, l2_bytes=1 << 18)
    found = machine("--target=znver4", f"--machine={given}", "-o", str(file))
    assert found["machine"]["l2_budget"] == {"value": 1 << 18, "unit": "bytes", "source": "derived"}
    assert machine("--target=znver4", f"--machine={file}") == found
    done = CliRunner().invoke(app, ["machine", "--target=aarch64", f"--machine={file}", "--json"])
    assert done.exit_code == 1 and "name the target" in json.loads(done.stdout)["error"]["message"]


@pytest.mark.usefixtures("this_machine")
def test_measuring(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """That figures are measured, that they are plausible, and that they count only where the file is named."""
    # One turn of each, and of few bytes: this is no benchmark.
    monkeypatch.setattr(machine_measurement, "ROUNDS", 1)
    monkeypatch.setattr(machine_measurement, "LARGEST", 1 << 24)
    file = tmp_path / "m.json"
    before = machine_for("native")
    found = machine("--measure", "-o", str(file))
    values = found["measured"]
    assert {"clock_ghz", "add_latency", "l1_bytes_cycle", "memory_bytes_us", "launch_us", "op_cycles"} <= set(values)
    assert values["op_cycles"].keys() <= dict(TYPICAL.op_cycles).keys()
    assert 0.2 < values["clock_ghz"] < 10 and all(v > 0 for v in values["op_cycles"].values())
    assert set(found["not_measured"]).isdisjoint(values) and "store_ports" in found["not_measured"]
    # What is shown beside it is not what was measured.
    assert found["machine"]["add_latency"] == {"value": before.add_latency, "unit": "cycles", "source": "manuals"}
    assert machine_for("native") == before
    with_file = machine(f"--machine={file}")
    assert with_file["machine"]["launch_us"] == {"value": values["launch_us"], "unit": "µs", "source": "measured"}


def test_one_core_hands_nothing_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    found = Measurement()
    machine_measurement._handover(machine_for("native"), machine_measurement.Clock(), found)
    assert not found.values and "one core" in found.missing["handover_cycles"]


def test_only_this_machine_is_measured() -> None:
    with pytest.raises(IgniterError, match="only this machine can be measured, and 'aarch64' may be another"):
        measure(machine_for("aarch64"))


# -- what it changes --------------------------------------------------------------------------------------------------


def scheduled(file: str, *args: str) -> str:
    done = opt(file, "-p", "cpu-schedule", *args)
    assert done.status == 0, done.err
    return done.out


@pytest.mark.slow
def test_a_copy_of_the_targets_machine_changes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    machine("--target=x86-64-v3", "-o", str(file))
    for model in (ATTENTION, SOFTMAX):
        assert scheduled(model, "--target=x86-64-v3") == scheduled(model, "--target=x86-64-v3", f"--machine={file}")


@pytest.mark.slow
def test_figures_change_schedules(tmp_path: Path) -> None:
    """Registers decide tiles, chains of sums accumulators, the second-level cache groups, hand-overs the grain."""
    target = "--target=x86-64-v4"
    own = opt("-p", "cpu-schedule", target, text=PRODUCT).out
    assert "tile [8, 3]" in own
    fewer = opt("-p", "cpu-schedule", target, f"--machine={write(tmp_path, registers=16)}", text=PRODUCT)
    assert fewer.status == 0 and "tile [8, 3]" not in fewer.out
    assert scheduled(SOFTMAX, target, f"--machine={write(tmp_path, add_latency=1)}") != scheduled(SOFTMAX, target)
    grains = scheduled(SOFTMAX, target, f"--machine={write(tmp_path, handover_cycles=51200)}")
    assert grains != scheduled(SOFTMAX, target)


def kernel(left: str, right: str, axes: str, reads: tuple[str, str], result: str, body: str = "arith.mulf") -> str:
    """A kernel of one sum of products."""
    element = left.split("x")[-1].split(",")[0]
    return f"""
builtin.module {{
  loop.kernel @k symbols [n] (%x: tensor<{left}>, %y: tensor<{right}>) -> (tensor<{result}>) {{
    %z = loop.nest "sums" [{axes}] -> tensor<{result}> {{
      %a = loop.read %x[{reads[0]}] : {element}
      %b = loop.read %y[{reads[1]}] : {element}
      %c = {body} %a, %b : {element}
      loop.yield add %c at [i, j]
    }}
    loop.return %z : tensor<{result}>
  }}
}}
"""


ROWS = kernel(
    "16x64xf32",
    "?x64xf32, #sym.dims<n, 64>",
    "i: parallel 16, j: parallel n, k: reduction 64",
    ("i, k", "j, k"),
    "16x?xf32, #sym.dims<16, n>",
)
HEAD = kernel(
    "16x?xf32, #sym.dims<16, n>",
    "?x12x64xf32, #sym.dims<n, 12, 64>",
    "i: parallel 16, j: parallel 64, k: reduction n",
    ("i, k", "k, 3, j"),
    "16x64xf32",
)
MATRIX = kernel(
    "?x64xf32, #sym.dims<n, 64>",
    "64x1000xf32",
    "i: parallel n, j: parallel 1000, k: reduction 64",
    ("i, k", "k, j"),
    "?x1000xf32, #sym.dims<n, 1000>",
)
LONG = kernel(
    "32x64xi64",
    "64x40xi64",
    "i: parallel 32, j: parallel 40, k: reduction 64",
    ("i, k", "k, j"),
    "32x40xi64",
    "arith.muli",
)
COLUMNS = """
builtin.module {
  loop.kernel @k symbols [n, m] (%x: tensor<?x?xf32, #sym.dims<n, m>>) -> (tensor<?xf32, #sym.dims<m>>) {
    %s = loop.nest "sums" [j: parallel m, k: reduction n] -> tensor<?xf32, #sym.dims<m>> {
      %a = loop.read %x[k, j] : f32
      loop.yield add %a at [j]
    }
    loop.return %s : tensor<?xf32, #sym.dims<m>>
  }
}
"""
DECIDED = {
    "read_streams": COLUMNS, "pack_rows": ROWS, "pack_rows_beside": HEAD, "stretch_lines": MATRIX, "step_cycles": LONG
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "passes", "own", "changed"),
    [
        ({"read_streams": 4}, "choose-schedule", "k by 8 tail rest", "k by 4 tail rest"),
        ({"pack_rows": 20}, "pack-operands", "sums.pack", "only 16 rows would share it"),
        ({"pack_rows_beside": 8}, "pack-operands", "", "sums.pack"),
        ({"stretch_lines": 4}, "pack-operands,choose-schedule", "p by 8", "p by 4"),
        ({"step_cycles": 20}, "choose-schedule", "i by 16 tail", "i by 8 tail"),
    ],
    ids=lambda case: next(iter(case)) if isinstance(case, dict) else "",
)
def test_figures_that_decide_one_thing(
    given: dict[str, int], passes: str, own: str, changed: str, tmp_path: Path
) -> None:
    text = DECIDED[next(iter(given))]
    args = ("-p", passes, "--target=x86-64-v4", "--remarks")
    before, after = opt(*args, text=text), opt(*args, f"--machine={write(tmp_path, **given)}", text=text)
    assert before.status == after.status == 0, before.err + after.err
    assert own in before.out + before.err and changed not in before.out + before.err
    assert changed in after.out + after.err


def test_the_time_of_a_launch_decides_which_copies_are_free(tmp_path: Path) -> None:
    """Of packed factors with fewer elements, no variant is made that does without."""
    file = str(EXAMPLES.parents[1] / "docs" / "examples" / "one_head.mlir")
    args = ("-p", "form-variants", "--sizes=t=512", "--target=x86-64-v4")
    assert "variants {" in opt(file, *args).out
    assert "variants {" not in opt(file, *args, f"--machine={write(tmp_path, launch_us=4)}").out


PRODUCT = """
builtin.module {
  loop.kernel @product symbols [n] (%x: tensor<?x256xf32, #sym.dims<n, 256>>, %y: tensor<256x4096xf32>) -> (tensor<?x4096xf32, #sym.dims<n, 4096>>) {
    %z = loop.nest "product" [i: parallel n, j: parallel 4096, k: reduction 256] -> tensor<?x4096xf32, #sym.dims<n, 4096>> {
      %a = loop.read %x[i, k] : f32
      %b = loop.read %y[k, j] : f32
      %c = arith.mulf %a, %b : f32
      loop.yield add %c at [i, j]
    }
    loop.return %z : tensor<?x4096xf32, #sym.dims<n, 4096>>
  }
}
"""  # noqa: E501


def test_the_second_level_cache_decides_groups_of_panels(tmp_path: Path) -> None:
    def group(**given: object) -> str:
        done = opt("-p", "choose-schedule", "--target=x86-64-v4", f"--machine={write(tmp_path, **given)}", text=PRODUCT)
        assert done.status == 0, done.err
        return done.out.partition("schedule [j by ")[2].partition(" ")[0]

    # 3 panels of 256 steps take 48 KiB.
    assert group() == "240"
    assert group(l2_bytes=4 << 20) == str(21 * 48)
    assert group(l2_bytes=512 << 10) == "96"


def test_without_a_target_the_typical_machine_is_given_to(tmp_path: Path) -> None:
    plain, passes = opt("-p", "choose-schedule", text=PRODUCT), ("-p", "choose-schedule", "--machine")
    assert plain.status == 0 and plain.out == opt(*passes, write(tmp_path), text=PRODUCT).out
    other = opt(*passes, write(tmp_path, vector_bytes=32, registers=16), text=PRODUCT)
    assert other.status == 0 and other.out != plain.out
    refused = opt(*passes, write(tmp_path, l2_byte=3), text=PRODUCT)
    assert refused.status == 1 and "did you mean 'l2_bytes'?" in refused.err and "machine.json" in refused.err


def test_options_that_are_said_go_first(tmp_path: Path) -> None:
    narrow = write(tmp_path, vector_bytes=16)
    said = opt(SOFTMAX, "-p", "choose-schedule{vector-bytes=64}", "--target=x86-64-v4", "--machine", narrow)
    assert "vector 16" in said.out
    assert "vector 16" not in opt(SOFTMAX, "-p", "choose-schedule", "--target=x86-64-v4", "--machine", narrow).out


def test_passes_in_python(tmp_path: Path) -> None:
    def text(**options: Any) -> str:
        return str(igniter.parse(Path(SOFTMAX).read_text()).run_passes("choose-schedule", **options))

    assert "vector 8" in text(target="x86-64-v3") and "vector 16" in text()
    assert "vector 4" in text(machine={"vector_bytes": 16})
    assert "accumulators 2" in text(target="x86-64-v3", machine={"add_latency": 2})
    with pytest.raises(MachineError, match="has 32"):
        text(target="x86-64-v3", machine={"vector_bytes": 64})


# -- what it was made from --------------------------------------------------------------------------------------------


def test_kernels_are_kept_by_machine(tmp_path: Path) -> None:
    """The same machine finds the kernel again; another one compiles it anew."""
    cache = Cache(tmp_path / "cache")
    misses: list[int] = []
    variants: list[tuple[str, ...]] = []
    for given in ({}, {}, {"add_latency": 1.0}, {"add_latency": 1.0}, {"clock_ghz": 3.0}):
        module = igniter.parse(Path(SOFTMAX).read_text())
        c = Compilation(module.ir, CompileOptions(target="x86-64-v4", machine=given), module.ctx, cache=cache)
        kernel = next(op for op in module.ir.ops if op.name == "loop.kernel")
        variants.append(compile_kernel(c, kernel, str(kernel)).variants)
        misses.append(cache.statistics.misses)
    assert misses == [1, 1, 2, 2, 3]
    assert variants[0] == variants[1] == variants[4] != variants[2] == variants[3]


@pytest.mark.slow
def test_a_result_says_what_it_was_made_from(model: Path, tmp_path: Path) -> None:
    given = {"l2_bytes": 1 << 18}
    artifact = igniter.compile(model, tmp_path / "out", machine=given, verify=False, cache=False)
    assert artifact.report["options"]["machine"] == [["l2_bytes", 1 << 18, "given"]] or artifact.report["options"][
        "machine"
    ] == (("l2_bytes", 1 << 18, "given"),)
    (said,) = artifact.report["machines"]
    assert said["l2_bytes"] == {"value": 1 << 18, "unit": "bytes", "source": "given"}
    info = json.loads(CliRunner().invoke(app, ["inspect", str(tmp_path / "out"), "--json"]).stdout)
    assert '"l2_bytes": 262144' in json.dumps(info)


def test_models_are_data() -> None:
    changed = override(TYPICAL, [("l2_bytes", 5, "given")])
    assert isinstance(changed, MachineModel) and {TYPICAL: 1, changed: 2}[changed] == 2
    assert json.loads(json.dumps(changed.to_dict()))["l2_bytes"]["value"] == 5


def test_all_targets_are_listed() -> None:
    found = machine("--list-targets")
    assert {"cpu", "cuda", "hip"} <= found.keys()
    assert {"native", "x86-64-v3", "znver4", "neoverse-v2"} <= set(found["cpu"]["targets"])
    by_target = {name: set(group["features"]) for group in found["cpu"]["features"] for name in group["of"]}
    assert "avx512bf16" in by_target["x86-64"] and "dotprod" in by_target["aarch64"]
    shown = CliRunner().invoke(app, ["machine", "--list-targets"]).stdout
    assert "cpu:" in shown and "neoverse-v2" in shown and "as in aarch64+aes" in shown
