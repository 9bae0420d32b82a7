"""A scheduled kernel that stock MLIR lowers, called like a compiled one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from igniter.backends.mlir.scheduled import func_module, has_arena
from igniter.dialects.loop import CallOp, FuncOp
from igniter.dialects.onnx.types import BY_ATTR
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.requirements import FINE
from igniter.runtime.mlir_library import compile_mlir
from igniter.runtime.mlir_tools import SCF_PASSES, MlirError
from igniter.verification.interp.arithmetic import InterpreterError

Array = np.ndarray[Any, Any]


class MlirFunc:
    """A kernel in memory: call it with its buffers, inputs then outputs, and its symbols by name."""

    def __init__(self, func: FuncOp):
        self.func = func
        self._library = compile_mlir(func_module(with_callees(func)), SCF_PASSES)

    def __call__(self, *buffers: Array, threads: int = 1, **symbols: int) -> None:
        """Runs in place, on one thread. The arena holds no zeros before."""
        func = self.func
        given: list[Any] = [b.view(np.int8) if b.dtype == np.bool_ else b for b in buffers]
        given += [int(symbols[s]) for s in func.symbol_names]
        if has_arena(func) and func.scratch_bytes is not None:
            size = func.scratch_bytes.evaluate(symbols)
            memory = np.full(size + 64, 0xFF, np.uint8)
            start = -memory.ctypes.data % 64
            given.append(memory[start : start + size])
        self._library.call(func.sym_name.data, given)


def with_callees(func: FuncOp) -> list[FuncOp]:
    """Returns a kernel and the kernels that it calls, at any depth."""
    found = {func.sym_name.data: func}
    waiting = [func]
    while waiting:
        for op in waiting.pop().walk():
            callee = op.find_callee() if isinstance(op, CallOp) else None
            if isinstance(callee, FuncOp) and callee.sym_name.data not in found:
                found[callee.sym_name.data] = callee
                waiting.append(callee)
    return list(found.values())


def call_scheduled(func: FuncOp, inputs: Sequence[Array], sizes: Mapping[str, int]) -> list[Array]:
    """Returns the results of a scheduled kernel, run by MLIR; `InterpreterError` for inputs that it does not take."""
    for requirement in func.requires:
        if not requirement.holds(sizes):
            raise InterpreterError(f"@{func.sym_name.data}: {requirement.text}: {requirement} does not hold")
    outputs = [
        np.zeros([d.evaluate(dict(sizes)) for d in dims_of(a.type)], BY_ATTR[element_of(a.type)].dtype)
        for a in func.block.args[len(inputs) :]
    ]
    buffers = [np.array(a, order="C") for a in inputs] + outputs
    MlirFunc(func)(*buffers, **sizes)
    for before, after in zip(inputs, buffers, strict=False):
        if np.asarray(before).tobytes() != after.tobytes():
            raise MlirError(f"@{func.sym_name.data} wrote to an input")
    count = len(outputs) - len(func.checks)
    for check, value in zip(func.checks, outputs[count:], strict=True):
        if value != FINE:
            raise InterpreterError(f"@{func.sym_name.data}: {check.text}: {int(value)}")
    return outputs[:count]
