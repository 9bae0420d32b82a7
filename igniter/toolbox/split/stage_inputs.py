"""The inputs of stages: from a file, or generated for the inputs of the whole model."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.errors import IgniterError
from igniter.frontend import import_model
from igniter.runtime.session import make_session
from igniter.toolbox.options import require_one
from igniter.toolbox.output import parse_shapes
from igniter.verification.given import read_inputs
from igniter.verification.graph_facts import GraphFacts, facts_of
from igniter.verification.inputs import random_inputs
from igniter.verification.report import Refusal
from igniter.verification.sizes import Search
from igniter.verification.specs import checked_shapes, specs_of, symbols_of

if TYPE_CHECKING:
    from igniter.toolbox.split.stages.manifest import Manifest
    from igniter.toolbox.split.stages.running import RankRunner, StageRunner
    from igniter.verification.specs import InputSpec

USUAL = 4
"""The default size of a dim."""
SEARCH_SECONDS = 30.0


def feeds_of(
    manifest: Manifest,
    runner: StageRunner | RankRunner,
    inputs: str,
    shape: Sequence[str],
    items: int,
    seed: int,
    reference: str = "",
) -> list[Mapping[str, Any]]:
    """Returns the given inputs, or `items` sets of generated values at sizes valid for the stages: the requested sizes,
    those of the split, and 4 for others, or the result of a search if the stages do not run at 4."""
    require_one(shape, inputs)
    if inputs:
        return list(read_inputs(inputs, manifest.inputs))
    wanted, facts = _wanted(manifest, reference)
    given = (parse_shapes(shape) or [{}])[0]
    given = checked_shapes(wanted, given)
    fixed = {s: n for s, n in {**manifest.sizes, **given}.items() if s in symbols_of(wanted)}
    sizes = _sizes(wanted, facts, fixed, runner, seed)
    return [random_inputs(wanted, sizes, facts, seed=seed + i) for i in range(items)]


def _wanted(manifest: Manifest, reference: str) -> tuple[list[InputSpec], GraphFacts]:
    """Returns the inputs read by the models of the folder, and the facts about them in the whole model, if given."""
    specs: dict[str, InputSpec] = {}
    facts = GraphFacts()
    for path in (*_reading(manifest), *([reference] if reference else [])):
        facts = _joined(facts, facts_of(import_model(path)))
        session: Any = make_session(path, log_severity_level=4)
        inner = {v.name for v in session.get_inputs()} - set(manifest.inputs)
        specs.update({s.name: s for s in specs_of(session, inner) if s.name not in specs})
    return [specs[n] for n in manifest.inputs if n in specs], facts


def _sizes(
    wanted: Sequence[InputSpec],
    facts: GraphFacts,
    fixed: dict[str, int],
    runner: StageRunner | RankRunner,
    seed: int,
) -> dict[str, int]:
    """Returns sizes at which the stages run. Raises `IgniterError` with the stages' error if the search finds none."""

    def attempt(sizes: dict[str, int]) -> bool | Refusal:
        try:
            runner.run(random_inputs(wanted, sizes, facts, seed=seed))
        except IgniterError as error:
            return Refusal(sizes, error.message)
        return True

    usual = {s: fixed.get(s, USUAL) for s in symbols_of(wanted)}
    first = attempt(usual)
    if not isinstance(first, Refusal):
        return usual
    search = Search(wanted, facts, attempt, fixed, time.monotonic() + SEARCH_SECONDS)
    for proposal, _ in search.run():
        if proposal.kind != "ones":
            return proposal.sizes
    if search.last is not None:
        return search.last
    raise IgniterError(f"{first.reason}; give --shape, or inputs by --inputs")


def _joined(one: GraphFacts, other: GraphFacts) -> GraphFacts:
    """Combines the requirements of two models on their common inputs."""
    names = {*one.limits, *other.limits}
    limits = {n: min(f.limits[n] for f in (one, other) if n in f.limits) for n in names}
    return replace(one, limits=limits, positive=one.positive | other.positive, sound=one.sound or other.sound)


def _reading(manifest: Manifest) -> Iterator[Path]:
    """Yields the models with inputs of the whole."""
    if manifest.kind == "tensor":
        yield from (manifest.folder / s.models[0] for s in manifest.segments if set(s.inputs) & set(manifest.inputs))
        return
    yield from (manifest.path(s) for s in manifest.stages if set(s.inputs) & set(manifest.inputs))
