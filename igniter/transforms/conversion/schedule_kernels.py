"""`schedule-kernels`: runs a pipeline over every kernel separately.

    loop.kernel @r0 symbols [n] (..) -> (..) { .. }
    loop.kernel @r1 symbols [n] (..) -> (..) { .. }

becomes, by `cpu-schedule`,

    loop.func @r0 symbols [n] (..) outputs 1 scratch(..) { .. }
    loop.func @r1 symbols [n] (..) outputs 1 scratch(..) { .. }

Each kernel is in its own module while `passes` run over it, so that the result depends on nothing else and can be
cached by the kernel's text. Observers of the outer run see these passes (`igniter.observation`). A refused kernel fails
alone (`igniter.isolation`): its regions are marked, and `inline-failed-regions` inlines them.

With `tuned`, a database of schedules, `apply-tuned-schedules` applies its schedules; if passes refuse one, the kernel
is scheduled without it. The pass requires kernels (`lower-onnx-to-loop`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import Operation
from xdsl.passes import ModulePass

from igniter.analysis.machine import MachineModel, machine_of, pass_figures
from igniter.context import IgniterContext
from igniter.dialects.loop import FuncOp, KernelOp, LaunchOp
from igniter.errors import IgniterError, is_crash, reproducer_of
from igniter.isolation import attempt, reason_of
from igniter.observation import Unit
from igniter.passes import PassError, parse_passes, run_passes
from igniter.remarks import remark
from igniter.reproducers import name_reproducer, reproduce
from igniter.schedules.task_chains import KernelTasks, kernel_tasks
from igniter.targets import backend_of
from igniter.transforms.fusion.inline_failed_regions import SAYS, mark_failed
from igniter.transforms.structured.apply_tuned_schedules import ApplyTunedSchedules


@dataclass(frozen=True)
class ScheduleKernels(ModulePass):
    """Runs a pipeline over every kernel in its own module."""

    name = "schedule-kernels"

    passes: str = ""
    """A pipeline from a loop.kernel to a loop.func. Empty: the backend's."""
    tuned: str = ""
    """A database of schedules; "" for none."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        passes = self.passes or backend_of(ctx).pipelines.schedule
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            name = kernel.sym_name.data
            verify_each = isinstance(ctx, IgniterContext) and ctx.verify_each
            step = partial(schedule_kernel, ctx, kernel, passes, self.tuned, verify_each=verify_each)
            scheduled = attempt(ctx, step, partial(mark_failed, op, name))
            if scheduled is None:
                continue
            for each in (*_launched(scheduled.func), scheduled.func):
                each.detach()
                op.body.block.insert_op_before(each, kernel)
            kernel.detach()
            kernel.erase()

    def inner_passes(self, ctx: Context) -> Sequence[ModulePass]:
        """Returns the passes that run over every kernel."""
        return _passes(self.passes or backend_of(ctx).pipelines.schedule, _machine(ctx))


@dataclass(frozen=True)
class ScheduledKernel:
    """A kernel after the passes of schedules for a machine."""

    func: FuncOp
    machine: MachineModel

    @property
    def tasks(self) -> KernelTasks | None:
        """The tasks that threads share; `None` for launches on a GPU."""
        return kernel_tasks(self.func, self.machine)


def _launched(func: FuncOp) -> list[Operation]:
    """Returns the kernels launched by a func."""
    names = {op.kernel for op in func.walk() if isinstance(op, LaunchOp)}
    module = func.parent_op()
    beside = module.body.block.ops if isinstance(module, ModuleOp) and names else ()
    found: list[Operation] = []
    for op in beside:
        name = op.properties.get("sym_name")
        if isinstance(name, StringAttr) and name.data in names:
            found.append(op)
    return found


def schedule_kernel(
    ctx: Context, kernel: KernelOp, passes: str, tuned: str = "", *, verify_each: bool = False
) -> ScheduledKernel:
    """Runs a pipeline on a copy of one kernel, for the machine of the context."""
    assert isinstance(ctx, IgniterContext)
    name = kernel.sym_name.data
    alone = ModuleOp([kernel.clone()])
    try:
        _run(ctx, kernel, alone, passes, tuned, verify_each)
    except PassError as error:
        if not tuned:
            raise
        # A schedule in the database may use features removed from the passes. Its other schedules stay valid.
        remark(ctx, SAYS, name, "missed", f"compiled without the schedules of {tuned}: {reason_of(error)}")
        alone = ModuleOp([kernel.clone()])
        _run(ctx, kernel, alone, passes, "", verify_each)
    func = next((op for op in alone.ops if isinstance(op, FuncOp)), None)
    if func is None:
        raise IgniterError(f"the passes '{passes}' leave kernel @{name} unscheduled")
    return ScheduledKernel(func, machine_of(ctx))


def _run(ctx: IgniterContext, kernel: KernelOp, alone: ModuleOp, pipeline: str, tuned: str, verify_each: bool) -> None:
    """Runs a pipeline on `alone`, a copy of `kernel`."""
    passes: Sequence[ModulePass] = _passes(pipeline, _machine(ctx))
    if tuned:
        passes = _with_database(passes, pipeline, tuned)
    # A failure inside is the failure of the whole kernel.
    whole = ctx.whole()
    try:
        unit = Unit(KernelOp.name, kernel.sym_name.data)
        run_passes(whole, alone, tuple(passes), verify_each=verify_each, unit=unit)
    except PassError as error:
        if is_crash(error) and not reproducer_of(error):
            name_reproducer(error, reproduce(whole, ModuleOp([kernel.clone()]), tuple(passes)))
        raise


def _machine(ctx: Context) -> MachineModel | None:
    machine = getattr(ctx, "machine", None)
    return machine if isinstance(machine, MachineModel) else None


@lru_cache(maxsize=64)
def _passes(pipeline: str, machine: MachineModel | None) -> tuple[ModulePass, ...]:
    """Returns the passes for a machine; cached, because all kernels have the same ones, and passes have no state."""
    return parse_passes(pipeline, None if machine is None else pass_figures([machine]))


def _with_database(passes: Sequence[ModulePass], pipeline: str, path: str) -> tuple[ModulePass, ...]:
    """Returns the passes with a database for `apply-tuned-schedules`; raises `IgniterError` if that pass is missing."""
    if not any(isinstance(this, ApplyTunedSchedules) for this in passes):
        raise IgniterError(f"the database of schedules {path} is not used: '{pipeline}' has no apply-tuned-schedules")
    return tuple(
        dataclasses.replace(this, db=path) if isinstance(this, ApplyTunedSchedules) and not this.db else this
        for this in passes
    )
