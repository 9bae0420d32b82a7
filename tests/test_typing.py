"""The types of the public API, as a user's type checker sees them."""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

import igniter
from igniter.compiler.arguments import CompileArguments, WrongArgument
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


WRONG: dict[str, Callable[[Module, Path], object]] = {
    "compile: 'shapes' takes a list of mappings of sizes by dim, not {'rows': 3} (dict): write shapes=[{'rows': 3}], "
    "or sizes= for typical sizes": lambda m, _: m.compile(shapes={"rows": 3}),  # type: ignore[arg-type]
    "compile: 'shapes[0]' takes a mapping of sizes by dim, such as {'batch': 1}, not 3 (int)": lambda m, _: m.compile(
        shapes=[3]  # type: ignore[list-item]
    ),
    "compile: 'sizes[\"rows\"]' takes an integer, not '3' (str)": lambda m, _: m.compile(sizes={"rows": "3"}),  # type: ignore[dict-item]
    "compile: 'options' takes a CompileOptions, not {'target': 'native'} (dict): give options by name": lambda m, _: (
        m.compile(options={"target": "native"})  # type: ignore[arg-type]
    ),
    "compile: 'rtol' takes a number, not 'a' (str)": lambda m, _: m.compile(rtol="a"),  # type: ignore[arg-type]
    "compile: 'output' takes a path, not 3 (int)": lambda m, _: m.compile(3),  # type: ignore[arg-type]
    "compile: 'target' takes a text, not None": lambda m, _: igniter.compile("m.onnx", target=None),  # type: ignore[arg-type]
    "run_passes: 'pipeline' takes a text with commas between the passes ('infer-shapes,cse'), not ['cse'] (list)": (
        lambda m, _: m.run_passes(["cse"])  # type: ignore[arg-type]
    ),
    "run_passes: 'observers' takes a sequence of objects with the methods 'before' and 'after' (igniter.observation), "
    "not <built-in function print>": lambda m, _: m.run_passes("cse", observers=print),  # type: ignore[arg-type]
    "plan: 'sizes[\"rows\"]' takes an integer, not 'a' (str)": lambda m, _: m.plan({"rows": "a"}),  # type: ignore[dict-item]
    "bench: 'shapes' takes a list of mappings of sizes by dim, not {'rows': 3} (dict): write shapes=[{'rows': 3}]": (
        lambda _, f: igniter.bench(f, shapes={"rows": 3})  # type: ignore[arg-type]
    ),
    "split: 'by' takes an integer, not '4' (str)": lambda _, f: igniter.Schedule(
        ROOT / "docs" / "examples" / "linear.mlir"
    ).split("matmul", "i", "4"),  # type: ignore[arg-type]
    "jit: 'source' takes the path of a .mlir file, the text of a module, or a Module, not 3 (int)": lambda _, f: (
        igniter.jit(3)  # type: ignore[arg-type]
    ),
}


@pytest.mark.parametrize("said", WRONG)
def test_a_wrong_argument_is_named_with_what_it_takes(said: str, tmp_path: Path) -> None:
    with pytest.raises(WrongArgument) as caught:
        WRONG[said](igniter.parse("builtin.module {\n}"), tmp_path / "m.onnx")
    assert str(caught.value).startswith(said)
    assert isinstance(caught.value, IgniterError) and isinstance(caught.value, TypeError)


def test_jit_names_the_function_for_models(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(bytes(range(256)))
    with pytest.raises(
        IgniterError, match=r"m.onnx is no text: jit takes MLIR .*; igniter.compile takes an ONNX model"
    ):
        igniter.jit(tmp_path / "m.onnx")
