"""More inputs for a comparison: others at the sizes found, inputs to move outputs at rest, and inputs to enlarge a
suspicious difference.

Each is first judged without the noise of the original. A failing one is then judged like every other case.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from igniter.errors import IgniterError
from igniter.verification.graph_facts import GraphFacts
from igniter.verification.inputs import is_position, random_inputs
from igniter.verification.judge import Judge, Ready
from igniter.verification.lively import FAR, mutations, variants
from igniter.verification.original import Original
from igniter.verification.report import LOOKED_FOR, MORE, CaseResult, OutputResult
from igniter.verification.sensitivity import FEW_VALUES, Watch, moved, variety
from igniter.verification.specs import InputSpec

SHARE = 0.25
"""The time for more inputs, as a share of the verification's time so far ..."""
LEAST_SECONDS, MOST_SECONDS = 0.05, 1.0
"""... between these limits ..."""
ROUND = 10
"""The number of inputs of unusual kinds that come first, within `MOST_SECONDS`."""
MANY_THREADS = 4
"""The threads of some cases, on any number of cores: they test the distribution of work."""
MOST_INPUTS = 32
SUSPICIOUS = 0.05
"""... but if an error exceeds this share of the tolerance, and `SUSPICIOUS_NOISE` times the noise ..."""
SUSPICIOUS_NOISE = 4.0
SUSPICIOUS_SECONDS = 6.0
"""... this time, with inputs to enlarge the error."""
SEARCH_SECONDS = 8.0
SEARCH_ELEMENTS = 1 << 17
"""The preferred maximum number of input elements in the search for outputs at rest."""
MUTATIONS = 16
HALVINGS = 12
FEW_ELEMENTS = 8
"""The minimum number of elements of a saturated output; a smaller output never counts as saturated."""
Score = tuple[bool, int, float]
"""The score of an output under some inputs: true if it moves enough, its number of values, and its movement."""


@dataclass(frozen=True)
class Known:
    """A judged case."""

    sizes: dict[str, int]
    ready: Ready
    outputs: Sequence[OutputResult]


Run = Callable[[Ready, int], Sequence[Any]]
Start = Callable[[dict[str, Any], dict[str, int], int], "Ready | None"]


@dataclass
class MoreInputs:
    """The search for more inputs of one verification. `start` runs the original on a feed, `run` the compiled model."""

    original: Original
    facts: GraphFacts
    judge: Judge
    watch: Watch
    start: Start
    run: Run
    seed: int
    fixed: frozenset[str] = frozenset()
    """Symbols with requested sizes."""
    settle: Callable[[CaseResult, Ready], CaseResult] = lambda case, _: case
    """The final treatment of a judged case."""
    known: dict[tuple[Any, ...], Known] = field(default_factory=dict[tuple[Any, ...], Known])
    """The first case with each choice of shapes."""
    _count: int = 0
    _kinds: tuple[dict[str, int], Iterator[dict[str, Any]]] = field(default_factory=lambda: ({}, iter(())))
    """Sizes, with the remaining feeds of unusual kinds at these sizes."""
    _next_index: dict[str, int] = field(default_factory=dict[str, int])

    def compare(self, sizes: dict[str, int], ready: Ready, kind: str, threads: int = 0) -> CaseResult:
        """Returns the judgement of one more case."""
        actual = self.run(ready, threads)
        judge, ready = self.judge.on_threads(ready, threads)
        outputs = judge.first_look(ready, actual)
        if not all(o.ok or o.says_nothing for o in outputs):
            outputs = judge.outputs(ready, actual)
        return self.settle(result_of(CaseResult(sizes, "passed", kind=kind, threads=threads), outputs), ready)

    def note(self, ready: Ready, case: CaseResult) -> None:
        """Keeps the first case of its shapes. Records the moved outputs between it and this case."""
        if not case.outputs:
            return
        key = tuple((name, getattr(v, "shape", ())) for name, v in ready.feed.items())
        first = self.known.setdefault(key, Known(case.shapes, ready, case.outputs))
        if first.ready is ready:
            return
        for one, a, two, b in zip(first.outputs, first.ready.expected, case.outputs, ready.expected, strict=True):
            self.watch.see(one, a, two, b)

    # -- the same sizes, other inputs ---------------------------------------------------------------------------------

    def beside(self, sizes: dict[str, int], specs: Sequence[InputSpec]) -> Iterator[CaseResult]:
        """Yields a second case at the same sizes while some outputs have not moved."""
        other = self._other(sizes, specs) if self.watch.unseen else None
        if other is not None:
            case = self.compare(sizes, other, MORE)
            self.note(other, case)
            yield case

    def look_at(self, ready: Ready, case: CaseResult) -> None:
        """Records the moves of the original's outputs between given inputs and changed copies of them. Only the given
        inputs are compared."""
        changed = changed_feed(ready.feed, self.seed)
        other = None if changed is None else self.start(changed, case.shapes, self.seed)
        if other is not None:
            for one, a, b in zip(case.outputs, ready.expected, other.expected, strict=True):
                self.watch.see(one, a, one, b)

    def _other(self, sizes: dict[str, int], specs: Sequence[InputSpec]) -> Ready | None:
        self._count += 1
        seed = self.seed + 1000 * self._count + 3
        try:
            feed = random_inputs(specs, sizes, self.facts, seed)
            return self.start(self._swept(feed) if self._count % 2 else feed, sizes, seed)
        except IgniterError:
            return None

    def _of_other_kind(
        self, other_sizes: dict[str, int], specs: Sequence[InputSpec]
    ) -> tuple[dict[str, int], Ready] | None:
        """Returns sizes and inputs of the next unusual kind: realistic, or with other ranges and means. They activate
        units that the usual inputs never activate, for example before a Relu. All kinds of a round have the same sizes;
        `other_sizes` are the sizes of the next round."""
        sizes, feeds = self._kinds
        found = next(feeds, None)
        if found is None:
            self._count += 1
            made = variants(specs, other_sizes, self.facts, self.seed + 1000 * self._count + 5)
            sizes, feeds = self._kinds = other_sizes, (feed for kind, feed in made if kind not in FAR)
            found = next(feeds, None)
        ready = None if found is None else self.start(found, sizes, self.seed)
        return None if ready is None else (sizes, ready)

    def _swept(self, feed: dict[str, Any]) -> dict[str, Any]:
        """Returns the feed with consecutive indices, continued from the previous feed. So each row of a moderately long
        table is read."""
        for name, limit in self.facts.limits.items():
            value: Any = feed.get(name)
            if hasattr(value, "dtype") and value.dtype.kind in "iu" and value.size and not is_position(name):
                first = self._next_index.get(name, 0)
                self._next_index[name] = (first + value.size) % limit
                feed[name] = ((first + np.arange(value.size)) % limit).reshape(value.shape).astype(value.dtype)
        return feed

    # -- outputs at rest ----------------------------------------------------------------------------------------------

    def look_for(self, specs: Sequence[InputSpec], budget: float) -> Iterator[CaseResult]:
        """Yields cases that move outputs at rest or saturated so far, if the search finds any."""
        resting = self.watch.at_rest or self._saturated()
        if not resting or not self.known:
            return
        # More elements give more chances to move, but each run must be short.
        base = max(self.known.values(), key=lambda k: (n := _elements(k.ready), -n)[n > SEARCH_ELEMENTS])
        sizes = base.sizes
        deadline = time.monotonic() + min(budget / 4, SEARCH_SECONDS)
        best: dict[str, tuple[Score, Ready]] = {}

        def is_better(feed: dict[str, Any], names: Sequence[str]) -> bool:
            """Tries a feed. True if all outputs in `names` move enough."""
            ready = self.start(feed, sizes, self.seed)
            scores = {} if ready is None else {n: self._score(n, base, ready) for n in resting}
            for name, score in scores.items():
                if ready is not None and (name not in best or score > best[name][0]):
                    best[name] = (score, ready)
            return bool(scores) and all(scores[n][0] for n in names)

        for feed in self._candidates(specs, sizes, best):
            is_better(feed, ())
            alive = all(n in best and best[n][0][0] and best[n][0][1] >= FEW_VALUES for n in resting)
            if alive or time.monotonic() > deadline:
                break
        for name in resting:
            if name in best and best[name][0][0] and best[name][0][1] < FEW_VALUES:
                self._between(base.ready, best[name][1], lambda feed, n=name: is_better(feed, (n,)), deadline)
        for ready in {id(r): r for score, r in best.values() if score[0]}.values():
            actual = self.run(ready, 0)
            case = result_of(CaseResult(sizes, "passed", kind=LOOKED_FOR), self.judge.outputs(ready, actual))
            case = self.settle(case, ready)
            self.note(ready, case)
            yield case

    def _between(self, low: Ready, high: Ready, moves: Callable[[dict[str, Any]], bool], deadline: float) -> None:
        """Bisects between two feeds: `low` leaves an output at rest, and `high` saturates it. The output may be neither
        between them."""
        below, above = 0.0, 1.0
        for _ in range(HALVINGS):
            if time.monotonic() > deadline:
                return
            part = (below + above) / 2
            feed = dict(high.feed)
            for key, b in high.feed.items():
                a = low.feed[key]
                if hasattr(b, "dtype") and b.dtype.kind == "f" and a.shape == b.shape:
                    feed[key] = np.asarray((1 - part) * a + part * b).astype(b.dtype)
            below, above = (below, part) if moves(feed) else (part, above)

    def _candidates(
        self,
        specs: Sequence[InputSpec],
        sizes: dict[str, int],
        best: Mapping[str, tuple[Score, Ready]],
    ) -> Iterator[dict[str, Any]]:
        """Yields the variants, then mutations of the best of them."""
        rng = np.random.default_rng(self.seed + 17)
        made: list[dict[str, Any]] = []
        for _, feed in variants(specs, sizes, self.facts, self.seed):
            made.append(feed)
            yield feed
        for k in range(MUTATIONS if made else 0):
            leading = [r.feed for _, r in best.values()] or made
            yield mutations(leading[k % len(leading)], made[int(rng.integers(len(made)))], specs, rng)

    def _score(self, name: str, base: Known, ready: Ready) -> Score:
        """Returns the score of an output: true if it moves enough from the base, its number of values, its movement."""
        at = list(self.original.output_names).index(name)
        one, a, b = base.outputs[at], base.ready.expected[at], ready.expected[at]
        far = moved(a, b)
        if not hasattr(b, "dtype") or b.dtype.kind != "f":
            return far > 0, FEW_VALUES, far
        sizes = np.abs(np.where(np.isfinite(b), b, 0.0).astype(np.float64))
        magnitude = max(one.magnitude, float(np.max(sizes, initial=0.0)))
        blur = max(one.allowed, self.judge.allowed.of(str(b.dtype)) * magnitude)
        finite = bool(np.isfinite(b).any())
        return finite and far >= self.watch.enough(magnitude, one.dtype, blur), variety(b, blur), min(far, 1e30)

    def _saturated(self) -> list[str]:
        """Returns the outputs with fewer than `FEW_VALUES` values in every case."""
        found: dict[str, int] = {}
        for known in self.known.values():
            for o, value in zip(known.outputs, known.ready.expected, strict=True):
                if getattr(value, "size", 0) >= FEW_ELEMENTS:
                    found[o.name] = max(found.get(o.name, 0), variety(value, o.allowed))
        return [n for n, count in found.items() if count < FEW_VALUES and n in self.watch.dependent]

    # -- seeds --------------------------------------------------------------------------------------------------------

    def seeds(self, specs: Sequence[InputSpec], cases: Sequence[CaseResult], spent: float) -> CaseResult | None:
        """Compares other inputs and sizes for a share of the time `spent`, and returns the worst case. If a case has a
        suspicious error, the search is longer, and half of its inputs are mutations of the worst ones."""
        suspicious = any(self._is_suspicious(o) for case in cases for o in case.outputs)
        seconds = SUSPICIOUS_SECONDS if suspicious else min(max(SHARE * spent, LEAST_SECONDS), MOST_SECONDS)
        started, count = time.monotonic(), 0
        places = [found.sizes for found in self.known.values()]
        worst: CaseResult | None = None
        rng = np.random.default_rng(self.seed + 29)
        leading: tuple[float, dict[str, int], Ready] | None = None
        while places and (suspicious or count < MOST_INPUTS):
            if time.monotonic() > started + (max(seconds, MOST_SECONDS) if count < ROUND else seconds):
                break
            sizes = places[-1 - count % len(places)]
            count += 1
            if suspicious and leading is not None and count % 2:
                sizes = leading[1]
                ready = self.start(mutations(leading[2].feed, leading[2].feed, specs, rng), sizes, self.seed)
            else:
                sizes = sizes if not sizes or count % 4 == 0 else varied(sizes, self.fixed, rng)
                other = self._of_other_kind(sizes, specs) if count <= ROUND or count % 2 else None
                sizes, ready = (sizes, self._other(sizes, specs)) if other is None else other
            if ready is None:
                continue
            case = self.compare(sizes, ready, MORE, MANY_THREADS if count % 4 == 1 else 0)
            self.note(ready, case)
            error = max((self._in_tolerances(o) for o in case.outputs), default=0.0)
            if suspicious and (leading is None or error > leading[0]):
                leading = error, sizes, ready
            if worst is None or case.status == "failed" or error > max(map(self._in_tolerances, worst.outputs)):
                worst = case
            if case.status == "failed":
                break
        return worst

    def _in_tolerances(self, output: OutputResult) -> float:
        tolerance = self.judge.allowed.of(output.dtype) or 1e-30
        return 0.0 if output.says_nothing else output.max_error / tolerance

    def _is_suspicious(self, output: OutputResult) -> bool:
        if not output.ok or output.note or output.dtype not in ("float32", "float64", "float16"):
            return False
        return self._in_tolerances(output) > SUSPICIOUS and output.max_error > SUSPICIOUS_NOISE * (output.noise or 0.0)


def result_of(case: CaseResult, outputs: Sequence[OutputResult]) -> CaseResult:
    """Returns the case with its outputs. Inconclusive outputs do not count; if all are, the case is skipped."""
    telling = [o for o in outputs if not o.says_nothing]
    if outputs and not telling:
        return replace(case, status="skipped", outputs=tuple(outputs), reason=outputs[0].reason)
    return replace(case, status="passed" if all(o.ok for o in telling) else "failed", outputs=tuple(outputs))


def varied(sizes: Mapping[str, int], fixed: Collection[str], rng: np.random.Generator) -> dict[str, int]:
    """Returns other sizes near these. Equal dims stay equal, and each size is kept with a probability of 0.4."""
    made: dict[int, int] = {}
    for size in sizes.values():
        if size not in made:
            low, high = (
                (1, 34) if size <= 16 else (max(1, size // 2), 2 * size) if size <= 128 else (size - 8, size + 9)
            )
            made[size] = size if rng.random() < 0.4 else int(rng.integers(low, high))
    return {name: size if name in fixed else made[size] for name, size in sizes.items()}


def _elements(ready: Ready) -> int:
    return sum(int(getattr(v, "size", 0)) for v in ready.feed.values())


def changed_feed(feed: Mapping[str, Any], seed: int) -> dict[str, Any] | None:
    """Returns a feed of the same kind: floats permuted, halved and with some noise, integers permuted; `None` if no
    input can change."""
    rng = np.random.default_rng(seed)
    made = dict(feed)
    for name, value in feed.items():
        if not hasattr(value, "dtype") or value.dtype.kind not in "fiu" or value.size < 1 + (value.dtype.kind != "f"):
            continue
        mixed = rng.permutation(value.reshape(-1)).reshape(value.shape)
        if value.dtype.kind == "f":
            finite = np.where(np.isfinite(mixed), mixed, 0.0).astype(np.float64)
            spread = float(np.std(finite)) or float(np.max(np.abs(finite))) or 1.0
            mixed = (mixed * 0.5 + 0.1 * spread * rng.standard_normal(mixed.shape)).astype(value.dtype)
        made[name] = mixed
    return made if any(made[n] is not feed[n] for n in feed) else None
