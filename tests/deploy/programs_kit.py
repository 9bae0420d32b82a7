"""Two compiled models, the results of ONNX Runtime on their originals, and the tools that build the programs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from numpy.typing import NDArray
from onnx import helper, numpy_helper

import igniter

ROOT = Path(__file__).parents[2]
PROGRAMS = ROOT / "docs" / "deploy" / "programs"
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class Case:
    """The arguments of a program, and the values that it must write."""

    folder: Path
    first: Path
    second: Path
    given: Path
    expected: tuple[Floats, Floats]

    @property
    def library(self) -> str:
        """The stem of the first model's library."""
        (library,) = self.first.glob("libigniter_*.so")
        return library.stem

    def check(self, command: Sequence[str | Path], **environment: str) -> str:
        """Runs a program, compares its results with ONNX Runtime's, and returns its output."""
        output = self.folder / "output.bin"
        output.unlink(missing_ok=True)
        arguments = [*map(str, command), *map(str, (self.first, self.second, self.given, output))]
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | environment
        done = subprocess.run(arguments, capture_output=True, text=True, timeout=120, env=env)
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        first, second = self.expected
        written = np.fromfile(output, np.float32)
        assert written.size == 2 * first.size + second.size
        for found, wanted in zip(np.split(written, [first.size, 2 * first.size]), (first, first, second), strict=True):
            np.testing.assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-5, atol=1e-6)
        says = done.stdout
        assert f"first: {first.shape[0]} x {first.shape[1]}" in says
        assert f"second: {second.shape[0]} x {second.shape[1]}" in says
        # The error for a library that is not registered names the file, and the one for an input names the input.
        assert re.search(rf"^not registered: .*{self.library}", says, re.MULTILINE), says
        assert re.search(r"^wrong input: .*\bx\b", says, re.MULTILINE), says
        return says


def make_case(folder: Path) -> Case:
    """Compiles the models of a case: the output of the first one is the input of the second one."""
    rng = np.random.default_rng(7)
    x = rng.standard_normal((5, 16), dtype=np.float32)
    x.tofile(folder / "input.bin")
    first, a = _model(folder / "first", rng.standard_normal((16, 32), dtype=np.float32) / 4, "Softmax", x)
    second, b = _model(folder / "second", rng.standard_normal((32, 8), dtype=np.float32), "Tanh", a)
    return Case(folder, first, second, folder / "input.bin", (a, b))


def _model(path: Path, weight: Floats, activation: str, x: Floats) -> tuple[Path, Floats]:
    columns, width = weight.shape
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node(activation, ["h"], ["y"])]
    values = [helper.make_tensor_value_info(n, 1, ["rows", w]) for n, w in (("x", columns), ("y", width))]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [numpy_helper.from_array(weight, "w")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    folder = path.with_suffix(".igniter")
    onnx.save(model, path.with_suffix(".onnx"))
    igniter.compile(path.with_suffix(".onnx"), folder, verify=False)
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (y,) = session.run(None, {"x": x})
    return folder, y


def onnxruntime_library(folder: Path) -> Path:
    """Returns the library of the installed wheel under its soname, which the wheel's file has not."""
    (found, *_) = [*(Path(ort.__file__).parent / "capi").glob("libonnxruntime.so.*"), None]
    if found is None:
        pytest.skip("the installed onnxruntime has no libonnxruntime.so")
    link = folder / "libonnxruntime.so.1"
    if not link.exists():
        link.symlink_to(found)
        (folder / "libonnxruntime.so").symlink_to(found)
    return link


def c_compiler() -> list[str]:
    """Returns the command of a C compiler: the machine's, or the one in the `ziglang` package."""
    found = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if found is not None:
        return [found]
    pytest.importorskip("ziglang", reason="no C compiler, and the package ziglang (extra dev) is missing")
    return [sys.executable, "-m", "ziglang", "cc"]


def cpp_compiler() -> list[str]:
    found = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if found is None:
        pytest.skip("no C++ compiler (ziglang has one that first builds its own C++ library, for minutes)")
    return [found]


def tool(name: str) -> str:
    """Returns the path of a program; skips the test if it is missing."""
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def build(command: Sequence[str | Path]) -> None:
    """Runs a compiler; its warnings are errors of the test."""
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0 and not done.stderr.strip(), done.stderr
