"""Derived weights that a kernel can compute when a session is created, so that the model stores only their source.

A derivation (`igniter.dialects.onnx.weights`) with a `recipe` is such a weight: the pass `make-at-load` finds it. Any
expansion of constants can have one: transformed filters, dequantised weights, padded panels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from igniter.dialects.layouts import Layout
from igniter.dialects.onnx.weights import Weight

if TYPE_CHECKING:
    from igniter.dialects.loop import KernelOp


@dataclass(frozen=True)
class Recipe:
    """The computation of a derived weight by a kernel. It gives the bits of `Derivation.compute`."""

    source: Weight
    layout: Layout
    """The order in which the kernel reads the elements of the source."""
    name: str
    """The kernel's name; recipes with equal names have equal kernels, whose symbols are dims of the source."""
    build: Callable[[], KernelOp]
    """Returns the kernel: one argument, the source in its layout, and one result."""


@runtime_checkable
class Loadable(Protocol):
    """A derivation with a recipe."""

    def recipe(self) -> Recipe:
        """Returns the computation by a kernel."""
        ...
