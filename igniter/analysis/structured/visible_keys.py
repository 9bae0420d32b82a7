"""The keys that some row of a tile can see, from the mask of an attention.

    %mask = loop.nest [b, h, i, j] {
      %bound = ..                                   not less for a later row i, the same for all keys j
      %seen = arith.cmpi sle, %j, %bound
      %score = arith.select %seen, .., %lowest      -inf
    }

A row sees no key behind its bound, so a tile sees none behind the bound of its last row. The scores of other keys are
not read, and their weights, exp(-inf), are 0. Unlike the limits for GPUs (`key_limits`), a bound is a value of the
mask's body, to be computed again for a row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects import math as math_dialect
from xdsl.dialects.builtin import FloatAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from igniter.dialects.loop import IndexOp, NestOp, ReadOp
from igniter.dialects.sym.expr import ONE, Expr

SLE = 3
"""The predicate of `arith.cmpi` for signed numbers."""


@dataclass(frozen=True)
class VisibleKeys:
    """A bound in the body of a mask: rows up to one see no key behind its value there."""

    nest: NestOp
    """The nest of the mask."""
    bound: SSAValue
    row: int
    """The dim of the rows."""
    key: int
    """The dim of the keys."""

    @property
    def operations(self) -> Sequence[Operation]:
        """The ops of the body that compute the bound, in order."""
        todo, found = [self.bound], set[Operation]()
        while todo:
            owner = todo.pop().owner
            if isinstance(owner, Operation) and owner not in found:
                found.add(owner)
                todo += owner.operands
        return [op for op in self.nest.block.ops if op in found]

    @property
    def sources(self) -> set[SSAValue]:
        """The tensors that the bound is computed from."""
        return {op.source for op in self.operations if isinstance(op, ReadOp)}

    def axes_at(self, subscripts: Sequence[Expr]) -> dict[str, Expr]:
        """Returns the axes of the mask at a place of its result."""
        (clause,) = self.nest.yield_op.clauses
        return {str(own): at for own, at in zip(clause.subscripts, subscripts, strict=True)}


def keys_of_scores(nest: NestOp) -> VisibleKeys | None:
    """Returns the keys whose scores are read, for the nest of the scores; `None` without a mask."""
    if len(nest.outputs) != 1:
        return None
    users = {use.operation for use in nest.outputs[0].uses}
    masks = {user.parent_op() for user in users}
    mask = masks.pop() if len(masks) == 1 else None
    if not isinstance(mask, NestOp) or not _is_in_place(nest):
        return None
    found = _mask_of(mask)
    reads = [user for user in users if isinstance(user, ReadOp) and _reads_at_result(user, mask)]
    if found is None or len(reads) != len(users):
        return None
    select = mask.yield_op.clauses[0].value.owner
    assert isinstance(select, arith.SelectOp)
    return found if all(_only_selected(read.result, select) for read in reads) else None


def keys_of_weights(weights: SSAValue) -> VisibleKeys | None:
    """Returns the keys whose weights may not be 0, for the exponentials of masked scores; `None` without a mask."""
    nest = weights.owner
    if not isinstance(nest, NestOp) or len(nest.yield_op.clauses) != 1 or not _is_in_place(nest):
        return None
    exp = nest.yield_op.clauses[0].value.owner
    difference = exp.operands[0].owner if isinstance(exp, math_dialect.ExpOp) else None
    if not isinstance(difference, arith.SubfOp):
        return None
    score, largest = difference.lhs.owner, difference.rhs.owner
    if not isinstance(score, ReadOp) or not isinstance(largest, ReadOp) or not _reads_at_result(score, nest):
        return None
    mask = score.source.owner
    found = _mask_of(mask) if isinstance(mask, NestOp) else None
    if found is None or largest.guards or largest.indices:
        return None
    key = nest.yield_op.clauses[0].subscripts[found.key]
    return None if any(s.symbols & key.symbols for s in largest.subscripts) else found


def _is_in_place(nest: NestOp) -> bool:
    """True if each dim of the result is indexed by an axis of its own."""
    (clause,) = nest.yield_op.clauses
    axes = [s.symbol for s in clause.subscripts]
    return None not in axes and len(set(axes)) == len(axes)


def _reads_at_result(read: ReadOp, nest: NestOp) -> bool:
    (clause,) = nest.yield_op.clauses
    return not read.guards and not read.indices and list(read.subscripts) == list(clause.subscripts)


def _mask_of(nest: NestOp) -> VisibleKeys | None:
    """Returns the bound of a nest that masks the scores it reads."""
    if len(nest.yield_op.clauses) != 1 or any(axis.kind != "parallel" for axis in nest.axes) or not _is_in_place(nest):
        return None
    (clause,) = nest.yield_op.clauses
    select = clause.value.owner
    if not isinstance(select, arith.SelectOp) or not _is_lowest(select.rhs):
        return None
    names = [s.symbol or "" for s in clause.subscripts]
    for condition in _parts(select.cond):
        compared = condition.owner
        if not isinstance(compared, arith.CmpiOp) or compared.predicate.value.data != SLE:
            continue
        key = compared.lhs.owner
        name = key.value.symbol if isinstance(key, IndexOp) else None
        if name is None or name not in names:
            continue
        for row in names:
            if row != name and _rises(compared.rhs, row, name):
                return VisibleKeys(nest, compared.rhs, names.index(row), names.index(name))
    return None


def _is_lowest(value: SSAValue) -> bool:
    op = value.owner
    return isinstance(op, arith.ConstantOp) and isinstance(op.value, FloatAttr) and op.value.value.data == -math.inf


def _parts(condition: SSAValue) -> list[SSAValue]:
    """Returns the conditions that all have to hold for a condition to hold."""
    op = condition.owner
    return [p for v in op.operands for p in _parts(v)] if isinstance(op, arith.AndIOp) else [condition]


def _rises(value: SSAValue, row: str, key: str) -> bool | None:
    """Returns True if an integer is the same for all keys and does not fall from row to row, False if it depends on
    neither, `None` for other values."""
    op = value.owner
    if isinstance(op, arith.ConstantOp):
        return False
    if isinstance(op, ReadOp):
        used = {name for s in op.subscripts for name in s.symbols}
        return None if op.guards or op.indices or used & {row, key} else False
    if isinstance(op, IndexOp):
        slope = op.value.coefficient(row)
        if key in op.value.symbols or slope is None or slope.constant is None or slope.constant < 0:
            return None
        return slope.constant > 0
    if isinstance(op, arith.ExtSIOp):
        return _rises(op.input, row, key)
    if isinstance(op, (arith.AddiOp, arith.MinSIOp, arith.MaxSIOp)) and value.type == IntegerType(64):
        both = [_rises(v, row, key) for v in op.operands]
        return None if None in both else any(both)
    return None


def _only_selected(value: SSAValue, select: arith.SelectOp) -> bool:
    """True if a value counts only as the chosen value of a selection."""
    for use in value.uses:
        results = use.operation.results
        if use.operation is select and use.index == 1:
            continue
        if use.operation is select or not results or not all(_only_selected(r, select) for r in results):
            return False
    return True


def last_row(keys: VisibleKeys, place: Sequence[Expr], rows: Expr) -> dict[str, Expr]:
    """Returns the axes of the mask for the last of `rows` rows from a place of its result on."""
    return keys.axes_at([e + rows - ONE if k == keys.row else e for k, e in enumerate(place)])
