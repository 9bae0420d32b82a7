"""The pipelines are what the compiler does: `igniter-opt -p cpu` gives the code that `igniter compile` gives."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import onnx
import pytest

import igniter
from igniter.compiler import driver
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.dialects.loop import FuncOp
from igniter.targets import backend_for
from igniter.tools.igniter_opt import run
from tests import quantized_models

TARGET = "x86-64-v4"
ALL = "cpu-onnx,cpu-tiles,cpu-fusion,cpu-loop,cpu-kernels,cpu-programs,cpu-calls"
"""What the driver runs, one pipeline after the other, the kernels in one module with their programs."""

MODELS = {
    "perceptron": lambda _: quantized_models.perceptron(),
    "transformer": lambda _: quantized_models.encoder(layers=1, hidden=32),
    "convolutions": lambda _: quantized_models.residual_network(),
    "quantised": lambda folder: quantized_models.quantize_static(quantized_models.perceptron(), folder, {"batch": 2}),
}


def emitted(path: Path, passes: str) -> Mapping[str, str]:
    """The LLVM IR of each kernel that `igniter-opt` leaves, by its name."""
    out = io.StringIO()
    status = run(
        [str(path), "-p", passes, f"--target={TARGET}", "--no-verify-each"], io.BytesIO(), out, err := io.StringIO()
    )
    assert status == 0, err.getvalue()
    backend = backend_for(TARGET)
    target = backend.target_of(TARGET)
    funcs = [op for op in igniter.parse(out.getvalue()).ir.ops if isinstance(op, FuncOp)]
    return {func.sym_name.data: backend.emit_func(func, target) for func in funcs}


def compiled(path: Path) -> Compilation:
    module = igniter.load(path)
    c = Compilation(module.ir, CompileOptions(target=TARGET), module.ctx, strict=True)
    driver.make_onnx(c)
    driver.make_fusion(c)
    driver.make_loop(c)
    driver.make_llvm(c)
    return c


@pytest.mark.slow
@pytest.mark.parametrize("name", MODELS)
def test_the_pipelines_give_the_code_of_the_compiler(name: str, tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(MODELS[name](tmp_path), path)
    c = compiled(path)
    kernels = {k.name: k.variants[0] for k in c.kernels}
    programs = {p.name: p.variants[0] for p in c.programs}
    assert kernels
    assert emitted(path, "cpu") == kernels
    assert emitted(path, ALL) == kernels | programs
