"""`prefetch-loops`: prefetches the cache lines of a loop at the start of the body around it.

    loop.for t = 0 to 1792 {
      loop.tile_product %sums[..] = ..
      loop.for i = 0 to 14 schedule [prefetch] { loop.for j = 0 to 32 schedule [vector 16] { .. %x[14*t + i, j] .. } }
    }
becomes
    loop.for t = 0 to 1792 {
      loop.for p = 0 to 14 { loop.for q = 0 to 32 step 16 { loop.prefetch %x[14*t + p, q] } }
      loop.tile_product %sums[..] = ..
      loop.for i = 0 to 14 { loop.for j = 0 to 32 schedule [vector 16] { .. %x[14*t + i, j] .. } }
    }

A tile of sums takes time in which memory is idle; the data read and written after it, a residual and the result, come
from main memory. Data local to the body, or the same in all iterations of the loop, is already in the cache. A
contained, contiguous loop steps from line to line. If no statement precedes a loop with the hint, because another nest
of the same schedule was not fused with it, nothing is prefetched, with a remark. The pass runs after `sink-loops`, when
the bodies of tiles are final.

With the word `ahead 8` a loop prefetches what its body reads 8 iterations later from operands of the func:

    loop.for k = 0 to 16 reduction { loop.prefetch %w[p, k + 8, 0] .. loop.for l = 0 to 16 { .. %w[p, k, l] .. } }

It may lie in the next iteration of a loop around, or behind the operand. The processor prefetches within a page, so a
sum over rows of a page or less waits for the first lines of each.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.machine import machine_of
from igniter.analysis.scheduled.loop_accesses import base_of
from igniter.dialects.loop import AllocOp, ForOp, FuncOp, LoadOp, MemoryOp, PrefetchOp, ViewOp, element_bytes
from igniter.dialects.loop.words import NO_WORDS, LoopWords
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, Expr, linearize, symbols_of
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.scheduled.loop_rewrites import AxisNames, consume, loops_in, substitute_axes

UNROLLED = 8
"""The most unrolled prefetches of a row."""


@dataclass(frozen=True)
class PrefetchLoops(ModulePass):
    """Prefetches the lines of loops with the word `prefetch` (or of the loop named by `axis`) before preceding
    statements."""

    name = "prefetch-loops"
    one_rewrite = "a loop whose data is prefetched"

    axis: str | None = None

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        line = machine_of(ctx).line_bytes
        for func in [f for f in op.walk() if isinstance(f, FuncOp)]:
            names = AxisNames(func)
            for loop in loops_in(func):
                ahead = consume(loop, "ahead").ahead
                if ahead and budget(ctx, self.name).take(f"{func.sym_name.data}.{loop.axis}", "it prefetches ahead"):
                    fetch_ahead(loop, ahead, line)
                if not consume(loop, "prefetch").prefetch and loop.axis != self.axis:
                    continue
                where, first = f"{func.sym_name.data}.{loop.axis}", _first_statement(loop)
                if first is loop:
                    alone = f"no statement precedes loop '{loop.axis}', so a prefetch has nothing to overlap with"
                    if self.axis is not None:
                        raise IgniterError(f"prefetch-loops: {alone}")
                    remark(ctx, self.name, where, "missed", alone)
                elif budget(ctx, self.name).take(where, "its data is prefetched"):
                    fetch(loop, first, names, line)


def _first_statement(loop: ForOp) -> Operation:
    """Returns the first op in the body around a loop that executes anything."""
    block = loop.parent_block()
    assert block is not None
    return next(op for op in block.ops if not isinstance(op, (AllocOp, ViewOp)) and op.name != "arith.constant")


def fetch(loop: ForOp, first: Operation, names: AxisNames, line: int) -> None:
    """Inserts a nest of prefetches for the lines of `loop` before `first`, in the same body."""
    block = loop.parent_block()
    assert block is not None
    near = {op.result for op in loop.walk() if isinstance(op, AllocOp)}
    near.update(op.result for op in block.ops if isinstance(op, AllocOp))
    wanted: dict[tuple[SSAValue, tuple[Expr, ...]], _Line] = {}
    for op in loop.walk():
        if isinstance(op, MemoryOp) and _is_far(op, loop) and base_of(op.accessed) not in near:
            key = (op.accessed, op.subscripts)
            writes = not isinstance(op, LoadOp) or (key in wanted and wanted[key].writes)
            wanted[key] = _Line(op, writes)
    if wanted:
        block.insert_op_before(_nest(loop, list(wanted.values()), names, line), first)


def fetch_ahead(loop: ForOp, count: int, line: int) -> None:
    """Inserts prefetches of the lines that the body of `loop` reads `count` iterations later from arguments of the
    func. What every iteration of the loops around reads is in the cache already."""
    around = _axes_around(loop)
    found: dict[tuple[SSAValue, tuple[Expr, ...]], None] = {}
    for op in loop.walk():
        if not isinstance(op, LoadOp) or not isinstance(base_of(op.accessed), BlockArgument) or not _is_far(op, loop):
            continue
        if around and not around & symbols_of(op.subscripts):
            continue
        places = [op.subscripts]
        below = op.parent_op()
        while isinstance(below, ForOp) and below is not loop:
            starts = _line_starts(op, below, line)
            places = [tuple(e.substitute({below.axis: at}) for e in place) for place in places for at in starts]
            below = below.parent_op()
        later = {loop.axis: Expr.of(loop.axis) + count * loop.step}
        found.update(((op.accessed, tuple(e.substitute(later) for e in place)), None) for place in places)
    first = loop.block.first_op
    for buffer, place in found:
        fetched = PrefetchOp(buffer, place)
        if first is None:
            loop.block.add_op(fetched)
        else:
            loop.block.insert_op_before(fetched, first)


def _axes_around(loop: ForOp) -> set[str]:
    found: set[str] = set()
    parent = loop.parent_op()
    while parent is not None:
        if isinstance(parent, ForOp):
            found.add(parent.axis)
        parent = parent.parent_op()
    return found


def _line_starts(op: MemoryOp, loop: ForOp, line: int) -> list[Expr]:
    """Returns the iterations of an inner loop that begin a line; only the first one if there are many or an unknown
    number."""
    step, count = loop.step * _iterations_of_a_line(op, loop, line), (loop.end - loop.first).constant
    starts = 1 if count is None else -(-count // step)
    return [loop.first + k * step for k in range(starts if starts <= UNROLLED else 1)]


@dataclass(frozen=True)
class _Line:
    """The lines of an access, and if it writes there."""

    op: MemoryOp
    writes: bool


def _is_far(op: MemoryOp, loop: ForOp) -> bool:
    """True if each iteration of `loop` accesses another place, and the address does not depend on values that the body
    computes."""
    if op.indices or op.lane is not None or not any(loop.axis in e.symbols for e in op.subscripts):
        return False
    below: Operation | None = op.parent_op()
    while below is not loop:
        if not isinstance(below, ForOp) or below.indices or below.going is not None:
            return False
        below = below.parent_op()
    return True


def _nest(loop: ForOp, lines: list[_Line], names: AxisNames, line: int) -> ForOp:
    """Returns a copy of `loop` and the loops in it, around the prefetches of `lines`."""
    block = Block()
    axis = names.fresh(loop.axis)
    inner = [op for op in loop.block.ops if isinstance(op, ForOp)]
    for access in lines:
        if access.op.parent_op() is loop:
            block.add_op(PrefetchOp(access.op.accessed, access.op.subscripts, writes=access.writes))
    for below in inner:
        found = [access for access in lines if _is_below(access.op, below)]
        if found:
            block.add_op(_nest(below, found, names, line))
    step = loop.step * min(_iterations_of_a_line(access.op, loop, line) for access in lines)
    count = (loop.end - loop.first).constant
    few = count is not None and 1 < -(-count // step) <= UNROLLED
    words = LoopWords(unroll=0) if few and not any(isinstance(op, ForOp) for op in block.ops) else NO_WORDS
    made = ForOp(axis, loop.first, loop.end, block, step=step, words=words)
    substitute_axes(list(block.ops), {loop.axis: Expr.of(axis)})
    return made


def _is_below(op: Operation, loop: ForOp) -> bool:
    return any(inner is op for inner in loop.walk())


def _iterations_of_a_line(op: MemoryOp, loop: ForOp, line: int) -> int:
    """Returns the number of iterations of `loop` in one line: 1 if it is not contiguous in memory."""
    stride = linearize(op.subscripts, dims_of(op.accessed.type)).coefficient(loop.axis)
    return max(1, line // element_bytes(element_of(op.accessed.type))) if stride == ONE else 1
