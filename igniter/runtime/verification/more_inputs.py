"""More inputs for a comparison: others at the sizes that were found, inputs under which outputs leave their rest, and
inputs that make a suspicious difference larger.

Each is compared at a first look, without the noise of the original; one that fails is judged as every case is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from igniter.runtime.verification.graph_facts import GraphFacts
from igniter.runtime.verification.inputs import is_position, random_inputs
from igniter.runtime.verification.judge import Judge, Ready
from igniter.runtime.verification.lively import FAR, mutations, variants
from igniter.runtime.verification.original import Original
from igniter.runtime.verification.report import LOOKED_FOR, MORE, CaseResult, OutputResult
from igniter.runtime.verification.sensitivity import FEW_VALUES, Watch, moved, variety
from igniter.runtime.verification.specs import InputSpec

if TYPE_CHECKING:
    import numpy as np

SHARE = 0.25
"""Of the time that a verification took, for more inputs ..."""
LEAST_SECONDS, MOST_SECONDS = 0.05, 1.0
"""... between these ..."""
ROUND = 10
"""Inputs of other kinds than the usual ones come first, so many of them if they take no longer than `MOST_SECONDS`."""
MANY_THREADS = 4
"""Threads of some cases, whatever the number of cores: work that is shared out must be shared out right."""
MOST_INPUTS = 32
SUSPICIOUS = 0.05
"""... but where an error is over this share of the tolerance and over the noise ..."""
SUSPICIOUS_NOISE = 4.0
SUSPICIOUS_SECONDS = 6.0
"""... this long, with inputs that make it larger."""
SEARCH_SECONDS = 8.0
SEARCH_ELEMENTS = 1 << 17
"""Of the inputs under which outputs are looked for that move."""
MUTATIONS = 16
HALVINGS = 12
FEW_ELEMENTS = 8
"""Of an output of fewer elements nobody can say that it is saturated."""
Score = tuple[bool, int, float]
"""Of an output under some inputs: whether it moves enough, how many values it has, and how far it moves."""


@dataclass(frozen=True)
class Known:
    """A case that was judged."""

    sizes: dict[str, int]
    ready: Ready
    outputs: Sequence[OutputResult]


Run = Callable[[Ready, int], Sequence[Any]]
Start = Callable[[dict[str, Any], dict[str, int], int], "Ready | None"]


@dataclass
class MoreInputs:
    """For one verification: `start` runs the original on a feed, `run` the compiled model."""

    original: Original
    facts: GraphFacts
    judge: Judge
    watch: Watch
    start: Start
    run: Run
    seed: int
    fixed: frozenset[str] = frozenset()
    """Symbols whose sizes were asked for."""
    settle: Callable[[CaseResult, Ready], CaseResult] = lambda case, _: case
    """What becomes of a case that was judged."""
    known: dict[tuple[Any, ...], Known] = field(default_factory=dict[tuple[Any, ...], Known])
    """The first case of each choice of shapes."""
    _count: int = 0
    _kinds: tuple[dict[str, int], Iterator[dict[str, Any]]] = field(default_factory=lambda: ({}, iter(())))
    """Sizes, and the feeds of other kinds that are left at these."""
    _next_index: dict[str, int] = field(default_factory=dict[str, int])

    def compare(self, sizes: dict[str, int], ready: Ready, kind: str, threads: int = 0) -> CaseResult:
        """One more case."""
        actual = self.run(ready, threads)
        judge, ready = self.judge.on_threads(ready, threads)
        outputs = judge.first_look(ready, actual)
        if not all(o.ok or o.says_nothing for o in outputs):
            outputs = judge.outputs(ready, actual)
        return self.settle(result_of(CaseResult(sizes, "passed", kind=kind, threads=threads), outputs), ready)

    def note(self, ready: Ready, case: CaseResult) -> None:
        """Keep a case of these sizes, and look at what moved since the first one of them."""
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
        """A second case at the sizes of one, as long as outputs are there that have not moved."""
        other = self._other(sizes, specs) if self.watch.unseen else None
        if other is not None:
            case = self.compare(sizes, other, MORE)
            self.note(other, case)
            yield case

    def look_at(self, ready: Ready, case: CaseResult) -> None:
        """See whether outputs move from given inputs, which are all that is compared, to inputs made from them."""
        changed = changed_feed(ready.feed, self.seed)
        other = None if changed is None else self.start(changed, case.shapes, self.seed)
        if other is not None:
            for one, a, b in zip(case.outputs, ready.expected, other.expected, strict=True):
                self.watch.see(one, a, one, b)

    def _other(self, sizes: dict[str, int], specs: Sequence[InputSpec]) -> Ready | None:
        from igniter.errors import IgniterError

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
        """Sizes and inputs that look real, or are in other ranges and of other means than the usual ones, one kind
        after the other: units that the usual ones never wake (behind a Relu, say) have a part in the outputs. All kinds
        have the sizes of the first; then `other_sizes` are those of the next round."""
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
        """The feed with indices in turn, from where the last feed ended: all rows of a table that is not too long are
        read once."""
        import numpy as np

        for name, limit in self.facts.limits.items():
            value: Any = feed.get(name)
            if hasattr(value, "dtype") and value.dtype.kind in "iu" and value.size and not is_position(name):
                first = self._next_index.get(name, 0)
                self._next_index[name] = (first + value.size) % limit
                feed[name] = ((first + np.arange(value.size)) % limit).reshape(value.shape).astype(value.dtype)
        return feed

    # -- outputs at rest ----------------------------------------------------------------------------------------------

    def look_for(self, specs: Sequence[InputSpec], budget: float) -> Iterator[CaseResult]:
        """Cases under which outputs move that are at rest or saturated so far, where any is found."""
        resting = self.watch.at_rest or self._saturated()
        if not resting or not self.known:
            return
        # Many rows are many chances; a run must be short all the same.
        base = max(self.known.values(), key=lambda k: (n := _elements(k.ready), -n)[n > SEARCH_ELEMENTS])
        sizes = base.sizes
        deadline = time.monotonic() + min(budget / 4, SEARCH_SECONDS)
        best: dict[str, tuple[Score, Ready]] = {}

        def is_better(feed: dict[str, Any], names: Sequence[str]) -> bool:
            """Try a feed; whether the outputs named move enough under it."""
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
        """Halve the way between two feeds, of which one leaves an output at rest and the other saturates it: between
        them is where it is neither."""
        import numpy as np

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
        """The variants, and then changes of the best of them."""
        import numpy as np

        rng = np.random.default_rng(self.seed + 17)
        made: list[dict[str, Any]] = []
        for _, feed in variants(specs, sizes, self.facts, self.seed):
            made.append(feed)
            yield feed
        for k in range(MUTATIONS if made else 0):
            leading = [r.feed for _, r in best.values()] or made
            yield mutations(leading[k % len(leading)], made[int(rng.integers(len(made)))], specs, rng)

    def _score(self, name: str, base: Known, ready: Ready) -> Score:
        """Whether an output moves enough from the base, how many values it has, and how far it moves."""
        import numpy as np

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
        """Outputs that move, of which no case has more than two values."""
        found: dict[str, int] = {}
        for known in self.known.values():
            for o, value in zip(known.outputs, known.ready.expected, strict=True):
                if getattr(value, "size", 0) >= FEW_ELEMENTS:
                    found[o.name] = max(found.get(o.name, 0), variety(value, o.allowed))
        return [n for n, count in found.items() if count < FEW_VALUES and n in self.watch.dependent]

    # -- seeds --------------------------------------------------------------------------------------------------------

    def seeds(self, specs: Sequence[InputSpec], cases: Sequence[CaseResult], spent: float) -> CaseResult | None:
        """Other inputs and sizes for as long as a share of the time `spent`, the worst of them as one case. Where a
        case has an error over its noise and not far below the tolerance, longer, and with inputs that enlarge it."""
        import numpy as np

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
    """The case with its outputs: those that say nothing count neither way, and it is skipped where all say nothing."""
    telling = [o for o in outputs if not o.says_nothing]
    if outputs and not telling:
        return replace(case, status="skipped", outputs=tuple(outputs), reason=outputs[0].reason)
    return replace(case, status="passed" if all(o.ok for o in telling) else "failed", outputs=tuple(outputs))


def varied(sizes: Mapping[str, int], fixed: Collection[str], rng: np.random.Generator) -> dict[str, int]:
    """Other sizes near these: dims of one size stay of one size, and about half of them stay as they are."""
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
    """A feed of the same kind: floats in another order, half as large and with some noise, integers in another order;
    `None` where nothing can be another."""
    import numpy as np

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
