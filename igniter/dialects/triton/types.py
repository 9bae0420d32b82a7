"""Pointers and blocks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import IntegerType, TensorType
from xdsl.ir import Attribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition

LARGEST_BLOCK = 1 << 20
"""Triton has no larger blocks."""


@irdl_attr_definition
class PointerType(ParametrizedAttribute, TypeAttribute):
    """`!tt.ptr<f32>`: an address in global memory."""

    name = "tt.ptr"
    pointee: Attribute


def is_block(t: Attribute) -> bool:
    """Whether values of a type are blocks, not single elements."""
    return isinstance(t, TensorType)


def shape_of(t: Attribute) -> tuple[int, ...]:
    """The dims of a block; none for a single element."""
    return cast("TensorType[Attribute]", t).get_shape() if isinstance(t, TensorType) else ()


def element_type(t: Attribute) -> Attribute:
    """The type of an element of a block; that of a single element is its own."""
    return cast("TensorType[Attribute]", t).element_type if isinstance(t, TensorType) else t


def block_of(element: Attribute, shape: Sequence[int]) -> Attribute:
    """The type of blocks of a shape; without dims, of single elements."""
    return TensorType(element, shape) if shape else element


def width_of(t: Attribute) -> int:
    """The bits of an integer, or of those of a block; 0 for what is none."""
    element = element_type(t)
    return cast("IntegerType", element).width.data if isinstance(element, IntegerType) else 0


def block_reason(t: Attribute) -> str | None:
    """Why a type is no block that Triton has; None where it is one, or a single element."""
    shape = shape_of(t)
    if any(d <= 0 or d & (d - 1) for d in shape):
        return f"{t}: the dims of a block are powers of two"
    size = 1
    for d in shape:
        size *= d
    return f"{t}: a block has at most {LARGEST_BLOCK} elements" if size > LARGEST_BLOCK else None
