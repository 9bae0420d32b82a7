"""Judgement of outputs against those of the original: first with the noise of a few runs, then more thoroughly."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from igniter.verification.decisions import Explainer
from igniter.verification.judgement import NO_NOISE, Allowance, Noise, compare_within
from igniter.verification.original import Original
from igniter.verification.report import OutputResult


@dataclass(frozen=True)
class Ready:
    """A case that runs in the original: the inputs, its outputs for them, and the draws of its random nodes."""

    feed: dict[str, Any]
    expected: Sequence[Any]
    drawn: Mapping[str, Any] = field(default_factory=dict[str, Any])
    seed: int = 0


@dataclass
class Judge:
    """The judge for one original. `budget` is in seconds after `started`; a running step is always finished."""

    original: Original
    allowed: Allowance
    budget: float
    started: float = field(default_factory=time.monotonic)

    def outputs(self, ready: Ready, actual: Sequence[Any]) -> list[OutputResult]:
        """Returns a result for each output of the original."""
        found = self._judged(ready, actual, thorough=False)
        return found if all(o.ok for o in found) else self._judged(ready, actual, thorough=True)

    def on_threads(self, ready: Ready, threads: int) -> tuple[Judge, Ready]:
        """Returns the judge and the case for a compiled model on `threads` threads. If the original's outputs depend
        on the number of threads, both use sessions with the same number."""
        original = self.original.on_threads(threads)
        if original is self.original:
            return self, ready
        expected = original.run_again(ready.feed, ready.drawn)
        return replace(self, original=original), replace(ready, expected=expected)

    def first_look(self, ready: Ready, actual: Sequence[Any]) -> list[OutputResult]:
        """Judges the outputs without more runs of the original for its noise. A failure here may pass in `outputs`."""
        sources = self.original.sigmoids(self.original.output_names)
        return [
            compare_within(n, e, a, self.allowed, Noise(source=sources.get(n, 0.0)))
            for n, e, a in zip(self.original.output_names, ready.expected, actual, strict=True)
        ]

    def _judged(self, ready: Ready, actual: Sequence[Any], *, thorough: bool) -> list[OutputResult]:
        names = self.original.output_names
        noises = self._noises(names, ready, thorough=thorough)
        outputs: list[OutputResult] = []
        explainer = Explainer(self.original, ready.feed, ready.drawn, self.allowed, time.monotonic() + self.budget / 2)
        for name, e, a in zip(names, ready.expected, actual, strict=True):
            noise = noises.get(name, NO_NOISE)
            output = compare_within(name, e, a, self.allowed, noise)
            if not output.ok and thorough:
                output = _explained(explainer, output, a, noise)
            outputs.append(output)
        return outputs

    def _noises(self, names: Sequence[str], ready: Ready, *, thorough: bool) -> dict[str, Noise]:
        left = self.started + self.budget - time.monotonic()
        if left <= 0 and not thorough:
            return {name: Noise(source=source) for name, source in self.original.sigmoids(names).items()}
        seconds = max(left, self.budget / 4)
        runs = self.original.others(ready.feed, ready.drawn, ready.seed, thorough=thorough, seconds=seconds)
        sources = self.original.sources(names, ready.feed, ready.drawn) if thorough else self.original.sigmoids(names)
        return {
            name: Noise([run[i] for run in runs], sources.get(name, 0.0), bool(runs)) for i, name in enumerate(names)
        }


def _explained(explainer: Explainer, output: OutputResult, actual: Any, noise: Noise) -> OutputResult:
    """Returns the output, accepted if the roundings before it have equally good alternatives that explain it."""
    try:
        note = explainer.explain(output.name, actual, noise)
    except Exception as error:
        # If the model's internal values are not available, the output is judged without them.
        return replace(output, reason=f"{output.reason} (its roundings cannot be inspected: {first_line(error)})")
    return replace(output, ok=True, reason="", note=note, says_nothing=False) if note else output


def first_line(error: Exception) -> str:
    """Returns the first line of an error's message."""
    return str(error).strip().split("\n", 1)[0]
