"""Starting the tools and importing the package stays quick: nothing heavy comes in before it is needed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAVY = ("llvmlite", "matplotlib", "ml_dtypes", "numpy", "onnx", "onnxruntime", "torch", "transformers", "triton")

MAIN = "import sys; sys.argv = {argv!r}\ntry:\n    {code}\nexcept SystemExit:\n    pass\n"
REPORT = "print('LOADED', *sorted({m.partition('.')[0] for m in sys.modules}))"
OPT = "from igniter.tools.igniter_opt import main; main()"
CLI = "from igniter.tools.main import main; main()"


def loaded(code: str, *argv: str) -> set[str]:
    """The top-level packages that are imported after `code` ran."""
    text = MAIN.format(argv=["tool", *argv], code=code) + REPORT
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.mark.parametrize(
    ("code", "argv", "also"),
    [
        ("import igniter", (), ("xdsl", "typer", "rich", "torch")),
        ("import igniter; igniter.CompileOptions", (), ("xdsl", "typer", "rich")),
        (OPT, ("--help",), ("xdsl", "typer", "rich")),
        (OPT, ("--version",), ("xdsl", "typer", "rich")),
        (CLI, ("--help",), ("xdsl",)),
        (CLI, ("compile", "--help"), ("xdsl",)),
    ],
    ids=["import", "options", "opt-help", "opt-version", "help", "compile-help"],
)
def test_imports_nothing_heavy(code: str, argv: tuple[str, ...], also: tuple[str, ...]) -> None:
    assert not loaded(code, *argv) & {*HEAVY, *also}


def test_ir_without_onnx_needs_no_onnx(tmp_path: Path) -> None:
    path = tmp_path / "a.mlir"
    path.write_text('%0 = arith.constant 1 : i32\n"test.op"(%0) : (i32) -> ()\n')
    found = loaded(OPT, str(path), "--cse")
    assert "xdsl" in found
    assert not found & set(HEAVY)


@pytest.mark.parametrize("code", [OPT, CLI], ids=["opt", "cli"])
def test_help_needs_few_modules(code: str) -> None:
    """What a tool takes to start is what it imports: of a new interpreter's 0.1 s, most is Python's own."""
    text = MAIN.format(argv=["tool", "--help"], code=code) + "print(len(sys.modules))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[-1]) < 200
