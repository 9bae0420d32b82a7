"""The types of the public API, as a user's type checker sees them."""

from __future__ import annotations

import inspect
import json
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


@pytest.mark.full
@pytest.mark.parametrize("checker", ["pyright", "mypy"])
def test_a_program_outside_type_checks(checker: str, tmp_path: Path) -> None:
    """From a folder outside of the repository: the checker finds the installed package and its `py.typed`."""
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed")
    lines = GOOD.strip().splitlines()
    first = len(lines) + 1
    program = tmp_path / "program.py"
    program.write_text("\n".join([*lines, *BAD]) + "\n")
    if checker == "pyright":
        (tmp_path / "pyrightconfig.json").write_text(json.dumps({"extraPaths": [str(ROOT)]}))
        command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, str(program)]
    else:
        command = [sys.executable, "-m", "mypy", "--follow-imports=silent", str(program)]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    errors = [line for line in done.stdout.splitlines() if "program.py:" in line and "error" in line]
    for number, name in enumerate(BAD.values(), first):
        assert any(f"program.py:{number}:" in line and name in line for line in errors), done.stdout + done.stderr
    assert not [e for e in errors if int(e.split("program.py:")[1].split(":")[0]) < first], done.stdout
