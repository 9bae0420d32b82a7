"""`my-schedule`: a pass that writes schedules.

    %y = loop.nest "relu" [i0: parallel n, i1: parallel 768] -> ...
becomes
    %y = loop.nest "relu" [i0: parallel n, i1: parallel 768] schedule [i0 threads, i1 vector 8] -> ...

Nests without a reduction run their last axis as vectors of `width` and their first on the thread pool. The others are
left to `choose-schedule`, which keeps existing schedules.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.dialects.loop import NestOp, ScheduleAttr
from igniter.dialects.loop.schedule import Loop
from igniter.observation.statistics import Statistic
from igniter.remarks import remark


@dataclass(frozen=True)
class MySchedule(ModulePass):
    """Schedules nests without reductions: vectors along the last axis, threads along the first"""

    name = "my-schedule"
    scheduled = Statistic("nests scheduled")
    width: int = 16
    """The elements of a vector."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for nest in op.walk():
            if not isinstance(nest, NestOp) or nest.schedule is not None or not nest.axes:
                continue
            if any(axis.kind == "reduction" for axis in nest.axes):
                remark(ctx, self.name, nest.label, "missed", "it has a reduction")
                continue
            loops = [Loop(axis.name) for axis in nest.axes]
            loops[-1] = replace(loops[-1], vector=self.width)
            if len(loops) > 1:
                loops[0] = replace(loops[0], threads=0)
            nest.schedule = ScheduleAttr(loops)
            self.scheduled.add(ctx)
            remark(ctx, self.name, nest.label, "applied", f"vectors of {self.width} along {nest.axes[-1].name}")


# Igniter's `cpu-schedule` without `collapse-axes`, which would leave only one axis in many nests.
PIPELINE = (
    "canonicalize-loop",
    "inline-nests",
    "canonicalize-loop",
    "my-schedule{width=8}",
    "choose-schedule",
    "form-fma",
    "lower-to-loops",
    "fuse-loops",
    "promote-buffers",
    "slide-loops",
    "tile-loops",
    "sink-loops",
    "prefetch-loops",
    "parallelize-loops",
    "vectorize-loops",
    "unroll-loops",
    "transpose-accesses",
    "plan-buffers",
    "form-ort-library",
)
