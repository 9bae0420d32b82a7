"""The tables of a library with GPU kernels, around the run time (`igniter/backends/c_runtime/src/gpu.c`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from igniter.backends.launches import KERNEL_TYPE, LAUNCH, kernel_symbol, slot_symbol
from igniter.backends.ort.messages import c_literal
from igniter.dialects.ort import OpOp

_FUNCTIONS = f"""
declare ptr @igniter_gpu_provider(ptr)
declare i32 @igniter_gpu_input_memory(ptr, i64)
declare ptr @igniter_gpu_create(ptr, ptr, ptr, ptr)
declare void @igniter_gpu_destroy(ptr)
declare ptr @igniter_gpu_run(ptr, ptr, ptr, ptr, ptr, ptr, i64)
declare void @{LAUNCH}(ptr, i64, i64, ptr)
"""


@dataclass(frozen=True)
class GpuCode:
    """The GPU kernels of a library, in the order of their numbers."""

    provider: str
    """The execution provider of the ops."""
    ops: Sequence[OpOp]
    """The ops whose funcs launch the kernels."""
    kernels: Sequence[str]
    launched: Mapping[str, Sequence[str]]
    """The kernels launched by each func of the host, directly or through callees."""
    suffix: str = ""
    """The suffix of the funcs' names, appended to the names in the ops."""


def emit_launches(code: GpuCode) -> str:
    """Returns the parts shared by all ops of a library of GPU kernels."""
    count = len(code.kernels)
    table = ", ".join(f"ptr {kernel_symbol(k)}" for k in code.kernels)
    provider = code.provider.encode()
    return "\n".join(
        (
            _FUNCTIONS,
            *(f"{kernel_symbol(kernel)} = external hidden constant {KERNEL_TYPE}" for kernel in code.kernels),
            f"@igniter_kernels = hidden constant [{count} x ptr] [{table}]",
            f"@igniter_kernel_count = hidden constant i64 {count}",
            *(f"{slot_symbol(kernel)} = hidden constant i64 {k}" for k, kernel in enumerate(code.kernels)),
            f"@igniter_gpu_name = hidden constant [{len(provider) + 1} x i8] {c_literal(provider)}",
            "",
        )
    )


def emit_launched(name: str, kernels: Sequence[str], code: GpuCode) -> str:
    """Returns the global `@launched.NAME`: the number of an op's kernels, and their numbers."""
    numbers = {kernel: k for k, kernel in enumerate(code.kernels)}
    listed = ", ".join(f"i64 {numbers[k]}" for k in kernels)
    count = len(kernels)
    kind = f"{{ i64, [{count} x i64] }}"
    return f"@launched.{name} = internal constant {kind} {{ i64 {count}, [{count} x i64] [{listed}] }}"
