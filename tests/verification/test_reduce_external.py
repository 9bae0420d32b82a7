"""`igniter reduce --check-with`: what a pass of MLIR breaks is shrunk while the pass breaks it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from igniter.errors import IgniterError
from igniter.runtime.mlir_tools import find_tools, missing_tools
from igniter.toolbox.reduce.reducer import reduce
from igniter.toolbox.reduce.request import ReduceOptions

from ..docs.transcripts import Command
from .miscompiles import FILES, FOLDER, shrink

MISSING = missing_tools()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=f"needs stock MLIR: {MISSING}")
of_19 = pytest.mark.skipif(MISSING is None and find_tools().major != 19, reason="the miscompiles are those of MLIR 19")


@pytest.mark.slow
@of_19
def test_a_miscompile_in_a_larger_module_is_shrunk_to_one_op(tmp_path: Path) -> None:
    row = shrink(FOLDER / "llvm_106519.mlir", tmp_path)
    assert (row.original, row.before, row.after) == (1, 22, 1), row.text
    assert row.text.count("arith.ceildivsi") == 1 and "unrelated" not in row.text


@of_19
@pytest.mark.full
@pytest.mark.parametrize("path", [pytest.param(p, id=p.stem) for p in FILES])
def test_every_miscompile_is_shrunk_to_its_size(path: Path, tmp_path: Path) -> None:
    row = shrink(path, tmp_path)
    assert row.before > row.original + 15
    assert row.after <= row.original, row.text


LOOP = """
func.func @f(%a: memref<?xi32>, %n: index, %x: i32) -> (i32, i32) {
  %zero = arith.constant 0 : i32
  %start = arith.constant 0 : index
  %step = arith.constant 1 : index
  %sums:2 = scf.for %i = %start to %n step %step iter_args(%p = %zero, %q = %x) -> (i32, i32) {
    %value = memref.load %a[%i] : memref<?xi32>
    %product = arith.muli %value, %x : i32
    %next = arith.addi %p, %value : i32
    %other = arith.xori %q, %product : i32
    scf.yield %next, %other : i32, i32
  }
  return %sums#0, %sums#1 : i32, i32
}
"""


def reduced(text: str, command: str, folder: Path) -> str:
    given, output = folder / "given.mlir", folder / "small.mlir"
    given.write_text(text)
    reduce(given, output, ReduceOptions(check_with=command))
    return output.read_text()


@pytest.mark.slow
def test_loop_and_arguments_that_do_not_matter_are_dropped(tmp_path: Path) -> None:
    left = reduced(LOOP, "sed s/arith.muli/arith.addi/", tmp_path)
    assert left.count("arith.") == left.count("arith.constant") + 1 and "arith.muli" in left, left
    assert "scf.for" not in left and "memref" not in left, left


@pytest.mark.slow
def test_crash_stays_a_crash(tmp_path: Path) -> None:
    left = reduced(LOOP, "sh -c 'if grep -q arith.xori; then kill -SEGV $$; fi'", tmp_path)
    assert "arith.xori" in left and "scf.for" not in left, left


@pytest.mark.slow
def test_command_without_a_fault_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(IgniterError, match=r"'cat' has no fault on .*given\.mlir: @f: 24 arguments agree"):
        reduced(LOOP, "cat", tmp_path)


@pytest.mark.parametrize(
    "options",
    [ReduceOptions(check_with="cat", passes="cse"), ReduceOptions(check_with="cat", command="true")],
    ids=["passes", "command"],
)
def test_other_checks_do_not_go_with_it(options: ReduceOptions, tmp_path: Path) -> None:
    with pytest.raises(IgniterError, match="--check-with is the whole check"):
        reduce(tmp_path / "a.mlir", tmp_path / "b.mlir", options)


ROOT = Path(__file__).resolve().parents[2]


def transcripts(page: str) -> list[Command]:
    """Returns the commands with --check-with that a page shows; its other tests do not run them."""
    found: list[Command] = []
    inside = False
    for number, line in enumerate((ROOT / page).read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("```"):
            inside = line == "```text"
        elif inside and line.startswith("$ "):
            found.append(Command(line[2:], number, []))
        elif inside and found:
            found[-1].shown.append(line)
    return [c for c in found if "--check-with" in c.text]


@of_19
@pytest.mark.full
@pytest.mark.skipif(shutil.which("mlir-opt-19") is None, reason="the pages call mlir-opt-19")
@pytest.mark.parametrize(("page", "count"), [("docs/how-to/mlir.md", 2), ("docs/tutorials/find-a-miscompile.md", 2)])
def test_pages_show_what_comes_out(page: str, count: int, tmp_path: Path) -> None:
    (tmp_path / "docs").symlink_to(ROOT / "docs")
    shown = transcripts(page)
    assert len(shown) == count
    for command in shown:
        tool = "main" if command.text.startswith("igniter ") else "igniter_opt"
        line = command.text.partition(" ")[2]
        done = subprocess.run(
            f"{sys.executable} -m igniter.tools.{tool} {line} 2>&1",
            shell=True,
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            capture_output=True,
            text=True,
        )
        assert command.matches(done.stdout), f"{page}:{command.line}\n{done.stdout}"
