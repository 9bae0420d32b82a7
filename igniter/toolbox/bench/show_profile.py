"""`igniter bench --profile`: the distribution of a compiled model's time."""

from __future__ import annotations

import json as jsonlib
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

import igniter
from igniter.compiler.artifact import Artifact, require_model_or_folder
from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.toolbox.bench.inputs import inputs_for
from igniter.toolbox.bench.time_profile import profile_artifact
from igniter.toolbox.output import console, parse_shapes, print_json, progress

if TYPE_CHECKING:
    from igniter.toolbox.bench.request import BenchRequest
    from igniter.toolbox.bench.time_profile import Profile


def run(asked: BenchRequest) -> None:
    """Compiles for a profile, runs, and prints."""
    cases = parse_shapes(asked.given.shapes) or [{}]
    if asked.trace and len(cases) > 1:
        raise IgniterError("a trace is of one choice of sizes: give --shape once")
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory(prefix="igniter-profile-") as folder:
        original = original_of(asked.model, asked.reference)
        feeds = [inputs_for(original, case, asked.given) for case in cases]
        with progress("compiling", asked.json) as step:
            artifact = compile_again(
                asked.model, original, asked.target, Path(folder) / "model.igniter", step, profile=True
            )
        for sizes, inputs in feeds:
            profile = profile_artifact(artifact, inputs, threads=asked.threads, spinning=asked.spinning)
            rows.append({"shapes": sizes, "threads": asked.threads, **profile.to_dict()})
            if asked.trace:
                write_whole(asked.trace, jsonlib.dumps(profile.to_trace()))
            if not asked.json:
                _print(sizes, profile)
    if asked.json:
        print_json(rows)


def original_of(path: str, reference: str) -> str | bytes:
    """Returns the model at a path, or the source of the compiled model in the folder there."""
    require_model_or_folder(path)
    if not Path(path).is_dir():
        return path
    original = reference or Artifact.load(path).source
    if original is None:
        raise IgniterError(f"the original model of {path} is not known or has changed: give --reference")
    return original


def compile_again(
    path: str, original: str | bytes, target: str, folder: Path, step: Callable[[str], None], *, profile: bool
) -> Artifact:
    """Compiles the model at a path, with `profile` so that it records times.

    A compiled model is used unchanged if it records times or need not. Otherwise it is compiled again with its options,
    and must have the same kernels as before; a model made with a custom pipeline has others.
    """
    options = igniter.CompileOptions(target=target, profile=profile)
    if not Path(path).is_dir():
        return igniter.compile(original, folder, options=options, verify=False, progress=step)
    given = Artifact.load(path)
    said: dict[str, Any] = given.report["options"]
    if said.get("profile") or not profile:
        return given
    options = igniter.CompileOptions.of_report({**said, "profile": True})
    if said.get("tuned_digest", "") != options.tuned_digest():
        raise IgniterError(
            f"{path} was compiled with schedules of {options.tuned}, which has others by now: compile it again with "
            "--profile, and give that folder"
        )
    made = igniter.compile(original, folder, options=options, verify=False, progress=step)
    if given.report.get("kernel_digest", made.report["kernel_digest"]) != made.report["kernel_digest"]:
        raise IgniterError(
            f"the kernels of {path} are not those that Igniter makes of the original: it was compiled "
            "from IR with a schedule of its own, or by another version. Compile it with --profile (in Python, "
            "CompileOptions(profile=True)), and give that folder"
        )
    return made


def _print(sizes: dict[str, int], profile: Profile) -> None:
    out = console()
    shapes = ", ".join(f"{k}={v}" for k, v in sizes.items()) or "as in the model"
    table = Table("step", "what", "kernel", "ms", "share", "GFLOP/s", "GB/s", title=f"{shapes}: every step")
    for number, step in enumerate(profile.steps):
        figures = (_figure(step.gflops), _figure(step.gbytes))
        table.add_row(str(number), _short(step.what), step.kernel, _ms(step.ms), _percent(step.share), *figures)
    rest = profile.rest_ms
    table.add_row("", "ONNX Runtime", "", _ms(rest), _percent(rest / profile.run_ms), "", "")
    out.print(table)
    out.print(_by_kernel(profile))
    out.print(
        f"one run: {profile.run_ms:.4g} ms without interruptions; the median of {profile.runs}: "
        f"{profile.measured_ms:.4g} ms"
    )


def _by_kernel(profile: Profile) -> Any:
    table = Table("kernel", "what", "calls", "ms", "share", "GFLOP/s", "GB/s", title="by kernel")
    kernels = {step.kernel: [s for s in profile.steps if s.kernel == step.kernel] for step in profile.steps}
    for kernel, steps in sorted(kernels.items(), key=lambda item: -sum(s.ms for s in item[1])):
        ms = sum(s.ms for s in steps)
        rates = [
            _figure(None if None in amounts or not ms else sum(a or 0 for a in amounts) / ms / 1e6)
            for amounts in ([s.flops for s in steps], [s.bytes for s in steps])
        ]
        what = _short(steps[0].what)
        table.add_row(kernel, what, str(len(steps)), _ms(ms), _percent(ms / profile.run_ms), *rates)
    return table


def _short(what: str, limit: int = 60) -> str:
    return what if len(what) <= limit else f"{what[: limit - 3]}..."


def _ms(value: float) -> str:
    return f"{value:.4f}"


def _percent(share: float) -> str:
    return f"{100 * share:.1f}%"


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.3g}"
