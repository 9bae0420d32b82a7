"""A scheduled kernel that stock MLIR lowers, called like a compiled one."""

from __future__ import annotations

from typing import Any

import numpy as np

from igniter.backends.mlir.scheduled import func_module, has_arena
from igniter.dialects.loop import FuncOp
from igniter.runtime.mlir_library import compile_mlir
from igniter.runtime.mlir_tools import SCF_PASSES

Array = np.ndarray[Any, Any]


class MlirFunc:
    """A kernel in memory: call it with its buffers, inputs then outputs, and its symbols by name."""

    def __init__(self, func: FuncOp):
        self.func = func
        self._library = compile_mlir(func_module([func]), SCF_PASSES)

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
