"""Each distinct region beside its nodes: a model of its kernel and a model of its nodes, on the same values.

The values come from one run of the graph, so they have the ranges of the model. The kernel is first compared with the
region's own nodes, as in `igniter.verification.regions`; then the two models run in turns, with ONNX Runtime's twice,
as a control. The nodes that are timed are those before layouts were chosen, with tensors as the model has them: a
kernel reads and writes its images with channels last, and both do without a change of layout.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, BlockArgument, Operation, Region, SSAValue

from igniter.activity import doing
from igniter.analysis.fusion.graph import region_nodes
from igniter.compiler.kernel_regions import KernelRegions
from igniter.compiler.measuring.digests import graph_digest, shapes_text
from igniter.compiler.measuring.formed import FormedRegions
from igniter.compiler.measuring.outcome import RegionOutcome, Times
from igniter.compiler.measuring.request import Measure
from igniter.dialects.fusion import RegionOp
from igniter.dialects.onnx.attributes import texts_attr
from igniter.dialects.onnx.bound import base_name
from igniter.dialects.onnx.structure import GraphOp, ReturnOp, main_graph
from igniter.frontend import export_model
from igniter.frontend.exact_integers import exact_bytes
from igniter.frontend.ort_values import run
from igniter.isolation import reason_of
from igniter.runtime.cache import cache_key
from igniter.runtime.session import make_session, said_by_onnxruntime
from igniter.runtime.turns import in_place
from igniter.transforms.fusion.inline_regions import onnx_level
from igniter.verification.judgement import Allowance, Noise, compare_within
from igniter.verification.original import Original, nudged_feed, unoptimised
from igniter.verification.regions import crossing_of, side_by_side, value_names, values_of

HINT = "compile without --measure, and with --verify, to look for the faulty kernel"
KERNEL, NODES, CONTROL = "igniter", "onnxruntime", "control"
NUDGES, MORE_NUDGES = 2, 6
"""The runs with inputs that differ by one rounding: before the first comparison, and before a failure."""

Feed = Mapping[str, Any]


@dataclass(frozen=True)
class Setting:
    """The inputs of a measurement besides the model."""

    measure: Measure
    machine: str
    allowed: Allowance
    feeds: Sequence[Feed]
    """The inputs of the model at each choice of sizes."""

    @property
    def options(self) -> dict[str, Any]:
        """ONNX Runtime's options for timed sessions. Spinning threads would slow the other system's run."""
        return {
            "intra_op_num_threads": self.measure.threads,
            "inter_op_num_threads": 1,
            "log_severity_level": 4,
            "config": {"session.intra_op.allow_spinning": "0"},
        }


@dataclass(frozen=True)
class Distinct:
    """Equal regions. `label` is that of the first."""

    label: str
    labels: tuple[str, ...]
    key: str
    """The key of its outcome in the cache."""


def measure_regions(
    found: FormedRegions, original: Original, setting: Setting, progress: Callable[[str], None]
) -> dict[str, RegionOutcome]:
    """Returns the outcome of each region by label; equal regions have the same."""
    values = _all_values(found, original, setting.feeds)
    if isinstance(values, str):
        outcomes = [_unmeasured(found, [label], values) for label in found.after]
        return {o.region: o for o in outcomes}
    distinct = _distinct(found, setting, values)
    by_label: dict[str, RegionOutcome] = {}
    cache = found.compilation.cache
    stored = {d.label: None if cache is None or setting.measure.again else cache.get(d.key) for d in distinct}
    missing = [d for d in distinct if stored[d.label] is None]
    with tempfile.TemporaryDirectory(prefix="igniter-measure-") as folder:
        kernels = _Kernels(found, [d.label for d in missing], Path(folder)) if missing else None
        for number, d in enumerate(distinct):
            earlier = stored[d.label]
            if earlier is not None:
                outcome = RegionOutcome.from_dict(json.loads(earlier))
            else:
                assert kernels is not None
                progress(f"measuring region {number + 1} of {len(distinct)}")
                outcome = _measured(found, d, kernels, setting, values)
                if cache is not None and not outcome.unmeasured:
                    cache.put(d.key, json.dumps(outcome.to_dict()).encode())
            named = _unmeasured(found, d.labels, "")
            own = replace(named, times=outcome.times, wrong=outcome.wrong, unmeasured=outcome.unmeasured)
            by_label.update(dict.fromkeys(d.labels, own))
    return by_label


def _unmeasured(found: FormedRegions, labels: Sequence[str], why: str) -> RegionOutcome:
    """Returns the outcome of equal regions without times."""
    first = found.before.get(labels[0])
    ops = () if first is None else tuple(base_name(op) for op in region_nodes(first))
    nodes = tuple(node for label in labels for node in found.nodes_of[label])
    return RegionOutcome(labels[0], ops, nodes, len(labels), unmeasured=why)


# -- values -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Values:
    """The values of region operands for one choice of sizes: of regions as formed, and as compiled."""

    before: Mapping[SSAValue, Any]
    after: Mapping[SSAValue, Any]

    def feed(self, region: RegionOp, *, formed: bool) -> dict[str, Any]:
        """Returns the inputs of a model of this region (`side_by_side`)."""
        values = self.before if formed else self.after
        return {f"v{i}": values[v] for i, v in enumerate(crossing_of([region]))}


def _all_values(found: FormedRegions, original: Original, feeds: Sequence[Feed]) -> list[_Values] | str:
    """Returns the values at each choice of sizes, or the reason for none."""
    sides = (found.formed, list(found.before.values())), (found.compilation.module, list(found.after.values()))
    try:
        return [
            _Values(*(values_of(module, crossing_of(regions), original, feed).crossing for module, regions in sides))
            for feed in feeds
        ]
    except Exception as error:  # a graph too large for one message, a value that cannot be an output
        return f"the values between regions are not available: {reason_of(error)}".splitlines()[0]


def _distinct(found: FormedRegions, setting: Setting, values: Sequence[_Values]) -> list[Distinct]:
    """Groups the regions that take the same time: equal kernels on values of equal shapes."""
    grouped: dict[str, list[str]] = {}
    for label, region in found.after.items():
        own = side_by_side(found.compilation.module, [region])[0]
        parts = [graph_digest(own, names=False)]
        if label in found.before:
            parts.append(graph_digest(side_by_side(found.formed, [found.before[label]])[0], names=False))
        parts += [shapes_text(each.feed(region, formed=False)) for each in values]
        settings = (found.compilation.kernel_settings, setting.machine, repr(setting.allowed))
        grouped.setdefault(cache_key("measured region", *settings, *parts), []).append(label)
    return [Distinct(labels[0], tuple(labels), key) for key, labels in grouped.items()]


# -- kernels ----------------------------------------------------------------------------------------------------------


class _Kernels:
    """One library with the kernels of several regions, and a model of each."""

    def __init__(self, found: FormedRegions, labels: Sequence[str], folder: Path):
        regions = [found.after[label] for label in labels]
        module, self._crossing = side_by_side(found.compilation.module, regions)
        library, self._rewritten = KernelRegions(found.compilation).library(module)
        self._library = library.write(folder)
        end = main_graph(self._rewritten).body.last_op
        assert isinstance(end, ReturnOp)
        results = iter(end.operands)
        self._results = {
            label: [next(results) for _ in region.results] for label, region in zip(labels, regions, strict=True)
        }

    def session(self, label: str, **options: Any) -> Any:
        """Returns a session of a region's kernel alone."""
        model = export_model(_alone(self._rewritten, self._results[label])).SerializeToString()
        return make_session(model, [self._library], **options)

    def feed(self, session: Any, values: _Values) -> dict[str, Any]:
        """Returns the inputs of such a session."""
        named = {f"v{i}": value for i, value in enumerate(self._crossing)}
        return {item.name: values.after[named[item.name]] for item in session.get_inputs()}


def _alone(module: ModuleOp, results: Sequence[SSAValue]) -> ModuleOp:
    """Returns a module of only the op with these results, and of the ops that compute its operands: constants, and
    facts about the inputs. Its inputs keep the names of the module's, `v` and their place."""
    owner = results[0].owner
    assert isinstance(owner, Operation)
    needed = _needed(owner)
    inputs = list(dict.fromkeys(v for op in needed for v in op.operands if isinstance(v, BlockArgument)))
    block = Block(arg_types=[v.type for v in inputs])
    mapping: dict[SSAValue, SSAValue] = dict(zip(inputs, block.args, strict=True))
    for op in needed:
        block.add_op(op.clone(mapping))
    block.add_op(ReturnOp.make([mapping[v] for v in results]))
    attributes = {
        "input_names": texts_attr([f"v{v.index}" for v in inputs]),
        "output_names": texts_attr([f"out{i}" for i in range(len(results))]),
    }
    return ModuleOp([GraphOp.make("region", Region(block), attributes)], dict(module.attributes))


def _needed(op: Operation) -> list[Operation]:
    """Returns the ops of a block that an op depends on, and the op, in order."""
    found = {op}
    pending = [op]
    while pending:
        owners = [v.owner for v in pending.pop().operands]
        new = [o for o in owners if isinstance(o, Operation) and o not in found]
        found.update(new)
        pending += new
    assert op.parent is not None
    return [each for each in op.parent.ops if each in found]


# -- one region -------------------------------------------------------------------------------------------------------


def _measured(
    found: FormedRegions, d: Distinct, kernels: _Kernels, setting: Setting, values: Sequence[_Values]
) -> RegionOutcome:
    """Compares and times one region; a failure is its outcome."""
    outcome = _unmeasured(found, d.labels, "")
    try:
        with doing("a region's kernel ran beside its nodes", runs="kernels", hint=HINT):
            kernel = kernels.session(d.label, **setting.options)
            for each in values:
                try:
                    actual = run(kernel, kernels.feed(kernel, each))
                except Exception as error:  # ONNX Runtime's errors have no common base
                    return replace(outcome, wrong=f"the kernel fails: {said_by_onnxruntime(error)}")
                wrong = _difference(found, d.label, actual, each, setting.allowed)
                if wrong:
                    return replace(outcome, wrong=wrong)
            runs = [in_place(kernel, kernels.feed(kernel, each)) for each in values]
            times = [_times(found, d.label, r, each, setting) for r, each in zip(runs, values, strict=True)]
            return replace(outcome, times=tuple(times))
    except Exception as error:  # ONNX Runtime's errors have no common base
        return replace(outcome, unmeasured=reason_of(error).splitlines()[0])


def _difference(found: FormedRegions, label: str, actual: Sequence[Any], values: _Values, allowed: Allowance) -> str:
    """Returns the reason why the kernel's outputs `actual` count as different; "" if they agree."""
    region = found.after[label]
    model = exact_bytes(export_model(onnx_level(side_by_side(found.compilation.module, [region])[0])))
    plain = make_session(model, log_severity_level=4, graph_optimization_level=unoptimised())
    feed = values.feed(region, formed=False)
    expected = run(plain, feed)
    others = [run(make_session(model, log_severity_level=4), feed)]
    wrong = ""
    for most in (NUDGES, MORE_NUDGES):
        while len(others) <= most and (nudged := nudged_feed(feed, len(others))) is not None:
            others.append(run(plain, nudged))
        results = [
            compare_within(name, e, a, allowed, Noise([o[i] for o in others], seen=True))
            for i, (name, e, a) in enumerate(zip(value_names(region), expected, actual, strict=True))
        ]
        wrong = next((f"'{r.name}': {r.reason}" for r in results if not r.ok and not r.says_nothing), "")
        if not wrong:
            return ""
    return wrong


def _times(found: FormedRegions, label: str, kernel: Callable[[], object], values: _Values, setting: Setting) -> Times:
    """Times a kernel and the nodes of its region in turns."""
    systems = {KERNEL: kernel}
    formed = found.before.get(label)
    if formed is not None:
        model = export_model(onnx_level(side_by_side(found.formed, [formed])[0])).SerializeToString()
        feed = values.feed(formed, formed=True)
        systems |= {name: in_place(make_session(model, **setting.options), feed) for name in (NODES, CONTROL)}
    turns = setting.measure.timer(f"region {label}", systems, setting.measure.region_seconds)
    if formed is None:
        return Times(turns.median(KERNEL), 0.0, 0.0, 0.0, turns.rounds)
    noise = turns.noise(KERNEL, NODES, (CONTROL, NODES))
    return Times(turns.median(KERNEL), turns.median(NODES), turns.ratio(KERNEL, NODES), noise, turns.rounds)
