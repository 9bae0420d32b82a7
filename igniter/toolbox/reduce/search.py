"""The search for a smaller case with the same failure: greedy, in ever smaller sets of edits, until no edit succeeds.

It is the method of delta debugging (Zeller and Hildebrandt, "Simplifying and isolating failure-inducing input", 2002):
of each kind of edits all are tried at once, then halves, quarters, and single ones. A successful candidate is kept at
once: the best case so far is available whenever the search ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from xdsl.dialects.builtin import UnrankedTensorType
from xdsl.parser import Parser

from igniter.context import IgniterContext
from igniter.dialects.onnx.base import OnnxOp
from igniter.toolbox.reduce import graph_edits, loop_edits, nest_edits, size_edits
from igniter.toolbox.reduce.case import Case
from igniter.toolbox.reduce.checks import Interest, Worker
from igniter.toolbox.reduce.edits import Reduction, edited
from igniter.toolbox.reduce.outcome import PASSED, CheckRequest
from igniter.toolbox.reduce.size_edits import retype

REDUCTIONS: tuple[Reduction, ...] = (
    *graph_edits.REDUCTIONS,
    *loop_edits.REDUCTIONS,
    *nest_edits.REDUCTIONS,
    *size_edits.REDUCTIONS,
)
"""All kinds of edits, in the order of the attempts: the largest reductions come first."""


@dataclass(frozen=True)
class Step:
    """One successful kind of edit."""

    what: str
    size: str
    """The size after the edit, in words."""
    tried: int
    """The number of candidates so far."""

    def __str__(self) -> str:
        return f"{self.what}: {self.size} ({self.tried} tried)"


@dataclass
class Search:
    """The search; `keep` gets every smaller case at once."""

    interest: Interest
    worker: Worker
    request: CheckRequest
    keep: Callable[[Case], None]
    say: Callable[[Step], None]
    reductions: tuple[Reduction, ...] = REDUCTIONS
    steps: list[Step] = field(default_factory=list[Step])
    interrupted: bool = False

    def run(self, case: Case) -> Case:
        """Returns the smallest case found; an interrupt ends the search and keeps its result."""
        self.best = case
        try:
            while True:
                before = self.best
                self._step("drop passes", self._drop_passes)
                self._infer_types()
                for reduction in self.reductions:
                    self._step(reduction.name, lambda reduction=reduction: self._reduce(reduction))
                if self.best.size.key >= before.size.key:
                    break
            # Types determine the current sizes, and a valid model needs the types of its outputs.
            self._infer_types()
            self.keep(self.best)
        except KeyboardInterrupt:
            self.interrupted = True
        return self.best

    def _step(self, what: str, reduce: Callable[[], None]) -> None:
        before = self.best
        reduce()
        if self.best is not before:
            self._note(what)

    def _note(self, what: str) -> None:
        self.steps.append(Step(what, self.best.describe(), self.interest.tried))
        self.say(self.steps[-1])

    def _take(self, case: Case) -> bool:
        """Keeps a case if it is smaller and fails in the same way; returns true if so."""
        if case.size.key >= self.best.size.key or not self.interest.holds(case):
            return False
        self._keep(case)
        return True

    def _keep(self, case: Case) -> None:
        self.best = case
        self.keep(case)

    # -- edits --------------------------------------------------------------------------------------------------------

    def _reduce(self, reduction: Reduction) -> None:
        edits = list(reduction.find(self.best.module))
        count = len(edits)
        while count:
            place = 0
            while place < len(edits):
                case = edited(self.best, edits[place : place + count])
                if case is not None and self._take(case):
                    # The next edits have moved to the places of the ones made.
                    edits = list(reduction.find(self.best.module))
                else:
                    place += count
            count = min(count, len(edits)) // 2

    # -- the pipeline -------------------------------------------------------------------------------------------------

    def _drop_passes(self) -> None:
        """Cuts the pipeline after the failing pass, and drops every other pass not needed for the failure."""
        passes = self.best.passes
        if passes is None:
            return
        last = self.interest.outcome(self.best).place
        if 0 <= last < len(passes) - 1:
            self._take(replace(self.best, passes=passes[: last + 1]))
        count = len(self.best.passes or ())
        while count:
            place = 0
            while place < len(self.best.passes or ()):
                left: Sequence[str] = self.best.passes or ()
                if not self._take(replace(self.best, passes=(*left[:place], *left[place + count :]))):
                    place += count
            count //= 2

    def go_to_pass(self, case: Case) -> Case:
        """Returns the IR before the failing pass, with this pass alone; the case itself if that does not fail."""
        self.best = case
        last = self.interest.outcome(case).place
        if case.passes is None or last < 0:
            return case
        path = str(self.worker.write(case))
        before, this = case.passes[:last], case.passes[last : last + 1]
        found = self.worker.ask(
            replace(self.request, path=path, task="lower", passes=before, check_results=False, prove=False)
        )
        if found.kind == PASSED:
            module = Parser(IgniterContext(), found.text).parse_module()
            lower = Case(module, ".mlir", this, case.reproducer)
            if self.interest.holds(lower):
                self._keep(lower)
                self._note("go to the pass")
        return self.best

    # -- types --------------------------------------------------------------------------------------------------------

    def _infer_types(self) -> None:
        """Infers the types of values: without them, an inner value that became an input has unknown dims."""
        values = [r for op in self.best.module.walk() if isinstance(op, OnnxOp) for r in op.results]
        if not any(isinstance(v.type, UnrankedTensorType) for v in values):
            return
        path = str(self.worker.write(self.best))
        found = self.worker.ask(replace(self.request, path=path, task="types", passes=None))
        if found.kind != PASSED:
            return
        typed = self.best.module.clone()
        inferred = Parser(IgniterContext(), found.text).parse_module()
        pairs = list(zip(typed.walk(), inferred.walk(), strict=False))
        if [a.name for a, _ in pairs] != [b.name for _, b in pairs]:
            return
        for own, known in pairs:
            for value, other in zip(own.results, known.results, strict=False):
                if isinstance(value.type, UnrankedTensorType):
                    retype(value, other.type)
        case = replace(self.best, module=typed)
        if self.interest.holds(case):
            self.best = case
