"""`choose-schedule`: writes a schedule on every nest that has none.

    %m = loop.nest "max" [i: parallel n, j: reduction 128] -> ...
becomes
    %m = loop.nest "max" [i: parallel n, j: reduction 128] schedule [
      i threads fuse "g0", j vector 16 accumulators 4] -> ...

A schedule is data: the loops of the nest, outermost first, with the directives of each
(`igniter/dialects/loop/schedule.py`). A nest with a schedule, written by hand or found by a tuner, keeps it. The others
get one from a *schedule author* (`igniter.schedules.author`), by default the author of the machine's
backend. For CPUs the reasoning is in `igniter.schedules.choice`, and its facts about the machine are
in `igniter.analysis.machine`. A schedule with directives that the backend lacks is an error: the verifier accepts it,
because it knows no backend. Only `form-fma` follows on the structured level. `lower-to-loops` turns the schedule into
hints on loops.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.passes import ModulePass

from igniter.analysis.machine import MachineModel, machine_of
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import ComputeOp, KernelOp, NestOp
from igniter.errors import IgniterError
from igniter.remarks import remark, remarks_of
from igniter.rewrite_budget import budget
from igniter.schedules.author import Choice, choices_of, make_author
from igniter.schedules.expected_time import expected_time
from igniter.targets import backend_of


@dataclass(frozen=True)
class ChooseSchedule(ModulePass):
    """Chooses loop order, fusion, tiles, vectors and threads for nests without a schedule."""

    name = "choose-schedule"
    one_rewrite = "a nest or a procedure scheduled"

    author: str = ""
    """The schedule author, by name, with its options (`NAME{option=value}`). Empty: the backend's."""
    vector_bytes: int | None = None
    """The width of a vector register. The machine's own if not given; the same for the options below."""
    registers: int | None = None
    """The number of vector registers."""
    byte_tiles: bool | None = None
    """True if the machine multiplies tiles of bytes (AMX)."""
    half_tiles: bool | None = None
    """True if the machine multiplies tiles of bf16 (AMX)."""
    byte_pairs: bool | None = None
    """True if the machine multiplies two rows by two columns of bytes (Arm's i8mm)."""
    half_pairs: bool | None = None
    """The same for bf16."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        said = {name: value for name, value in asdict(self).items() if name != "author" and value is not None}
        machine, backend = replace(machine_of(ctx), **said), backend_of(ctx)
        author = make_author(self.author or backend.schedule_author)
        rewrites = budget(ctx, self.name)
        for kernel in [k for k in op.walk() if isinstance(k, KernelOp)]:
            there = {each.label: each for each in kernel.computations}
            for choice in choices_of(author, kernel, machine):
                given: list[ComputeOp] = []
                for label, schedule in choice.schedules.items():
                    if there[label].schedule is None and rewrites.take(label, "it is scheduled"):
                        there[label].schedule = schedule
                        given.append(there[label])
                _tell(ctx, choice, given, machine)
            for each in kernel.computations:
                reason = backend.schedule_reason(each, machine)
                if reason is not None:
                    raise IgniterError(f"the schedule of nest '{each.label}': {reason}")


def _tell(ctx: Context, choice: Choice, given: list[ComputeOp], machine: MachineModel) -> None:
    """Emits a remark with the choice and its expected time on one core."""
    if not given or remarks_of(ctx) is None:
        return
    (first, *others) = (each.label for each in given)
    also = f" with {', '.join(map(repr, others))}" if others else ""
    what = f"scheduled{also}: {choice.what}"
    nests = [(each, each.schedule) for each in given if isinstance(each, NestOp) and each.schedule is not None]
    if not nests:
        remark(ctx, ChooseSchedule.name, first, "applied", what)
        return
    found = expected_time(nests, machine)
    cycles, sizes = found.cycles, typical_of(given[0])
    time = f"about {cycles} cycles"
    count = sizes.known(cycles)
    if count is not None:
        at = "" if cycles.constant is not None else f" at {sizes}"
        time = f"about {count / machine.clock_ghz / 1e3:.3g} us{at}"
    text = f"{what}; {time}, bound by {found.bound}"
    remark(ctx, ChooseSchedule.name, first, "applied", text, cycles=str(cycles), bound=found.bound)
