"""Nests that replace some rows of a tensor: the new keys or values of a decoder, in its cache.

    %present = loop.nest "present" [b, h, s, d] {
      %end = ...                                              the number of cached rows of batch element b
      %old = loop.read %past[b, h, s, d] with %end if [_0 - 1 - s]
      %y = loop.read %new[b, s - _0, h, d] with %end if [s - _0, _0 + n - 1 - s] else %old
      loop.yield none %y at [b, h, s, d]
    }

Along one axis, a number of rows from a first one on are new. The nest copies each other row from `%past`, at the same
place, or sets it to 0. If `%past` and the result are one buffer, only the new rows are written,
and the rows without old values keep what the buffer holds.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.ir import SSAValue

from igniter.dialects.loop import NestOp, ReadOp
from igniter.dialects.loop.attrs import INDIRECT_PREFIX
from igniter.dialects.sym.expr import ONE, Expr
from igniter.dialects.sym.ranges import is_nonneg


@dataclass(frozen=True)
class Update:
    """The new rows of an update."""

    past: SSAValue
    """The tensor whose other rows are kept."""
    axis: str
    """The axis of the rows."""
    first: Expr
    """The first new row, in terms of symbols and of the indirect operands of `read`."""
    count: Expr
    """The number of new rows, in terms of symbols."""
    read: ReadOp
    """The read of the new rows."""


def update_of(nest: NestOp) -> Update | str:
    """Returns the update that a nest computes, or the reason why it is none."""
    if len(nest.yield_op.clauses) != 1 or any(axis.kind != "parallel" for axis in nest.axes):
        return "it has several results or sums"
    (clause,) = nest.yield_op.clauses
    new = clause.value.owner
    if not isinstance(new, ReadOp) or new.otherwise is None:
        return "its result is no guarded read"
    old = new.otherwise.owner
    if not isinstance(old, ReadOp) or old.otherwise is not None or old.subscripts != clause.subscripts:
        return "the other elements are not those of a tensor at the same place"
    axes = {axis.name for axis in nest.axes}
    for axis in nest.axes:
        if Expr.of(axis.name) not in clause.subscripts:
            continue
        found = _range(new, axis.name, axes)
        if found is not None:
            return Update(old.source, axis.name, found[0], found[1], new)
    return "its guards bound no range of rows"


def _range(read: ReadOp, axis: str, axes: set[str]) -> tuple[Expr, Expr] | None:
    """Returns the first row and the number of rows for which the guards of a read hold; None if they are no such
    range."""
    lows: list[Expr] = []
    highs: list[Expr] = []
    for guard in read.guards:
        slope = guard.coefficient(axis)
        rest = guard.without(axis)
        if slope is None or slope.constant not in (1, -1) or rest.symbols & axes:
            return None
        if slope.constant == 1:
            lows.append(-rest)
        else:
            highs.append(rest)
    names = {f"{INDIRECT_PREFIX}{k}" for k in range(len(read.indices))}
    for low in lows:
        if not low.symbols & names or any(other != low and not is_nonneg(low - other) for other in lows):
            continue
        counts = [high - low + ONE for high in highs]
        known = [count for count in counts if not count.symbols & names]
        if known:
            # Further guards only leave out rows, and the nest evaluates them.
            return low, known[0]
    return None
