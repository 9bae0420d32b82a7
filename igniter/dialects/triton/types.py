"""Pointers and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition

LARGEST_BLOCK = 1 << 20
"""The maximum number of elements of a Triton block."""


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """`!tt.ptr<f32>`: an address in global memory."""

    name = "tt.ptr"
    pointee: Attribute


def is_block(t: Attribute) -> bool:
    """True if values of a type are blocks, not scalars."""
    return isinstance(t, TensorType)


def shape_of(t: Attribute) -> tuple[int, ...]:
    """Returns the dims of a block; empty for a scalar."""
    return cast("TensorType[Attribute]", t).get_shape() if isinstance(t, TensorType) else ()


def element_type(t: Attribute) -> Attribute:
    """Returns the element type of a block; for a scalar, its own type."""
    return cast("TensorType[Attribute]", t).element_type if isinstance(t, TensorType) else t


def block_of(element: Attribute, shape: Sequence[int]) -> Attribute:
    """Returns the type of blocks of a shape; the scalar type for an empty shape."""
    return TensorType(element, shape) if shape else element


def width_of(t: Attribute) -> int:
    """Returns the bit width of an integer or of the integers of a block; 0 for other types."""
    element = element_type(t)
    return cast("IntegerType", element).width.data if isinstance(element, IntegerType) else 0


def block_reason(t: Attribute) -> str | None:
    """Returns the reason why a type is no valid Triton block; None if it is one, or a scalar."""
    shape = shape_of(t)
    if any(d <= 0 or d & (d - 1) for d in shape):
        return f"{t}: the dims of a block must be powers of two"
    size = 1
    for d in shape:
        size *= d
    return f"{t}: a block has at most {LARGEST_BLOCK} elements" if size > LARGEST_BLOCK else None
