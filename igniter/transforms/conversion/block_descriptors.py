"""The descriptors of a launch: arguments of its kernel, one for each tensor and shape of blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects.builtin import TensorType, i32
from xdsl.ir import Attribute, Block, SSAValue

from igniter.analysis.structured.block_accesses import BlockAccess
from igniter.dialects import triton as tt
from igniter.dialects.sym.expr import ZERO, Expr
from igniter.transforms.conversion.block_builder import BlockBuilder


class Descriptors:
    """The descriptors that a kernel takes after its other arguments; `body` is the kernel's."""

    def __init__(self, body: Block):
        self.body = body
        self.arguments: dict[tuple[SSAValue, tuple[Expr, ...], tuple[int, ...]], SSAValue] = {}
        self.lacking = ZERO
        """0 if all descriptors can be made, positive otherwise."""
        self.reasons: list[str] = []
        """Why accesses have no descriptor."""

    @property
    def tensors(self) -> list[tuple[SSAValue, tuple[Expr, ...]]]:
        """The tensors and their sizes, in the order of the arguments."""
        return [(tensor, sizes) for tensor, sizes, _ in self.arguments]

    def argument(self, tensor: SSAValue, element: Attribute, access: BlockAccess) -> SSAValue:
        """Returns the descriptor of a tensor."""
        key = tensor, access.sizes, access.shape
        if key not in self.arguments:
            kind = tt.DescriptorType(TensorType(element, access.shape))
            self.arguments[key] = self.body.insert_arg(kind, len(self.body.args))
            self.lacking = self.lacking + access.lacking
        return self.arguments[key]


def first_elements(
    builder: BlockBuilder, access: BlockAccess, firsts: Mapping[str, SSAValue | None], index: Mapping[str, SSAValue]
) -> list[SSAValue]:
    """Returns the subscripts at which the current block begins."""
    found: list[SSAValue] = []
    for place in access.places:
        at = firsts[place] if isinstance(place, str) else builder.expr(place, index)
        found.append(builder.from_index(builder.number(0) if at is None else at, i32))
    return found


def in_order(builder: BlockBuilder, value: SSAValue, access: BlockAccess, laned: Sequence[str]) -> SSAValue:
    """Returns a loaded block with the dims `laned` alone, in their order."""
    kept = tuple(n for n, place in zip(access.shape, access.places, strict=True) if isinstance(place, str))
    if kept != access.shape:
        value = builder.add(tt.ReshapeOp(value, kept))
    order = [access.wide.index(name) for name in laned]
    return value if order == sorted(order) else builder.add(tt.TransOp(value, order))


def as_in_memory(builder: BlockBuilder, value: SSAValue, access: BlockAccess, laned: Sequence[str]) -> SSAValue:
    """Returns a block with the dims `laned` in the order of its tensor, with the dims of a single element."""
    order = [list(laned).index(name) for name in access.wide]
    if order != sorted(order):
        value = builder.add(tt.TransOp(value, order))
    return value if tt.shape_of(value.type) == access.shape else builder.add(tt.ReshapeOp(value, access.shape))
