"""Panels of columns, and the kinds of micro-kernels that multiply them.

A factor whose columns lie in panels has as many of them side by side as fill `PANEL_BYTES` of sums; of elements that an
instruction multiplies in groups, the steps of depth of a group lie side by side as well.
"""

from __future__ import annotations

from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, Float64Type, IntegerType, Signedness
from xdsl.ir import Attribute

from igniter.dialects.loop.attrs import element_bytes, scalar_type

PANEL_BYTES = 64
"""The sums of one row in a panel."""

SMALLEST_COLUMNS = 4
"""Fewer columns than this fill too little of a panel."""

GROUPS = {"bf16": 2, "i16": 2, "u8i8": 4, "i8i8": 4}
"""The steps of depth that a micro-kernel multiplies together, where they are more than one."""


def panel_lanes(element: Attribute) -> int:
    """The columns of a panel of sums of this type."""
    return PANEL_BYTES // element_bytes(scalar_type(element))


def kind_of(a: Attribute, b: Attribute, c: Attribute) -> str | None:
    """The kind of micro-kernel that multiplies elements `a` by `b` and adds up `c`; None where there is none."""

    def integer(element: Attribute) -> str:
        if not isinstance(element, IntegerType) or element.width.data not in (8, 16):
            return ""
        return ("u" if element.signedness.data == Signedness.UNSIGNED else "i") + str(element.width.data)

    for kind, name in ((Float32Type, "f32"), (Float64Type, "f64")):
        if all(isinstance(e, kind) for e in (a, b, c)):
            return name
    if isinstance(a, BFloat16Type) and isinstance(b, BFloat16Type) and isinstance(c, Float32Type):
        return "bf16"
    if isinstance(a, Float32Type) and isinstance(c, Float32Type):
        return "f32f16" if isinstance(b, Float16Type) else "f32bf16" if isinstance(b, BFloat16Type) else None
    if isinstance(c, IntegerType) and c.width.data == 32:
        factors = integer(a), integer(b)
        return {("u8", "i8"): "u8i8", ("i8", "i8"): "i8i8", ("i16", "i16"): "i16"}.get(factors)
    return None


def widened_kind(a: Attribute, b: Attribute, c: Attribute) -> str | None:
    """The kind that multiplies elements `a`, made f32 before, by `b`; None where `a` is no 16-bit float."""
    return kind_of(c, b, c) if is_half(a) and isinstance(c, Float32Type) else None


def is_half(element: Attribute) -> bool:
    """Whether elements are floats of 16 bits."""
    return isinstance(element, (Float16Type, BFloat16Type))


def group_of(kind: str) -> int:
    """The steps of depth that a kind of micro-kernel has side by side: as many as fill the bytes of one sum."""
    return GROUPS.get(kind, 1)
