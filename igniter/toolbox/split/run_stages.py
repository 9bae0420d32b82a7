"""`igniter run-stages`, and `igniter serve` of stages: in processes, or on a cluster."""

from __future__ import annotations

import io
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.toolbox.output import console, print_json
from igniter.toolbox.split.stage_inputs import feeds_of
from igniter.toolbox.split.stages.manifest import read_manifest
from igniter.toolbox.split.stages.on_ray import RayStages
from igniter.toolbox.split.stages.running import runner_of
from igniter.toolbox.split.stages.workers import ProcessStages
from igniter.verification.judge import Judge, Ready
from igniter.verification.judgement import CHAOS, Allowance
from igniter.verification.original import Original

if TYPE_CHECKING:
    from igniter.toolbox.serve.request import ServeRequest
    from igniter.toolbox.split.request import RunStagesRequest
    from igniter.toolbox.split.stages.manifest import Manifest
    from igniter.toolbox.split.stages.running import RankRunner, StageRunner


JUDGE_SECONDS = 30.0
"""The limit in seconds for repeated runs of the whole model, which measure the noise of its outputs."""


def run(asked: RunStagesRequest) -> int:
    """Runs and prints; returns the exit status, 1 if the outputs differ from those of the whole model, where given."""
    manifest = read_manifest(asked.folder)
    stages: AbstractContextManager[ProcessStages | None]
    stages = ProcessStages(manifest) if asked.processes else nullcontext()
    with stages as there:
        runner = there.runner if there is not None else runner_of(manifest)
        feeds = feeds_of(manifest, runner, asked.inputs, asked.shape, asked.items, asked.seed, asked.reference)
        outputs, seconds = _run_all(runner, feeds)
        where = (
            [{"stage": s.name, "process": p} for s, p in zip(manifest.stages, there.processes, strict=True)]
            if there
            else []
        )
    if asked.output:
        _save(asked.output, outputs[-1])
    return _tell(manifest, feeds, outputs, seconds, where, asked.reference, asked.json)


def serve(asked: ServeRequest) -> int:
    """Puts the stages on a cluster, runs and prints; returns the exit status, as `run`."""
    manifest = read_manifest(asked.model)
    with RayStages(manifest, asked.ray or "auto", cpus=asked.cpus, name=asked.name) as stages:
        feeds = feeds_of(manifest, stages.runner, asked.inputs, asked.shape, asked.items, asked.seed, asked.reference)
        outputs, seconds = _run_all(stages.runner, feeds)
        where = [{"stage": s.name, "node": n} for s, n in zip(manifest.stages, stages.nodes, strict=True)]
    return _tell(manifest, feeds, outputs, seconds, where, asked.reference, asked.json)


def _run_all(
    runner: StageRunner | RankRunner, feeds: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], float]:
    """Returns the outputs for all inputs, and the seconds without a first run."""
    runner.run(feeds[0])
    start = time.perf_counter()
    outputs = list(runner.run_many(feeds))
    return outputs, time.perf_counter() - start


def _save(path: str, outputs: Mapping[str, Any]) -> None:
    data = io.BytesIO()
    np.savez(data, **dict(outputs))
    write_whole(path, data.getvalue())


def _tell(
    manifest: Manifest,
    feeds: Sequence[Mapping[str, Any]],
    outputs: Sequence[Mapping[str, Any]],
    seconds: float,
    where: list[dict[str, Any]],
    reference: str,
    json: bool,
) -> int:
    told: dict[str, Any] = {"kind": manifest.kind, "stages": where, "items": len(feeds), "seconds": seconds}
    bad: list[str] = []
    if reference:
        told |= _compare(reference, feeds, outputs)
        bad = told["differs"]
    if json:
        print_json(told)
        return 1 if bad else 0
    out = console()
    for place in where:
        what = f"process {place['process']}" if "process" in place else f"node {place['node']}"
        out.print(f"{place['stage']}: {what}", markup=False)
    out.print(f"{len(feeds)} items in {seconds * 1e3:.1f} ms")
    for text in bad:
        out.print(f"differs: {text}", markup=False)
    for text in told.get("not_judged", ()):
        out.print(f"not judged: {text}", markup=False)
    if reference and not bad and not told["not_judged"]:
        out.print(f"the outputs are those of {reference}, largest relative error {told['max_error']:.1e}", markup=False)
    return 1 if bad else 0


def _compare(
    reference: str, feeds: Sequence[Mapping[str, Any]], outputs: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Returns the largest error, the outputs with an error above the whole model's own noise, and the inconclusive
    outputs, whose noise is too large."""
    whole = Original(reference)
    if whole.random_values is None or whole.random_values:
        raise IgniterError(f"random nodes are in {reference}, so that two runs differ: leave --reference out")
    judge = Judge(whole, Allowance(), JUDGE_SECONDS)
    worst, bad = 0.0, list[str]()
    for feed, found in zip(feeds, outputs, strict=True):
        expected, _ = whole.run(feed)
        for outcome in judge.outputs(Ready(dict(feed), expected), [found[n] for n in whole.output_names]):
            worst = max(worst, outcome.max_error)
            bad += [] if outcome.ok else [f"'{outcome.name}': {outcome.reason}"]
    silent = [text for text in bad if CHAOS in text]
    return {"max_error": worst, "differs": [t for t in bad if t not in silent], "not_judged": silent}
