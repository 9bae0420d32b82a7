"""`parallelize-loops`: distributes the iterations of outer loops over the thread pool.

    loop.for b = 0 to batch hints {threads} { loop.for i = 0 to seq { .. } }
becomes
    loop.for bi = 0 to batch*seq threads(64) { ..b := bi floordiv seq, i := bi mod seq.. }

A loop with the hint `threads` (with the option `auto`, any outermost loop with independent iterations) absorbs the loop
in its body, if there is nothing else in it: a batch of one then still has rows to distribute. A loop is parallelised
only with a proof of its independence: no iteration reads or writes an element written by another; otherwise a remark
names the conflict. The grain, in iterations per task, is the hint's value, or large enough to make a task profitable
(`task_cycles`) and to limit the number of tasks to `max_tasks`. Both limits are by default the machine's
(`igniter.analysis.machine`). The pass runs after `sink-loops` and before `vectorize-loops`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.analysis.machine import MachineModel, machine_of
from igniter.analysis.scheduled.loop_accesses import enclosing_loops, ranges_at, shared_element, trip_count
from igniter.analysis.typical_sizes import WORK, typical_of
from igniter.dialects.loop import ForOp, FuncOp
from igniter.dialects.loop.words import without
from igniter.dialects.sym import DimsAttr
from igniter.dialects.sym.expr import ONE, Expr, floordiv, maximum, mod
from igniter.dialects.sym.ranges import is_nonneg
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.schedules.loop_cost import iteration_cycles
from igniter.transforms.scheduled.loop_rewrites import (
    AxisNames,
    consume,
    move_ops,
    substitute_axes,
)


@dataclass(frozen=True)
class ParallelizeLoops(ModulePass):
    """Chooses the loops for the thread pool, and the number of iterations per task."""

    name = "parallelize-loops"
    one_rewrite = "a loop split between threads"

    auto: bool = False
    """Parallelises every outermost loop with independent iterations, with or without a hint."""
    task_cycles: int | None = None
    """The least profitable work of a task; by default the machine's."""
    max_tasks: int | None = None
    """The largest number of tasks; by default the machine's."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        machine = machine_of(ctx)
        if self.task_cycles is not None:
            machine = replace(machine, task_cycles=self.task_cycles)
        if self.max_tasks is not None:
            machine = replace(machine, most_tasks=self.max_tasks)
        for func in [f for f in op.walk() if isinstance(f, FuncOp)]:
            names = AxisNames(func)
            for loop in [x for x in func.walk() if isinstance(x, ForOp)]:
                if loop.parent is None:
                    continue
                grain = consume(loop, "threads").threads
                if grain is None and not self.auto:
                    continue
                if any(outer.grain is not None for outer in enclosing_loops(loop)):
                    continue
                if loop.is_reduction:
                    if grain is not None:
                        raise IgniterError(
                            f"parallelize-loops: @{func.sym_name.data}: loop '{loop.axis}' is a reduction; it cannot "
                            "have 'threads' (split it with split_reduction first)"
                        )
                    continue
                if grain is None and (enclosing_loops(loop) or loop.is_sequential or loop.indices):
                    continue
                met = shared_element(loop)
                if met is not None:
                    # A loop without a proof is still correct on one thread.
                    remark(ctx, self.name, func.sym_name.data, "missed", f"loop '{loop.axis}' stays sequential: {met}")
                    continue
                if not budget(ctx, self.name).take(f"{func.sym_name.data}.{loop.axis}", "it is split between threads"):
                    continue
                while _is_shared(loop, machine) and _coalesce(loop, names):
                    pass
                loop.grain_attr = DimsAttr([grain or _grain(loop, machine)])


def _is_shared(loop: ForOp, machine: MachineModel) -> bool:
    """True if the loop in the body of `loop` has enough work for separate tasks. Otherwise the divisions for its index
    would be wasted."""
    only = loop.block.first_op
    if not isinstance(only, ForOp) or loop.end - loop.first == ONE:
        return True
    if trip_count(only).constant is None and is_nonneg(trip_count(loop) - machine.most_tasks, ranges_at(only)):
        # There are enough tasks without divisions by a size that is known only at run time.
        return False
    cycles = (trip_count(only) * iteration_cycles(only, machine)).constant
    return cycles is None or 4 * cycles > machine.task_cycles


def _grain(loop: ForOp, machine: MachineModel) -> Expr:
    cycles = iteration_cycles(loop, machine)
    # The values of the symbols are a guess, and a grain need not be exact. For a tiled loop the first tile counts.
    axes = {each.axis for each in (*enclosing_loops(loop), *loop.walk()) if isinstance(each, ForOp)}
    typical = max(1, typical_of(loop).value(cycles, WORK, zero=axes))
    enough = max(1, -(-machine.task_cycles // typical))
    return maximum(Expr.of(enough), trip_count(loop).ceildiv(machine.most_tasks))


def _coalesce(loop: ForOp, names: AxisNames) -> bool:
    """Coalesces `loop` with the loop that is its whole body. False if it cannot."""
    only = loop.block.first_op
    if not isinstance(only, ForOp) or only is not loop.block.last_op:
        return False
    if only.is_reduction or only.is_sequential or only.indices or only.step != 1 or loop.step != 1:
        return False
    # Vector and unrolled loops are the inside of a tile.
    if only.words.vector or only.words.unroll is not None:
        return False
    if loop.axis in only.first.symbols | only.end.symbols or loop.words.vector:
        return False
    if shared_element(only) is not None:
        return False
    extent = only.end - only.first
    outer = loop.end - loop.first
    if extent == ONE or outer == ONE:
        values = {loop.axis: loop.first, only.axis: only.first}
        axis = names.fresh(loop.axis if extent == ONE else only.axis)
        kept = loop if extent == ONE else only
        values[kept.axis] = Expr.of(axis) + kept.first
    else:
        axis = names.fresh(f"{loop.axis}{only.axis}")
        values = {
            loop.axis: floordiv(Expr.of(axis), extent) + loop.first,
            only.axis: mod(Expr.of(axis), extent) + only.first,
        }
    ops = list(only.block.ops)
    # Nested parallel loops are distributed once: the outer loop's word replaces that of the inner one.
    words = without(only.words, "threads")
    only.detach()
    move_ops(ops, loop.block)
    only.erase()
    substitute_axes(ops, values)
    loop.properties["axis"] = type(loop.axis_attr)(axis)
    loop.bounds = DimsAttr([0, outer * extent])
    loop.words = words
    return True
