"""Values of the blocks of a launch: those that a body has computed so far, their types in memory and in bodies, and the
combination of two values of a reduction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects import arith
from xdsl.dialects.builtin import i1, i8
from xdsl.ir import Attribute, SSAValue

from igniter.dialects import triton as tt
from igniter.dialects.arith import CmpiOp, ExtUIOp
from igniter.dialects.loop import NestOp
from igniter.dialects.loop.attrs import Combiner, scalar_type
from igniter.dialects.loop.combiners import combining_op
from igniter.dialects.sym.expr import Expr, Sym
from igniter.transforms.conversion.block_builder import BlockBuilder


def memory_element(element: Attribute) -> Attribute | None:
    """Returns the pointee type for elements of a tensor: a bool takes a byte, integers have no sign, and 8-bit floats
    are bytes, which bodies decode. None for types without a Triton type."""
    scalar = scalar_type(element)
    width = tt.width_of(scalar)
    if 1 < width < 8:
        return None
    return i8 if width == 1 else scalar


@dataclass
class Scope:
    """The values on the current blocks, and the insertion point."""

    builder: BlockBuilder
    index: dict[str, SSAValue]
    """The current elements of each dim, and the values of symbols."""
    masks: dict[str, SSAValue]
    """The masks of valid elements, for dims whose blocks may be partial."""
    laned: tuple[str, ...]
    """The dims of blocks."""
    firsts: dict[str, SSAValue | None]
    """The first element of each current block; None for 0."""
    values: dict[SSAValue, SSAValue] = field(default_factory=dict[SSAValue, SSAValue])
    loads: dict[tuple[object, ...], SSAValue] = field(default_factory=dict[tuple[object, ...], SSAValue])
    places: dict[str, Expr] = field(default_factory=dict[str, Expr])
    """The dims that blocks have in several dims, as expressions over these."""
    factor: bool = False
    """True if the blocks are a factor of a product."""


def largest_value(e: Expr, nest: NestOp) -> int | None:
    """Returns a bound of the absolute value of a linear sum of axes with constant extents; None for other
    expressions."""
    extents = {axis.name: axis.extent.constant for axis in nest.axes}
    total = 0
    for atoms, factor in e.terms:
        if len(atoms) > 1 or any(not isinstance(a, Sym) or extents.get(a.name) is None for a in atoms):
            return None
        sizes = [extents[a.name] or 0 for a in atoms if isinstance(a, Sym)]
        total += abs(factor) * (sizes[0] if sizes else 1)
    return total


def renamed_names(axes: frozenset[str], names: Mapping[str, str]) -> frozenset[str]:
    """Maps axes to dims."""
    return frozenset(names.get(axis, axis) for axis in axes)


def from_memory(builder: BlockBuilder, value: SSAValue, element: Attribute) -> SSAValue:
    """Converts a loaded value to its type in bodies."""
    if scalar_type(element) != i1:
        return value
    return builder.binary(lambda a, b: CmpiOp(a, b, "ne"), value, builder.const(0, i8))


def to_memory(builder: BlockBuilder, value: SSAValue, element: Attribute) -> SSAValue:
    """Converts a computed value to its type in memory."""
    return value if scalar_type(element) != i1 else builder.cast(ExtUIOp, value, i8)


def combined(builder: BlockBuilder, combiner: Combiner, element: Attribute, a: SSAValue, b: SSAValue) -> SSAValue:
    """Combines two values of a reduction."""
    op = combining_op(combiner, element)
    if op in (arith.MaxUIOp, arith.MinUIOp):
        # Triton's max and min are signed.
        a, b = builder.together([a, b])
        first = builder.binary(lambda x, y: CmpiOp(x, y, "ugt" if combiner == "max" else "ult"), a, b)
        return builder.select(first, a, b)
    return builder.binary(lambda x, y: op(x, y), a, b)  # pyright: ignore[reportCallIssue]
