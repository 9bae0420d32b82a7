"""Factors of products that are codes of few bits, with a scale for each block of the depth.

    w[k] = ((codes[k // 2] >> 4 * (k % 2)) & 15) * scale[k // 32]

A program has a block of the depth, k = D*t + (0 .. D-1), in dims of its own: groups, the depths of a scale; lanes, the
bytes of a group; parts, the numbers of a byte:

    k = D*t + 32*g + 2*h + p     codes at 16*(D//32*t + g) + h, shifted by 4*p; scale at D//32*t + g

So each byte is loaded once, each scale once for its group, and each part is shifted by a constant. `tt.join` puts the
parts side by side.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from igniter.analysis.structured.codes import Codes, simplified
from igniter.dialects import triton as tt
from igniter.dialects.sym import axis_ranges
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.ranges import Ranges
from igniter.transforms.conversion.block_builder import BlockBuilder

if TYPE_CHECKING:
    from xdsl.ir import SSAValue

    from igniter.transforms.conversion.lower_to_triton import Dim


@dataclass(frozen=True)
class Unpacking:
    """The dims of a block of the depth, by name."""

    depth: Dim
    codes: Codes

    @property
    def group(self) -> int:
        """The depths of a group: no more than the block has."""
        lanes = self.depth.lanes
        return self.codes.group if 0 < self.codes.group < lanes else lanes

    @property
    def block_name(self) -> str:
        """The name of the number of the block."""
        return block_name(self.depth.name)

    @property
    def lanes(self) -> dict[str, int]:
        """The lanes of the dims of blocks that stand for the depth, outermost first."""
        groups, name = self.depth.lanes // self.group, self.depth.name
        found = {f"{name}.g": groups} if groups > 1 else {}
        return {**found, f"{name}.h": self.group // self.codes.parts}

    def ranges(self, ranges: Ranges) -> Ranges:
        """Returns the ranges with those of the dims."""
        own = axis_ranges((name, Expr.of(count)) for name, count in self.lanes.items())
        blocks = axis_ranges([(self.block_name, self.depth.blocks)])
        return Ranges({**ranges.axes, **own.axes, **blocks.axes})

    def place(self, part: int, looped: bool) -> Expr:
        """Returns the depth of a part of each lane."""
        name, steps = self.depth.name, (self.group, self.codes.parts)[-len(self.lanes) :]
        found = Expr.of(self.block_name) * self.depth.lanes if looped else Expr.of(0)
        for dim, step in zip(self.lanes, steps, strict=True):
            found = found + Expr.of(dim) * step
        assert name not in found.symbols
        return found + part

    def starts(self, looped: bool) -> dict[str, Expr]:
        """Returns the first depth of each element along a dim: that of a group, and that of a byte."""
        whole = self.place(0, looped)
        names = list(self.lanes)
        return {name: whole.substitute(dict.fromkeys(names[k + 1 :], Expr.of(0))) for k, name in enumerate(names)}


def block_name(depth: str) -> str:
    """Returns the name, in expressions, of the number of the current block along a dim."""
    return f"{depth}.t"


def placed(exprs: Sequence[Expr], places: Mapping[str, Expr], ranges: Ranges) -> tuple[Expr, ...]:
    """Returns expressions with places for dims, without the divisions that these decide."""
    if not places:
        return tuple(exprs)
    return tuple(simplified(e.substitute(places), ranges) for e in exprs)


def side_by_side(builder: BlockBuilder, values: Sequence[SSAValue], at: int, shape: Sequence[int]) -> SSAValue:
    """Returns a block of `shape` from its parts, which alternate along the dim that ends before place `at`."""
    joined = _joined(builder, values)
    rank, new = len(tt.shape_of(values[0].type)), len(tt.shape_of(joined.type)) - len(tt.shape_of(values[0].type))
    if at < rank and new:
        order = [*range(at), *range(rank, rank + new), *range(at, rank)]
        joined = builder.add(tt.TransOp(joined, order))
    return joined if tt.shape_of(joined.type) == tuple(shape) else builder.add(tt.ReshapeOp(joined, shape))


def _joined(builder: BlockBuilder, values: Sequence[SSAValue]) -> SSAValue:
    """Returns parts along new last dims, in order."""
    if len(values) == 1:
        return values[0]
    return builder.add(tt.JoinOp(_joined(builder, values[0::2]), _joined(builder, values[1::2])))
