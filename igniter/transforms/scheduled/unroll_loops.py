"""`unroll-loops`: replaces a loop with a known trip count by copies of its body.

    loop.for i = 0 to 3 hints {unroll} { ..[i].. }      becomes      ..[0]..  ..[1]..  ..[2]..

A hint `unroll` without a value unrolls fully and needs a constant trip count. `unroll = 4` copies the body four times
and leaves a loop for the remainder. Loops that run once are always replaced by their body (`single = true`). The pass
is the last one on loops: here, subscripts of register buffers become constants.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from igniter.analysis.scheduled.loop_accesses import trip_count
from igniter.dialects.loop import ForOp, FuncOp
from igniter.dialects.sym.expr import Expr, mod
from igniter.errors import IgniterError
from igniter.rewrite_budget import Budget, budget
from igniter.transforms.scheduled.loop_rewrites import (
    AxisNames,
    clone_ops,
    consume,
    substitute_axes,
)


@dataclass(frozen=True)
class UnrollLoops(ModulePass):
    """Unrolls loops with the hint `unroll`, or the loop named by `axis`, and loops of one iteration."""

    name = "unroll-loops"
    one_rewrite = "a loop unrolled"

    axis: str | None = None
    factor: int = 0
    """The unroll factor. 0: fully."""
    single: bool = True

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in [f for f in op.walk() if isinstance(f, FuncOp)]:
            names = AxisNames(func)
            for loop in reversed([x for x in func.walk() if isinstance(x, ForOp)]):
                self._visit(loop, names, budget(ctx, self.name), func.sym_name.data)

    def _visit(self, loop: ForOp, names: AxisNames, rewrites: Budget, func: str) -> None:
        asked = self.axis is not None and loop.axis == self.axis
        factor = self.factor if asked else consume(loop, "unroll").unroll
        single = self.single and loop.grain is None and loop.going is None and trip_count(loop).constant == 1
        # A single iteration whose axis is a value gives that value a name.
        single = single and not loop.indices
        if factor is None and not single:
            return
        if rewrites.take(f"{func}.{loop.axis}", "it is unrolled"):
            unroll(loop, factor or 0, names)


def unroll(loop: ForOp, factor: int, names: AxisNames) -> None:
    """Unrolls one loop, fully if `factor` is 0."""
    block = loop.parent_block()
    assert block is not None
    if loop.going is not None or loop.indices:
        raise IgniterError(f"unroll-loops: loop '{loop.axis}' has an end that is a value of the program")
    trips = trip_count(loop).constant
    if factor == 0 or (trips is not None and trips <= factor):
        if trips is None:
            raise IgniterError(
                f"unroll-loops: loop '{loop.axis}' has {trip_count(loop)} iterations, which is not a constant; tile "
                "it first, or unroll by a factor"
            )
        for op in _copies(loop, trips, names, whole=True):
            block.insert_op_before(op, loop)
        loop.detach()
        loop.erase()
        return
    span = factor * loop.step
    rest = mod(loop.end - loop.first, Expr.of(span))
    if rest != 0:
        axis = names.fresh(loop.axis)
        body = Block(clone_ops(loop.block.ops, names, {loop.axis: Expr.of(axis)}))
        tail = ForOp(axis, loop.end - rest, loop.end, body, step=loop.step, reduction=loop.is_reduction)
        block.insert_op_after(tail, loop)
    ops = _copies(loop, factor, names, whole=False)
    body = Block(ops)
    wide = ForOp(loop.axis, loop.first, loop.end - rest, body, step=span, reduction=loop.is_reduction, grain=loop.grain)
    wide.words = loop.words
    block.insert_op_before(wide, loop)
    loop.detach()
    loop.erase()


def _copies(loop: ForOp, count: int, names: AxisNames, *, whole: bool) -> list[Operation]:
    ops: list[Operation] = []
    base = loop.first if whole else Expr.of(loop.axis)
    originals = list(loop.block.ops)
    for k in range(count):
        if k == count - 1:
            for op in originals:
                op.detach()
            substitute_axes(originals, {loop.axis: base + k * loop.step})
            ops.extend(originals)
        else:
            ops.extend(clone_ops(originals, names, {loop.axis: base + k * loop.step}))
    return ops
