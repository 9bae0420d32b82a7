"""Verification of a compiled model against ONNX Runtime on the original: the cases, one by one.

`igniter.verification` describes the parts, and `docs/explanation/verification.md` the guarantees.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from igniter.activity import doing
from igniter.dialects.ort import STAMPS
from igniter.errors import IgniterError
from igniter.runtime.session import LibraryElsewhere, SessionError
from igniter.verification.decisions import sized_by_rounding
from igniter.verification.graph_facts import GraphFacts
from igniter.verification.guard import guarded_run, memory_limit, note_refused
from igniter.verification.inputs import Style, random_inputs, takes_large
from igniter.verification.judge import Judge, Ready, first_line
from igniter.verification.judgement import TOLERANCES, Allowance, compare_output, failure
from igniter.verification.more_inputs import MANY_THREADS, MoreInputs, result_of
from igniter.verification.original import Original
from igniter.verification.report import CaseResult, Refusal, Verification, sizes_text
from igniter.verification.sensitivity import Watch, dependent_outputs
from igniter.verification.sizes import Proposal, Search, Sizes
from igniter.verification.specs import InputSpec, checked_shapes, symbols_of

PRECISIONS = {"bf16": 5e-2, "int8-dynamic": 2e-1}
"""The tolerances for models compiled to lower precision on request; `tensor_cores.py` has that of TF32. The right one
depends on the model; the measured error is decisive, and these only catch gross errors."""

BUDGET_SECONDS = 30.0
"""The default limit in seconds for finding sizes and comparing. A running step is finished, so it can be exceeded."""
RUN_SHARE = 0.25
"""The largest share of the budget for one run of the original in the search for sizes."""
INNER_RANDOM = "a random node is inside a loop, a branch or a function, so its values cannot be read"
KEPT = "--no-verify puts the compiled model in place without running it"


@dataclass(frozen=True)
class VerifyOptions:
    """The options of a verification; missing ones are chosen. `shapes` name sizes of some or all symbolic dims."""

    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None
    shapes: Sequence[Mapping[str, int]] | None = None
    rtol: float | None = None
    atol: float = 0.0
    seed: int = 0
    budget: float = BUDGET_SECONDS
    coarser: float = 1.0
    """The roundings of the compiled model as a multiple of those of the types (`Allowance.coarser`)."""
    stop_at_first: bool = False
    """True to stop at the first differing case; it decides the outcome."""

    @property
    def feeds(self) -> list[Mapping[str, Any]]:
        """The given inputs, one mapping a case."""
        if self.inputs is None:
            return []
        return [self.inputs] if isinstance(self.inputs, Mapping) else list(self.inputs)


class _Fails(Exception):
    """Raised with ONNX Runtime's message if the compiled model fails."""


class Candidate:
    """The compiled model: `make` creates a session with a number of threads (0: the default) and with values cut."""

    def __init__(self, make: Callable[[int, Mapping[str, Any]], Any]):
        self._make = make
        self._sessions: dict[tuple[int, tuple[str, ...]], Any] = {}

    def session(self, threads: int = 0, cut: Mapping[str, Any] | None = None) -> Any:
        """Returns the session, created once."""
        key = (threads, tuple(cut or {}))
        if key not in self._sessions:
            self._sessions[key] = self._make(threads, cut or {})
        return self._sessions[key]


def verify_sessions(
    reference: Any,
    candidate: Any,
    *,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    shapes: Sequence[Mapping[str, int]] | None = None,
    rtol: float | None = None,
    atol: float = 0.0,
    limits: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Verification:
    """Compares two ORT sessions, of the original model and of the compiled one, as black boxes."""
    options = VerifyOptions(inputs, shapes, rtol, atol, seed)
    facts = GraphFacts(dict(limits or {}))
    return verify_models(Original(session=reference), Candidate(lambda _threads, _cut: candidate), facts, options)


def verify_models(
    original: Original,
    candidate: Candidate,
    facts: GraphFacts,
    options: VerifyOptions,
    pieces: Callable[[dict[str, int], Ready], CaseResult] | None = None,
) -> Verification:
    """Compares the compiled model with the original at the sizes or on the inputs in `options`, or at sizes found by a
    search. If all outputs are inconclusive, `pieces` compares the parts of the model."""
    # ONNX Runtime computes constants, of any size, when it loads a model.
    large = facts.too_large({}, memory_limit()) if options.inputs is None else None
    if large is not None:
        note_refused(large)
        return Verification((), cannot=large)
    reference = original.session
    try:
        with doing("the compiled model was loaded", hint=KEPT):
            compiled = candidate.session()
    except LibraryElsewhere as error:
        return Verification((), cannot=error.message)
    except SessionError as error:
        return Verification(
            (CaseResult({}, "failed", reason=f"the compiled model does not load: {first_line(error)}"),)
        )
    same_interface(reference, compiled)
    return _Verifier(original, candidate, facts, options, pieces).run()


def same_interface(reference: Any, candidate: Any) -> None:
    """Raises `IgniterError` if two sessions have different inputs or outputs."""
    for what in ("inputs", "outputs"):
        theirs, ours = (
            [v.name for v in getattr(s, f"get_{what}")() if not v.name.startswith(STAMPS)]
            for s in (reference, candidate)
        )
        if theirs != ours:
            raise IgniterError(f"the compiled model has the {what} {ours}, the original {theirs}")


@dataclass
class _Verifier:
    original: Original
    candidate: Candidate
    facts: GraphFacts
    options: VerifyOptions
    pieces: Callable[[dict[str, int], Ready], CaseResult] | None = None
    refused: list[Refusal] = field(default_factory=list[Refusal])
    _attempts: int = 0
    _inexact: tuple[str, ...] = ()
    _started: float = field(default_factory=time.monotonic)
    _sized: list[tuple[CaseResult, CaseResult, Ready]] = field(
        default_factory=list["tuple[CaseResult, CaseResult, Ready]"]
    )
    """The cases with a possible change of size by rounding: their final and first judgements, and their inputs."""

    def run(self) -> Verification:
        if self.original.random_values is None:
            return Verification(
                (),
                cannot=INNER_RANDOM,
            )
        cases: list[CaseResult] = []
        silent: tuple[Proposal, Ready] | None = None
        for proposal, ready in self.cases():
            unstable = self._own_runs_differ(ready) if not cases else ""
            if unstable:
                return Verification(tuple(cases), tuple(self.refused), unstable)
            cases += self._judged_cases(proposal, ready)
            if not self._inexact and self.original.inexact(ready.feed, ready.expected):
                assert self.original.exact_model is not None
                self._inexact = self.original.exact_model.replaced
            if silent is None or silent[0].kind == "ones":
                silent = proposal, ready
            if self._may_stop(cases):
                break
        if not self._may_stop(cases):
            cases += self._with_more_inputs(cases)
        at_rest = self._inputs.watch.sentences()
        nothing = all(c.status == "skipped" for c in cases)
        if self._sized and not self._has_failed(cases):
            cases = self._by_size(cases)
        elif self.pieces is not None and silent is not None and (at_rest or nothing) and not self._has_failed(cases):
            cases.append(self.pieces(silent[0].sizes, silent[1]))
        return Verification(tuple(cases), tuple(self.refused), inexact=self._inexact, at_rest=at_rest)

    def _judged_cases(self, proposal: Proposal, ready: Ready) -> Iterator[CaseResult]:
        """Yields the case, and one more at its sizes for outputs without a change so far."""
        case = self._settled(self._judge(proposal, ready), ready)
        yield case
        self._inputs.note(ready, case)
        if case.status == "failed":
            return
        if self.options.inputs is not None:
            self._inputs.look_at(ready, case)
            return
        with self._as_failures(case.shapes) as failures:
            yield from self._inputs.beside(proposal.sizes, self.original.specs)
        yield from failures

    # -- sizes that a rounding decides --------------------------------------------------------------------------------

    def _settled(self, case: CaseResult, ready: Ready) -> CaseResult:
        """Returns the case, or a neutral one if rounding determines a size before each differing output: then the
        regions are compared, each on the original's own values."""
        wrong = [o for o in case.outputs if not o.ok and not o.says_nothing]
        if case.status != "failed" or self.pieces is None or not wrong:
            return case
        above = [sized_by_rounding(self.original, o.name) for o in wrong]
        if not all(above):
            return case
        reason = f"a rounding, {above[0]}, determines sizes that lead to output '{wrong[0].name}': {wrong[0].reason}"
        made = replace(case, status="skipped", reason=reason)
        self._sized.append((made, case, ready))
        return made

    def _by_size(self, cases: list[CaseResult]) -> list[CaseResult]:
        """Returns the cases with those of the regions; with their first judgements if the regions cannot be
        compared."""
        assert self.pieces is not None
        smallest = min(self._sized, key=lambda s: sum(getattr(v, "size", 0) for v in s[2].feed.values()))
        found = self.pieces(smallest[0].shapes, smallest[2])
        if found.status != "skipped":
            return [*cases, found]
        first = {id(made): case for made, case, _ in self._sized}
        return [first.get(id(c), c) for c in cases]

    def _with_more_inputs(self, cases: Sequence[CaseResult]) -> Iterator[CaseResult]:
        """Yields cases to move outputs at rest, then the worst case of other inputs, tried for a share of the time."""
        if self.options.inputs is not None or not cases or self._has_failed(cases):
            return
        spent = time.monotonic() - self._started
        with self._as_failures({}) as failures:
            yield from self._inputs.look_for(self.original.specs, self.options.budget)
            found = self._inputs.seeds(self.original.specs, cases, spent)
            if found is not None:
                yield found
        yield from failures

    @contextmanager
    def _as_failures(self, sizes: dict[str, int]) -> Generator[list[CaseResult]]:
        """Collects cases for failures of the compiled model inside the block."""
        failures: list[CaseResult] = []
        try:
            yield failures
        except _Fails as error:
            failures.append(CaseResult(sizes, "failed", reason=f"the compiled model fails: {error}"))

    def _may_stop(self, cases: Sequence[CaseResult]) -> bool:
        return self.options.stop_at_first and self._has_failed(cases)

    def _has_failed(self, cases: Sequence[CaseResult]) -> bool:
        return any(c.status == "failed" for c in cases)

    @cached_property
    def _inputs(self) -> MoreInputs:
        names = self.original.output_names
        watch = Watch(names, self._judged_by.allowed, dependent_outputs(self.original.proto, names))

        def start(feed: dict[str, Any], sizes: dict[str, int], seed: int) -> Ready | None:
            found = self._start(feed, sizes, seed)
            return None if isinstance(found, Refusal) else found

        def run(ready: Ready, threads: int) -> Sequence[Any]:
            try:
                with doing("the compiled model ran on more inputs", runs="kernels", hint=KEPT):
                    session = self.candidate.session(threads, ready.drawn)
                    return guarded_run(session, names, {**ready.feed, **ready.drawn}, None)
            except Exception as error:  # ONNX Runtime's errors have no common base
                raise _Fails(first_line(error)) from error

        fixed = frozenset(name for sizes in self.options.shapes or () for name in sizes)
        return MoreInputs(
            self.original, self.facts, self._judged_by, watch, start, run, self.options.seed, fixed, self._settled
        )

    # -- cases --------------------------------------------------------------------------------------------------------

    def cases(self) -> Iterator[tuple[Proposal, Ready]]:
        if self.options.inputs is not None:
            for i, feed in enumerate(self.options.feeds):
                ready = self._start(dict(feed), {}, self.options.seed + i, limited=False)
                if isinstance(ready, Refusal):
                    self.refused.append(ready)
                else:
                    yield Proposal("given", {}), ready
            return
        try:
            specs = self.original.specs
        except IgniterError as error:
            self.refused.append(Refusal({}, error.message))
            return
        wanted: list[dict[str, int]] = [{}]
        if self.options.shapes is not None:
            wanted = [checked_shapes(specs, s) for s in self.options.shapes]
        symbols = symbols_of(specs)
        for fixed in wanted:
            whole = all(s in fixed for s in symbols)
            search = Search(
                specs,
                self.facts,
                lambda sizes: self._attempt(specs, sizes),
                fixed,
                self._started + self.options.budget / 2,
                refused=self.refused,
            )
            for proposal, ready in search.run():
                yield (replace(proposal, kind="given") if fixed and whole else proposal), ready
                if self._is_over():
                    break
            if self.options.shapes is None:
                yield from self._more(specs, search, symbols)

    def _more(
        self, specs: Sequence[InputSpec], search: Search[Ready], symbols: Sequence[str]
    ) -> Iterator[tuple[Proposal, Ready]]:
        """Yields more cases at the last sizes of a run: integers at the type's limits if an input takes them, and a run
        with several threads if the model has no symbols."""
        if search.last is not None and any(takes_large(spec, self.facts) for spec in specs):
            ready = self._attempt(specs, search.last, ("large",))
            if not isinstance(ready, Refusal):
                yield Proposal("large integers", search.last), ready
        if not symbols and search.last is not None:
            ready = self._attempt(specs, search.last)
            if not isinstance(ready, Refusal):
                yield Proposal("many", search.last), ready

    def _attempt(
        self, specs: Sequence[InputSpec], sizes: Sizes, styles: Sequence[Style] = ("usual", "ones", "zeros")
    ) -> Ready | Refusal:
        """Runs the original at these sizes; tries integers of other kinds if it refuses the usual ones."""
        large = self.facts.too_large(sizes, memory_limit())
        if large is not None:
            note_refused(large)
            return Refusal(sizes, large)
        refusal = Refusal(sizes, "")
        # Each attempt has inputs of its own, also of other kinds.
        seed = self.options.seed + self._attempts
        self._attempts += 1
        for style in styles:
            try:
                feed = random_inputs(specs, sizes, self.facts, seed, style)
            except MemoryError:
                return Refusal(sizes, "the inputs do not fit into memory")
            except IgniterError as error:
                return Refusal(sizes, error.message)
            found = self._start(feed, sizes, seed)
            if not isinstance(found, Refusal):
                return found
            refusal = refusal if refusal.reason else found
            if not any(spec.is_integer for spec in specs):
                break
        return refusal

    def _start(self, feed: dict[str, Any], sizes: Sizes, seed: int, *, limited: bool = True) -> Ready | Refusal:
        seconds = self.options.budget * RUN_SHARE if limited else None
        try:
            expected, drawn = self.original.run(feed, seconds, memory_limit() if limited else None)
        except Exception as error:  # any exception of ORT here is about the original model
            return Refusal(sizes, first_line(error))
        return Ready(feed, expected, drawn, seed)

    def _own_runs_differ(self, ready: Ready) -> str:
        """Returns a message if two runs of the original differ although it has no random nodes; otherwise ""."""
        again = self.original.run_again(ready.feed, ready.drawn)
        for name, one, two in zip(self.original.output_names, ready.expected, again, strict=True):
            if not compare_output(name, one, two, 1e-3).ok:
                return f"two runs of the original on the same inputs differ in output '{name}'"
        return ""

    # -- judging ------------------------------------------------------------------------------------------------------

    def _judge(self, proposal: Proposal, ready: Ready) -> CaseResult:
        threads = MANY_THREADS if proposal.kind == "many" else 0
        result = CaseResult(proposal.sizes, "passed", kind=proposal.kind, threads=threads)
        names = self.original.output_names
        try:
            with doing(_ran(proposal), runs="kernels", hint=KEPT):
                session = self.candidate.session(threads, ready.drawn)
                actual = guarded_run(session, names, {**ready.feed, **ready.drawn}, None)
        except Exception as error:  # ONNX Runtime's errors have no common base
            return replace(result, status="failed", reason=f"the compiled model fails: {first_line(error)}")
        judge, ready = self._judged_by.on_threads(ready, threads)
        return result_of(result, judge.outputs(ready, actual))

    @cached_property
    def _judged_by(self) -> Judge:
        allowed = Allowance(self.options.rtol, self.options.atol, self.options.coarser)
        return Judge(self.original, allowed, self.options.budget, self._started)

    def _is_over(self) -> bool:
        return time.monotonic() > self._started + self.options.budget


def _ran(proposal: Proposal) -> str:
    at = f" at {sizes_text(proposal.sizes)}" if proposal.sizes else ""
    return f"the compiled model ran{at}, where the original had run"


def reference_cases(original: Original, facts: GraphFacts, options: VerifyOptions) -> Iterator[Ready]:
    """Yields the cases of a verification at sizes found by its search, without a compiled model."""
    verifier = _Verifier(original, Candidate(lambda _threads, _cut: None), facts, options)
    for _, ready in verifier.cases():
        yield ready


def typical_inputs(
    original: Original,
    facts: GraphFacts,
    fixed: Mapping[str, int],
    seed: int = 0,
    budget: float = BUDGET_SECONDS,
    *,
    small: bool = False,
) -> tuple[dict[str, int], dict[str, Any]]:
    """Returns valid sizes of the original and inputs of these sizes: the largest found by the search without many rows,
    or with `small` the first not all one. `fixed` are requested sizes. Raises `IgniterError` if nothing runs."""
    verifier = _Verifier(
        original, Candidate(lambda _threads, _cut: None), facts, VerifyOptions(shapes=[fixed], seed=seed, budget=budget)
    )
    best: tuple[int, dict[str, int], dict[str, Any]] | None = None
    for proposal, ready in verifier.cases():
        size = sum(getattr(value, "size", 0) for value in ready.feed.values())
        if best is None or (proposal.kind not in ("many", "large integers") and size > best[0]):
            best = (size, proposal.sizes, ready.feed)
        if small and proposal.kind != "ones":
            break
    if best is None:
        raise IgniterError("; ".join(Verification((), tuple(verifier.refused)).reasons))
    return best[1], best[2]


__all__ = ["TOLERANCES", "Candidate", "VerifyOptions", "compare_output", "failure", "verify_models", "verify_sessions"]
