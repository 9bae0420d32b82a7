"""A report on a model compiled for a profile, up to the page."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.compiler.artifact import Artifact
from igniter.compiler.compilation import CompileOptions
from igniter.runtime.files import write_whole
from igniter.runtime.timing import time_models
from igniter.targets import parts_for
from igniter.toolbox.bench.show import IGNITER, ORT
from igniter.toolbox.bench.time_profile import profile_artifact
from igniter.toolbox.report.gather import ReportData, Speed, gather
from igniter.toolbox.report.page import page
from igniter.verification.graph_facts import model_facts
from igniter.verification.original import Original
from igniter.verification.verify import typical_inputs

if TYPE_CHECKING:
    from igniter.analysis.machine import MachineModel
    from igniter.api import Module


ROUNDS, SECONDS = 5, 0.15
"""The rounds of the comparison with ONNX Runtime, and the seconds of a turn."""


def report_data(
    title: str,
    original: str | bytes,
    artifact: Artifact,
    sizes: Mapping[str, int],
    inputs: Mapping[str, Any],
    *,
    timed: Artifact | None = None,
    verification: Mapping[str, Any] | None = None,
    threads: int = 1,
    machine: MachineModel | None = None,
    step: Callable[[str], None] = lambda _: None,
) -> ReportData:
    """Returns the content of the page on an artifact, measured on `inputs`, of `sizes`, if it was compiled with
    `CompileOptions(profile=True)`. `timed` is the artifact to compare with ONNX Runtime, the default is the same.
    `verification` is the result of `Verification.to_dict`; `machine` has measured figures."""
    profile = speed = None
    if artifact.report.get("programs") and artifact.report["options"].get("profile"):
        step("measuring")
        profile = profile_artifact(artifact, inputs, threads=max(1, threads))
        step("timing beside ONNX Runtime")
        speed = measured_speed(original, timed or artifact, inputs, max(1, threads))
    return gather(title, original, artifact, sizes, profile, verification, threads, machine, step, speed)


def measured_speed(original: str | bytes, artifact: Artifact, inputs: Mapping[str, Any], threads: int) -> Speed:
    """Times the original in ONNX Runtime and the compiled model in turns."""
    models: dict[str, tuple[str | Path | bytes, Sequence[Path]]] = {
        ORT: (original, ()),
        IGNITER: (artifact.model_path, artifact.libraries),
    }
    timing = time_models(models, inputs, threads=threads, rounds=ROUNDS, seconds=SECONDS)
    ms = [1000 * timing.median(name) for name in (ORT, IGNITER)]
    return Speed(ms[0], ms[1], 1 / timing.ratio(IGNITER), timing.noise)


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
    data = report_data(title, source, artifact, chosen, inputs, verification=found, threads=threads)
    write_whole(output, page(data))


def report_title(path: Path) -> str:
    """Returns the title of a model; for `model.onnx` with its folder, because the name is common."""
    return f"{path.resolve().parent.name}/{path.name}" if path.stem == "model" else path.name
