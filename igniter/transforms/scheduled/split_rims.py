"""`split-rims`: runs the iterations in which every guard holds in a loop of their own, without guards.

    loop.for x = 0 to 80 step 8 schedule [interior] {
      %a = loop.load %i[y - 1, 2*x + 2*v - 1] lane v if [y - 1, 2*x + 2*v - 1] else %least : vector<8xf32>
      loop.store %a, %o[y, x + v] lane v
    }
becomes
    loop.for x = 0 to 8 step 8 { the same, with guards }
    loop.for x1 = 8 to 8 + 72*min(1, max(0, y)) step 8 {
      %a = loop.load %i[y - 1, 2*x1 + 2*v - 1] lane v : vector<8xf32>
      loop.store %a, %o[y, x1 + v] lane v
    }
    loop.for x2 = 8 + 72*min(1, max(0, y)) to 80 step 8 { the same, with guards }

A guard costs a mask for each access, but fails only where a window extends past the edge of an image. Guards that grow
or fall along the loop bound the range of the interior; a guard that is the same for all iterations empties the interior
where it fails. Halide calls this loop partitioning. Other guards stay. The pass runs after `unroll-loops`: the elements
of a window have constant places by then, and their guards are linear in the loop's axis.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass, field

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block
from xdsl.passes import ModulePass

from igniter.analysis.scheduled.loop_accesses import enclosing_loops, ranges_at, vector_width
from igniter.dialects.loop import ForOp, FuncOp, LoadOp, MemoryOp
from igniter.dialects.sym import DimsAttr
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, maximum, minimum
from igniter.dialects.sym.ranges import is_nonneg, simplify
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.scheduled.loop_rewrites import AxisNames, clone_ops, consume
from igniter.transforms.structured.nest_rewriting import replace_op


@dataclass(frozen=True)
class SplitRims(ModulePass):
    """Splits loops with the word `interior` (or the loop named by `axis`) where their guards hold."""

    name = "split-rims"
    one_rewrite = "a loop split"

    axis: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in [f for f in op.walk() if isinstance(f, FuncOp)]:
            names = AxisNames(func)
            for loop in [x for x in func.walk() if isinstance(x, ForOp)]:
                if not consume(loop, "interior").interior and loop.axis != self.axis:
                    continue
                found, where = interior_of(loop), f"{func.sym_name.data}.{loop.axis}"
                if found is None:
                    remark(ctx, self.name, where, "missed", "it has no guard that bounds an interior")
                elif budget(ctx, self.name).take(where, "its interior has no guards"):
                    split(loop, found, names)


@dataclass
class Interior:
    """The iterations of a loop in which `dropped` hold: those from `first` to `end`, excluded."""

    first: Expr
    end: Expr
    dropped: dict[MemoryOp, set[int]] = field(default_factory=dict[MemoryOp, set[int]])


def interior_of(loop: ForOp) -> Interior | None:
    """Returns the interior of a loop; `None` if it has no guards to drop, or no iterations that are the same."""
    if loop.is_reduction or loop.is_sequential or loop.indices or loop.going is not None or loop.grain is not None:
        return None
    ranges = ranges_at(loop)
    dropped: dict[MemoryOp, set[int]] = {}
    least: list[Expr] = []
    most: list[Expr] = []
    same: list[Expr] = []
    for op in loop.walk():
        if not isinstance(op, MemoryOp) or op.indices or enclosing_loops(op)[-1] is not loop:
            continue
        for k, guard in enumerate(op.guards):
            bound = _at_worst_lane(guard, op)
            slope = None if bound is None else bound.coefficient(loop.axis)
            if bound is None or slope is None or slope.constant is None:
                continue
            dropped.setdefault(op, set()).add(k)
            rest = bound.without(loop.axis)
            if slope == ZERO:
                same.append(rest)
            elif slope.constant > 0:
                least.append((-rest).ceildiv(slope))
            else:
                most.append(floordiv(rest, -slope))
    if not dropped:
        return None
    step, trips = Expr.of(loop.step), (loop.end - loop.first).ceildiv(Expr.of(loop.step))
    first = minimum(trips, maximum(ZERO, *((x - loop.first).ceildiv(step) for x in least)))
    end = minimum(trips, *(floordiv(x - loop.first, step) + 1 for x in most))
    count = maximum(ZERO, end - first)
    open_ = [x for x in dict.fromkeys(same) if not is_nonneg(x, ranges)]
    if open_:
        count = count * minimum(ONE, maximum(ZERO, minimum(*open_) + 1))
    begin = simplify(loop.first + first * step, ranges)
    return Interior(begin, simplify(begin + count * step, ranges), dropped)


def _at_worst_lane(guard: Expr, op: MemoryOp) -> Expr | None:
    """Returns the least value of a guard over the lanes of an access, if it is linear in them."""
    if op.lane is None or op.lane not in guard.symbols:
        return guard
    slope = guard.coefficient(op.lane)
    if slope is None or slope.constant is None:
        return None
    return guard.without(op.lane) + min(0, slope.constant * (vector_width(op) - 1))


def split(loop: ForOp, interior: Interior, names: AxisNames) -> None:
    """Splits a loop into the iterations before its interior, the interior, and those after it."""
    block = loop.parent_block()
    assert block is not None
    inside = _piece(loop, names, interior.first, interior.end)
    for op, copy in zip(list(loop.walk()), list(inside.walk()), strict=True):
        if isinstance(op, MemoryOp) and isinstance(copy, MemoryOp) and op in interior.dropped:
            _drop_guards(copy, interior.dropped[op])
    pieces = [_piece(loop, names, loop.first, interior.first), inside, _piece(loop, names, interior.end, loop.end)]
    for piece in pieces:
        if piece.end != piece.first:
            block.insert_op_before(piece, loop)
        else:
            # It would stay a user of its buffers.
            piece.erase()
    loop.detach()
    loop.erase()


def _piece(loop: ForOp, names: AxisNames, first: Expr, end: Expr) -> ForOp:
    """Returns a copy of a loop with other bounds."""
    axis = names.fresh(loop.axis)
    body = Block(clone_ops(loop.block.ops, names, {loop.axis: Expr.of(axis)}))
    return ForOp(axis, first, end, body, step=loop.step, words=loop.words)


def _drop_guards(op: MemoryOp, dropped: Set[int]) -> None:
    kept = [guard for k, guard in enumerate(op.guards) if k not in dropped]
    if isinstance(op, LoadOp) and not kept:
        replace_op(op, LoadOp(op.accessed, op.subscripts, op.result.type, indices=op.indices, lane=op.lane))
        return
    op.properties["guards"] = DimsAttr(kept)
