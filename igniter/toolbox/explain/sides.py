"""One of the two sides of an explanation: a compiled model that records the times of its steps, and its schedules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

import igniter
from igniter.analysis.machine import pass_figures
from igniter.compiler.artifact import Artifact, require_folder
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.driver import is_fused, make_fusion, make_loop, make_onnx
from igniter.dialects.loop import KernelOp
from igniter.dialects.sym.expr import Expr
from igniter.errors import IgniterError
from igniter.passes import PassError, parse_passes, run_passes
from igniter.toolbox.bench.show_profile import compile_again


@dataclass(frozen=True)
class SideStep:
    """One call of a kernel."""

    key: tuple[str, int]
    """The program and the place in it."""
    kernel: str
    nodes: tuple[str, ...]
    ops: tuple[str, ...]
    flops: str
    bytes: str

    def amount(self, text: str, sizes: Mapping[str, int]) -> int | None:
        """Evaluates `flops` or `bytes`; `None` if a dim depends on the data."""
        expr = Expr.parse(text)
        return expr.evaluate(dict(sizes)) if expr.symbols <= sizes.keys() else None


@dataclass(frozen=True)
class Side:
    """A compiled model."""

    name: str
    artifact: Artifact
    steps: tuple[SideStep, ...]
    left: Mapping[str, str]
    """The nodes left to ONNX Runtime, with the reasons."""
    schedules: Mapping[str, Mapping[str, str]]
    """The schedules of each kernel's nests, by label; empty if they are unknown."""
    digest: str
    """The hash of the code of all kernels."""
    unknown: str = ""
    """The reason why the schedules are unknown."""


def side_of(path: str, original: str | bytes, folder: Path, step: Callable[[str], None]) -> Side:
    """Returns a compiled model that records times, made again in `folder` if the given one does not."""
    require_folder(path)
    if not Path(path).is_dir():
        raise IgniterError(f"{path} is no folder that `igniter compile` made")
    plain = Artifact.load(path)
    made = compile_again(path, original, plain.report["target"], folder, step, profile=True)
    options = CompileOptions.of_report(plain.report["options"])
    schedules: dict[str, dict[str, str]] = {}
    unknown = ""
    try:
        schedules = schedules_of(original, options)
    except (IgniterError, PassError) as error:
        unknown = f"the schedules of {path} are unknown: {error.message}"
    left = {each["node"]: each["reason"] for each in plain.report["left_to_onnxruntime"]}
    return Side(path, made, steps_of(made.report), left, schedules, plain.report["kernel_digest"], unknown)


def steps_of(report: Mapping[str, Any]) -> tuple[SideStep, ...]:
    """Returns the steps of all programs in a report."""
    found: list[SideStep] = []
    programs: Sequence[Mapping[str, Any]] = report.get("programs", [])
    for program in programs:
        for place, step in enumerate(program["steps"]):
            names = (tuple(step["nodes"]), tuple(step["ops"]))
            key = (program["program"], place)
            found.append(SideStep(key, step["kernel"], *names, step["flops"], step["bytes"]))
    return tuple(found)


def schedules_of(original: str | bytes, options: CompileOptions) -> dict[str, dict[str, str]]:
    """Returns the schedules that a compilation with these options gives the kernels of a model, by kernel and nest."""
    module = igniter.load(original)
    c = Compilation(module.ir, options, module.ctx)
    if not is_fused(c.module):
        make_onnx(c)
        make_fusion(c)
    make_loop(c)
    machine = c.machines[0]
    choosing = _choosing(c)
    found: dict[str, dict[str, str]] = {}
    for kernel in [op for op in c.module.ops if isinstance(op, KernelOp)]:
        alone = ModuleOp([kernel.clone()])
        run_passes(c.context(machine).whole(), alone, parse_passes(choosing, pass_figures([machine])))
        made = next(op for op in alone.ops if isinstance(op, KernelOp))
        found[kernel.sym_name.data] = {op.label: str(op.schedule or "[]") for op in made.computations}
    return found


def _choosing(c: Compilation) -> str:
    """Returns the part of a compilation's pipeline of schedules up to `choose-schedule`."""
    passes = [this.spec() for this in parse_passes(c.pipelines.schedule)]
    names = [str(spec.name) for spec in passes]
    if "choose-schedule" not in names:
        raise IgniterError(f"the pipeline '{c.pipelines.schedule}' has no choose-schedule")
    return ",".join(str(spec) for spec in passes[: names.index("choose-schedule") + 1])
