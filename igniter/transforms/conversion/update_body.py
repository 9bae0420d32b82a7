"""The launch that writes only the new rows of an update, for a result in the buffer of its past.

    for the rows of a program, 0 <= r < count:
        s = first + r                                        of its batch element; `first` is data
        present[b, h, s, d] = the value of the nest there    if s is inside

The blocks are those of the launch over all rows, so one schedule serves both. The value is that of the same nest
(`igniter.analysis.structured.updates`). Other rows are not touched.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from igniter.analysis.structured.dot_products import hangs_on
from igniter.analysis.structured.updates import Update, update_of
from igniter.dialects.loop import NestOp
from igniter.dialects.loop.attrs import INDIRECT_PREFIX
from igniter.schedules.launch_groups import LaunchGroup
from igniter.transforms.conversion.launch_body import LaunchBody
from igniter.transforms.conversion.launch_values import Scope

if TYPE_CHECKING:
    from igniter.transforms.conversion.lower_to_triton import Dim


def update_of_launch(group: LaunchGroup, dims: Sequence[Dim]) -> Update | None:
    """Returns the update that a launch computes; None if it computes anything else, or loops over the rows."""
    if len(group.members) != 1:
        return None
    (nest,) = group.members
    found = update_of(nest)
    if isinstance(found, str):
        return None
    rows = group.names[nest][found.axis]
    if any(rows in map(group.names[nest].get, hangs_on(value)) for value in found.read.indices):
        return None
    return None if any(d.looped or d.share for d in dims if d.name == rows) else found


class UpdateBody(LaunchBody):
    """The kernel for the new rows."""

    def __init__(
        self,
        name: str,
        group: LaunchGroup,
        dims: Sequence[Dim],
        tensors: Sequence[SSAValue],
        stored: Sequence[SSAValue],
        symbols: Sequence[str],
        update: Update,
    ):
        (nest,) = group.members
        self.update = update
        self.rows = group.names[nest][update.axis]
        (self.whole_rows,) = [d.extent for d in dims if d.name == self.rows]
        shortened = [replace(d, extent=update.count) if d.name == self.rows else d for d in dims]
        super().__init__(name, group, shortened, tensors, stored, symbols)

    def _programs(self, scope: Scope, number: SSAValue | None = None) -> None:
        super()._programs(scope, number)
        builder = scope.builder
        nest: NestOp = self.group.members[0]
        values = {f"{INDIRECT_PREFIX}{k}": self._value(nest, v, scope) for k, v in enumerate(self.update.read.indices)}
        env = {**scope.index, **{name: builder.to_index(value) for name, value in values.items()}}
        at = builder.binary(arith.AddiOp, scope.index[self.rows], builder.expr(self.update.first, env))
        scope.index[self.rows] = at
        inside = builder.binary(
            arith.AndIOp,
            builder.below(at, builder.expr(self.whole_rows, scope.index)),
            builder.below(builder.number(-1), at),
        )
        short = scope.masks.get(self.rows)
        scope.masks[self.rows] = inside if short is None else builder.binary(arith.AndIOp, short, inside)
