"""Nests that replace some rows of a tensor: the new keys or values of a decoder, in its cache.

    %present = loop.nest "present" [b, h, s, d] {
      %end = ...                                              the number of cached rows of batch element b
      %old = loop.read %past[b, h, s, d] with %end if [_0 - 1 - s]
      %y = loop.read %new[b, s - _0, h, d] with %end if [s - _0, _0 + n - 1 - s] else %old
      loop.yield none %y at [b, h, s, d]
    }

Along one axis, a number of rows from a first one on are new. The nest copies each other row from `%past`, at the same
place, or sets it to 0. If `%past` and the result are one buffer, only the new rows are written,
and the rows without old values keep what the buffer holds (`UpdateEnd`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir import BlockArgument, Operation, SSAValue

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


def updates_argument(nest: NestOp) -> bool:
    """True if a nest updates an argument of the kernel, which a caller may pass as the result too."""
    update = update_of(nest)
    return not isinstance(update, str) and isinstance(update.past, BlockArgument)


def has_new_rows(read: ReadOp) -> bool:
    """True if a read has the new rows of such an update."""
    nest = read.parent_op()
    return isinstance(nest, NestOp) and read is nest.yield_op.clauses[0].value.owner and updates_argument(nest)


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


def operands_of(read: ReadOp) -> list[Operation]:
    """Returns the ops of the body that compute the indirect operands of a read, in order."""
    block, todo, found = read.parent_block(), list(read.indices), set[Operation]()
    while todo:
        owner = todo.pop().owner
        if isinstance(owner, Operation) and owner.parent_block() is block and owner not in found:
            found.add(owner)
            todo += owner.operands
    return [] if block is None else [op for op in block.ops if op in found]


@dataclass(frozen=True)
class UpdateEnd:
    """The end of the new rows of an update, behind which the caller's buffer may hold anything."""

    nest: NestOp
    update: Update
    dim: int

    @property
    def row(self) -> Expr:
        return self.update.first + self.update.count

    @property
    def indices(self) -> Sequence[SSAValue]:
        return self.update.read.indices

    @property
    def operations(self) -> Sequence[Operation]:
        return operands_of(self.update.read)

    def axes_at(self, subscripts: Sequence[Expr]) -> dict[str, Expr]:
        (clause,) = self.nest.yield_op.clauses
        axes = {axis.name for axis in self.nest.axes}
        return {str(own): at for own, at in zip(clause.subscripts, subscripts, strict=True) if str(own) in axes}

    def limits(self, nest: NestOp, tensor: SSAValue) -> bool:
        """True if a nest sums over the rows, or copies them for another nest that does: a factor of 0 does not make
        NaN a zero. Scores of other rows are masked."""
        reads = [read for read in nest.reads if read.source is tensor]
        summed = {axis.name for axis in nest.axes if axis.kind == "reduction"}
        if any(read.subscripts[self.dim].symbols & summed for read in reads):
            return True
        (clause, *more) = nest.yield_op.clauses
        if more or summed or clause.value not in {read.result for read in reads}:
            return False
        rows = {name for read in reads for name in read.subscripts[self.dim].symbols}
        dims = [k for k, subscript in enumerate(clause.subscripts) if subscript.symbols & rows]
        users = {use.operation.parent_op() for use in nest.outputs[0].uses}
        return any(_sums_over(user, nest.outputs[0], dims) for user in users if isinstance(user, NestOp))


def _sums_over(nest: NestOp, tensor: SSAValue, dims: Sequence[int]) -> bool:
    summed = {axis.name for axis in nest.axes if axis.kind == "reduction"}
    reads = [read for read in nest.reads if read.source is tensor]
    return any(read.subscripts[k].symbols & summed for read in reads for k in dims)


def end_of_rows(nest: NestOp, update: Update) -> UpdateEnd | None:
    """Returns the end of the rows of an update; None if all rows hold something, or its place is not known."""
    (clause,), old = nest.yield_op.clauses, update.read.otherwise
    assert old is not None
    owner = old.owner
    if not isinstance(owner, ReadOp) or not owner.guards:
        return None
    return UpdateEnd(nest, update, clause.subscripts.index(Expr.of(update.axis)))
