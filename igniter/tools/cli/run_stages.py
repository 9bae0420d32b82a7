"""`igniter run-stages` and `igniter serve`: the stages of a folder in processes, or on a cluster."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.errors import IgniterError
from igniter.tools.cli.output import console, parse_shapes, print_json

if TYPE_CHECKING:
    from igniter.runtime.stages.manifest import Manifest
    from igniter.runtime.stages.running import RankRunner, StageRunner
    from igniter.runtime.stages.workers import ProcessStages
    from igniter.runtime.verification.graph_facts import GraphFacts


@dataclass(frozen=True)
class RunRequest:
    """The options of `run-stages`, as they were typed."""

    folder: str
    inputs: str
    shape: tuple[str, ...]
    items: int
    processes: bool
    reference: str
    output: str
    seed: int


@dataclass(frozen=True)
class ServeRequest:
    """The options of `serve`, as they were typed."""

    folder: str
    ray: str
    inputs: str
    shape: tuple[str, ...]
    items: int
    cpus: float
    reference: str
    name: str
    seed: int


def run(asked: RunRequest, json: bool) -> bool:
    """Run and print; whether the outputs are those of the whole model, where that is given."""
    from igniter.runtime.stages.manifest import read_manifest
    from igniter.runtime.stages.running import runner_of
    from igniter.runtime.stages.workers import ProcessStages

    manifest = read_manifest(asked.folder)
    feeds = _feeds(manifest, asked.inputs, asked.shape, asked.items, asked.seed)
    stages: AbstractContextManager[ProcessStages | None]
    stages = ProcessStages(manifest) if asked.processes else nullcontext()
    with stages as there:
        runner = there.runner if there is not None else runner_of(manifest)
        outputs, seconds = _run_all(runner, feeds)
        where = (
            [{"stage": s.name, "process": p} for s, p in zip(manifest.stages, there.processes, strict=True)]
            if there
            else []
        )
    if asked.output:
        _save(asked.output, outputs[-1])
    return _tell(manifest, feeds, outputs, seconds, where, asked.reference, json)


def serve(asked: ServeRequest, json: bool) -> bool:
    """Put the stages on a cluster, run and print."""
    from igniter.runtime.stages.manifest import read_manifest
    from igniter.runtime.stages.on_ray import RayStages

    manifest = read_manifest(asked.folder)
    feeds = _feeds(manifest, asked.inputs, asked.shape, asked.items, asked.seed)
    with RayStages(manifest, asked.ray, cpus=asked.cpus, name=asked.name) as stages:
        outputs, seconds = _run_all(stages.runner, feeds)
        where = [{"stage": s.name, "node": n} for s, n in zip(manifest.stages, stages.nodes, strict=True)]
    return _tell(manifest, feeds, outputs, seconds, where, asked.reference, json)


def _run_all(
    runner: StageRunner | RankRunner, feeds: Sequence[Mapping[str, Any]]
) -> tuple[list[dict[str, Any]], float]:
    """The outputs for all inputs, and the seconds that they took behind a first run that is not counted."""
    runner.run(feeds[0])
    start = time.perf_counter()
    outputs = list(runner.run_many(feeds))
    return outputs, time.perf_counter() - start


def _feeds(manifest: Manifest, inputs: str, shape: Sequence[str], items: int, seed: int) -> list[Mapping[str, Any]]:
    """What goes through: what is given, or values that are made for the inputs of the stages that read them."""
    if inputs:
        from igniter.runtime.verification.given import read_inputs

        return list(read_inputs(inputs, manifest.inputs))
    from igniter.frontend import import_model
    from igniter.runtime.session import make_session
    from igniter.runtime.verification.graph_facts import GraphFacts, facts_of
    from igniter.runtime.verification.inputs import random_inputs
    from igniter.runtime.verification.specs import InputSpec, specs_of, symbols_of

    specs: dict[str, InputSpec] = {}
    facts = GraphFacts()
    for path in _reading(manifest):
        facts = _joined(facts, facts_of(import_model(path)))
        session: Any = make_session(path, log_severity_level=4)
        specs.update({s.name: s for s in specs_of(session) if s.name in manifest.inputs and s.name not in specs})
    wanted = [specs[n] for n in manifest.inputs if n in specs]
    given = (parse_shapes(shape) or [{}])[0]
    unknown = sorted(set(given) - set(symbols_of(wanted)))
    if unknown:
        raise IgniterError(f"the model has no dim {', '.join(unknown)}; its dims are {', '.join(symbols_of(wanted))}")
    sizes = {s: given.get(s, manifest.sizes.get(s, 4)) for s in symbols_of(wanted)}
    return [random_inputs(wanted, sizes, facts, seed=seed + i) for i in range(items)]


def _joined(one: GraphFacts, other: GraphFacts) -> GraphFacts:
    """What two models ask of the inputs that both read."""
    from dataclasses import replace

    names = {*one.limits, *other.limits}
    limits = {n: min(f.limits[n] for f in (one, other) if n in f.limits) for n in names}
    return replace(one, limits=limits, positive=one.positive | other.positive, sound=one.sound or other.sound)


def _reading(manifest: Manifest) -> Iterator[Path]:
    """The models that read inputs of the whole."""
    if manifest.kind == "tensor":
        yield from (manifest.folder / s.models[0] for s in manifest.segments if set(s.inputs) & set(manifest.inputs))
        return
    yield from (manifest.path(s) for s in manifest.stages if set(s.inputs) & set(manifest.inputs))


def _save(path: str, outputs: Mapping[str, Any]) -> None:
    import io

    import numpy as np

    from igniter.runtime.files import write_whole

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
) -> bool:
    told: dict[str, Any] = {"kind": manifest.kind, "stages": where, "items": len(feeds), "seconds": seconds}
    bad: list[str] = []
    if reference:
        told["max_error"], bad = _compare(reference, feeds, outputs)
        told["differs"] = bad
    if json:
        print_json(told)
        return not bad
    out = console()
    for place in where:
        what = f"process {place['process']}" if "process" in place else f"node {place['node']}"
        out.print(f"{place['stage']}: {what}", markup=False)
    out.print(f"{len(feeds)} items in {seconds * 1e3:.1f} ms")
    for text in bad:
        out.print(f"differs: {text}", markup=False)
    if reference and not bad:
        out.print(f"the outputs are those of {reference}, largest relative error {told['max_error']:.1e}", markup=False)
    return not bad


def _compare(
    reference: str, feeds: Sequence[Mapping[str, Any]], outputs: Sequence[Mapping[str, Any]]
) -> tuple[float, list[str]]:
    from igniter.runtime.session import make_session
    from igniter.runtime.verification.judgement import compare_output

    whole: Any = make_session(reference)
    worst, bad = 0.0, list[str]()
    for feed, found in zip(feeds, outputs, strict=True):
        names = list(found)
        for name, expected in zip(names, whole.run(names, dict(feed)), strict=True):
            outcome = compare_output(name, expected, found[name])
            worst = max(worst, outcome.max_error)
            bad += [] if outcome.ok else [f"'{name}': {outcome.reason}"]
    return worst, bad
