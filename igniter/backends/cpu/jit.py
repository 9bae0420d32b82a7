"""Compiled kernels called from Python on numpy arrays: for tests and benchmarks."""

from __future__ import annotations

import ctypes
import threading
import weakref
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from igniter.backends.cpu.codegen import _llvm, optimize
from igniter.backends.cpu.emit_llvm import emit_llvm
from igniter.backends.cpu.target import Target, host_target, target_of
from igniter.backends.cpu.tile_kernels import with_tile_kernels
from igniter.backends.violations import VIOLATION
from igniter.dialects.loop import FuncOp
from igniter.environment import wants_sanitizer
from igniter.errors import IgniterError

TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
PARALLEL_FOR = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p)


class CompiledFunc:
    """A kernel in memory. Call it with its buffers, inputs then outputs, and its symbols by name."""

    def __init__(self, name: str, ir: str, target: Target, symbols: Sequence[str], scratch: Any):
        llvm = _llvm()
        here = host_target()
        if (target.arch, target.system) != (here.arch, here.system):
            raise IgniterError(f"{name}: code for {target.name} does not run on this machine, which is {here.triple}")
        self.name = name
        self.ir = ir
        self.target = target
        self.symbols = tuple(symbols)
        self._scratch = scratch
        module = optimize(with_tile_kernels(ir, target), target)
        machine = llvm.Target.from_triple(target.triple).create_target_machine(
            cpu=target.cpu, features=target.features, opt=3, reloc="pic", codemodel="jitdefault", jit=True
        )
        self._engine = llvm.create_mcjit_compiler(module, machine)
        weakref.finalize(self, _release, self._engine, module).atexit = False
        self._engine.finalize_object()
        address = self._engine.get_function_address(name)
        self.address = address
        """The kernel's machine code, for callers by address."""
        self._call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 5)(address)
        self._violation = self._engine.get_global_value_address(VIOLATION) if VIOLATION in ir else 0

    def __call__(self, *buffers: np.ndarray, threads: int = 1, **symbols: int) -> None:
        """Runs on C-contiguous arrays, in place. `threads` > 1 runs the tasks on several threads.

        Raises `IgniterError` if a sanitized kernel had an access out of bounds.
        """
        self.prepared(buffers, symbols, threads)()
        if self._violation:
            cell = ctypes.c_char_p.from_address(self._violation)
            text, cell.value = cell.value, None
            if text is not None:
                raise IgniterError(text.decode())

    def prepared(self, buffers: Sequence[np.ndarray], symbols: Mapping[str, int], threads: int = 1) -> Any:
        """Returns the call as a function without arguments, for timing."""
        for buffer in buffers:
            if not buffer.flags.c_contiguous:
                raise ValueError("buffers are C-contiguous arrays")
        pointers = (ctypes.c_void_p * max(1, len(buffers)))(*[b.ctypes.data for b in buffers])
        values = (ctypes.c_int64 * max(1, len(self.symbols)))(*[symbols[s] for s in self.symbols])
        size = self._scratch.evaluate(dict(symbols)) if self._scratch is not None else 0
        memory = np.empty(size + 64, np.uint8)
        scratch = memory.ctypes.data + (-memory.ctypes.data) % 64

        def run_tasks(context: int, task: int, count: int, data: int) -> None:
            _run_tasks(threads, task, count, data)

        pool = PARALLEL_FOR(run_tasks)
        parallel_for = ctypes.cast(pool, ctypes.c_void_p) if threads > 1 else None
        call = self._call

        def run(_keep: object = (self, buffers, memory, pool)) -> None:
            call(pointers, values, scratch, parallel_for, None)

        return run


def _release(engine: Any, module: Any) -> None:
    """Disposes of an engine before the LLVM context of its module, which `module` keeps until then. The cycle collector
    would dispose of them in any order, and the engine frees memory of the context."""
    engine.close()
    del module


def _run_tasks(threads: int, task: int, count: int, data: int) -> None:
    """Distributes the indices in turn; ctypes releases the interpreter's lock while a task runs."""
    function = TASK(task)

    def work(worker: int) -> None:
        for index in range(worker, count, threads):
            function(data, index)

    workers = [threading.Thread(target=work, args=(k,)) for k in range(1, threads)]
    for worker in workers:
        worker.start()
    work(0)
    for worker in workers:
        worker.join()


def compile_func(func: FuncOp, target: Target | str = "native", sanitize: bool | None = None) -> CompiledFunc:
    """Compiles a scheduled kernel for this machine; `sanitize` defaults to the environment's setting."""
    target = target_of(target) if isinstance(target, str) else target
    ir = emit_llvm(func, target, wants_sanitizer() if sanitize is None else sanitize)
    return CompiledFunc(func.sym_name.data, ir, target, func.symbol_names, func.scratch_bytes)


def compile_ir(name: str, ir: str, target: Target | str = "native", symbols: Sequence[str] = ()) -> CompiledFunc:
    """Compiles LLVM IR that defines `@name` with the kernel's signature, for this machine."""
    target = target_of(target) if isinstance(target, str) else target
    return CompiledFunc(name, ir, target, symbols, None)
