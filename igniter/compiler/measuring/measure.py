"""The measurement of a model: its regions, the trials by their times, and the chosen nodes; or all from the cache."""

from __future__ import annotations

import dataclasses
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.compiler.compilation import Compilation
from igniter.compiler.driver import is_fused
from igniter.compiler.measuring.candidates import everything, joined, slow_components, slow_regions
from igniter.compiler.measuring.digests import graph_digest, shapes_text
from igniter.compiler.measuring.formed import FormedRegions, form_regions, fresh
from igniter.compiler.measuring.machine import machine_key, require_this_machine
from igniter.compiler.measuring.outcome import Outcome, RegionOutcome
from igniter.compiler.measuring.regions import Setting, measure_regions
from igniter.compiler.measuring.trials import Trials
from igniter.errors import IgniterError
from igniter.frontend import export_model
from igniter.frontend.ort_values import typed
from igniter.runtime.cache import Cache, cache_key
from igniter.runtime.session import SessionError, make_session
from igniter.transforms.fusion.inline_regions import onnx_level
from igniter.verification.given import read_inputs
from igniter.verification.graph_facts import model_facts
from igniter.verification.judgement import Allowance
from igniter.verification.original import Original
from igniter.verification.specs import checked_shapes, symbols_of
from igniter.verification.verify import PRECISIONS, typical_inputs

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

    from igniter.compiler.measuring.request import Measure

WRONG = "its kernel's outputs differ from ONNX Runtime's"


@dataclass(frozen=True)
class _Given:
    """The model of a measurement, with its inputs."""

    module: ModuleOp
    source: Original
    sizes: tuple[str, ...]
    feeds: tuple[Mapping[str, Any], ...]


def with_measured(
    c: Compilation, original: ModuleOp, source: str | Path | bytes | None, verify: Mapping[str, Any], measure: Measure
) -> Compilation:
    """Returns a compilation whose options leave the measured nodes to ONNX Runtime, with the outcome as remarks and for
    its report. `measured` explains the arguments."""
    start = time.perf_counter()
    found = measured(c, original, source, verify, measure)
    options = dataclasses.replace(c.options, left=tuple({**dict(c.options.left), **found.left}.items()))
    found.remark_on(c.ctx)
    seconds = {**c.seconds, "measure": time.perf_counter() - start}
    return dataclasses.replace(c, options=options, measured=found.to_dict(), seconds=seconds)


def measured(
    c: Compilation, original: ModuleOp, source: str | Path | bytes | None, verify: Mapping[str, Any], measure: Measure
) -> Outcome:
    """Returns the measurement of a model, or its outcome from the cache of `c`, whose module is left unchanged.

    `original` is the model as it was given, `source` the file behind it, if the module is unchanged. `verify` has the
    sizes or inputs for the measurement, and the tolerance. Raises `IgniterError` if the options cannot be measured.
    """
    _require_measurable(c, original)
    c.progress("measuring")
    with tempfile.TemporaryDirectory(prefix="igniter-measured-") as folder:
        # Trials share most kernels, so they need a cache in any case.
        cache = c.cache if c.cache is not None and c.cache.limit else Cache(Path(folder) / "cache")
        machine = machine_key(measure.threads)
        empty = Outcome(measure.threads, machine)
        try:
            given = _given(c, original, source, verify)
        except IgniterError as error:
            return dataclasses.replace(empty, cannot=error.message)
        key = cache_key(
            "measured",
            c.options.key(),
            machine,
            graph_digest(original, names=True),
            *map(shapes_text, given.feeds),
            json.dumps([verify.get("rtol"), verify.get("atol")]),
        )
        stored = None if measure.again else cache.get(key)
        if stored is not None:
            return dataclasses.replace(Outcome.from_dict(json.loads(stored)), from_cache=True)
        rtol = verify.get("rtol")
        allowed = Allowance(PRECISIONS.get(c.options.precision) if rtol is None else rtol, verify.get("atol") or 0.0)
        setting = Setting(measure, machine, allowed, given.feeds)
        found = _measured(dataclasses.replace(c, cache=cache), given, setting, Path(folder))
        found = dataclasses.replace(found, sizes=given.sizes).decided()
        cache.put(key, json.dumps(found.to_dict()).encode())
        return found


def _require_measurable(c: Compilation, original: ModuleOp) -> None:
    """Raises `IgniterError` for options without a meaning here."""
    require_this_machine(c)
    if is_fused(original):
        raise IgniterError(
            "measure has no effect: the regions are already formed. Give the model, or IR of the onnx level"
        )
    if c.options.sanitize:
        raise IgniterError("measure times kernels, and sanitize adds checks to them: leave one of them out")


# -- the model and its inputs -----------------------------------------------------------------------------------------


def _given(c: Compilation, original: ModuleOp, source: str | Path | bytes | None, verify: Mapping[str, Any]) -> _Given:
    """Returns the model with its inputs, as `verify` has them, or generated for its sizes or for typical ones. Raises
    `IgniterError` if ONNX Runtime does not run the model."""
    model = export_model(onnx_level(original)).SerializeToString() if source is None else source
    model = model if isinstance(model, bytes) else str(model)
    runs = Original(model, options={"intra_op_num_threads": 1, "log_severity_level": 4})
    inputs = verify.get("inputs")
    if inputs is not None:
        feeds = _feeds(runs, inputs)
        return _Given(original, runs, tuple("as given" for _ in feeds), tuple(feeds))
    cases: Sequence[Mapping[str, int]] = verify.get("shapes") or ()
    if not cases:
        known = symbols_of(runs.specs)
        cases = [{name: size for name, size in c.options.sizes if name in known}]
    facts = model_facts(model)
    found = [
        typical_inputs(runs, facts, checked_shapes(runs.specs, case), int(verify.get("seed") or 0)) for case in cases
    ]
    texts = tuple(", ".join(f"{name}={size}" for name, size in sizes.items()) for sizes, _ in found)
    return _Given(original, runs, texts, tuple(feed for _, feed in found))


def _feeds(runs: Original, inputs: Any) -> list[Mapping[str, Any]]:
    if isinstance(inputs, (str, Path)):
        names = [value.name for value in runs.session.get_inputs()]
        return [typed(runs.session, feed) for feed in read_inputs(inputs, names)]
    return [inputs] if isinstance(inputs, Mapping) else list(inputs)


# -- the measurement --------------------------------------------------------------------------------------------------


def _measured(c: Compilation, given: _Given, setting: Setting, folder: Path) -> Outcome:
    empty = Outcome(setting.measure.threads, setting.machine)
    assert given.source.model is not None
    try:
        theirs = make_session(given.source.model, **setting.options)
    except SessionError as error:
        return dataclasses.replace(empty, cannot=error.message)
    # Time stamps would slow the programs of trials, and programs would hide the single regions.
    base = fresh(c, given.module, dataclasses.replace(c.options, profile=False))
    found = form_regions(fresh(c, given.module, dataclasses.replace(base.options, program_passes="")))
    outcomes = measure_regions(found, given.source, setting, c.progress)
    c.progress("measuring the whole model")
    trials = Trials(given.module, base, setting, theirs, folder)
    distinct = list({o.region: o for o in outcomes.values()}.values())
    _try_all(trials, found, outcomes, distinct)
    before, after = trials.finish()
    return dataclasses.replace(
        empty,
        left=trials.left,
        regions=tuple(distinct),
        trials=tuple(trials.outcomes),
        before=before,
        after=after,
    )


def _try_all(
    trials: Trials, found: FormedRegions, outcomes: Mapping[str, RegionOutcome], distinct: Sequence[RegionOutcome]
) -> None:
    """Tries the candidates: all slow regions together, or else one by one; the slow components; and all regions, if the
    model is still slower than ONNX Runtime's."""
    wrong = {node: WRONG for o in distinct if o.wrong for node in o.nodes}
    if wrong:
        trials.require({**dict(trials.base.options.left), **wrong})
    slow = slow_regions(distinct)
    if len(slow) < 2 or not trials.consider(joined(slow)):
        for candidate in slow:
            trials.consider(candidate)
    for candidate in slow_components(found.components(), outcomes, found.nodes_of):
        trials.consider(candidate)
    if distinct and any(t.is_slower for t in trials.now):
        trials.consider(everything(distinct, trials.now))
