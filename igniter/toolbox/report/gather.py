"""The data of a report on a compiled model: its graph, a profile, plans, and the outcome of verification."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from igniter.analysis.typical_sizes import module_symbols
from igniter.api import load
from igniter.compiler.compilation import CompileOptions
from igniter.toolbox.plan.compiled import CompiledPlan, compiled_programs, plan_programs
from igniter.toolbox.plan.threads import ThreadPlan, thread_plan
from igniter.toolbox.report.charts import Roof
from igniter.toolbox.report.graph import Graph, graph_of
from igniter.toolbox.report.shares import share_times

if TYPE_CHECKING:
    from igniter.analysis.machine import MachineModel
    from igniter.compiler.artifact import Artifact
    from igniter.toolbox.bench.time_profile import Profile
    from igniter.toolbox.plan.plan import MemoryPlan


@dataclass(frozen=True)
class Speed:
    """The times of the original in ONNX Runtime and of the compiled model, in turns."""

    onnxruntime_ms: float
    igniter_ms: float
    speedup: float
    """ONNX Runtime's time over Igniter's: the median over the rounds."""
    noise: float
    """The distance of ONNX Runtime from itself (A/A): smaller differences mean nothing."""


@dataclass(frozen=True)
class ReportData:
    """The data of a page. `profile` and `roof` are None if nothing of the model is compiled."""

    title: str
    sizes: dict[str, int]
    threads: int
    report: Mapping[str, Any]
    """The content of the compiled model's `report.json`."""
    verification: Mapping[str, Any] | None
    graph: Graph
    plan: MemoryPlan
    compiled: CompiledPlan
    threads_plan: ThreadPlan | None
    """The work that threads can share; None if nothing is compiled, or for a GPU."""
    profile: Profile | None
    roof: Roof | None
    speed: Speed | None = None
    """The times beside ONNX Runtime's; None if no kernel can be timed."""


def gather(
    title: str,
    original: str | bytes,
    artifact: Artifact,
    sizes: Mapping[str, int],
    profile: Profile | None,
    verification: Mapping[str, Any] | None,
    threads: int,
    machine: MachineModel | None = None,
    step: Callable[[str], None] = lambda _: None,
    speed: Speed | None = None,
) -> ReportData:
    """Collects the data of a report on a compiled model, with its `profile` at `sizes`. `machine` has measured figures;
    the default is the machine of the compilation."""
    step("planning")
    module = load(original)
    c, programs = compiled_programs(module, _options(artifact))
    known = _known_sizes(c.module, sizes)
    compiled = plan_programs(c, programs, known)
    free = module.plan()
    plan = module.plan({name: size for name, size in sizes.items() if name in free.typical})
    left: list[dict[str, Any]] = artifact.report.get("left_to_onnxruntime", [])
    reasons = {str(node["node"]): str(node["reason"]) for node in left}
    graph = graph_of(c.module, module.ir, reasons, known)
    if profile is not None:
        _add_times(graph, profile)
    model = machine or c.machines[0]
    roof = Roof.of(model, max(1, threads), machine is not None) if c.backend.name == "cpu" else None
    return ReportData(
        title,
        dict(sizes),
        threads,
        artifact.report,
        verification,
        graph,
        plan,
        compiled,
        thread_plan(c, programs, {**plan.sizes, **known}),
        profile,
        roof,
        speed,
    )


def _options(artifact: Artifact) -> Any:
    """Returns the options of an artifact's compilation; of several targets the first, whose kernels are shown."""
    said: dict[str, Any] = artifact.report["options"]
    return CompileOptions.of_report({**said, "profile": False, "target": str(said["target"]).split(",")[0]})


def _known_sizes(module: Any, sizes: Mapping[str, int]) -> dict[str, int]:
    there = module_symbols(module)
    return {name: size for name, size in sizes.items() if name in there}


def _add_times(graph: Graph, profile: Profile) -> None:
    """Adds the times of steps to their regions and programs."""
    by_label = {(g["kind"], g["name"]): g for g in graph.groups}
    for step in profile.steps:
        program = by_label.get(("program", step.program))
        found = [by_label.get(("region", step.region)), program]
        for group in (g for g in found if g is not None):
            group["ms"] = group.get("ms", 0.0) + step.ms
            group["share"] = group.get("share", 0.0) + step.share
            for name, amount in (("flops", step.flops), ("bytes", step.bytes)):
                if amount is not None:
                    group[name] = group.get(name, 0) + amount
    share_times(graph.nodes, graph.groups)
