"""`form-rims`: shrinks a nest with values in a box, and one constant around it, to the box.

    %p = loop.nest "pad" [y: parallel 58, x: parallel 58, c: parallel 64] -> tensor<58x58x64xf32> {
      %a = loop.read %x[y - 1, x - 1, c] if [y - 1, -y + 56, x - 1, -x + 56] : f32
      loop.yield none %a at [y, x, c]
    }

becomes

    %p = loop.nest "pad" [y: parallel 56, x: parallel 56, c: parallel 64] -> tensor<58x58x64xf32> {
      %a = loop.read %x[y, x, c] : f32
      loop.yield none %a at [y + 1, x + 1, c] else 0.0 : f32
    }

Guards with the same value for a whole row cost more than the row. Here none remains, and separate loops fill the rim. A
value computed from a guarded read has a select in place of the guard; it is removed too. A nest before this one may
then write directly into the box (`order-dims`). The pass runs after `inline-nests`, which has by then folded nests into
this one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.loop import Axis, Clause, IndexOp, KernelOp, NestOp, ReadOp, YieldOp
from igniter.dialects.loop.bodies import Number, as_number
from igniter.dialects.sym.expr import ONE, ZERO, Expr
from igniter.dialects.sym.ranges import is_nonneg
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.structured.canonicalize_loop import canonicalize_body
from igniter.transforms.structured.nest_rewriting import constant_int, replace_op, substitute_axes, zero

Box = dict[str, tuple[Expr, Expr]]
"""The first and the last value of each axis."""


@dataclass(frozen=True)
class FormRims(ModulePass):
    """Shrinks nests with a constant rim to the box inside it."""

    name = "form-rims"
    one_rewrite = "a nest restricted to the box that it computes"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            for nest in kernel.nests:
                found = rim_of(nest)
                if found is not None and budget(ctx, self.name).take(nest.label, "it is restricted to its box"):
                    shrink(nest, found)
                    remark(ctx, self.name, nest.label, "applied", "it no longer runs over its padding")


@dataclass(frozen=True)
class Rim:
    """The constant around a box of a nest's domain, and the box."""

    number: Number
    value: SSAValue
    """The value inside the box."""
    box: Box


def rim_of(nest: NestOp) -> Rim | None:
    """Returns the rim of a nest with one result; None if it has no rim."""
    clauses = nest.yield_op.clauses
    if nest.schedule is not None or len(clauses) != 1 or any(a.kind == "reduction" for a in nest.axes):
        return None
    (clause,) = clauses
    found = _chosen(clause.value) if clause.combiner == "none" and clause.otherwise is None else None
    if found is None:
        return None
    value, number, guards = found
    box = _box(nest, guards)
    return None if box is None else Rim(number, value, box)


def _chosen(value: SSAValue) -> tuple[SSAValue, Number, Sequence[Expr]] | None:
    """Returns the value where the guards hold, the constant elsewhere, and the guards."""
    owner = value.owner
    if isinstance(owner, ReadOp) and owner.guards and not owner.indices:
        number = as_number(zero(value.type).value) if owner.otherwise is None else _number(owner.otherwise)
        return None if number is None else (value, number, owner.guards)
    if isinstance(owner, arith.SelectOp):
        number, guards = _number(owner.rhs), list(_conditions(owner.cond))
        if number is not None and None not in guards:
            return owner.lhs, number, [g for g in guards if g is not None]
    return None


def _number(value: SSAValue) -> Number | None:
    owner = value.owner
    return as_number(owner.value) if isinstance(owner, arith.ConstantOp) else None


def _conditions(value: SSAValue) -> Iterator[Expr | None]:
    """Yields the expressions that must be >= 0 for a condition to hold; None for any other condition."""
    owner = value.owner
    if isinstance(owner, arith.AndIOp):
        yield from _conditions(owner.lhs)
        yield from _conditions(owner.rhs)
    elif isinstance(owner, arith.CmpiOp) and owner.predicate.value.data == AT_LEAST and constant_int(owner.rhs) == 0:
        index = owner.lhs.owner
        yield index.value if isinstance(index, IndexOp) else None
    else:
        yield None


AT_LEAST = 5
"""The number of `sge` among arith's predicates."""


def _box(nest: NestOp, guards: Sequence[Expr]) -> Box | None:
    """Returns the box in which the guards hold, if each bounds one axis; None if they form no box or it is not
    proven."""
    extents = {a.name: a.extent for a in nest.axes}
    box: Box = {}
    for guard in guards:
        axes = guard.symbols & extents.keys()
        if len(axes) != 1:
            return None
        (axis,) = axes
        sign, rest = guard.coefficient(axis), guard.without(axis)
        first, last = box.get(axis, (ZERO, extents[axis] - 1))
        if sign == ONE and first in (ZERO, -rest):
            box[axis] = -rest, last
        elif sign == -1 and last in (extents[axis] - 1, rest):
            box[axis] = first, rest
        else:
            return None
    inside = (e for n, (first, last) in box.items() for e in (first, extents[n] - 1 - last, last - first + 1))
    return box if box and all(is_nonneg(e) for e in inside) else None


def shrink(nest: NestOp, rim: Rim) -> None:
    """Shrinks a nest to the box inside its rim."""
    owner = rim.value.owner
    value = rim.value
    if isinstance(owner, ReadOp) and nest.yield_op.clauses[0].value is value:
        read = ReadOp(owner.source, owner.subscripts)
        replace_op(owner, read)
        value = read.result
    (clause,) = nest.yield_op.clauses
    old = nest.yield_op
    nest.block.insert_op_before(YieldOp([Clause("none", value, clause.subscripts, rim.number)]), old)
    old.detach()
    old.erase()
    moved = {name: Expr.of(name) + first for name, (first, _) in rim.box.items() if first != ZERO}
    axes = [
        Axis(a.name, rim.box[a.name][1] - rim.box[a.name][0] + 1, a.kind) if a.name in rim.box else a for a in nest.axes
    ]
    substitute_axes(nest, axes, moved)
    canonicalize_body(nest)
