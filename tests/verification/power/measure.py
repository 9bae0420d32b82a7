"""The verdict on each planted fault of one model."""

from __future__ import annotations

import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from igniter.compiler.artifact import Artifact
from igniter.compiler.artifact_checks import Checks
from igniter.errors import IgniterError
from igniter.runtime.session import SessionError
from igniter.verification.graph_facts import model_facts
from igniter.verification.inputs import random_inputs
from igniter.verification.judge import Judge, Ready
from igniter.verification.judgement import Allowance, compare_output
from igniter.verification.lively import variants
from igniter.verification.more_inputs import MANY_THREADS, varied
from igniter.verification.verify import BUDGET_SECONDS, Candidate, VerifyOptions, verify_models

from .faults import Fault, faults, linked_copy
from .sessions import Remembering, Remote, Worker

FOUND, MISSED, UNSEEN = "found", "missed", "no effect"
FIRST_SEED = 1_000_000
"""The seeds of the independent inputs begin here; a verification's own are near 0."""


@dataclass(frozen=True)
class Verdict:
    """What became of a fault. `tried` are the independent inputs that it was run on, `effect` its largest effect on
    them, in tolerances of the output."""

    fault: Fault
    verdict: str
    tried: int = 0
    effect: float = 0.0


@dataclass
class Power:
    """The verdicts of one model; `status` is what verification says of the model without a fault."""

    model: str
    status: str
    verdicts: list[Verdict] = field(default_factory=list[Verdict])
    seconds: float = 0.0
    unsuited: int = 0
    """The number of times that an independent input was left out because the model differs on it without a fault."""

    def counts(self, kind: str | None = None) -> Counter[str]:
        return Counter(v.verdict for v in self.verdicts if kind is None or v.fault.kind == kind)

    @property
    def share(self) -> float:
        """Of the faults that have an effect, the share that is found; 1 where none has."""
        found = self.counts()
        seen = found[FOUND] + found[MISSED]
        return found[FOUND] / seen if seen else 1.0

    @property
    def missed(self) -> list[str]:
        return [
            f"{v.fault.kind}: {v.fault.where} (effect on one of {v.tried} inputs: {v.effect:.2g} tolerances)"
            for v in self.verdicts
            if v.verdict == MISSED
        ]


class _Faulty(Artifact):
    """A compiled model that runs in a worker."""

    worker: Worker

    def _candidate(self, threads: int, cut: Mapping[str, Any], ort_options: Mapping[str, Any]) -> Any:
        return Remote(self.worker, self.folder, threads, cut, ort_options)


@dataclass
class Subject:
    """A compiled model in `folder` and its original, with what its faults share."""

    name: str
    folder: Path
    inputs: int = 1000
    seconds: float = 60.0
    """For the independent inputs of one fault."""
    budget: float = BUDGET_SECONDS

    def __post_init__(self) -> None:
        self.artifact = Artifact.load(self.folder)
        assert isinstance(self.artifact.source, str)
        self.original = Remembering(self.artifact.source)
        self.facts = model_facts(self.artifact.source)
        self.worker = Worker(timeout=max(60.0, 4 * self.budget))
        self.sizes: list[dict[str, int]] = []
        self.unsuited = 0

    def measure(self, most: int, seed: int) -> Power:
        """Plant `most` faults, one after the other."""
        start = time.monotonic()
        with tempfile.TemporaryDirectory(dir=self.folder.parent, prefix=f".{self.folder.name}.power-") as scratch:
            good = self._verify(self.folder)
            found = Power(self.name, good.status)
            self.sizes = [c.shapes for c in good.cases if c.kind not in ("many", "large integers", "by region")]
            self.sizes = [s for s in self.sizes if s not in self.sizes[:1]] or self.sizes[:1]
            for k, fault in enumerate(faults(self.folder, most, seed)):
                folder = Path(scratch) / f"fault{k}"
                linked_copy(self.folder, folder)
                fault.plant(folder)
                found.verdicts.append(self._verdict(fault, folder))
        self.worker.close()
        found.seconds, found.unsuited = time.monotonic() - start, self.unsuited
        return found

    def _verify(self, folder: Path) -> Any:
        faulty = _Faulty(folder, self.artifact.report, self.artifact.source)
        faulty.worker = self.worker
        options = VerifyOptions(budget=self.budget, stop_at_first=True)
        pieces = Checks(faulty).pieces(self.original, options, {})
        candidate = Candidate(lambda threads, cut: Checks(faulty).candidate(threads, cut, {}))
        return verify_models(self.original, candidate, self.facts, options, pieces)

    def _verdict(self, fault: Fault, folder: Path) -> Verdict:
        try:
            status = self._verify(folder).status
        except IgniterError:
            status = "differs"
        if status == "differs":
            return Verdict(fault, FOUND)
        tried, effect = self._effect(folder)
        return Verdict(fault, MISSED if effect > 1.0 else UNSEEN, tried, effect)

    # -- independent inputs -------------------------------------------------------------------------------------------

    def _effect(self, folder: Path) -> tuple[int, float]:
        """How many independent inputs were tried, and the largest effect in tolerances; one over 1 is judged as a
        verification judges, with the noise of the original and its roundings."""
        end, largest, tried = time.monotonic() + self.seconds, 0.0, 0
        for ready in self._independent():
            if tried >= self.inputs or time.monotonic() > end:
                break
            tried += 1
            try:
                # Every fourth runs with several threads, as in a verification.
                remote = self._remote(folder, MANY_THREADS if tried % 4 == 0 else 0, ready.drawn)
                actual = remote.run(self.original.output_names, {**ready.feed, **ready.drawn})
            except SessionError:
                return tried, float("inf")
            effect = self._in_tolerances(ready, actual)
            if effect > 1.0 and self._differs_without_fault(ready):
                continue
            largest = max(largest, effect)
            if effect > 1.0:
                break
        return tried, largest

    def _differs_without_fault(self, ready: Ready) -> bool:
        """True if these inputs tell nothing of a fault: the compiled model differs on them as it was written."""
        actual = self._remote(self.folder, 0, ready.drawn).run(
            self.original.output_names, {**ready.feed, **ready.drawn}
        )
        differs = self._in_tolerances(ready, actual) > 1.0
        self.unsuited += differs
        return differs

    def _remote(self, folder: Path, threads: int, drawn: Mapping[str, Any]) -> Remote:
        return Remote(self.worker, folder, threads, drawn, {})

    def _independent(self) -> Iterator[Ready]:
        """Inputs of other seeds than a verification's, half of them at other sizes, and inputs of other kinds."""
        rng = np.random.default_rng(FIRST_SEED)
        lively: Iterator[tuple[str, dict[str, Any]]] = iter(())
        for k in count():
            sizes = self.sizes[k % len(self.sizes)]
            if k % 2:
                sizes = varied(sizes, (), rng)
            try:
                feed = random_inputs(self.original.specs, sizes, self.facts, FIRST_SEED + k)
                if k % 5 == 4:
                    found = next(lively, None)
                    if found is None:
                        lively = variants(self.original.specs, sizes, self.facts, FIRST_SEED + k)
                        found = next(lively, None)
                    feed = feed if found is None else found[1]
                expected, drawn = self.original.run(feed)
            except Exception:  # inputs that the original refuses
                continue
            yield Ready(feed, expected, drawn, FIRST_SEED + k)

    def _in_tolerances(self, ready: Ready, actual: Any) -> float:
        allowed = Allowance()
        plain = [
            compare_output(n, e, a) for n, e, a in zip(self.original.output_names, ready.expected, actual, strict=True)
        ]
        effect = max((o.max_error / allowed.of(o.dtype) for o in plain), default=0.0)
        if all(o.ok for o in plain):
            return min(effect, 1.0)
        judged = Judge(self.original, allowed, self.budget).outputs(ready, actual)
        certain = any(not o.ok and o.reason and not o.says_nothing for o in judged)
        return effect if certain and effect > 1.0 else (float("inf") if certain else 1.0)
