"""The backend for NVIDIA GPUs: kernels of the `tt` dialect become Triton kernels, and these become machine code. The
code generator's modules are imported at their first use: a target's name, or a result from the cache, needs none of
them."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from igniter.backends.triton import compiled, compiler, coverage, driver, expectations, launch_schedules, texts

__all__ = ["compiled", "compiler", "coverage", "driver", "expectations", "launch_schedules", "texts"]


def __getattr__(name: str) -> ModuleType:
    if name not in __all__:
        raise AttributeError(f"module 'igniter.backends.triton' has no attribute '{name}'")
    return import_module(f"igniter.backends.triton.{name}")
