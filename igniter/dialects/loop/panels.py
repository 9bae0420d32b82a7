"""Panels of columns, and their kinds of micro-kernels.

A factor in panels has as many adjacent columns as fill `PANEL_BYTES` of sums. If an instruction multiplies elements in
groups, the steps of depth of a group are adjacent too.
"""

from __future__ import annotations

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type
from xdsl.ir import Attribute

from igniter.dialects.loop.attrs import element_bytes, scalar_type
from igniter.dialects.loop.instructions import PANEL_BYTES, chosen_kernels, element_name, micro_kernel

SMALLEST_COLUMNS = 4
"""The minimum number of columns of a panel; fewer fill too little of it."""

DOT_COLUMNS, DOT_STEPS = 6, 32
"""The limits of dot products: products of floats with fewer columns and at least as many steps of depth. Compared with
a mostly zero panel they take 0.6 to 0.9 of the time for 4 and 5 columns, 0.4 to 0.6 for 2 and 3, and the same time for
6 (depths of 32, 128 and 512, 100 and 2,000 rows). The steps are two of the widest vectors, and their sum."""


def are_dot_products(columns: int | None, depth: int | None, kind: str | None, rounds: int = 1) -> bool:
    """True if a product with these columns and steps of depth (None: unknown, assumed large) is computed as one dot
    product per result over contiguous elements of both factors; `rounds` of them for a window with several rows."""
    is_long = rounds == 1 or depth is None or depth >= 4 * DOT_STEPS
    most = DOT_COLUMNS if kind in ("f32", "f64") and is_long else SMALLEST_COLUMNS
    return columns is not None and columns < most and (depth is None or depth >= DOT_STEPS)


def turns_of(sums: int) -> int:
    """Returns the number of accumulator sets of a tile with `sums` vectors of sums, each for a part of the depth. Few
    sums need several sets, because each multiply-add waits for the previous one."""
    return 4 if sums <= 2 else 2 if sums <= 5 else 1


def panel_lanes(element: Attribute) -> int:
    """Returns the number of columns of a panel of sums of this type."""
    return PANEL_BYTES // element_bytes(scalar_type(element))


def kind_of(a: Attribute, b: Attribute, c: Attribute) -> str | None:
    """Returns the kind of micro-kernel for products of `a` and `b` with sums in `c`; None if there is no such kind."""
    return chosen_kernels().get((element_name(a), element_name(b), element_name(scalar_type(c))))


def widened_kind(a: Attribute, b: Attribute, c: Attribute) -> str | None:
    """Returns the kind for products of `a`, converted to f32 beforehand, and `b`; None if `a` is no 16-bit float."""
    return kind_of(c, b, c) if is_half(a) and isinstance(c, Float32Type) else None


def is_half(element: Attribute) -> bool:
    """True if elements are 16-bit floats."""
    return isinstance(element, (Float16Type, BFloat16Type))


def group_of(kind: str) -> int:
    """Returns the number of adjacent steps of depth of a kind of micro-kernel."""
    return micro_kernel(kind).group
