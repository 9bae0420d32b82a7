"""`plain`: a backend for CPUs whose code a person can check: plain scalar loops, and exactly rounded arithmetic alone.

It emits code as Igniter's backend for CPUs does. Its own are the targets, the ops with code, the words of schedules and
the author of schedules.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from igniter.analysis.fusion.legality import Reason
from igniter.analysis.machine import Given, MachineModel
from igniter.backends.cpu.backend import CpuBackend
from igniter.backends.cpu.target import Target, target_of
from igniter.dialects.loop import KernelOp
from igniter.dialects.loop.schedule import Loop, ScheduleAttr
from igniter.dialects.onnx.base import OnnxOp
from igniter.schedules.author import Choice, ScheduleAuthor
from igniter.targets import Target as AnyTarget

EXACT = frozenset(("Abs", "Add", "Clip", "Div", "Max", "Min", "Mul", "Neg", "Relu", "Sqrt", "Sub"))
"""The ops whose results are rounded at most once."""


@dataclass(frozen=True)
class PlainLoops(ScheduleAuthor):
    """One scalar loop for each axis, the outermost on threads"""

    name = "plain-loops"

    def __call__(self, kernel: KernelOp, machine: MachineModel) -> list[Choice]:
        found: list[Choice] = []
        for op in kernel.computations:
            loops = [Loop(axis.name) for axis in op.axes]
            if loops and op.axes[0].kind == "parallel":
                loops[0] = replace(loops[0], threads=0)
            found.append(Choice({op.label: ScheduleAttr(loops)}, "plain loops"))
        return found


class PlainBackend(CpuBackend):
    """Scalar code for CPUs."""

    name = "plain"
    schedule_author = "plain-loops"

    def target_of(self, name: str) -> Target:
        cpu = name.removeprefix("plain").removeprefix(":") or "native"
        return replace(target_of(cpu), name=f"plain:{cpu}")

    def targets_of(self, names: str) -> Sequence[Target]:
        return [self.target_of(name.strip()) for name in names.split(",")]

    def machine_for(self, target: AnyTarget | str, given: Iterable[Given] = ()) -> MachineModel:
        return super().machine_for(self.target_of(target) if isinstance(target, str) else target, given)

    def fusion_reason(self, op: OnnxOp, machine: MachineModel) -> Reason | None:
        if op.op_type in EXACT:
            return None
        return Reason("type", f"'{machine.name}' has no code for {op.op_type}: its results are rounded more than once")

    @property
    def words(self) -> frozenset[str]:
        return frozenset(("by", "fuse", "threads", "unroll"))
