"""Letting the nest that writes a tensor write it where another only moves it to (a part of `inline-nests`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects.arith import ConstantOp
from xdsl.ir import SSAValue
from xdsl.rewriter import Rewriter

from igniter.dialects.loop import Clause, NestOp, ReadOp, ViewOp
from igniter.dialects.loop.bodies import Number, as_number
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, Expr
from igniter.dialects.sym.proofs import proven
from igniter.dialects.sym.ranges import Ranges
from igniter.dialects.sym.reindexing import count_divisions, invert, reindex
from igniter.transforms.structured.nest_cloning import substituted
from igniter.transforms.structured.nest_rewriting import set_clauses, zero


@dataclass(frozen=True)
class Move:
    """A nest that only moves the elements of one tensor, which nothing else reads, and the nest that writes them."""

    clause: Clause
    read: ReadOp
    views: tuple[ViewOp, ...]
    source: SSAValue
    writer: NestOp
    fill: Number | None
    """What it puts around the elements that it moves; None: nothing."""


def move_of(nest: NestOp) -> Move | None:
    """`nest` as a move."""
    if nest.schedule is not None or len(nest.outputs) != 1:
        return None
    clause = nest.yield_op.clauses[0]
    read = clause.value.owner
    if not isinstance(read, ReadOp) or read.indices or clause.combiner != "none" or clause.otherwise is not None:
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
    fill = _fill(read) if read.guards else None
    alone = all(v.has_one_use() for v in (source, *(v.result for v in views)))
    if not alone or (read.guards and (fill is None or views or not _guards_the_source(read))):
        return None
    return Move(clause, read, tuple(views[::-1]), source, writer, fill)


def _fill(read: ReadOp) -> Number | None:
    """The number that a read has where its guards fail; None where that is no number."""
    if read.otherwise is None:
        return as_number(zero(read.result.type).value)
    owner = read.otherwise.owner
    return as_number(owner.value) if isinstance(owner, ConstantOp) else None


def _guards_the_source(read: ReadOp) -> bool:
    """Whether the guards of a read ask for nothing else than that its subscripts are inside of the tensor."""
    dims = dims_of(read.source.type)
    inside = {e for s, d in zip(read.subscripts, dims, strict=True) for e in (s, d - 1 - s)}
    return inside.issuperset(read.guards)


def sink(nest: NestOp) -> str | None:
    """Lets the nest that writes what `nest` moves write it where it is moved to. The label of that writer.

    None where `nest` is no such move, where divisions would be left, or where the innermost axis would change: then the
    writer would store with strides.
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
    if move.fill is None:
        values = invert(move.read.subscripts, at, dims_of(move.read.source.type), extents)
    else:
        values = _shifted(move.read.subscripts, at, extents)
    if values is None or isinstance(values, str):
        return None
    where = [substituted(e, values, ranges) for e in move.clause.subscripts]
    if move.fill is not None and not _is_inside(where, nest, ranges):
        return None
    divisions = sum(map(count_divisions, where)) - sum(map(count_divisions, before.subscripts))
    if divisions > 0 or innermost(where, writer) != innermost(before.subscripts, writer):
        return None
    clauses[index] = Clause(before.combiner, before.value, where, move.fill)
    set_clauses(writer.yield_op, clauses)
    written = Rewriter.replace_value_with_new_type(move.source, nest.outputs[0].type)
    nest.outputs[0].replace_all_uses_with(written)
    for op in (nest, *move.views[::-1]):
        op.detach()
        op.erase()
    return writer.label


def _shifted(read: Sequence[Expr], at: Sequence[Expr], extents: Mapping[str, Expr]) -> dict[str, Expr] | None:
    """The point of a move that reads the element `at`, where each subscript is one axis and a shift; None otherwise."""
    values: dict[str, Expr] = {}
    for subscript, element in zip(read, at, strict=True):
        axes = subscript.symbols & extents.keys()
        if not axes and subscript == element:
            continue
        if len(axes) != 1 or subscript.coefficient(min(axes)) != ONE:
            return None
        values[min(axes)] = element - subscript.without(min(axes))
    return values if values.keys() == {n for n, e in extents.items() if e != ONE} else None


def _is_inside(where: Sequence[Expr], nest: NestOp, ranges: Ranges) -> bool:
    """Whether all that is written is inside of the result of a move: nothing that it reads is cut off."""
    dims = dims_of(nest.outputs[0].type)
    return all(proven(e, ranges) and proven(d - 1 - e, ranges) for e, d in zip(where, dims, strict=True))


def innermost(subscripts: Sequence[Expr], nest: NestOp) -> str | None:
    """The axis along which neighbouring elements are written."""
    for subscript in reversed(subscripts):
        names = [a.name for a in nest.axes if a.name in subscript.symbols]
        if names:
            return next((n for n in names if subscript.coefficient(n) == ONE), None)
    return None
