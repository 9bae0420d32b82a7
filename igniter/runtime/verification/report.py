"""What a verification says: of every output at every size, of every case, and of all together."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

BY_REGION = "by region"
"""The kind of a case in which the pieces of a model are compared, each on identical inputs: its outputs are the values
that cross regions, in their place the outputs of the model say nothing."""
MORE = "more inputs"
"""The kind of a case of other inputs at sizes that a case had: its outputs are the worst of all of them."""
LOOKED_FOR = "inputs looked for"
"""The kind of a case of inputs under which outputs move that others leave at rest."""
Status = Literal["passed", "differs", "not verified"]


@dataclass(frozen=True)
class OutputResult:
    """One output of one case. `max_error` and `noise` are relative to `magnitude`, the largest finite one in ORT's
    output; `noise` is how far the original moves by itself, `None` where that was not measured."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    max_error: float
    max_difference: float
    magnitude: float
    ok: bool
    reason: str = ""
    noise: float | None = None
    note: str = ""
    """Why an output that is not within the tolerance is right all the same."""
    allowed: float = 0.0
    """The largest difference that would have passed; 0 where the values must be equal."""
    says_nothing: bool = False
    """Whether the output counts neither way, for the `reason`: no fault would have shown in it."""


@dataclass(frozen=True)
class CaseResult:
    """All outputs for one choice of sizes; a case that did not run has a reason and no outputs."""

    shapes: dict[str, int]
    status: Literal["passed", "failed", "skipped"]
    outputs: tuple[OutputResult, ...] = ()
    reason: str = ""
    kind: str = ""
    """What the sizes were chosen for: ones, unequal, odd, equal, many; "given" by the user."""
    threads: int = 0
    """The threads within an op that the compiled model ran with; 0 as many as ORT takes by itself."""
    provider: str = ""
    """The execution provider that it ran in, where the model has code for several."""


@dataclass(frozen=True)
class Refusal:
    """Sizes at which the original does not run, and what ORT says."""

    shapes: dict[str, int]
    reason: str


@dataclass(frozen=True)
class Verification:
    """The result of a verification; true when something was compared and all of it agrees."""

    cases: tuple[CaseResult, ...]
    refused: tuple[Refusal, ...] = ()
    cannot: str = ""
    """Why nothing could be compared, where that is not for want of sizes."""
    without: tuple[str, ...] = ()
    """The execution providers that the model has code for, in which nothing was compared: they are not there."""
    against: str = "ONNX Runtime"
    """The program that ran the original."""
    because: str = ""
    """The reason where that is not ONNX Runtime."""
    inexact: tuple[str, ...] = ()
    """Nodes of integers that ONNX Runtime computes in f64, where that gave other outputs than exact integers do. The
    model is compared with the exact ones."""
    at_rest: tuple[str, ...] = ()
    """The outputs that are the same, or vanish, for all inputs that were tried, in sentences: a comparison of them
    could not have failed, so that the model is not verified unless its regions are."""

    def joined(self, other: Verification) -> Verification:
        """This one and that of another execution provider."""
        refused = (*self.refused, *(r for r in other.refused if r not in self.refused))
        inexact = tuple(dict.fromkeys((*self.inexact, *other.inexact)))
        at_rest = tuple(dict.fromkeys((*self.at_rest, *other.at_rest)))
        cases, cannot = (*self.cases, *other.cases), self.cannot or other.cannot
        return replace(self, cases=cases, refused=refused, cannot=cannot, inexact=inexact, at_rest=at_rest)

    @property
    def status(self) -> Status:
        """`differs` if anything is wrong, `passed` if something was compared, `not verified` otherwise."""
        statuses = [case.status for case in self.cases]
        if "failed" in statuses:
            return "differs"
        if self.at_rest and self.way != "regions":
            return "not verified"
        return "passed" if "passed" in statuses else "not verified"

    @property
    def ok(self) -> bool:
        """Whether something was compared, and nothing failed."""
        return self.status == "passed"

    def __bool__(self) -> bool:
        return self.ok

    @property
    def _judged(self) -> list[OutputResult]:
        """The outputs of all cases but those that say nothing; of the pieces of a model the worst."""
        counted = [c for c in self.cases if c.status != "skipped" and c.kind != BY_REGION]
        found = [o for c in counted for o in c.outputs if not o.says_nothing]
        pieces = [o for c in self.cases if c.status != "skipped" and c.kind == BY_REGION for o in c.outputs]
        if pieces:
            worst = max(pieces, key=lambda o: o.max_error)
            found.append(replace(worst, name=f"{len(pieces)} values of regions"))
        return found

    @property
    def way(self) -> str:
        """What was compared: the model's `outputs`, or, where these say nothing, the values of its `regions`."""
        return "regions" if any(c.kind == BY_REGION and c.status != "skipped" for c in self.cases) else "outputs"

    @property
    def max_errors(self) -> dict[str, float]:
        """The largest error of every output over all cases that count."""
        found: dict[str, float] = {}
        for output in self._judged:
            found[output.name] = max(found.get(output.name, 0.0), output.max_error)
        return found

    @property
    def max_noise(self) -> dict[str, float]:
        """The largest noise of the original's own, for every output of which it was measured."""
        found: dict[str, float] = {}
        for output in self._judged:
            if output.noise is not None:
                found[output.name] = max(found.get(output.name, 0.0), output.noise)
        return found

    @property
    def failures(self) -> list[str]:
        """A line for everything that differs."""
        lines: list[str] = []
        for case in self.cases:
            where = f" at {sizes_text(case.shapes)}" if case.shapes else ""
            where += f" in {case.provider}" if case.provider else ""
            if case.status == "failed" and case.reason:
                lines.append(f"{case.reason}{where}")
            if case.status == "failed":
                lines += [
                    f"output '{o.name}'{where}: {o.reason}" for o in case.outputs if not o.ok and not o.says_nothing
                ]
        return lines

    @property
    def reasons(self) -> list[str]:
        """Why nothing could be compared, and what to do about it; empty where something was."""
        if self.status != "not verified":
            return []
        if self.cannot:
            return [self.cannot]
        if self.at_rest and any(c.status == "passed" for c in self.cases):
            return [*self.at_rest, "give --inputs: a .npz file, or a folder with input_0.pb, ..."]
        refused = list(dict.fromkeys(r.reason for r in self.refused))
        lines: list[str] = []
        if refused:
            sizes = (
                "the sizes that its dims fix" if len(self.refused) == 1 else f"{len(self.refused)} of the sizes tried"
            )
            lines.append(f"the original model does not run at {sizes}")
            lines += [f"{self.against} says: {reason}" for reason in refused[:3]]
        latest = reversed(self.cases)
        said = list(dict.fromkeys(c.reason for c in latest if c.reason))
        if said:
            lines.append(
                f"its outputs say nothing at {sum(c.kind != BY_REGION for c in self.cases)} of the sizes tried"
            )
            lines += said[:3]
        symbols = next((list(c.shapes) for c in (*self.refused, *self.cases) if c.shapes), list[str]())
        how = f"sizes with --shape {','.join(f'{s}=N' for s in symbols)}, or " if symbols else ""
        return [*lines, f"give {how}inputs with --inputs: a .npz file, or a folder with input_0.pb, ..."]

    def to_dict(self) -> dict[str, Any]:
        """JSON values; an error that is no number becomes text."""
        return plain(
            {
                "ok": self.ok,
                "status": self.status,
                "way": self.way,
                "against": self.against,
                "because": self.because,
                "reasons": self.reasons,
                "max_errors": self.max_errors,
                "max_noise": self.max_noise,
                "cases": [asdict(c) for c in self.cases],
                "refused": [asdict(r) for r in self.refused],
                "without": list(self.without),
                "inexact": list(self.inexact),
                "at_rest": list(self.at_rest),
            }
        )

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)


def sizes_text(shapes: dict[str, int]) -> str:
    """`batch=1, seq=8`."""
    return ", ".join(f"{name}={size}" for name, size in shapes.items())


def plain(value: Any) -> Any:
    """JSON values; a number that JSON has none for becomes text."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
