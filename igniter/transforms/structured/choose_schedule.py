"""`choose-schedule`: writes a schedule on every nest that has none.

    %m = loop.nest "max" [i: parallel n, j: reduction 128] -> ...
becomes
    %m = loop.nest "max" [i: parallel n, j: reduction 128] schedule [
      i threads fuse "g0", j vector 16 accumulators 4] -> ...

A schedule is data: the loops of the nest, outermost first, and what happens to each
(`igniter/dialects/loop/schedule.py`). A nest that comes with a schedule, written by hand or found by a tuner, keeps
it. The reasoning is in `igniter.analysis.structured.schedule_choice`, and what it knows of the machine in
`igniter.analysis.machine`. It is the last
pass on the structured level but `form-fma`; `lower-to-loops` turns the schedule into hints on loops.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.analysis.machine import MachineModel, machine_of
from igniter.analysis.structured.expected_time import expected_cycles
from igniter.analysis.structured.procedure_schedules import schedule_procedure
from igniter.analysis.structured.schedule_choice import Choice, choose
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import KernelOp, NestOp, ProcedureOp
from igniter.dialects.loop.schedule import ScheduleAttr
from igniter.remarks import remark, remarks_of
from igniter.rewrites import budget


@dataclass(frozen=True)
class ChooseSchedule(ModulePass):
    """Chooses loop order, fusion, tiles, vectors and threads for nests without a schedule."""

    name = "choose-schedule"
    one_rewrite = "a nest or a procedure that is given a schedule"

    vector_bytes: int | None = None
    """The width of a vector register. Of this and what follows, the machine's own where nothing is said."""
    registers: int | None = None
    """How many there are."""
    byte_tiles: bool | None = None
    """Whether the machine multiplies tiles of bytes (AMX)."""
    half_tiles: bool | None = None
    """Whether it multiplies tiles of bf16 (AMX)."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        said = {name: value for name, value in asdict(self).items() if value is not None}
        machine = replace(machine_of(ctx), **said)
        rewrites = budget(ctx, self.name)
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            nests = {nest.label: nest for nest in kernel.nests}
            for choice in choose(kernel, machine):
                given: list[tuple[NestOp, ScheduleAttr]] = []
                for label, schedule in choice.schedules.items():
                    nest = nests[label]
                    if nest.schedule is None and rewrites.take(label, "it is scheduled"):
                        nest.schedule = schedule
                        given.append((nest, schedule))
                _tell(ctx, choice, given, machine)
            for each in kernel.computations:
                if (
                    isinstance(each, ProcedureOp)
                    and each.schedule is None
                    and rewrites.take(each.label, "it is scheduled")
                ):
                    each.schedule = schedule_procedure(each, machine)


def _tell(ctx: Context, choice: Choice, given: list[tuple[NestOp, ScheduleAttr]], machine: MachineModel) -> None:
    """A remark for what was chosen, and what it is expected to take on one core."""
    if not given or remarks_of(ctx) is None:
        return
    cycles = expected_cycles(given, machine)
    (first, *others) = (nest.label for nest, _ in given)
    also = f" with {', '.join(map(repr, others))}" if others else ""
    time = f"about {cycles} cycles"
    sizes = typical_of(given[0][0])
    count = sizes.known(cycles)
    if count is not None:
        at = "" if cycles.constant is not None else f" at {sizes}"
        time = f"about {count / machine.clock_ghz / 1e3:.3g} us{at}"
    remark(ctx, ChooseSchedule.name, first, "applied", f"scheduled{also}: {choice.what}; {time}", cycles=str(cycles))
