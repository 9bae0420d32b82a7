"""The comparison of a compiled model with its original, for `Artifact.verify` and `Artifact.verify_every_value`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.compiler.artifact import Artifact
from igniter.compiler.compilation import CompileOptions
from igniter.compiler.kernel_regions import region_compiler
from igniter.errors import IgniterError
from igniter.frontend import surgery
from igniter.frontend.ort_values import run, typed
from igniter.runtime.session import CPU_PROVIDER, make_session
from igniter.verification.by_region import ByRegion
from igniter.verification.given import read_inputs
from igniter.verification.graph_facts import GraphFacts, model_facts
from igniter.verification.judgement import Allowance
from igniter.verification.original import Original, unoptimised
from igniter.verification.regions import ValuesResult, verify_regions
from igniter.verification.stand_in import with_stand_ins
from igniter.verification.tensor_cores import COARSER, tf32_tolerance
from igniter.verification.verify import (
    BUDGET_SECONDS,
    PRECISIONS,
    Candidate,
    VerifyOptions,
    typical_inputs,
    verify_models,
)

if TYPE_CHECKING:
    from onnxruntime import InferenceSession

    from igniter.verification.judge import Ready
    from igniter.verification.report import CaseResult, Verification

EXTERNAL_FOLDER = "session.model_external_initializers_file_folder_path"
"""ORT's setting for the folder of the weights of a model in memory."""


@dataclass(frozen=True)
class Checks:
    """The comparisons of one compiled model."""

    artifact: Artifact

    def verify(
        self,
        inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | Path | None,
        shapes: Sequence[Mapping[str, int]] | None,
        rtol: float | None,
        atol: float,
        reference: str | Path | bytes | None,
        seed: int,
        budget: float | None,
        ort_options: Mapping[str, Any],
    ) -> Verification:
        """Compares the outputs, as `Artifact.verify` describes."""
        original = self._original(reference, ort_options)
        allowed = self._allowance(original, rtol, atol)
        budget = BUDGET_SECONDS if budget is None else budget
        options = VerifyOptions(None, shapes, allowed.rtol, atol, seed, budget, allowed.coarser)
        return with_stand_ins(original, lambda runs: self._compared(runs, inputs, options, ort_options))

    def _compared(
        self,
        original: Original,
        inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | str | Path | None,
        options: VerifyOptions,
        ort_options: Mapping[str, Any],
    ) -> Verification:
        """Compares with one original, in each available execution provider."""
        feeds = _read(original, inputs) if isinstance(inputs, (str, Path)) else inputs
        original, mixed = self.with_threads(original)
        assert original.model is not None
        if mixed:
            ort_options = {**ort_options, "intra_op_num_threads": 1}
        facts = model_facts(original.model) if feeds is None else GraphFacts()
        options = replace(options, inputs=feeds)
        if "providers" in ort_options:
            choices, without = [dict(ort_options)], list[str]()
        else:
            providers, without = self.artifact.providers()
            choices = [{**ort_options, "providers": [*dict.fromkeys((p, CPU_PROVIDER))]} for p in providers]
        found: Verification | None = None
        for chosen in choices or [dict(ort_options)]:
            candidate = Candidate(lambda n, cut, chosen=chosen: self.candidate(0 if mixed else n, cut, chosen))
            each = verify_models(original, candidate, facts, options, self.pieces(original, options, chosen))
            if len(choices) > 1:
                provider = str(chosen["providers"][0])
                each = replace(each, cases=tuple(replace(case, provider=provider) for case in each.cases))
            found = each if found is None else found.joined(each)
        assert found is not None
        return replace(found, without=tuple(without)) if choices else found

    def with_threads(self, original: Original) -> tuple[Original, bool]:
        """Returns the original in the form for the comparison, and true if both models need a single thread.

        Some nodes give values that depend on the number of threads; their kernels compute the values of one thread. If
        all such nodes are left to ONNX Runtime, both models have the values of their own threads.
        """
        if not original.by_threads:
            return original, False
        assert original.proto is not None
        left = surgery.thread_dependent(surgery.read_proto(str(self.artifact.model_path))[0])
        if left >= surgery.thread_dependent(original.proto):
            return original, False
        return original.on_one_thread(), left > 0

    def pieces(
        self, original: Original, options: VerifyOptions, ort_options: Mapping[str, Any]
    ) -> Callable[[dict[str, int], Ready], CaseResult] | None:
        """Returns the function that compares the parts of the model; `None` if there are no nodes to compare them with,
        or ONNX Runtime does not run them."""
        if original.model is None or original.stand_in is not None:
            return None

        def case(sizes: dict[str, int], ready: Ready) -> CaseResult:
            def whole(feed: Mapping[str, Any]) -> list[Any]:
                session = self.candidate(0, {}, {**ort_options, "graph_optimization_level": unoptimised()})
                return run(session, feed, original.output_names)

            settings: dict[str, Any] = dict(self.artifact.report.get("options", {}))
            digest = str(self.artifact.report.get("kernel_digest", ""))
            allowed = Allowance(options.rtol, options.atol, options.coarser)
            return ByRegion(
                original, region_compiler(CompileOptions.of_report(settings)), digest, whole, allowed, options.budget
            ).case(sizes, ready)

        return case

    def verify_every_value(
        self,
        inputs: Mapping[str, Any] | str | Path | None,
        shapes: Mapping[str, int] | None,
        rtol: float | None,
        atol: float,
        reference: str | Path | bytes | None,
        seed: int,
        budget: float | None,
    ) -> ValuesResult:
        """Compares every value that crosses a region, as `Artifact.verify_every_value` describes."""
        original = self._original(reference, {})
        sizes, feed = dict(shapes or {}), inputs
        budget = BUDGET_SECONDS if budget is None else budget
        if isinstance(feed, (str, Path)):
            feed = _read(original, feed)[0]
        if feed is None:
            assert original.model is not None
            sizes, feed = typical_inputs(original, model_facts(original.model), sizes, seed, budget, small=True)
        options: dict[str, Any] = dict(self.artifact.report.get("options", {}))
        keep_in = self.artifact.folder.with_name(f"{self.artifact.folder.name}.every-value")
        allowed = self._allowance(original, rtol, atol)
        return verify_regions(
            original, region_compiler(CompileOptions.of_report(options)), feed, sizes, allowed, keep_in
        )

    def _allowance(self, original: Original, rtol: float | None, atol: float) -> Allowance:
        """Returns the given tolerances, or those for the precision that the compiled model was asked to have."""
        asked: Mapping[str, Any] = self.artifact.report.get("options", {})
        found = PRECISIONS.get(str(asked.get("precision", "f32")))
        in_tf32 = any(each.endswith("+tf32") for each in str(asked.get("target", "")).split(","))
        if not in_tf32 or original.proto is None:
            return Allowance(found if rtol is None else rtol, atol)
        own = max(found or 0.0, tf32_tolerance(original.proto))
        return Allowance(own if rtol is None else rtol, atol, COARSER)

    def _original(self, reference: str | Path | bytes | None, ort_options: Mapping[str, Any]) -> Original:
        original = reference if reference is not None else self.artifact.source
        if original is None:
            raise IgniterError(
                f"the original model of {self.artifact.folder} is unknown or has changed since; name it with "
                "`reference`"
            )
        made = Original(original if isinstance(original, bytes) else str(original), options=ort_options, is_shared=True)
        if reference is None and not ort_options:
            made.results = self.artifact.reference_results
        return made

    def candidate(self, threads: int, cut: Mapping[str, Any], ort_options: Mapping[str, Any]) -> InferenceSession:
        """Creates a session of the compiled model, with its own number of threads, or with random values as inputs."""
        options: dict[str, Any] = {"log_severity_level": 4, **ort_options}
        config: dict[str, Any] = dict(options.get("config") or {})
        if threads:
            options["intra_op_num_threads"] = threads
            options["config"] = config = {**config, "session.intra_op.allow_spinning": "0"}
        if not cut:
            return self.artifact.session(**options)
        proto, folder = surgery.read_proto(str(self.artifact.model_path))
        computed = surgery.producers(proto)
        there = [value for name, value in cut.items() if name in computed]
        # A value with another name there is an Identity of it, so the bits are the same.
        hidden = [n for n, value in cut.items() if n not in computed and not any(_is_same(value, v) for v in there)]
        if hidden:
            raise IgniterError(f"the random value '{hidden[0]}' of the original is not in the compiled model")
        options["config"] = {**config, EXTERNAL_FOLDER: folder}
        self.artifact.require_unchanged()
        return make_session(surgery.with_inputs(proto, cut).SerializeToString(), self.artifact.libraries, **options)


def _is_same(a: Any, b: Any) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _read(original: Original, path: str | Path) -> list[dict[str, Any]]:
    """Reads the feeds in a file or folder."""
    names = [value.name for value in original.session.get_inputs()]
    return [typed(original.session, feed) for feed in read_inputs(path, names)]
