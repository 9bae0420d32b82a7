"""`igniter kernel`: one kernel, checked, timed, taken apart."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import igniter
from igniter.backends.cpu.assembly import Listing
from igniter.backends.cpu.target import target_of
from igniter.errors import IgniterError
from igniter.toolbox.kernel.workbench import choose_sizes, find_kernel, loop_tree, operations_of, schedule
from igniter.tools.main import app

EXAMPLES = Path(__file__).resolve().parents[2] / "lit_tests" / "examples"
SOFTMAX = EXAMPLES / "softmax.mlir"


def invoke(*args: object) -> Any:
    return CliRunner().invoke(app, ["kernel", *(str(a) for a in args)])


@pytest.mark.slow
def test_schedules_are_checked_and_timed_in_turns(tmp_path: Path) -> None:
    written = tmp_path / "own.mlir"
    first = invoke(SOFTMAX, "--sizes", "n=5,m=37", "--rounds", 1, "-o", written)
    assert first.exit_code == 0, first.output
    assert "@softmax at n=5, m=37" in first.stdout and "default author" in first.stdout
    narrow = tmp_path / "narrow.mlir"
    text = written.read_text()
    assert "vector " in text
    narrow.write_text(text.replace("vector 16", "vector 4").replace("vector 8", "vector 4"))
    done = invoke(SOFTMAX, "--sizes", "n=5,m=37", "--rounds", 2, "--schedule", written, "--schedule", narrow, "--json")
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["sizes"] == {"n": 5, "m": 37}
    # A maximum and a sum for each element, a difference, an exponential and a quotient.
    assert found["operations"] == 5 * 5 * 37
    assert found["bytes"] == 2 * 4 * 5 * 37
    own, again, other = found["versions"]
    assert [v["name"] for v in (own, again, other)] == ["default author", str(written), str(narrow)]
    assert own["loops"] == again["loops"]
    assert any("step 4" in loop["text"] for loop in other["loops"])
    assert all(0 <= v["error"] < 1e-5 and v["seconds"] > 0 and v["inner_loop"] for v in (own, again, other))
    assert own["expected_seconds"] == again["expected_seconds"] < other["expected_seconds"] < 1e-3
    assert own["bound_by"] == "arithmetic"


@pytest.mark.slow
def test_assembly_of_the_inner_loop_is_printed() -> None:
    plain, shown = invoke(SOFTMAX, "--rounds", 1), invoke(SOFTMAX, "--rounds", 1, "--asm")
    assert "inner loop .L" in plain.stdout
    assert len(shown.stdout.splitlines()) > len(plain.stdout.splitlines()) + 5


def test_a_model_names_its_kernels(model: Path) -> None:
    refused = invoke(model, "--kernel", "nothing")
    assert refused.exit_code == 1
    assert "has no kernel 'nothing'; --kernel: r0 (" in refused.stderr
    with pytest.raises(IgniterError, match=r"has no kernel 'nothing'; the argument 'name': r0 \("):
        igniter.Schedule(model, "nothing")
    done = invoke(model, "--kernel", "r0", "--rounds", 1, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["kernel"] == "r0"


def test_a_kernel_that_moves_more_than_caches_hold_is_bound_by_memory(tmp_path: Path) -> None:
    """By the figures that are given, and so by others on another machine."""
    relu = str(EXAMPLES.parents[1] / "docs" / "examples" / "relu_kernel.mlir")
    seconds: list[float] = []
    for rate in (8000, 4000):
        figures = tmp_path / "machine.json"
        figures.write_text(json.dumps({"memory_bytes_us": rate, "l3_bytes": 1 << 20, "l3_cores": 1, "clock_ghz": 2.5}))
        done = invoke(relu, "--sizes", "n=1024", "--rounds", 1, "--machine", figures, "--json")
        (version,) = json.loads(done.stdout)["versions"]
        assert version["bound_by"] == "memory"
        seconds.append(version["expected_seconds"])
    assert seconds == pytest.approx([2 * 1024 * 768 * 4 / 8000e6, 2 * 1024 * 768 * 4 / 4000e6], rel=1e-3)


@pytest.mark.slow
def test_what_is_wrong_is_said(tmp_path: Path) -> None:
    text = SOFTMAX.read_text()
    wrong, misspelt, other = (tmp_path / n for n in ("wrong.mlir", "misspelt.mlir", "other.mlir"))
    assert "arith.divf" in text
    wrong.write_text(text.replace("arith.divf", "arith.mulf"))
    scheduled = tmp_path / "own.mlir"
    assert invoke(SOFTMAX, "--rounds", 1, "-o", scheduled).exit_code == 0
    misspelt.write_text(scheduled.read_text().replace(" threads", " thraeds"))
    other.write_text((EXAMPLES / "gemm.mlir").read_text())
    for file, said in {
        wrong: "wrong.mlir computes something else: result 0",
        misspelt: "the schedule of nest 'max': loop 'i': unknown word 'thraeds'",
        other: "other.mlir takes 3 inputs, and @softmax 1",
    }.items():
        done = invoke(SOFTMAX, "--rounds", 1, "--schedule", file)
        assert done.exit_code == 1
        assert said in done.stderr.replace("\n", " ")
    assert "has no symbol 'k'; it has: n, m" in invoke(SOFTMAX, "--sizes", "k=3").stderr


def test_scheduled_kernels_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "scheduled.mlir"
    file.write_text(
        "builtin.module {\n"
        "  loop.func @copy symbols [n] (%x: memref<?xf32, #sym.dims<n>>, %y: memref<?xf32, #sym.dims<n>>) outputs 1 {\n"
        "    loop.for i = 0 to n {\n"
        "      %a = loop.load %x[i] : f32\n"
        "      loop.store %a, %y[i]\n"
        "    }\n"
        "  }\n"
        "}\n"
    )
    with pytest.raises(IgniterError, match="its kernels are scheduled already: give the structured ones"):
        find_kernel(file, "", target_of("native"))


def test_operations_of_a_product() -> None:
    kernel = find_kernel(EXAMPLES / "gemm.mlir", "", target_of("native"))
    # Two for each product that is added up; what else the kernel has is much less.
    assert 1 <= operations_of(kernel, choose_sizes(kernel, {})) / (2 * 128 * 768 * 3072) < 1.01


@pytest.mark.parametrize("target", ["x86-64-v4", "x86-64-v3", "aarch64"])
def test_listings_of_other_targets(target: str) -> None:
    version = schedule("one", find_kernel(EXAMPLES / "gemm.mlir", "", target_of(target)), target_of(target))
    hot = version.listing.loops()[0]
    assert hot.multiply_adds >= 8
    assert hot.multiply_adds < hot.instructions
    assert 8 <= hot.vector_registers <= 32
    assert version.listing.spills == 0
    shares = [loop.share for loop in loop_tree(version.func, {})]
    assert max(shares) <= 1.0 and sum(s > 0.5 for s in shares) >= 1


def test_spills_are_counted() -> None:
    text = (
        ".LBB0_1:\n"
        "\tvmovups\t-64(%rsp), %zmm0                # 64-byte Reload\n"
        "\tvfmadd231ps\t(%rax), %zmm1, %zmm0\n"
        "\tvmovups\t%zmm0, -64(%rsp)                # 64-byte Spill\n"
        "\tdecq\t%rcx\n"
        "\tjne\t.LBB0_1\n"
        "\tretq\n"
    )
    (loop,) = Listing(text).loops()
    assert (loop.instructions, loop.multiply_adds, loop.vector_registers, loop.spills) == (5, 1, 2, 2)
    assert Listing(text).spills == 2
