"""A report on a model compiled for a profile, up to the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.compiler.artifact import Artifact
from igniter.compiler.compilation import CompileOptions
from igniter.runtime.files import write_whole
from igniter.targets import parts_for
from igniter.toolbox.bench.time_profile import profile_artifact
from igniter.toolbox.report.gather import gather
from igniter.toolbox.report.page import page
from igniter.verification.graph_facts import model_facts
from igniter.verification.original import Original
from igniter.verification.verify import typical_inputs

if TYPE_CHECKING:
    from igniter.analysis.machine import MachineModel
    from igniter.api import Module


def report_page(
    title: str,
    original: str | bytes,
    artifact: Artifact,
    sizes: Mapping[str, int],
    inputs: Mapping[str, Any],
    *,
    verification: Mapping[str, Any] | None = None,
    threads: int = 1,
    machine: MachineModel | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> str:
    """Returns the page on an artifact, measured on `inputs`, of `sizes`, if it was compiled with
    `CompileOptions(profile=True)`. `verification` is the result of `Verification.to_dict`; `machine` has measured
    figures."""
    profile = None
    if artifact.report.get("programs") and artifact.report["options"].get("profile"):
        step("measuring")
        profile = profile_artifact(artifact, inputs, threads=max(1, threads))
    data = gather(title, original, artifact, sizes, profile, verification, threads, machine, step)
    step("drawing")
    return page(data)


def notes_time(target: str, folder: str | Path = "") -> bool:
    """True if a model compiled for a target, or the model in a folder, can record the time between its kernels;
    launches on a GPU cannot."""
    if folder and Path(folder).is_dir():
        target = Artifact.load(folder).report["options"]["target"]
    return not any("profile" in part.backend.lacking for part in parts_for(target))


def report_module(
    module: Module, output: str | Path, sizes: Mapping[str, int] | None, threads: int, target: str, verify: bool
) -> None:
    """Writes the report on a module, at sizes; those of other symbols are chosen."""
    shapes = [dict(sizes)] if sizes else None
    options = CompileOptions(target=target, profile=notes_time(target))
    artifact = module.compile(options=options, verify=verify, shapes=shapes)
    original = module.current_source()
    source = original if isinstance(original, bytes) else str(original)
    chosen, inputs = typical_inputs(
        Original(source, options={"intra_op_num_threads": 1}), model_facts(source), sizes or {}, 0
    )
    title = "a model in memory" if isinstance(original, bytes) else report_title(Path(original))
    found = artifact.report.get("verification") if verify else None
    write_whole(output, report_page(title, source, artifact, chosen, inputs, verification=found, threads=threads))


def report_title(path: Path) -> str:
    """Returns the title of a model; for `model.onnx` with its folder, because the name is common."""
    return f"{path.resolve().parent.name}/{path.name}" if path.stem == "model" else path.name
