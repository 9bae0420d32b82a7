"""Variants of kernels for some sizes: the form in which a schedule author asks for them."""

from __future__ import annotations

from dataclasses import dataclass

from igniter.dialects.sym.expr import Expr

USUAL_VARIANTS = 2
"""The most variants of a kernel. One with weights of few bits on a GPU has another, for a single row."""


@dataclass(frozen=True)
class SizeVariant:
    """A worthwhile variant: the sizes that it is for, and the typical sizes of its schedule."""

    name: str
    what: Expr
    most: int
    """It runs if `what` is at most this."""
    typical: dict[str, int]
    why: str


@dataclass(frozen=True)
class SizeVariants:
    """The worthwhile variants of a kernel, in the order of their tests; there may be none."""

    variants: tuple[SizeVariant, ...]
    rest: dict[str, int] | None = None
    """The typical sizes of the kernel's own body, which runs at all other sizes; `None`: those that it has."""
