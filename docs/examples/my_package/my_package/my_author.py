"""`short-rows`: a schedule author that differs from Igniter's own in one decision.

    %y = loop.nest "relu" [i0: parallel n, i1: parallel 8] -> ...
becomes
    %y = loop.nest "relu" [i0: parallel n, i1: parallel 8] schedule [i0 threads, i1 unroll] -> ...

Rows of up to `most` elements are unrolled.
"""

from __future__ import annotations

from dataclasses import dataclass

from igniter.analysis.machine import MachineModel
from igniter.dialects.loop import KernelOp, NestOp
from igniter.dialects.loop.schedule import Loop, ScheduleAttr
from igniter.schedules.author import Choice
from igniter.schedules.default_author import DefaultAuthor


@dataclass(frozen=True)
class ShortRows(DefaultAuthor):
    """Unrolls short rows, and schedules everything else like the default author"""

    name = "short-rows"
    most: int = 8
    """The maximum length of an unrolled row."""

    def __call__(self, kernel: KernelOp, machine: MachineModel) -> list[Choice]:
        found = super().__call__(kernel, machine)
        short = {nest.label: nest for nest in kernel.nests if self._is_short(nest)}
        return [choice for choice in found if not short.keys() & choice.schedules.keys()] + [
            Choice({label: self._written_out(nest)}, "short rows are written out") for label, nest in short.items()
        ]

    def _is_short(self, nest: NestOp) -> bool:
        """True if the rows have a known small length and independent elements."""
        last = nest.axes[-1].extent.constant if len(nest.axes) > 1 else None
        return last is not None and last <= self.most and all(axis.kind == "parallel" for axis in nest.axes)

    def _written_out(self, nest: NestOp) -> ScheduleAttr:
        first, *middle, last = (axis.name for axis in nest.axes)
        return ScheduleAttr([Loop(first, threads=0), *map(Loop, middle), Loop(last, unroll=0)])
