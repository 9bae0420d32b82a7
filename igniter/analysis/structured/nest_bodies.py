"""The dependences in a nest's body, and the kind of the nest."""

from __future__ import annotations

from collections.abc import Iterable

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from igniter.dialects.loop import IndexOp, NestOp, ReadOp, ViewOp
from igniter.dialects.sym.expr import ONE

CASTS = (arith.ExtFOp, arith.ExtSIOp, arith.ExtUIOp)


def tensor_behind(value: SSAValue) -> SSAValue:
    """Returns the tensor behind views."""
    while isinstance(value.owner, ViewOp):
        value = value.owner.source
    return value


def backward_slice(value: SSAValue) -> list[Operation]:
    """Returns the ops of a body that `value` depends on, in program order."""
    found: dict[Operation, None] = {}
    pending = [value.owner]
    while pending:
        op = pending.pop()
        if isinstance(op, Operation) and op not in found:
            found[op] = None
            pending.extend(o.owner for o in op.operands)
    if not found:
        return []
    block = next(iter(found)).parent
    assert block is not None
    return [op for op in block.ops if op in found]


def _through_casts(value: SSAValue) -> Operation | None:
    owner = value.owner
    while isinstance(owner, CASTS):
        owner = owner.operands[0].owner
    return owner if isinstance(owner, Operation) else None


def is_contraction(nest: NestOp) -> bool:
    """True if a nest sums products of two reads (MatMul, Conv, Einsum) over axes of both, and one read lacks a parallel
    axis of the other.

    Such a nest reads every element many times, so its speed depends on packing, tiling and registers.
    """
    clauses = nest.yield_op.clauses
    if len(clauses) != 1 or clauses[0].combiner != "add":
        return False
    product = _through_casts(clauses[0].value)
    if not isinstance(product, (arith.MulfOp, arith.MuliOp)):
        return False
    left, right = _through_casts(product.operands[0]), _through_casts(product.operands[1])
    if not isinstance(left, ReadOp) or not isinstance(right, ReadOp):
        return False
    wide = {a.name: a.kind for a in nest.axes if a.extent != ONE}
    a, b = (frozenset[str]().union(*(e.symbols for e in r.subscripts)) & wide.keys() for r in (left, right))
    return any(wide[x] == "reduction" for x in a & b) and any(wide[x] == "parallel" for x in a ^ b)


def axes_behind(values: Iterable[SSAValue]) -> frozenset[str]:
    """Returns the names in the expressions of every read and index that `values` depend on."""
    names: set[str] = set()
    for value in values:
        for op in backward_slice(value):
            if isinstance(op, ReadOp):
                for e in (*op.subscripts, *op.guards):
                    names |= e.symbols
            elif isinstance(op, IndexOp):
                names |= op.value.symbols
    return frozenset(names)
