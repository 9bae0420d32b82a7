"""`apply-tuned-schedules`: writes the schedules found by `igniter tune` on the tuned kernels.

    %s = loop.nest "sum" [i: parallel n, k: reduction 64] -> ...
becomes, with `db` a database that has this kernel for the target `cpu`,
    %s = loop.nest "sum" [i: parallel n, k: reduction 64] schedule [i by 8 threads, k, i vector 8] -> ...

The pass finds a kernel by its text (`schedule_database.py`). So it runs directly before `choose-schedule`, for the
kernels outside the database. If a kernel has several entries for several sizes, the newest wins. A kernel with a
schedule of its own keeps it. An outdated schedule is not applied. Both cases are remarks. Without `db` the pass does
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.parser import Parser
from xdsl.passes import ModulePass
from xdsl.utils.exceptions import ParseError, VerifyException

from igniter._version import build_id
from igniter.dialects.loop import KernelOp
from igniter.dialects.loop.schedule import ScheduleAttr, parse_steps
from igniter.errors import IgniterError
from igniter.remarks import remark
from igniter.schedules.citation import structure_hash
from igniter.transforms.structured.schedule_database import opened

if TYPE_CHECKING:
    from igniter.transforms.structured.schedule_database import Entry


@dataclass(frozen=True)
class ApplyTunedSchedules(ModulePass):
    """Gives tuned kernels the schedules found for them."""

    name = "apply-tuned-schedules"

    db: str = ""
    """The database written by `igniter tune`."""
    cpu: str = ""
    """The name of the target in the database, as printed by `igniter tune`. The driver sets it."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        if not self.db:
            return
        if not self.cpu:
            raise IgniterError("a database stores schedules by target: give --target, or the option cpu")

        with opened(self.db) as database:
            for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
                found = database.entries(structure_hash(kernel), self.cpu)
                if found:
                    self._apply(ctx, kernel, found[0])
                else:
                    self._say(ctx, kernel, "missed", f"it was not tuned for {self.cpu}")

    def _apply(self, ctx: Context, kernel: KernelOp, entry: Entry) -> None:
        if any(each.schedule is not None for each in kernel.computations):
            self._say(ctx, kernel, "missed", "it keeps its own schedule")
            return
        reason = set_schedules(ctx, kernel, entry.schedules)
        if reason is not None:
            self._say(ctx, kernel, "missed", f"the schedule found at {entry.subject.bucket} is stale: {reason}")
            return
        other = "" if entry.build == build_id() else ", found by different code of this version"
        gain = "not timed for this target"
        if entry.is_timed:
            gain = f"{1 / entry.ratio:.2f} times as fast as the default at {entry.subject.bucket}"
        what = f"imported, {entry.citation}" if entry.citation else "tuned"
        self._say(ctx, kernel, "applied", f"{what}: {gain}{other}")

    def _say(self, ctx: Context, kernel: KernelOp, kind: str, message: str) -> None:
        remark(ctx, self.name, kernel.sym_name.data, "applied" if kind == "applied" else "missed", message)


def set_schedules(ctx: Context, kernel: KernelOp, schedules: tuple[str, ...]) -> str | None:
    """Gives the computations of a kernel their schedules, in order. Returns the reason if it cannot, with nothing
    changed."""
    computations = kernel.computations
    if len(computations) != len(schedules):
        return f"it is for {len(schedules)} nests, but the kernel has {len(computations)}"
    before = [each.schedule for each in computations]
    try:
        for each, text in zip(computations, schedules, strict=True):
            each.schedule = ScheduleAttr(parse_steps(Parser(ctx, text, "<database>"))) if text else None
            each.verify_schedule()
    except (ParseError, VerifyException) as error:
        for each, schedule in zip(computations, before, strict=True):
            each.schedule = schedule
        return str(error).strip().splitlines()[-1].strip()
    kernel.set_variants([])  # The schedule was found and timed without variants.
    return None
