"""Structured kernels run by stock MLIR: the text of `--emit=linalg`, lowered by `mlir-opt` and called on arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np

from igniter.backends.mlir.kernels import free_symbols, kernel_module
from igniter.backends.mlir.printed_main import with_main
from igniter.dialects.loop import KernelOp
from igniter.dialects.onnx.types import element_type
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.requirements import FINE
from igniter.runtime.mlir_library import MlirLibrary, Result, compile_mlir
from igniter.runtime.mlir_tools import run_main
from igniter.verification.interp.arithmetic import Array, InterpreterError
from igniter.verification.interp.structured import bind


def run_kernel_by_mlir(
    kernel: KernelOp, inputs: Sequence[Array], symbols: Mapping[str, int] | None = None
) -> list[Array]:
    """Returns the results of `kernel` for `inputs`, computed by stock MLIR in this process; `symbols` are those that no
    input has. Raises `MlirRefusal` or `MlirError` if MLIR cannot run it, `InterpreterError` for inputs that the kernel
    does not take."""
    env = bind(kernel, inputs, symbols or {})
    for requirement in kernel.requires:
        if not requirement.holds(env):
            raise InterpreterError(f"@{kernel.sym_name.data}: {requirement.text}: {requirement} does not hold")
    library = _library(kernel_module([kernel]))
    arguments = [*(np.ascontiguousarray(a).reshape(a.shape) for a in inputs), *(env[s] for s in free_symbols(kernel))]
    found = library.call(kernel.sym_name.data, arguments, results_of(kernel))
    outputs = len(found) - len(kernel.checks)
    for check, value in zip(kernel.checks, found[outputs:], strict=True):
        if value != FINE:
            raise InterpreterError(f"@{kernel.sym_name.data}: {check.text}: {int(value)}")
    return found[:outputs]


def run_kernel_by_runner(
    kernel: KernelOp, inputs: Sequence[Array], symbols: Mapping[str, int] | None = None
) -> list[Array]:
    """Returns the same, data checks included, from MLIR's own runner: a `main` has the inputs as constants and prints
    the bits of the results. For small inputs."""
    env = bind(kernel, inputs, symbols or {})
    numbers = iter([int(line) for line in run_main(with_main(kernel, inputs, env)).split()])
    found: list[Array] = []
    for dtype, rank in results_of(kernel):
        kind = np.dtype(dtype)
        shape = [next(numbers) for _ in range(rank or 0)]
        bits = np.array([next(numbers) for _ in range(int(np.prod(shape)))], np.int64)
        found.append(bits.astype(f"i{kind.itemsize}").view(kind).reshape(shape))
    return found


def results_of(kernel: KernelOp) -> list[Result]:
    """Returns the results of a kernel's function, data checks included."""
    return [(element_type(element_of(t)).dtype, len(dims_of(t))) for t in kernel.declared_types]


@lru_cache(maxsize=64)
def _library(text: str) -> MlirLibrary:
    return compile_mlir(text)
