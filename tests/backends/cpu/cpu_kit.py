"""Small functions compiled for tests: one elementary function over an array, and scheduled kernels from text."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from functools import cache

import numpy as np
from xdsl.parser import Parser

from igniter.backends.cpu import vmath
from igniter.backends.cpu.builder import Builder, LlvmModule, Value, flatten
from igniter.backends.cpu.emit_llvm import emit_llvm
from igniter.backends.cpu.jit import CompiledFunc, compile_func, compile_ir
from igniter.backends.cpu.llvm_types import I64, PTR, Type
from igniter.backends.cpu.target import target_of
from igniter.backends.cpu.tile_kernels import with_tile_kernels
from igniter.context import IgniterContext
from igniter.dialects.loop import FuncOp
from igniter.verification.interp.scheduled import run_func
from tests.backends.mlir.mlir_kit import MlirFunc
from tests.guarded import run_guarded

from .emulator import EmulatedFunc, is_emulated

Array = np.ndarray

MLIR = "mlir"
"""Stock MLIR in the place of a target: its code for what `--emit=scf` writes."""

# With and without FMA, masks and rounding instructions; and another architecture, emulated.
TARGETS = tuple(os.environ.get("IGNITER_TEST_TARGETS", "native,x86-64,aarch64").split(","))


@cache
def compiled(text: str, target: str) -> CompiledFunc | EmulatedFunc | MlirFunc:
    func = parse_func(text)
    if target == MLIR:
        return MlirFunc(func)
    if is_emulated(target):
        ir = with_tile_kernels(emit_llvm(func, target_of(target)), target_of(target))
        return EmulatedFunc(func.sym_name.data, ir, target_of(target), func.symbol_names, func.scratch_bytes)
    return compile_func(func, target)


ALL_KINDS = {
    "f32": np.dtype("f4"),
    "f64": np.dtype("f8"),
    "i1": np.dtype(bool),
    "i8": np.dtype("i1"),
    "i16": np.dtype("i2"),
    "i32": np.dtype("i4"),
    "i64": np.dtype("i8"),
}
"""numpy's name of an element type."""


def parse_func(text: str) -> FuncOp:
    module = Parser(IgniterContext(), text).parse_module()
    module.verify()
    return next(op for op in module.walk() if isinstance(op, FuncOp))


def function_ir(name: str, element: str, lanes: int, target: str, count: int = 1) -> str:
    """`@k(buffers = inputs and output, symbols = [n])`: the function of whole vectors, n elements."""
    module = LlvmModule(target_of(target))
    b = Builder(module)
    t = Type(element, lanes)
    bytes_each = t.bits // 8
    pointers: list[Value] = []
    for i in range(count + 1):
        place = b.emit(PTR, f"getelementptr ptr, ptr %buffers, i64 {i}")
        pointers.append(b.emit(PTR, f"load ptr, ptr {place.text}"))
    n = b.emit(I64, "load i64, ptr %symbols")
    body, done = b.label("body"), b.label("done")
    b.jump(body)
    b.start(body)
    phi_at = len(b.lines)
    b.lines.append("")
    i = Value(I64, "%i")
    args: list[Value] = []
    for p in pointers[:-1]:
        args.append(b.emit(t, f"load {t}, ptr {b.gep(t.scalar, p, i).text}, align {bytes_each}"))
    result = vmath.call(b, name, args)
    b.raw(f"store {result.typed}, ptr {b.gep(t.scalar, pointers[-1], i).text}, align {bytes_each}")
    following = b.emit(I64, f"add i64 %i, {max(1, lanes)}")
    b.lines[phi_at] = f"  %i = phi i64 [ 0, %entry ], [ {following.text}, %{b.block} ]"
    b.branch(b.icmp("slt", following, n), body, done)
    b.start(done)
    header = "define void @k(ptr %buffers, ptr %symbols, ptr %scratch, ptr %parallel_for, ptr %context) #0 {"
    module.functions.append("\n".join([header, "entry:", *flatten(b.lines), "  ret void", "}", ""]))
    return module.text()


class Elementary:
    """An elementary function, compiled for one vector width."""

    def __init__(self, name: str, dtype: str, target: str = "native", lanes: int | None = None):
        self.dtype = np.dtype(dtype)
        element = {"f2": "half", "f4": "float", "f8": "double"}[dtype]
        self.count = 2 if name in ("pow", "atan2") else 1
        self.lanes = target_of(target).lanes(self.dtype.itemsize) if lanes is None else lanes
        ir = function_ir(name, element, self.lanes, target, self.count)
        self._compiled = (
            EmulatedFunc("k", ir, target_of(target), ["n"])
            if is_emulated(target)
            else compile_ir("k", ir, target, ["n"])
        )

    def __call__(self, *inputs: Array) -> Array:
        width = max(1, self.lanes)
        n = inputs[0].size
        padded = [np.resize(x.astype(self.dtype).ravel(), -(-n // width) * width) for x in inputs]
        result = np.empty_like(padded[0])
        self._compiled(*padded, result, n=padded[0].size)
        return result[:n]


def run_on_guard_pages(
    func: FuncOp,
    buffers: Sequence[Array],
    symbols: Mapping[str, int],
    target: str,
    threads: int = 1,
    text: str | None = None,
) -> None:
    """Runs a func in place. Buffers end and begin at a page that is not mapped; those of the emulator end at one."""
    call = compiled(str(func) if text is None else text, target)
    if isinstance(call, EmulatedFunc):
        call(*buffers, threads=threads, **symbols)
        return
    name = f"@{func.sym_name.data} for {target}"
    run_guarded(name, lambda b: call(*b, threads=threads, **symbols), buffers, func.output_count)


def check_against_interpreter(
    text: str,
    buffers: Sequence[Array],
    symbols: Mapping[str, int] | None = None,
    targets: Sequence[str] = TARGETS,
    threads: int = 1,
    rtol: float = 2e-6,
) -> list[Array]:
    """Runs the func of `text` in the interpreter and compiled for each target; the interpreter's outputs."""
    func = parse_func(text)
    symbols = dict(symbols or {})
    inputs = len(buffers) - func.output_count
    expected = [b.copy() for b in buffers]
    run_func(func, expected, symbols)
    for target in targets:
        actual = [b.copy() for b in buffers]
        run_on_guard_pages(func, actual, symbols, target, threads, text)
        for k in range(inputs, len(buffers)):
            if expected[k].dtype.kind == "f":
                np.testing.assert_allclose(
                    actual[k].astype(np.float64), expected[k].astype(np.float64), rtol, 1e-6, err_msg=target
                )
            else:
                np.testing.assert_array_equal(actual[k], expected[k], err_msg=target)
    return expected[inputs:]
