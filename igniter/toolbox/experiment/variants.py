"""A variant as options of a compilation, or as a system to time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict

from xdsl.utils.arg_spec import parse_pipeline

from igniter.compiler.compilation import CompileOptions
from igniter.errors import IgniterError
from igniter.passes import flat_passes
from igniter.targets import parts_for
from igniter.toolbox.experiment.spec import Variant, digest

SCHEDULERS = ("choose-schedule", "form-variants")
"""The passes that ask a schedule author."""


def typical_sizes(variant: Variant, run: Mapping[str, int]) -> dict[str, int]:
    """Returns the typical sizes of a compilation for a run at `run`."""
    return dict(run) if isinstance(variant.sizes, str) else dict(variant.sizes)


def compile_options(variant: Variant, sizes: Mapping[str, int], tuned: str = "") -> CompileOptions:
    """Returns the options of a compilation with these typical sizes; `tuned` is a database of schedules."""
    passes: dict[str, str] = dict(variant.pipelines)
    if variant.schedule:
        own = parts_for(variant.target)[0].backend.pipelines.schedule
        passes["schedule"] = with_author(passes.get("schedule", own), variant.schedule)
    by_field = {("program" if level == "programs" else level) + "_passes": text for level, text in passes.items()}
    options = dict(variant.options)
    if isinstance(options.get("left"), list):
        options["left"] = dict.fromkeys(options["left"], "the specification")
    return CompileOptions(
        target=variant.target,
        sizes=tuple(sorted(sizes.items())),
        fusion_author=variant.fusion,
        tuned=tuned,
        **by_field,
        **options,
    )


def with_author(passes: str, author: str) -> str:
    """Returns a pipeline of schedules whose passes ask this author. Raises `IgniterError` if none of them asks one."""
    made: list[str] = []
    found = False
    for text in flat_passes(passes):
        (spec,) = parse_pipeline(text)
        if spec.name in SCHEDULERS:
            found = True
            spec = type(spec)(spec.name, {**spec.parameters, "author": (author,)})
        made.append(str(spec))
    if not found:
        raise IgniterError(f"the schedule author '{author}' has no effect: the pipeline has no {SCHEDULERS[0]}")
    return ",".join(made)


def build_key(variant: Variant, sizes: Mapping[str, int]) -> str:
    """Returns a hash of what affects the compilation of a variant at these typical sizes."""
    said = asdict(variant)
    ignored = ("name", "threads", "spinning", "sizes")
    return digest([{k: v for k, v in said.items() if k not in ignored}, dict(sizes)])
