"""The backend for CPUs. The code generator's modules are imported at their first use: a target's name, or a result from
the cache, needs none of them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from igniter.backends.cpu import (
        assembly,
        codegen,
        debug_info,
        emit_llvm,
        instructions,
        jit,
        llvm_versions,
        micro_kernels,
        rates,
        tile_kernels,
    )

__all__ = [
    "assembly",
    "codegen",
    "debug_info",
    "emit_llvm",
    "instructions",
    "jit",
    "llvm_versions",
    "micro_kernels",
    "rates",
    "tile_kernels",
]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module 'igniter.backends.cpu' has no attribute '{name}'")
    return import_module(f"igniter.backends.cpu.{name}")
