"""Trials: the model compiled without kernels for some nodes, beside the best model so far. The whole model decides.

    a set of nodes ── compile ──▶ a model ── in turns with the best ──▶ kept, if it is faster at some choice of sizes,
                                                                      slower at none, and so once more

The single regions only propose: a kernel that is slower than its nodes may still be the better choice, because ONNX
Runtime would need another layout of its tensors, and a program of fewer kernels.
"""

from __future__ import annotations

import dataclasses
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from igniter.activity import doing
from igniter.compiler.artifact import Artifact
from igniter.compiler.compilation import Compilation, CompileOptions
from igniter.compiler.compile_model import compile_model
from igniter.compiler.measuring.candidates import Candidate
from igniter.compiler.measuring.formed import fresh
from igniter.compiler.measuring.machine import elsewhere
from igniter.compiler.measuring.outcome import Times, TrialOutcome
from igniter.compiler.measuring.regions import HINT, Setting
from igniter.errors import IgniterError
from igniter.runtime.session import LibraryElsewhere, said_by_onnxruntime
from igniter.runtime.turns import Turns, in_place

MARGIN = 0.01
"""The least gain of a trial, besides the noise, as a share of the model's time. A candidate is tried if its regions
promise half of it: how much a whole model gains is only known afterwards."""
MOST_TRIALS = 10
"""The limit of compilations for trials."""

ORT, CONTROL, BEST, TRIAL, PLAIN = "onnxruntime", "control", "best", "trial", "plain"


@dataclass
class _Model:
    """A compiled model, with a run at each choice of sizes."""

    options: CompileOptions
    artifact: Artifact
    runs: list[Callable[[], object]]


@dataclass
class Trials:
    """The trials of one model: `original` as it was given, and `theirs`, ONNX Runtime's session of it."""

    original: ModuleOp
    base: Compilation
    """The compilation of the plain model; trials have its options and its cache."""
    setting: Setting
    theirs: Any
    folder: Path
    outcomes: list[TrialOutcome] = field(default_factory=list[TrialOutcome])

    def __post_init__(self) -> None:
        self._theirs = [in_place(self.theirs, feed) for feed in self.setting.feeds]
        self._tried: set[frozenset[str]] = set()
        self.plain = self._compiled(self.base.options)
        self.best = self.plain
        self.now = self.beside_ort()
        """The times of the best model."""

    @property
    def left(self) -> dict[str, str]:
        """The nodes left to ONNX Runtime in the best model, with the reasons."""
        return dict(self.best.options.left)

    def require(self, reasons: Mapping[str, str]) -> None:
        """Leaves nodes to ONNX Runtime whatever the times."""
        self.best = self._compiled(dataclasses.replace(self.base.options, left=tuple(reasons.items())))
        self.plain = self.best
        self.now = self.beside_ort()

    def consider(self, candidate: Candidate) -> bool:
        """Tries to leave the nodes of a candidate to ONNX Runtime, besides those of the best model; returns true if
        that is the best model now."""
        reasons = {**candidate.reasons, **self.left}
        nodes = frozenset(reasons)
        if nodes in self._tried or nodes <= self.left.keys() or len(self._tried) >= MOST_TRIALS:
            return False
        outcome = TrialOutcome(candidate.what, tuple(sorted(candidate.reasons)))
        shares = [excess / t.seconds for excess, t in zip(candidate.excess, self.now, strict=True)]
        if max(shares) < MARGIN / 2:
            reason = f"not tried, because its regions exceed ONNX Runtime's by {max(shares):.1%} of the model's time"
            self.outcomes.append(dataclasses.replace(outcome, reason=reason))
            return False
        self._tried.add(nodes)
        try:
            trial = self._compiled(dataclasses.replace(self.base.options, left=tuple(reasons.items())))
        except LibraryElsewhere:
            raise
        except IgniterError as error:
            self.outcomes.append(dataclasses.replace(outcome, reason=f"it does not compile: {error.message}"))
            return False
        if _is_same(trial.artifact, self.best.artifact):
            reason = "ONNX Runtime has no kernels for these nodes, so nothing changes"
            self.outcomes.append(dataclasses.replace(outcome, reason=reason))
            return False
        outcome = self._compared(trial, outcome)
        self.outcomes.append(outcome)
        if outcome.accepted:
            self.best = trial
            self.now = self.beside_ort()
        else:
            # Its weights may be large.
            shutil.rmtree(trial.artifact.folder, ignore_errors=True)
        return outcome.accepted

    def finish(self) -> tuple[tuple[Times, ...], tuple[Times, ...]]:
        """Compares the best model with the plain one for the last time, and returns to the plain one if that is no
        slower. Returns the times of the plain and of the chosen model, beside ONNX Runtime's."""
        if self.best is self.plain:
            return self.now, self.now
        races = self._race("the model before and after", {PLAIN: self.plain, BEST: self.best})
        if not _is_faster(races, BEST, PLAIN):
            nodes = tuple(sorted(self.left.keys() - dict(self.plain.options.left).keys()))
            ratios = tuple(race.ratio(BEST, PLAIN) for race in races)
            reason = "not confirmed, so all kernels stay"
            self.outcomes.append(TrialOutcome("all accepted sets", nodes, ratios, False, reason))
            self.best = self.plain
            before = tuple(_times(race, PLAIN) for race in races)
            return before, before
        return tuple(_times(race, PLAIN) for race in races), tuple(_times(race, BEST) for race in races)

    def beside_ort(self) -> tuple[Times, ...]:
        """Returns the times of the best model at each choice of sizes."""
        return tuple(_times(race, BEST) for race in self._race("the whole model", {BEST: self.best}))

    def _compared(self, trial: _Model, outcome: TrialOutcome) -> TrialOutcome:
        """Returns the comparison with the best model; an accepted trial is faster twice."""
        ratios: tuple[float, ...] = ()
        for _ in range(2):
            races = self._race(f"without kernels for {outcome.what}", {TRIAL: trial, BEST: self.best})
            ratios = tuple(race.ratio(TRIAL, BEST) for race in races)
            if not _is_faster(races, TRIAL, BEST):
                reason = "not faster beyond the noise, so the kernels stay"
                return dataclasses.replace(outcome, ratios=ratios, reason=reason)
        return dataclasses.replace(outcome, ratios=ratios, accepted=True, reason="faster, so they are left to it")

    def _race(self, what: str, models: Mapping[str, _Model]) -> list[Turns]:
        """Times models in turns with ONNX Runtime's session, which has two turns, at each choice of sizes."""
        found: list[Turns] = []
        for number, theirs in enumerate(self._theirs):
            systems = {name: model.runs[number] for name, model in models.items()} | {ORT: theirs, CONTROL: theirs}
            with doing("the compiled model was timed", runs="kernels", hint=HINT):
                found.append(self.setting.measure.timer(what, systems, self.setting.measure.model_seconds))
        return found

    def _compiled(self, options: CompileOptions) -> _Model:
        """Compiles the model with other options, and makes its session."""
        folder = Path(tempfile.mkdtemp(dir=self.folder))
        c = fresh(self.base, self.original, options)
        artifact = compile_model(c, None, self.original, folder / "model.igniter", None, False)
        try:
            session = artifact.session(**self.setting.options)
        except LibraryElsewhere as error:
            raise elsewhere(error.message) from error
        try:
            runs = [in_place(session, feed) for feed in self.setting.feeds]
        except Exception as error:  # ONNX Runtime's errors have no common base
            raise IgniterError(f"the compiled model does not run: {said_by_onnxruntime(error)}") from error
        return _Model(options, artifact, runs)


def _is_same(a: Artifact, b: Artifact) -> bool:
    """True if two compiled models have the same kernels and leave the same nodes."""
    return all(a.report[key] == b.report[key] for key in ("kernel_digest", "nodes_after", "regions"))


def _is_faster(races: Sequence[Turns], one: str, other: str) -> bool:
    """True if a model is faster than another one by more than the noise at some choice of sizes, and slower at none."""
    compared = [(race.ratio(one, other), race.noise(one, other, (CONTROL, ORT))) for race in races]
    gains = any(ratio < 1 - max(noise, MARGIN) for ratio, noise in compared)
    return gains and not any(ratio > 1 + min(noise, MARGIN) for ratio, noise in compared)


def _times(race: Turns, name: str) -> Times:
    noise = race.noise(name, ORT, (CONTROL, ORT))
    return Times(race.median(name), race.median(ORT), race.ratio(name, ORT), noise, race.rounds)
