"""External passes: thirteen public miscompiles of MLIR 19 are found, correct passes raise no alarm."""

from __future__ import annotations

import io
import shlex
from pathlib import Path

import pytest

from igniter.errors import IgniterError
from igniter.runtime.mlir_tools import find_tools, missing_tools
from igniter.tools import igniter_opt
from igniter.tools.check_with import PassWrong, check_with
from igniter.verification.external_passes import Checked, CheckOptions, Command, check_text

MISSING = missing_tools()
pytestmark = pytest.mark.skipif(MISSING is not None, reason=f"needs stock MLIR: {MISSING}")

FOLDER = Path(__file__).parent / "mlir_miscompiles"
FILES = sorted(FOLDER.glob("*.mlir"))
SAMPLE = {"llvm_106519", "llvm_192966", "llvm_211591"}
"""Checked in every run: a lowering, a folder, and a transformation of loops."""

QUICK = CheckOptions(cases=12, runner=False)


def opt(passes: str) -> str:
    return f"{shlex.quote(find_tools().opt)} {passes}"


def check(text: str, command: str, options: CheckOptions = QUICK) -> Checked:
    return check_text(text, Command.parse(command), options)


def faulty_pass(path: Path) -> str:
    """Returns the pass that a miscompile's first line names."""
    return path.read_text().splitlines()[0].removeprefix("// pass: ")


def named(paths: list[Path]) -> list[object]:
    return [pytest.param(p, id=p.stem) for p in paths]


ALL = pytest.mark.parametrize("path", named(FILES))
SOME = pytest.mark.parametrize("path", named([p for p in FILES if p.stem in SAMPLE]))


of_19 = pytest.mark.skipif(MISSING is None and find_tools().major != 19, reason="the miscompiles are those of MLIR 19")


@of_19
@SOME
def test_public_miscompile_is_found(path: Path) -> None:
    found = check(path.read_text(), opt(faulty_pass(path)), CheckOptions()).finding
    assert found is not None and found.kind == "wrong" and found.executor == "interpreter", found


@of_19
@pytest.mark.full
@ALL
def test_every_public_miscompile_is_found(path: Path) -> None:
    test_public_miscompile_is_found(path)


def test_thirteen_miscompiles() -> None:
    assert len(FILES) == 13


CORRECT = ("--cse", "--loop-invariant-code-motion", "--lower-affine --convert-scf-to-cf", "--symbol-dce --mem2reg")


@SOME
def test_correct_passes_raise_no_alarm(path: Path) -> None:
    for passes in CORRECT:
        checked = check(path.read_text(), opt(passes))
        assert checked.finding is None, f"{passes}: {checked.finding}"
        assert checked.cases, checked.notes


@pytest.mark.full
@ALL
def test_correct_passes_raise_no_alarm_anywhere(path: Path) -> None:
    test_correct_passes_raise_no_alarm(path)


EXAMPLES = ("mask_softmax", "two_gelus", "short_rows", "running_sum", "quantized_attention")
PASSES_OF_LINALG = (
    "--canonicalize",
    "--linalg-fuse-elementwise-ops",
    "'--one-shot-bufferize=bufferize-function-boundaries' --convert-linalg-to-loops --loop-invariant-code-motion",
)


@pytest.mark.full
@pytest.mark.parametrize("name", EXAMPLES)
def test_correct_passes_raise_no_alarm_on_what_igniter_writes(name: str) -> None:
    path = Path(__file__).resolve().parents[2] / "docs" / "examples" / f"{name}.mlir"
    output = io.StringIO()
    lower = ["-p", "cpu-onnx,cpu-fusion,cpu-loop", "--emit=linalg"]
    assert igniter_opt.run([str(path), *lower], io.BytesIO(), output, io.StringIO()) == 0
    for passes in PASSES_OF_LINALG:
        checked = check(output.getvalue(), opt(passes), CheckOptions(cases=4))
        assert checked.finding is None, f"{passes}: {checked.finding}"
        assert checked.cases >= 4, checked.notes


@pytest.mark.slow
def test_what_igniter_writes_is_checked() -> None:
    """A pass of Igniter before, an external pass after it, in one command."""
    path = Path(__file__).resolve().parents[2] / "docs" / "examples" / "two_gelus.mlir"
    command = [str(path), "-p", "cpu-onnx,cpu-fusion,cpu-loop", "--emit=linalg"]
    log = io.StringIO()
    assert igniter_opt.run([*command, f"--check-with={opt('--cse')}"], io.BytesIO(), io.StringIO(), log) == 0
    assert "arguments agree" in log.getvalue()
    assert igniter_opt.run([*command, "--check-with=sed s/addf/subf/"], io.BytesIO(), io.StringIO(), log) == 3
    assert "'sed s/addf/subf/': wrong: @r0: result 0" in log.getvalue()


def test_passes_of_igniter_need_an_output_that_mlir_reads() -> None:
    log = io.StringIO()
    path = Path(__file__).resolve().parents[2] / "docs" / "examples" / "two_gelus.mlir"
    assert igniter_opt.run([str(path), "-p", "cpu-onnx", "--check-with=cat"], io.BytesIO(), io.StringIO(), log) == 1
    assert "after Igniter's passes, give --emit=linalg or --emit=scf" in log.getvalue()


ADDITION = """
func.func @sum(%a: memref<?xi32>, %n: index) -> i32 {
  %zero = arith.constant 0 : i32
  %start = arith.constant 0 : index
  %one = arith.constant 1 : index
  %sum = scf.for %i = %start to %n step %one iter_args(%part = %zero) -> i32 {
    %value = memref.load %a[%i] : memref<?xi32>
    %next = arith.addi %part, %value : i32
    scf.yield %next : i32
  }
  return %sum : i32
}
"""


def test_runner_agrees_with_the_interpreter() -> None:
    checked = check(ADDITION, opt("--convert-scf-to-cf"), CheckOptions(cases=4))
    assert checked.finding is None
    assert checked.notes == ["@sum: 4 arguments agree; MLIR's runner agrees"]


FAULTS = {
    "sed s/arith.addi/arith.subi/": "wrong: @sum: result 0: ",
    "sed 's/constant 1 : index/constant 0 : index/'": "wrong: @sum: the output has undefined behaviour: a loop",
    "sh -c 'kill -SEGV $$'": "crash: the command ended by signal 11",
    "sh -c 'echo error: no >&2; exit 3'": "refusal: the command ended with status 3: error: no",
    "echo nonsense": "invalid output: ",
    "sleep 20": "timeout: no end in 0.5 s",
}


def test_faults() -> None:
    for command, finding in FAULTS.items():
        options = CheckOptions(cases=8, runner=False, timeout=0.5 if command.startswith("sleep") else 60.0)
        assert str(check(ADDITION, command, options).finding).startswith(finding)


@pytest.mark.slow
def test_runner_decides_where_the_interpreter_cannot() -> None:
    """A lowered function has no `func.func`; the runner still finds what a wrong pass did to it."""
    lowered = opt("--convert-scf-to-cf --convert-index-to-llvm --finalize-memref-to-llvm --test-lower-to-llvm")
    right = check(ADDITION, lowered, CheckOptions(cases=4))
    assert right.finding is None
    assert right.notes[0].endswith("there is no func.func @sum in it; MLIR's runner agrees")
    wrong = check(ADDITION, f"sh -c '{lowered} | sed s/llvm.add/llvm.sub/'", CheckOptions(cases=4)).finding
    assert wrong is not None and wrong.kind == "wrong" and wrong.executor == "runner"


def test_undefined_input_is_no_finding_and_no_success() -> None:
    text = """
    func.func @f(%a: i32) -> i32 {
      %zero = arith.constant 0 : i32
      %never = arith.divsi %a, %zero : i32
      return %never : i32
    }
    """
    with pytest.raises(IgniterError, match="nothing was compared"):
        check_with(text, opt("--canonicalize"), 0, io.StringIO())


def test_missing_program_is_named() -> None:
    with pytest.raises(IgniterError, match="no program 'mlir-opt-3'"):
        Command.parse("mlir-opt-3 --cse")


def test_input_that_is_no_module() -> None:
    with pytest.raises(IgniterError, match=r"the input is no valid MLIR: .*error: "):
        check("func.func @f() { %a = arith.addi }", "cat")


def test_the_error_names_the_command() -> None:
    with pytest.raises(PassWrong, match="'sed s/addi/muli/': wrong: @sum: result 0: "):
        check_with(ADDITION, "sed s/addi/muli/", 0, io.StringIO())
