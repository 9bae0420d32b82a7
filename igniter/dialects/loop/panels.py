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
