"""Products of blocks with scales: as Python and as Triton's IR, in the interpreter, by the assembler, and refused."""

from __future__ import annotations

from io import StringIO
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.parser import Parser
from xdsl.printer import Printer

from igniter.backends.triton.compiler import compile_source, compile_ttir, resources_of, signature_of
from igniter.backends.triton.interpreter import run_source
from igniter.backends.triton.python_source import print_kernel
from igniter.backends.triton.scaled_products import refuse_scaled
from igniter.context import IgniterContext
from igniter.dialects import triton as tt
from igniter.dialects.loop import FuncOp
from igniter.errors import IgniterError

pytest.importorskip("triton", reason="Triton is not installed: there are wheels for Linux")

SIDE, DEPTH = 64, 128


def module_of(form: str) -> ModuleOp:
    """A launch of one program: 64 x 128 by 128 x 64, each with a scale for 32 along the depth."""
    width = DEPTH // (2 if form == "e2m1" else 1)

    def block(name: str, rows: int, columns: int) -> str:
        shape = f"{rows}x{columns}"
        return f"""
  %{name}r = tt.make_range {{start = 0 : i32, end = {rows} : i32}} : tensor<{rows}xi32>
  %{name}c = tt.make_range {{start = 0 : i32, end = {columns} : i32}} : tensor<{columns}xi32>
  %{name}w = arith.constant dense<{columns}> : tensor<{rows}xi32>
  %{name}l = arith.muli %{name}r, %{name}w : tensor<{rows}xi32>
  %{name}d = tt.expand_dims %{name}l {{axis = 1 : i32}} : tensor<{rows}xi32> -> tensor<{rows}x1xi32>
  %{name}e = tt.expand_dims %{name}c {{axis = 0 : i32}} : tensor<{columns}xi32> -> tensor<1x{columns}xi32>
  %{name}f = tt.broadcast %{name}d : tensor<{rows}x1xi32> -> tensor<{shape}xi32>
  %{name}g = tt.broadcast %{name}e : tensor<1x{columns}xi32> -> tensor<{shape}xi32>
  %{name}o = arith.addi %{name}f, %{name}g : tensor<{shape}xi32>"""

    def load(name: str, rows: int, columns: int) -> str:
        pointers = f"tensor<{rows}x{columns}x!tt.ptr<i8>>"
        return f"""{block(name, rows, columns)}
  %{name}p = tt.splat %{name} : !tt.ptr<i8> -> {pointers}
  %{name}q = tt.addptr %{name}p, %{name}o : {pointers}, tensor<{rows}x{columns}xi32>
  %{name}v = tt.load %{name}q : {pointers}"""

    sums, left, right = f"tensor<{SIDE}x{SIDE}xf32>", f"tensor<{SIDE}x{width}xi8>", f"tensor<{width}x{SIDE}xi8>"
    scales, out = f"tensor<{SIDE}x{DEPTH // 32}xi8>", f"tensor<{SIDE}x{SIDE}x!tt.ptr<f32>>"
    text = f"""
tt.func @product(%a: !tt.ptr<i8>, %s: !tt.ptr<i8>, %b: !tt.ptr<i8>, %t: !tt.ptr<i8>, %y: !tt.ptr<f32>) {{
  {load("a", SIDE, width)}{load("s", SIDE, DEPTH // 32)}{load("b", width, SIDE)}{load("t", SIDE, DEPTH // 32)}
  %zero = arith.constant dense<0.0> : {sums}
  %d = tt.dot_scaled %av, %sv, %bv, %tv, %zero, lhs = {form} rhs = {form} : {left}, {scales}, {right}, {scales}, {sums}
  {block("y", SIDE, SIDE)}
  %yp = tt.splat %y : !tt.ptr<f32> -> {out}
  %yq = tt.addptr %yp, %yo : {out}, tensor<{SIDE}x{SIDE}xi32>
  tt.store %yq, %d : {out}
  tt.return
}}
loop.func @run symbols [] () outputs 0 {{
  loop.launch @product grid [1] warps 4 stages 1 symbols [] ()
}}"""
    module = Parser(IgniterContext(), text).parse_module()
    module.verify()
    return module


def kernel_of(module: ModuleOp) -> tt.FuncOp:
    return next(op for op in module.ops if isinstance(op, tt.FuncOp))


def floats(codes: Any, form: str) -> Any:
    """The numbers of bytes; the first of a byte's two is in its low bits."""
    if form == "e4m3":
        return codes.view(ml_dtypes.float8_e4m3fn).astype(np.float32)
    numbers = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], np.float32)
    return np.stack([numbers[codes & 15], numbers[codes >> 4]], -1).reshape(codes.shape[0], -1)


@pytest.mark.parametrize("form", ["e2m1", "e4m3"])
def test_the_interpreter_multiplies_scaled_factors(form: str) -> None:
    rng = np.random.default_rng(3)
    width = DEPTH // (2 if form == "e2m1" else 1)
    most = 256 if form == "e2m1" else 120
    a, b = (rng.integers(0, most, (SIDE, width)).astype(np.uint8) for _ in range(2))
    s, t = (rng.integers(124, 131, (SIDE, DEPTH // 32)).astype(np.uint8) for _ in range(2))
    y = np.full((SIDE, SIDE), np.nan, np.float32)
    kernel = kernel_of(module_of(form))
    run_source(print_kernel(kernel), signature_of(kernel), (1,), [a, s, np.ascontiguousarray(b.T), t, y])
    left, right = (
        floats(codes, form) * np.repeat(2.0 ** (scales.astype(np.float32) - 127), 32, axis=1)
        for codes, scales in ((a, s), (b, t))
    )
    np.testing.assert_allclose(y, left @ right.T, rtol=1e-5, atol=1e-3)


def test_tensor_cores_of_sm_120_scale() -> None:
    kernel = kernel_of(module_of("e2m1"))
    made = compile_source(print_kernel(kernel), signature_of(kernel), 4, 1, 120)
    assert "mxf4" in made.ptx and "block_scale" in made.ptx
    assert not resources_of(made, 120).spills


def test_triton_reads_the_ir() -> None:
    module = ModuleOp([kernel_of(module_of("e2m1")).clone()])
    next(op for op in module.ops if isinstance(op, tt.FuncOp)).sym_name = StringAttr("kernel")
    text = StringIO()
    Printer(text, print_generic_format=True).print_op(module)
    assert "mxf4" in compile_ttir(text.getvalue(), 5, 4, 1, 120).ptx


def test_other_gpus_are_refused() -> None:
    func = next(op for op in module_of("e2m1").ops if isinstance(op, FuncOp))
    refuse_scaled(func, [120])
    with pytest.raises(IgniterError, match=r"which sm_80, sm_90 would emulate; compile it for cuda:sm_120"):
        refuse_scaled(func, [80, 90, 120])
