"""Verification of a model with inconclusive outputs: piece by piece, each piece on identical inputs.

A detector that finds nothing gives noise of 1e-7, and any perturbation of its input changes the noise. Such an output
is inconclusive, but each step of its computation can be checked. Three comparisons cover the path from the original's
nodes to the compiled model:

1. *The passes before fusion.* The original, and the graph of the formed regions, are cut at every common value at the
   border of a region. Both get the original's values there, and their results must agree.
2. *The kernels.* Each region's kernel gets the inputs of its nodes (`igniter.verification.regions`).
3. *The whole.* The compiled model must agree, bit for bit, with its regions as separate custom ops, called in sequence
   by ONNX Runtime. A digest identifies the kernels.

The first two are judged like outputs: by the tolerance, the noise of the piece and its roundings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from xdsl.ir import OpResult

from igniter.activity import doing
from igniter.dialects.fusion import RegionOp
from igniter.dialects.onnx.attributes import texts_of
from igniter.dialects.onnx.structure import main_graph
from igniter.errors import IgniterError
from igniter.frontend import export_model, surgery
from igniter.frontend.evaluate import ort_errors
from igniter.frontend.ort_values import run
from igniter.transforms.fusion.inline_regions import onnx_level
from igniter.verification import regions as side
from igniter.verification.judge import Judge, Ready, first_line
from igniter.verification.judgement import Allowance, compare_output, failure
from igniter.verification.more_inputs import changed_feed
from igniter.verification.original import Original, unoptimised
from igniter.verification.regions import CompiledRegions, CompileRegions, compiled_session
from igniter.verification.report import BY_REGION, CaseResult, OutputResult
from igniter.verification.sensitivity import Watch

if TYPE_CHECKING:
    from xdsl.ir import SSAValue


MOST_UNKNOWN = 0.1
"""If more than this share of the pieces is inconclusive, so is the model."""


@dataclass(frozen=True)
class ByRegion:
    """The pieces of one compiled model. `digest` is the digest of its kernels, and
    `compile_regions` compiles the original once more. `whole` runs the model without ONNX
    Runtime's graph optimisations."""

    original: Original
    compile_regions: CompileRegions
    digest: str
    whole: Callable[[Mapping[str, Any]], Sequence[Any]]
    allowed: Allowance
    budget: float

    def case(self, sizes: dict[str, int], ready: Ready) -> CaseResult:
        """Returns the comparison of the pieces on one feed; skipped, with the reason, if they cannot be compared."""
        result = CaseResult(sizes, "passed", kind=BY_REGION)
        try:
            outputs = self._outputs(ready)
        except Exception as error:  # a graph too big to take apart, a value that cannot be an output
            return replace(result, status="skipped", reason=f"region by region: {first_line(error)}")
        unknown = [o for o in outputs if o.says_nothing]
        kept = [o for o in outputs if not o.says_nothing]
        if any(not o.ok for o in kept):
            return replace(result, status="failed", outputs=tuple(kept))
        if len(unknown) > MOST_UNKNOWN * len(outputs):
            reason = f"{len(unknown)} of {len(outputs)} values between regions prove nothing, even on identical inputs"
            return replace(result, status="skipped", reason=reason)
        return replace(result, outputs=tuple(kept))

    def _outputs(self, ready: Ready) -> list[OutputResult]:
        if ready.drawn:
            raise IgniterError("the values of random nodes cannot be fed to parts of a model")
        c = self.compile_regions(self.original)
        if c.digest != self.digest:
            raise IgniterError("a second compilation of the original gives different kernels")
        regions = [op for op in main_graph(c.module).body.ops if isinstance(op, RegionOp)]
        if not regions:
            raise IgniterError("the compiled model has no regions")
        passes = self._passes(c, regions, ready)
        with doing("the compiled model ran region by region", runs="kernels"):
            kernels = self._kernels(c, regions, ready)
            resting = {o.name.split(" (@")[0] for o in kernels if o.ok and o.says_nothing}
            # A constant value is also inconclusive for the passes and the whole.
            return [*kernels, *(_resting(o, resting) for o in (*passes, *self._whole(c, ready)))]

    # -- the passes before fusion -------------------------------------------------------------------------------------

    def _passes(self, c: CompiledRegions, regions: Sequence[RegionOp], ready: Ready) -> list[OutputResult]:
        """Compares the common values of both graphs at the borders of regions, from the original's values."""
        before, after = self.original.proto, export_model(onnx_level(c.module))
        assert before is not None
        crossing = {name for region in regions for v in (*region.inputs, *region.yielded) for name in _names(v)}
        crossing.update(self.original.output_names)
        computed = surgery.producers(before)
        names = [name for name in surgery.producers(after) if name in crossing and name in computed]
        later = Original(after.SerializeToString(), options=_plain())
        values = _arrays(self.original.exposing(names), ready.feed, names)
        there = _arrays(later.exposing(names), ready.feed, names)
        # Values are matched by name. A value with another type or shape is a different one, so it is left out.
        shared = {n: a for n, a in values.items() if n in there and _alike(a, there[n])}
        one, two = (self._cut(proto, shared) for proto in (before, after))
        feeds = [{v.name: {**ready.feed, **shared}[v.name] for v in p.session.get_inputs()} for p in (one, two)]
        order = one.output_names
        judge = Judge(one, self.allowed, self.budget)
        actual = run(two.session, feeds[1], order)
        results = judge.outputs(Ready(feeds[0], run(one.session, feeds[0], order)), actual)
        return [replace(o, name=o.name.removesuffix(surgery.COMPUTED) + " (passes)") for o in results]

    def _cut(self, proto: Any, values: Mapping[str, Any]) -> Original:
        data = surgery.with_cuts(proto, values).SerializeToString()
        folder = self.original.folder
        config = {"config": {"session.model_external_initializers_file_folder_path": folder}} if folder else {}
        return Original(data, options={**self.original.options, **config, **_plain()})

    # -- the kernels --------------------------------------------------------------------------------------------------

    def _kernels(self, c: CompiledRegions, regions: Sequence[RegionOp], ready: Ready) -> list[OutputResult]:
        values = side.values_of(c.module, side.crossing_of(regions), self.original, ready.feed).crossing
        module, crossing = side.side_by_side(c.module, regions)
        feed = {f"v{i}": values[v] for i, v in enumerate(crossing)}
        nodes = Original(export_model(onnx_level(module)).SerializeToString(), options=_plain())
        expected = run(nodes.session, feed)
        others = self._other_values(c, regions, nodes, crossing, ready)
        actual: list[Any] = []
        failed: list[OutputResult] = []
        for region, found in zip(regions, side.run_kernels(c, module, regions, values), strict=True):
            if isinstance(found, str):
                failed.append(failure(region.label, "", (), f"the kernel fails: {found}"))
                found = expected[len(actual) : len(actual) + len(region.results)]
            actual += found
        results = Judge(nodes, self.allowed, self.budget).outputs(Ready(feed, expected), actual)
        names = [(n, f" (@{r.kernel_name})") for r in regions for n in side.value_names(r)]
        watch = Watch([n for n, _ in names], self.allowed, frozenset(n for n, _ in names))
        for (name, _), o, e, other in zip(names, results, expected, others or expected, strict=True):
            watch.see(replace(o, name=name), e, replace(o, name=name), other)
        resting = watch.words if others else {}
        judged = [
            replace(o, name=n + kernel, says_nothing=o.says_nothing or (o.ok and n in resting))
            for o, (n, kernel) in zip(results, names, strict=True)
        ]
        return [*failed, *judged]

    def _other_values(
        self,
        c: CompiledRegions,
        regions: Sequence[RegionOp],
        nodes: Original,
        crossing: Sequence[SSAValue],
        ready: Ready,
    ) -> list[Any]:
        """Returns the values of the regions' nodes for other inputs; none if the model does not run on them."""
        changed = changed_feed(ready.feed, ready.seed)
        if changed is None:
            return []
        try:
            values = side.values_of(c.module, side.crossing_of(regions), self.original, changed).crossing
            return run(nodes.session, {f"v{i}": values[v] for i, v in enumerate(crossing)})
        except tuple(ort_errors()):
            return []

    # -- the whole ----------------------------------------------------------------------------------------------------

    def _whole(self, c: CompiledRegions, ready: Ready) -> list[OutputResult]:
        """Compares the outputs of the compiled model with those of its regions; they must be equal."""
        session = compiled_session(c, c.module, **_plain())
        found: list[OutputResult] = []
        expected = run(session, ready.feed, self.original.output_names)
        for name, e, a in zip(self.original.output_names, expected, self.whole(ready.feed), strict=True):
            ok = _same_bits(e, a)
            reason = "" if ok else "the compiled model and its regions, called in sequence, give different bits"
            good = OutputResult(name, str(getattr(e, "dtype", "")), getattr(e, "shape", ()), 0.0, 0.0, 0.0, ok)
            found.append(good if ok else failure(name, good.dtype, good.shape, reason))
        return found


def _resting(output: OutputResult, resting: Collection[str]) -> OutputResult:
    name = output.name.removesuffix(" (passes)")
    return replace(output, says_nothing=output.says_nothing or (output.ok and name in resting))


def _plain() -> dict[str, Any]:
    """Returns the options of a session without changes to nodes."""
    return {"log_severity_level": 4, "graph_optimization_level": unoptimised()}


def _names(value: SSAValue) -> list[str]:
    if not isinstance(value, OpResult):
        return []
    given = texts_of(value.owner.properties.get("output_names"))
    return [given[value.index]] if value.index < len(given) and given[value.index] else []


def _arrays(session: Any, feed: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """Returns the tensors among the values `names`."""
    found = dict(zip(names, run(session, feed, names), strict=True))
    return {n: v for n, v in found.items() if hasattr(v, "dtype")}


def _alike(one: Any, two: Any) -> bool:
    return one.dtype == two.dtype and one.shape == two.shape


def _same_bits(one: Any, two: Any) -> bool:
    """True if two values have the same bits. Values other than numeric tensors only need to be equal."""
    if not hasattr(one, "dtype") or not hasattr(two, "dtype") or one.dtype.kind in "OUS":
        return compare_output("", one, two, 0.0).ok
    return _alike(one, two) and one.tobytes() == two.tobytes()
