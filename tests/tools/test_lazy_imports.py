"""Starting the tools and importing the package stays quick: nothing heavy comes in before it is needed."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from igniter.tools.verbs import VERBS
from tests.docs.transcripts import ROOT

HEAVY = ("llvmlite", "matplotlib", "ml_dtypes", "numpy", "onnx", "onnxruntime", "torch", "transformers", "triton")

DISTRIBUTIONS = {"apache-tvm": "tvm", "import-linter": "importlinter", "iree-base-compiler": "iree"}
"""Modules whose names are not those of their distributions."""

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


@pytest.mark.parametrize(("code", "most"), [(OPT, 200), (CLI, 184 + 2 * len(VERBS))], ids=["opt", "cli"])
def test_help_needs_few_modules(code: str, most: int) -> None:
    """What a tool takes to start is what it imports: of a new interpreter's 0.1 s, most is Python's own. The help of
    `igniter` reads the request of every verb, two small modules each; any other command reads its own alone."""
    text = MAIN.format(argv=["tool", "--help"], code=code) + "print(len(sys.modules))"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert int(done.stdout.splitlines()[-1]) < most


EVERY_MODULE = """
import importlib, pkgutil, sys
from importlib.abc import MetaPathFinder


class Missing(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {missing!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)


sys.meta_path.insert(0, Missing())
import igniter

failed = []
for found in pkgutil.walk_packages(igniter.__path__, "igniter.", onerror=lambda name: None):
    if not found.name.startswith("igniter.torch"):
        try:
            importlib.import_module(found.name)
        except Exception as error:
            failed.append(f"{{found.name}}: {{error}}")
from igniter.toolbox.reduce import worker
worker._import_all()
print(*failed, sep="\\n")
"""


@pytest.mark.slow
def test_every_module_imports_without_an_extra() -> None:
    """A user's install has the dependencies alone. `igniter.torch` is what the extra `torch` is for."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {Requirement(line).name for line in project["dependencies"]}
    added = {Requirement(line).name for lines in project["optional-dependencies"].values() for line in lines} - needed
    missing = {DISTRIBUTIONS.get(name, name.replace("-", "_")) for name in added}
    done = subprocess.run(
        [sys.executable, "-c", EVERY_MODULE.format(missing=missing)], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == ""
