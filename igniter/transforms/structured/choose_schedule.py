"""`choose-schedule`: writes a schedule on every nest that has none.

    %m = loop.nest "max" [i: parallel n, j: reduction 128] -> ...
becomes
    %m = loop.nest "max" [i: parallel n, j: reduction 128] schedule {
      order = ["i", "j"],
      loops = {i = {fuse = "g0", threads}, j = {vector = 16 : i64, accumulators = 4 : i64}}} -> ...

A schedule is data: `order` is the order of the loops, and `loops` says what happens to each (`fuse`, `threads`,
`tile`, `tail`, `inner`, `sink`, `vector`, `accumulators`, `unroll`). A nest that comes with a schedule, written by
hand or found by a tuner, keeps it. The reasoning is in `igniter.analysis.structured.schedule_choice`. It is the last
pass on the structured level but `form-fma`; `lower-to-loops` turns the schedule into hints on loops.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.analysis.structured.procedure_schedules import schedule_procedure
from igniter.analysis.structured.schedule_choice import Machine, choose
from igniter.dialects.loop import KernelOp, ProcedureOp
from igniter.rewrites import budget


@dataclass(frozen=True)
class ChooseSchedule(ModulePass):
    """Chooses loop order, fusion, tiles, vectors and threads for nests without a schedule."""

    name = "choose-schedule"
    one_rewrite = "a nest or a procedure that is given a schedule"

    vector_bytes: int = 64
    """The width of a vector register."""
    registers: int = 32
    """How many there are."""
    byte_tiles: bool = False
    """Whether the machine multiplies tiles of bytes (AMX)."""
    half_tiles: bool = False
    """Whether it multiplies tiles of bf16 (AMX)."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrites = budget(ctx, self.name)
        machine = Machine(self.vector_bytes, self.registers, self.byte_tiles, self.half_tiles)
        for kernel in [k for k in op.ops if isinstance(k, KernelOp)]:
            chosen = choose(kernel, machine)
            for nest in kernel.nests:
                if nest.schedule is None and rewrites.take(nest.label, "it is scheduled"):
                    nest.schedule = chosen[nest.label]
            for each in kernel.computations:
                if (
                    isinstance(each, ProcedureOp)
                    and each.schedule is None
                    and rewrites.take(each.label, "it is scheduled")
                ):
                    each.schedule = schedule_procedure(each, machine)
