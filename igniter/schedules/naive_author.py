"""`naive`: a schedule author for comparisons, which leaves every loop as it is.

Nests become plain scalar loops in the order of their axes, without vectors, tiles or threads, and no kernel gets
variants by size. It is the lower end of a comparison of schedules; `docs/how-to/experiment.md` has one.
"""

from __future__ import annotations

from dataclasses import dataclass

from igniter.analysis.machine import MachineModel
from igniter.dialects.loop import KernelOp
from igniter.schedules.author import Choice, ScheduleAuthor


@dataclass(frozen=True)
class NaiveAuthor(ScheduleAuthor):
    """Leaves every nest in plain scalar loops, for comparisons"""

    name = "naive"

    def __call__(self, kernel: KernelOp, machine: MachineModel) -> list[Choice]:
        del kernel, machine
        return []
