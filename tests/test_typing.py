"""The types of the public API, as a user's type checker sees them."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import igniter
from igniter.compiler.arguments import CompileArguments
from igniter.errors import IgniterError
from igniter.module import Module

ROOT = Path(__file__).parents[1]
GOOD = """
import igniter

artifact = igniter.compile("m.onnx", target="native", sizes={"n": 1}, verify=False)
module: igniter.Module = igniter.load("m.onnx").run_passes("cse")
text: str = str(module)
igniter.load(b"")
"""
BAD = {
    'igniter.compile("m.onnx", tarket="native")': "tarket",
    'igniter.compile("m.onnx", verify="yes")': "verify",
    "igniter.load(3)": "",
    'igniter.load("m.onnx").run_passes(3)': "",
}


def test_compile_has_the_arguments_of_the_method() -> None:
    method = list(inspect.signature(Module.compile).parameters)
    assert ["self", "output", *CompileArguments.__annotations__] == method


def test_an_unknown_argument_gets_a_suggestion() -> None:
    with pytest.raises(TypeError, match=r"compile has no argument 'tarket'; did you mean 'target'\?") as caught:
        igniter.compile("m.onnx", tarket="native")  # type: ignore[call-arg]
    assert isinstance(caught.value, IgniterError)
    with pytest.raises(TypeError, match="no argument 'zzz'; it has target, machine"):
        igniter.compile("m.onnx", zzz=1)  # type: ignore[call-arg]


@pytest.mark.parametrize("given", [3, None, ["m.onnx"], {"a": 1}])
def test_load_says_what_it_takes(given: object) -> None:
    with pytest.raises(TypeError, match=r"load takes the path of a model .* or an onnx.ModelProto, not ") as caught:
        igniter.load(given)  # type: ignore[arg-type]
    assert isinstance(caught.value, IgniterError)


def test_the_package_is_typed() -> None:
    assert (ROOT / "igniter" / "py.typed").is_file()


@pytest.mark.parametrize("checker", [pytest.param("pyright", marks=pytest.mark.full), "mypy"])
def test_a_program_outside_type_checks(checker: str, tmp_path: Path) -> None:
    """From a folder outside of the repository: the checker finds the package, and its types by `py.typed`."""
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed; the extra dev has it")
    lines = GOOD.strip().splitlines()
    first = len(lines) + 1
    program = tmp_path / "program.py"
    program.write_text("\n".join([*lines, *BAD]) + "\n")
    if checker == "pyright":
        (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)], "include": ["program.py"]}))
        command = ["pyright", "--pythonpath", sys.executable, str(program)]
    else:
        command = ["mypy", "--follow-imports=silent", "--cache-dir", str(tmp_path / "cache"), str(program)]
    # Without the variable, the wrapper of pyright asks a registry for a newer version, and waits for it.
    environment = {**os.environ, "MYPYPATH": str(ROOT), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    errors = [line for line in done.stdout.splitlines() if "program.py:" in line and "error" in line]
    for number, name in enumerate(BAD.values(), first):
        assert any(f"program.py:{number}:" in line and name in line for line in errors), done.stdout + done.stderr
    assert not [e for e in errors if int(e.split("program.py:")[1].split(":")[0]) < first], done.stdout
