"""The count of a nest: its points, the work of a point by kind, and its bytes by tensor, once for all readers.

Inlining, the expected time of schedules and the bench of kernels read these counts, each with its own figures of a
machine (docs/explanation/costs.md). Loops after scheduling have a count of their own (`igniter.schedules.loop_cost`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from igniter.analysis.structured.nest_bodies import backward_slice, tensor_behind
from igniter.analysis.typical_sizes import MEMORY, TypicalSizes
from igniter.dialects.loop import IndexOp, NestOp, ReadOp, YieldOp, element_bytes, is_float, stored_bytes
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import Expr, product, symbols_of

MOVES = frozenset(f"arith.{name}" for name in ("bitcast", "extf", "select", "truncf"))
"""Ops on floats without arithmetic."""


@dataclass(frozen=True)
class BodyCount:
    """The work of one run of ops of a body. Constants and indices cost nothing."""

    ops: tuple[str, ...]
    """The names of the ops that compute results, in order."""
    addresses: tuple[str, ...]
    """The names of the ops that compute indirect subscripts."""
    floats: int
    """The operations on floats among all of them."""
    reads: int
    address_reads: int
    """The reads that find indirect subscripts, also part of `reads`."""
    guarded: int
    indirect: int

    @property
    def is_movement(self) -> bool:
        """True if the body computes nothing and only moves elements."""
        return not self.ops


@dataclass(frozen=True)
class NestCount:
    """The work of a nest."""

    points: Expr
    """The runs of the body."""
    body: BodyCount
    folds: int
    """The results of floats folded at each point."""
    read: tuple[tuple[SSAValue, Expr], ...]
    """The tensors read, each with the bytes read of it."""
    written: tuple[tuple[SSAValue, Expr], ...]
    """The results, each with its bytes."""


def count_body(ops: Iterable[Operation]) -> BodyCount:
    """Returns the work of one run of `ops`, in program order."""
    ops = list(ops)
    reads = [op for op in ops if isinstance(op, ReadOp)]
    addresses = {a for r in reads for i in r.indices for a in backward_slice(i)}
    work = [op for op in ops if not isinstance(op, (ReadOp, IndexOp, YieldOp, arith.ConstantOp))]
    return BodyCount(
        tuple(op.name for op in work if op not in addresses),
        tuple(op.name for op in work if op in addresses),
        sum(op.name not in MOVES and any(is_float(r.type) for r in op.results) for op in work),
        len(reads),
        sum(r in addresses for r in reads),
        sum(bool(r.guards) for r in reads),
        sum(bool(r.indices) for r in reads),
    )


def count_nest(nest: NestOp, sizes: TypicalSizes) -> NestCount:
    """Returns the work of a nest. Of a tensor read several times, the largest part at typical `sizes` counts."""
    clauses = nest.yield_op.clauses
    read: dict[SSAValue, list[Expr]] = {}
    for op in nest.reads:
        read.setdefault(tensor_behind(op.source), []).append(_touched(nest, op, sizes))
    return NestCount(
        product(a.extent for a in nest.axes),
        count_body(nest.block.ops),
        sum(c.combiner != "none" and is_float(c.value.type) for c in clauses),
        tuple((value, largest(parts, sizes)) for value, parts in read.items()),
        tuple((value, stored_bytes(value.type)) for value in nest.outputs),
    )


def largest(parts: Sequence[Expr], sizes: TypicalSizes) -> Expr:
    """Returns the largest of several numbers of bytes at typical sizes."""
    return max(parts, key=lambda e: sizes.value(e, MEMORY))


def _touched(nest: NestOp, op: ReadOp, sizes: TypicalSizes) -> Expr:
    """Returns the bytes of a tensor read by a nest: one element for each point of the axes in its subscripts, and at
    most the whole tensor."""
    named = {a.name for a in nest.axes} if op.indices else symbols_of(op.subscripts)
    points = product(a.extent for a in nest.axes if a.name in named) * element_bytes(element_of(op.source.type))
    return min(stored_bytes(op.source.type), points, key=lambda e: sizes.value(e, MEMORY))
