"""The tasks of a scheduled kernel, and how far threads can share them: the longest chain of tasks.

A kernel is a sequence of steps. A loop on the thread pool is a step of tasks that any threads may run at the same time;
the rest runs on one thread. Steps run one after the other, so a kernel takes at least the time of its *longest chain*:
the work of one thread, and the longest task of each loop. By Brent's bound (1974) the work divided by the longest chain
is the most that any number of threads can gain.

Tasks of a loop are counted as equally long, and are taken one by one by the next free thread. The figures leave out the
hand-over of tasks, and the bandwidth of memory and of caches, which threads share.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from igniter.analysis.scheduled.loop_accesses import trip_count
from igniter.dialects.loop import ForOp, FuncOp, IfOp, IfSharedOp, LaunchOp
from igniter.dialects.sym.expr import ONE, ZERO, Expr
from igniter.schedules.loop_cost import iteration_cycles, op_cycles

if TYPE_CHECKING:
    from xdsl.ir import Block

    from igniter.analysis.machine import MachineModel


@dataclass(frozen=True)
class SharedLoop:
    """A loop on the thread pool."""

    runs: Expr
    """The number of runs of the loop in one run of its kernel."""
    iterations: Expr
    grain: Expr
    """The iterations of a task."""
    cycles: Expr
    """The cycles of an iteration."""


@dataclass(frozen=True)
class KernelTasks:
    """The work of one run of a kernel; all figures are expressions over `symbols`."""

    symbols: tuple[str, ...]
    alone: Expr
    """The cycles outside all shared loops."""
    loops: tuple[SharedLoop, ...]

    def at(self, sizes: Mapping[str, int]) -> TaskWork:
        """Returns the work for sizes of all symbols."""

        def value(e: Expr) -> int:
            # A bound that depends on an outer axis is that of the first tile.
            return e.evaluate({name: sizes.get(name, 0) for name in e.symbols})

        loops = [(value(x.runs), value(x.iterations), max(1, value(x.grain)), value(x.cycles)) for x in self.loops]
        return TaskWork(value(self.alone), tuple(x for x in loops if x[0] > 0 and x[1] > 0))

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values; expressions are text."""
        loops = [[str(x.runs), str(x.iterations), str(x.grain), str(x.cycles)] for x in self.loops]
        return {"symbols": list(self.symbols), "alone": str(self.alone), "loops": loops}

    @staticmethod
    def from_dict(said: Mapping[str, Any]) -> KernelTasks:
        """Reads what `to_dict` returned."""
        loops = tuple(SharedLoop(*map(Expr.parse, texts)) for texts in said["loops"])
        return KernelTasks(tuple(said["symbols"]), Expr.parse(said["alone"]), loops)


@dataclass(frozen=True)
class TaskWork:
    """The work of a kernel for known sizes, in cycles."""

    alone: int
    loops: tuple[tuple[int, int, int, int], ...]
    """Runs, iterations, iterations of a task, cycles of an iteration."""

    @property
    def total(self) -> int:
        """The cycles on one thread."""
        return self.on(1)

    @property
    def chain(self) -> int:
        """The cycles of the longest chain."""
        return self.alone + sum(runs * min(grain, count) * cycles for runs, count, grain, cycles in self.loops)

    def on(self, threads: int) -> int:
        """Returns the cycles on a number of threads."""
        return self.alone + sum(
            runs * _longest(count, grain, threads) * cycles for runs, count, grain, cycles in self.loops
        )


def _longest(count: int, grain: int, threads: int) -> int:
    """Returns the iterations of the thread with the most of them. The last task of a loop may be shorter."""
    tasks, rest = divmod(count, grain)
    rounds, more = divmod(tasks, threads)
    return rounds * grain + (grain if more else rest)


def kernel_tasks(func: FuncOp, machine: MachineModel) -> KernelTasks | None:
    """Returns the tasks of a scheduled kernel; `None` if it launches programs on a GPU."""
    if any(isinstance(op, LaunchOp) for op in func.walk()):
        return None
    loops: list[SharedLoop] = []
    alone = _collect(func.block, ONE, machine, loops)
    return KernelTasks(tuple(s.data for s in func.symbols), alone, tuple(loops))


def _collect(block: Block, runs: Expr, machine: MachineModel, loops: list[SharedLoop]) -> Expr:
    """Adds the shared loops in a block that runs `runs` times; returns the cycles of the rest."""
    alone = ZERO
    for op in block.ops:
        if isinstance(op, ForOp) and op.grain is not None:
            loops.append(SharedLoop(runs, trip_count(op), op.grain, iteration_cycles(op, machine)))
        elif isinstance(op, ForOp) and _shares(op.block):
            alone += _collect(op.block, runs * trip_count(op), machine, loops)
        elif isinstance(op, IfOp):
            alone += _collect(op.block, runs, machine, loops)
        elif isinstance(op, IfSharedOp):
            alone += _collect(op.apart.block, runs, machine, loops)
        else:
            alone += runs * op_cycles(op, machine)
    return alone


def _shares(block: Block) -> bool:
    return any(isinstance(op, ForOp) and op.grain is not None for op in block.walk())
