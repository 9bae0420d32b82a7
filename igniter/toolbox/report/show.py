"""`igniter report`: one page on a compiled model."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.analysis.machine import override
from igniter.compiler.artifact import Artifact
from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.targets import described_machines
from igniter.toolbox.bench.inputs import inputs_for
from igniter.toolbox.bench.show_profile import compile_again, original_of
from igniter.toolbox.machine.measurement import measure
from igniter.toolbox.output import console, parse_shapes, print_json, progress
from igniter.toolbox.report.make import notes_time, report_data, report_title
from igniter.toolbox.report.page import page

if TYPE_CHECKING:
    from igniter.analysis.machine import MachineModel
    from igniter.toolbox.report.request import ReportRequest


def run(asked: ReportRequest) -> None:
    """Compiles, measures, and writes the page."""
    output = asked.output or f"{Path(asked.model).stem}.html"
    if Path(output).suffix != ".html":
        raise IgniterError(f"{output} is no .html: a report is a page")
    if Path(asked.model).suffix == ".mlir":
        raise IgniterError(f"{asked.model} is IR, which ONNX Runtime does not run: give the ONNX model")
    cases = parse_shapes(asked.given.shapes) or [{}]
    if len(cases) > 1:
        raise IgniterError("a report is of one choice of sizes: give --shape once")
    with (
        tempfile.TemporaryDirectory(prefix="igniter-report-") as folder,
        progress("compiling", asked.json) as step,
    ):
        place = Path(folder) / "model.igniter"
        original = original_of(asked.model, asked.reference)
        sizes, inputs = inputs_for(original, cases[0], asked.given)
        timed = notes_time(asked.target, asked.model)
        artifact = compile_again(asked.model, original, asked.target, place, step, profile=timed)
        step("verifying")
        verification = _verification(asked, artifact, original)
        machine = _measured(asked.target, step) if asked.measure else None
        data = report_data(
            report_title(Path(asked.model)),
            original,
            artifact,
            sizes,
            inputs,
            timed=Artifact.load(asked.model) if Path(asked.model).is_dir() else artifact,
            verification=verification,
            threads=asked.threads,
            machine=machine,
            step=step,
        )
        step("drawing")
        text = page(data)
    write_whole(output, text)
    if asked.json:
        times = None if data.speed is None else asdict(data.speed)
        print_json({"report": output, "bytes": len(text.encode()), "sizes": sizes, "times": times})
    else:
        console().print(output, highlight=False, markup=False)


def _verification(asked: ReportRequest, artifact: Artifact, original: str | bytes) -> Mapping[str, Any] | None:
    """Returns the outcome of a verification: for a folder the one in its report, otherwise a new one."""
    if not asked.verify:
        return None
    if Path(asked.model).is_dir():
        found = Artifact.load(asked.model).report.get("verification")
        if found is not None:
            return found
    return artifact.verify(**asked.given.for_verify(), reference=original).to_dict()


def _measured(target: str, step: Callable[[str], None]) -> MachineModel:
    """Returns the model of this machine, measured."""
    step("measuring the machine")
    (machine,) = described_machines(target, None)
    return override(machine, measure(machine, step).given())
