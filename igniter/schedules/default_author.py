"""`default`: Igniter's own author of schedules, for CPUs: vectors, tiles in registers and caches, tasks for a pool.

Its choices for nests are in `choice.py`, for procedures in `procedures.py`.
"""

from __future__ import annotations

from dataclasses import dataclass

from igniter.analysis.machine import MachineModel
from igniter.dialects.loop import KernelOp, ProcedureOp
from igniter.dialects.loop.schedule import ScheduleAttr
from igniter.schedules.author import Choice, ScheduleAuthor
from igniter.schedules.bands import band_choices
from igniter.schedules.choice import choose
from igniter.schedules.groups import form_groups, lone_group
from igniter.schedules.made_panels import makers_of
from igniter.schedules.procedures import schedule_procedure
from igniter.schedules.rows import row_choices
from igniter.schedules.size_variants import SizeVariants
from igniter.schedules.worthwhile_variants import worthwhile_variants


@dataclass(frozen=True)
class DefaultAuthor(ScheduleAuthor):
    """Shares outer loops among nests, with vectors along contiguous dims and tiles of sums in registers"""

    name = "default"

    def __call__(self, kernel: KernelOp, machine: MachineModel) -> list[Choice]:
        found = band_choices(kernel, machine)
        taken = frozenset(label for choice in found for label in choice.schedules)
        makers = [nest for nest in makers_of(kernel) if nest.label not in taken]
        groups = form_groups(kernel, machine, taken | {nest.label for nest in makers})
        found += row_choices(groups, machine)
        taken = frozenset(label for choice in found for label in choice.schedules)
        found += choose([group for group in groups if group.members[0].label not in taken], machine)
        taken = frozenset(label for choice in found for label in choice.schedules)
        found += choose([lone_group(nest) for nest in makers if nest.label not in taken], machine)
        for op in kernel.computations:
            if isinstance(op, ProcedureOp) and op.schedule is None and op.label not in taken:
                schedule = schedule_procedure(op, machine)
                found.append(Choice({op.label: schedule}, _told(schedule)))
        return found

    def variants(self, kernel: KernelOp, machine: MachineModel) -> SizeVariants | None:
        found = worthwhile_variants(kernel, machine)
        return SizeVariants(found) if found else None


def _told(schedule: ScheduleAttr) -> str:
    """Describes the schedule of a procedure."""
    vectors = [f"vectors of {loop.vector} along '{loop.axis}'" for loop in schedule.loops if loop.vector]
    shared = [f"'{loop.axis}'" for loop in schedule.loops if loop.threads is not None]
    said = [*([f"threads share {' and '.join(shared)}"] if shared else []), *vectors]
    return ", ".join(said) or "in its own order"
