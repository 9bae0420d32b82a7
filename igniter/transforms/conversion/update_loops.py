"""Makes the loops of an update in place: a part of `lower-to-loops`.

    %present = loop.nest "present" [b: parallel n, s: parallel rows, d: parallel 64] -> .. {
      %end = ..
      %old = loop.read %past[b, s, d] with %end if [_0 - 1 - s]
      %y = loop.read %new[b, s - _0, d] with %end if [s - _0, _0 + m - 1 - s] else %old
      loop.yield none %y at [b, s, d]
    }
becomes
    loop.if_shared %past, %present {
      loop.for b = 0 to n { loop.for s = 0 to m { loop.for d = 0 to 64 {
        %end = ..
        %y = loop.load %new[b, s, d] with %end
        loop.store %y, %present[b, _0 + s, d] with %end if [_0 + s, rows - 1 - _0 - s]
      } } }
    } else {
      ..                                                        the loops of the nest
    }

if the past is an argument, the result a result of the kernel, and no other nest reads the past. The loops over the new
rows have the schedule of the nest. All other rows keep the contents of the caller's buffer.

Elsewhere the rows behind the new ones are zeros. In place they may hold anything, NaN included, so a product that sums
over the rows ends with the new rows of its batch element (`UpdateEnd`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from igniter.analysis.structured.updates import Update, operands_of, update_of
from igniter.dialects.loop import IndexOp, LoadOp, NestOp, ReadOp, StoreOp
from igniter.dialects.sym.expr import ZERO, Expr, symbols_of
from igniter.dialects.sym.ranges import is_nonneg, simplify
from igniter.transforms.conversion.nest_loops import NestLoops, levels_of, ranges_in

Buffers = Mapping[SSAValue, SSAValue]


def update_in_place(nest: NestOp, buffers: Buffers) -> Update | None:
    """Returns the update of a nest whose past and result a caller may pass as one buffer; None if the nest computes
    anything else, or if its rows cannot be written alone."""
    found = update_of(nest)
    if isinstance(found, str):
        return None
    if not all(isinstance(buffers.get(tensor), BlockArgument) for tensor in (found.past, nest.outputs[0])):
        return None
    if any(use.operation.parent_op() is not nest for use in found.past.uses):
        return None
    before = operands_of(found.read)
    if any(isinstance(op, ReadOp) and op.indices for op in before):
        return None
    return None if any(found.axis in _names_in(op) for op in before) else found


def _names_in(op: Operation) -> frozenset[str]:
    if isinstance(op, ReadOp):
        return symbols_of((*op.subscripts, *op.guards))
    return op.value.symbols if isinstance(op, IndexOp) else frozenset()


class RowLoops(NestLoops):
    """Lowers an update to the loops over its new rows."""

    def __init__(self, nest: NestOp, buffers: Buffers, fresh: Callable[[str], str], update: Update):
        self.update = update
        axis = replace(nest.axis(update.axis), extent=update.count)
        levels = levels_of(nest)
        super().__init__(
            nest, [replace(x, axis=axis) if x.axis.name == axis.name else x for x in levels], buffers, fresh
        )
        self.guards: list[Expr] = []
        """Conditions of a new row that are not known to hold."""
        self.indices: list[SSAValue] = []

    def _body(self, values: Mapping[str, Expr], block: Block) -> dict[SSAValue, SSAValue]:
        mapping: dict[SSAValue, SSAValue] = {}
        ranges = ranges_in(block)
        for op in operands_of(self.update.read):
            self.copy_op(op, values, block, mapping, ranges)
        read, at = self.update.read, self._at_row(values)
        self.guards = [g for each in read.guards if not is_nonneg(g := simplify(each.substitute(at), ranges), ranges)]
        self.indices = [mapping.get(i, i) for i in read.indices]
        subscripts = [simplify(s.substitute(at), ranges) for s in read.subscripts]
        load = LoadOp(self.buffers[read.source], subscripts, indices=self.indices, guards=self.guards)
        load.location = read.location
        block.add_op(load)
        mapping[read.result] = load.result
        return mapping

    def _write(self, mapping: Mapping[SSAValue, SSAValue], values: Mapping[str, Expr], block: Block) -> None:
        (clause,), at, buffer = self.clauses, self._at_row(values), self.buffers[self.nest.outputs[0]]
        row = at[self.update.axis]
        rows = self.nest.axis(self.update.axis).extent
        block.add_op(
            StoreOp(
                mapping[clause.value],
                buffer,
                [s.substitute(at) for s in clause.subscripts],
                indices=self.indices,
                # A length beyond the buffer writes nothing.
                guards=[*self.guards, row, rows - 1 - row],
            )
        )

    def _at_row(self, values: Mapping[str, Expr]) -> dict[str, Expr]:
        """Returns the values of the axes, with the axis of the rows counted from the first new row."""
        return {**values, self.update.axis: self.update.first + values.get(self.update.axis, ZERO)}
