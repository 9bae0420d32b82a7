"""How far threads can share the work of a compiled model, on paper: `igniter.schedules.task_chains` for its programs.

The calls of a program run one after the other, and so do the programs of a model. Nodes of ONNX Runtime are not
counted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from igniter.analysis.scheduled.loop_accesses import trip_count
from igniter.dialects.loop import CallOp, ForOp
from igniter.schedules.task_chains import KernelTasks, TaskWork

if TYPE_CHECKING:
    from xdsl.ir import Operation

    from igniter.compiler.compilation import Compilation
    from igniter.dialects.fusion import ProgramOp
    from igniter.dialects.loop import FuncOp
    from igniter.dialects.sym.expr import Expr

THREADS = (2, 4, 8, 16, 32)
"""The numbers of threads shown."""


@dataclass(frozen=True)
class KernelWork:
    """All calls of one kernel: the number of calls, and for each kind of call its number and its work in cycles."""

    kernel: str
    calls: tuple[tuple[int, TaskWork], ...]

    @property
    def total(self) -> int:
        """The cycles on one thread."""
        return self.on(1)

    @property
    def chain(self) -> int:
        """The cycles of the longest chain of tasks."""
        return sum(count * work.chain for count, work in self.calls)

    def on(self, threads: int) -> int:
        """Returns the cycles on a number of threads."""
        return sum(count * work.on(threads) for count, work in self.calls)

    def gain(self, threads: int) -> float:
        """Returns the time on one thread by the time on `threads`."""
        return self.total / self.on(threads) if self.total else 1.0


@dataclass(frozen=True)
class ThreadPlan:
    """The work of a model's programs by kernel, the largest first."""

    kernels: tuple[KernelWork, ...]

    @property
    def chain(self) -> float:
        """The longest chain of tasks as a share of the work: 1 divided by it is the most that threads can gain."""
        total = sum(k.total for k in self.kernels)
        return sum(k.chain for k in self.kernels) / total if total else 1.0

    def gain(self, threads: int) -> float:
        """Returns the time on one thread by the time on `threads`."""
        time = sum(k.on(threads) for k in self.kernels)
        return sum(k.total for k in self.kernels) / time if time else 1.0


def thread_plan(
    c: Compilation, programs: Sequence[tuple[ProgramOp, FuncOp]], sizes: Mapping[str, int]
) -> ThreadPlan | None:
    """Returns the work of programs for sizes of the model's symbols; `None` if there are no programs, or for a GPU. A
    size that depends on data counts as 1."""
    tasks = {k.name: KernelTasks.from_dict(k.tasks) for k in c.kernels if k.tasks is not None}
    calls = [call for _, func in programs for call in _calls(func)]
    if not calls or any(call.callee not in tasks for call in calls):
        return None
    found: dict[str, list[tuple[int, TaskWork]]] = {}
    for call in calls:
        kernel = tasks[call.callee]
        values = (_value(e, sizes) for e in call.symbols)
        work = kernel.at(dict(zip(kernel.symbols, values, strict=True)))
        found.setdefault(call.callee, []).append((_runs(call, sizes), work))
    kernels = [KernelWork(name, tuple(each)) for name, each in found.items()]
    return ThreadPlan(tuple(sorted(kernels, key=lambda k: -k.total)))


def _calls(func: FuncOp) -> Iterable[CallOp]:
    return (op for op in func.walk() if isinstance(op, CallOp))


def _runs(call: CallOp, sizes: Mapping[str, int]) -> int:
    """Returns the number of runs of a call in the loops around it."""
    runs = 1
    op: Operation | None = call.parent_op()
    while op is not None:
        if isinstance(op, ForOp):
            runs *= _value(trip_count(op), sizes)
        op = op.parent_op()
    return runs


def _value(e: Expr, sizes: Mapping[str, int]) -> int:
    return e.evaluate({name: sizes.get(name, 1) for name in e.symbols})
