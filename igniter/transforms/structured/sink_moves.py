"""Merging of moves into the producer, for direct writes to the destination (a part of `inline-nests`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from igniter.dialects.loop import Clause, NestOp, ReadOp, ViewOp
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, Expr
from igniter.dialects.sym.reindexing import count_divisions, invert, reindex
from igniter.transforms.structured.nest_cloning import substituted
from igniter.transforms.structured.nest_rewriting import set_clauses


@dataclass(frozen=True)
class Move:
    """A nest of mere movement from one tensor without other readers, and the writer of the tensor."""

    clause: Clause
    read: ReadOp
    views: tuple[ViewOp, ...]
    source: SSAValue
    writer: NestOp


def move_of(nest: NestOp) -> Move | None:
    """Returns `nest` as a move; None if it is none."""
    if nest.schedule is not None or len(nest.outputs) != 1:
        return None
    clause = nest.yield_op.clauses[0]
    read = clause.value.owner
    if not isinstance(read, ReadOp) or read.guards or read.indices or clause.combiner != "none":
        return None
    views: list[ViewOp] = []
    source = read.source
    while isinstance(source.owner, ViewOp):
        views.append(source.owner)
        source = source.owner.source
    writer = source.owner
    if not isinstance(writer, NestOp) or writer.schedule is not None:
        return None
    if element_of(source.type) != element_of(nest.outputs[0].type):
        return None
    alone = all(v.has_one_use() for v in (source, *(v.result for v in views)))
    return Move(clause, read, tuple(views[::-1]), source, writer) if alone else None


def sink(nest: NestOp, runs_along: Callable[[NestOp], str | None] = lambda _: None) -> str | None:
    """Makes the producer of the elements moved by `nest` write them to their destination. Returns the producer's label.

    None if `nest` is no such move, if divisions would remain, or if the innermost axis would change, unless it becomes
    the axis from `runs_along` of the writer: otherwise the writer would store with strides.
    """
    move = move_of(nest)
    if move is None:
        return None
    writer, clauses = move.writer, move.writer.yield_op.clauses
    index = next(k for k, r in enumerate(writer.outputs) if r is move.source)
    ranges, before = writer.axes_attr.ranges, clauses[index]
    if before.otherwise is not None:
        return None
    at: Sequence[Expr] = before.subscripts
    for view in move.views:
        at = reindex(at, dims_of(view.source.type), dims_of(view.result.type), ranges)
    extents = {a.name: a.extent for a in nest.axes}
    values = invert(move.read.subscripts, at, dims_of(move.read.source.type), extents)
    if isinstance(values, str):
        return None
    where = [substituted(e, values, ranges) for e in move.clause.subscripts]
    divisions = sum(map(count_divisions, where)) - sum(map(count_divisions, before.subscripts))
    inner = innermost(where, writer)
    if divisions > 0 or (
        inner != innermost(before.subscripts, writer) and (inner is None or inner != runs_along(writer))
    ):
        return None
    clauses[index] = Clause(before.combiner, before.value, where, move.clause.otherwise)
    set_clauses(writer.yield_op, clauses)
    written = Rewriter.replace_value_with_new_type(move.source, nest.outputs[0].type)
    nest.outputs[0].replace_all_uses_with(written)
    for op in (nest, *move.views[::-1]):
        op.detach()
        op.erase()
    return writer.label


def innermost(subscripts: Sequence[Expr], nest: NestOp) -> str | None:
    """Returns the axis of contiguous writes, or None."""
    for subscript in reversed(subscripts):
        names = [a.name for a in nest.axes if a.name in subscript.symbols]
        if names:
            return next((n for n in names if subscript.coefficient(n) == ONE), None)
    return None
