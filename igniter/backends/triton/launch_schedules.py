"""The schedules of launches: their words, the arithmetic of their products, and the tuner's search space."""

from __future__ import annotations

from typing import TYPE_CHECKING

from igniter.dialects.loop.schedule import PRODUCTS, vocabulary_of
from igniter.dialects.loop.words import LAUNCHES
from igniter.schedules.launch_space import LaunchSpace
from igniter.schedules.product_blocks import figures_of

if TYPE_CHECKING:
    from igniter.backends.triton.target import CudaTarget
    from igniter.dialects.loop import KernelOp

__all__ = ["PRODUCTS", "WORDS", "space_of"]

WORDS = vocabulary_of({LAUNCHES})
"""The words that launches carry out."""


def space_of(kernel: KernelOp, target: CudaTarget) -> LaunchSpace:
    """Returns the schedules of a kernel for the tuner."""
    return LaunchSpace(kernel, target.products, figures_of(f"sm_{target.arch}"))
