"""Panels of columns, and the kinds of micro-kernels that multiply them.

A factor whose columns lie in panels has as many of them side by side as fill `PANEL_BYTES` of sums; of elements that an
instruction multiplies in groups, the steps of depth of a group lie side by side as well.
"""

from __future__ import annotations

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.ir import Attribute

from igniter.dialects.loop.attrs import element_bytes, scalar_type
from igniter.dialects.loop.instructions import PANEL_BYTES, chosen_kernels, element_name, micro_kernel

SMALLEST_COLUMNS = 4
"""Fewer columns than this fill too little of a panel."""

DOT_COLUMNS, DOT_STEPS = 6, 32
"""Fewer columns of floats than this, of as many steps of depth or more, are dot products: they take 0.6 to 0.9 of the
time of a panel that is mostly zeros for 4 and 5 columns, 0.4 to 0.6 for 2 and 3, and as long for 6 (depths of 32, 128
and 512, 100 and 2,000 rows). The steps are two of the widest vectors, and their sum."""


def are_dot_products(columns: int | None, depth: int | None, kind: str | None, rounds: int = 1) -> bool:
    """Whether a product of so many columns and steps of depth (None: not known, and many) is one dot product for each
    result, of what lies side by side in both factors; `rounds` of them where a window has rows."""
    is_long = rounds == 1 or depth is None or depth >= 4 * DOT_STEPS
    most = DOT_COLUMNS if kind in ("f32", "f64") and is_long else SMALLEST_COLUMNS
    return columns is not None and columns < most and (depth is None or depth >= DOT_STEPS)


def turns_of(sums: int) -> int:
    """How many times over a tile of so few vectors of sums has them, for parts of the depth in turns: a sum waits for
    the one before, as long as several multiply-adds take."""
    return 4 if sums <= 2 else 2 if sums <= 5 else 1


def panel_lanes(element: Attribute) -> int:
    """The columns of a panel of sums of this type."""
    return PANEL_BYTES // element_bytes(scalar_type(element))


def kind_of(a: Attribute, b: Attribute, c: Attribute) -> str | None:
    """The kind of micro-kernel that multiplies elements `a` by `b` and adds up `c`; None where there is none."""
    return chosen_kernels().get((element_name(a), element_name(b), element_name(scalar_type(c))))


def widened_kind(a: Attribute, b: Attribute, c: Attribute) -> str | None:
    """The kind that multiplies elements `a`, made f32 before, by `b`; None where `a` is no 16-bit float."""
    return kind_of(c, b, c) if is_half(a) and isinstance(c, Float32Type) else None


def is_half(element: Attribute) -> bool:
    """Whether elements are floats of 16 bits."""
    return isinstance(element, (Float16Type, BFloat16Type))


def group_of(kind: str) -> int:
    """The steps of depth that a kind of micro-kernel has side by side."""
    return micro_kernel(kind).group
