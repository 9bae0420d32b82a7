"""A backend beside the CPU's: it emits what that emits, and decides otherwise in everything that a backend decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest

from igniter import registry
from igniter.analysis.fusion.author import FusionAuthor
from igniter.analysis.fusion.cost import CostModel
from igniter.analysis.fusion.legality import Reason
from igniter.analysis.fusion.region_growing import Refusal
from igniter.analysis.fusion.region_policy import Group
from igniter.analysis.machine import MachineModel
from igniter.backends.cpu.backend import CpuBackend
from igniter.backends.cpu.target import Target, target_of
from igniter.dialects.loop import KernelOp
from igniter.dialects.loop.schedule import Loop, ScheduleAttr
from igniter.dialects.onnx.base import OnnxOp
from igniter.schedules.author import Choice, ScheduleAuthor
from igniter.targets import Pipelines
from igniter.targets import Target as AnyTarget

HERE = "tests.toy_backend"
LAUNCH = 50.0


@dataclass(frozen=True)
class ToyFusion(FusionAuthor):
    """Regions of a few nodes"""

    name = "toy"
    most: int = 2

    def refuse_merge(self, a: Group, b: Group) -> Refusal | None:
        return Refusal("most", f"more than {self.most} nodes") if len(a) + len(b) > self.most else None


@dataclass(frozen=True)
class ToySchedules(ScheduleAuthor):
    """Plain loops, the outermost on threads"""

    name = "toy"
    threads: bool = True

    def __call__(self, kernel: KernelOp, machine: MachineModel) -> list[Choice]:
        found: list[Choice] = []
        for op in kernel.computations:
            loops = [Loop(axis.name) for axis in op.axes]
            if self.threads and loops and op.axes[0].kind == "parallel":
                loops[0] = replace(loops[0], threads=0)
            found.append(Choice({op.label: ScheduleAttr(loops)}, f"plain loops for {machine.name}"))
        return found


@dataclass(frozen=True)
class DearLaunches(CostModel):
    """A node costs more than memory does."""

    def saved(self, launches: int, moved: int) -> float:
        return launches * LAUNCH


class ToyBackend(CpuBackend):
    """The code of CPUs, by other passes."""

    name = "toy"
    pipelines = Pipelines(
        onnx="cpu-onnx",
        fusion="form-fusion-regions",
        loop="cpu-loop",
        schedule="canonicalize-loop,check-bounds{guard=true},choose-schedule,lower-to-loops,promote-buffers,"
        "parallelize-loops,plan-buffers,form-ort-library",
        kernels="schedule-kernels,inline-failed-regions",
        programs="form-programs{max-nodes=3}",
        calls="cpu-calls",
        weights="cpu-weights",
    )
    fusion_author = "toy{most=3}"
    schedule_author = "toy"

    def target_of(self, name: str) -> Target:
        bare = name.removeprefix("toy").removeprefix(":") or "native"
        return replace(target_of(bare), name=f"toy:{bare}")

    def targets_of(self, names: str) -> Sequence[Target]:
        return [self.target_of(name.strip()) for name in names.split(",")]

    def machine_for(self, target: AnyTarget | str, given: object = ()) -> MachineModel:
        return super().machine_for(self.target_of(target) if isinstance(target, str) else target, given)  # pyright: ignore

    def fusion_reason(self, op: OnnxOp, machine: MachineModel) -> Reason | None:
        if op.op_type != "Tanh":
            return None
        return Reason("type", f"{machine.name} has no code for Tanh")

    def cost_model(self, machine: MachineModel, typical_dim: int, typical: Mapping[str, int]) -> CostModel:
        return DearLaunches(typical_dim, typical, machine)

    @property
    def words(self) -> frozenset[str]:
        return frozenset(("by", "threads", "product"))

    def lacks(self, micro_kernel: str, target: AnyTarget) -> str | None:
        return f"'{target.name}' has no micro-kernel '{micro_kernel}'" if micro_kernel != "f64" else None


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> ToyBackend:
    """The backend is installed, with its authors."""
    monkeypatch.setitem(registry.BACKENDS, "toy", f"{HERE}:ToyBackend")
    monkeypatch.setitem(registry.FUSION_AUTHORS, "toy", f"{HERE}:ToyFusion")
    monkeypatch.setitem(registry.SCHEDULE_AUTHORS, "toy", f"{HERE}:ToySchedules")
    return ToyBackend()
