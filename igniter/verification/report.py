"""The results of a verification: for every output at every size, for every case, and for the whole."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, dataclass, replace
from typing import Any, Literal

BY_REGION = "by region"
"""The kind of a case with a comparison of the model's pieces, each on identical inputs. Its outputs are the values
at the borders of regions; they replace the model's inconclusive outputs."""
MORE = "more inputs"
"""The kind of a case with other inputs at the sizes of an earlier case. Its outputs are the worst of all of them."""
LOOKED_FOR = "inputs looked for"
"""The kind of a case with inputs found to move outputs at rest."""
Status = Literal["passed", "differs", "not verified"]


@dataclass(frozen=True)
class OutputResult:
    """One output of one case. `max_error` and `noise` are relative to `magnitude`, the largest finite magnitude in
    ORT's output. `noise` is the difference between runs of the original, `None` if not measured."""

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
    """The reason why an output outside the tolerance is accepted."""
    allowed: float = 0.0
    """The largest accepted difference; 0 if the values must be equal."""
    says_nothing: bool = False
    """True if the output is inconclusive, for the `reason`: it could not have revealed a fault."""


@dataclass(frozen=True)
class CaseResult:
    """All outputs at one choice of sizes. A case without a run has a reason and no outputs."""

    shapes: dict[str, int]
    status: Literal["passed", "failed", "skipped"]
    outputs: tuple[OutputResult, ...] = ()
    reason: str = ""
    kind: str = ""
    """The kind of sizes: ones, unequal, odd, equal, many, or "given" by the user."""
    threads: int = 0
    """The intra-op threads of the compiled model; 0: ORT's default."""
    provider: str = ""
    """The execution provider of the run, if the model has code for several."""


@dataclass(frozen=True)
class Refusal:
    """Sizes refused by the original, with ORT's message."""

    shapes: dict[str, int]
    reason: str


@dataclass(frozen=True)
class Verification:
    """The result of a verification; true if something was compared and everything agrees."""

    cases: tuple[CaseResult, ...]
    refused: tuple[Refusal, ...] = ()
    cannot: str = ""
    """The reason why nothing could be compared, other than a lack of sizes."""
    without: tuple[str, ...] = ()
    """The execution providers with code in the model, but without a comparison: they are not available."""
    against: str = "ONNX Runtime"
    """The program that ran the original."""
    because: str = ""
    """The reason if that is not ONNX Runtime."""
    inexact: tuple[str, ...] = ()
    """Integer nodes with other outputs in ONNX Runtime, which computes them in f64. The model is compared with exact
    integers instead."""
    at_rest: tuple[str, ...] = ()
    """The outputs that are constant or 0 for all tried inputs, as sentences. Their comparison could not have failed, so
    the model counts as not verified unless its regions are verified."""

    def __repr__(self) -> str:
        compared = sum(case.status != "skipped" for case in self.cases)
        errors = self.max_errors.values()
        largest = f", largest relative error {max(errors):.1e}" if errors else ""
        why = "; ".join([*self.failures[:1], *self.reasons[:2]])
        text = f"{self.status}, {compared} case{'s' * (compared != 1)} against {self.against}{largest}"
        return f"<Verification: {text}{f': {why}' if why else ''}>"

    def joined(self, other: Verification) -> Verification:
        """Returns this verification joined with the one of another execution provider."""
        refused = (*self.refused, *(r for r in other.refused if r not in self.refused))
        inexact = tuple(dict.fromkeys((*self.inexact, *other.inexact)))
        at_rest = tuple(dict.fromkeys((*self.at_rest, *other.at_rest)))
        cases, cannot = (*self.cases, *other.cases), self.cannot or other.cannot
        return replace(self, cases=cases, refused=refused, cannot=cannot, inexact=inexact, at_rest=at_rest)

    @property
    def status(self) -> Status:
        """`differs` if anything differs, `not verified` without a conclusive comparison, `passed` otherwise."""
        statuses = [case.status for case in self.cases]
        if "failed" in statuses:
            return "differs"
        if self.at_rest and self.way != "regions":
            return "not verified"
        return "passed" if "passed" in statuses else "not verified"

    @property
    def ok(self) -> bool:
        """True if something was compared, and nothing differs."""
        return self.status == "passed"

    def __bool__(self) -> bool:
        return self.ok

    @property
    def _judged(self) -> list[OutputResult]:
        """The conclusive outputs of all cases. The pieces of a model count as one output, the worst of them."""
        counted = [c for c in self.cases if c.status != "skipped" and c.kind != BY_REGION]
        found = [o for c in counted for o in c.outputs if not o.says_nothing]
        pieces = [o for c in self.cases if c.status != "skipped" and c.kind == BY_REGION for o in c.outputs]
        if pieces:
            worst = max(pieces, key=lambda o: o.max_error)
            found.append(replace(worst, name=f"{len(pieces)} values of regions"))
        return found

    @property
    def way(self) -> str:
        """The kind of compared values: `outputs` of the model, or values of `regions` if outputs are inconclusive."""
        return "regions" if any(c.kind == BY_REGION and c.status != "skipped" for c in self.cases) else "outputs"

    @property
    def max_errors(self) -> dict[str, float]:
        """The largest error of every output over all conclusive cases."""
        found: dict[str, float] = {}
        for output in self._judged:
            found[output.name] = max(found.get(output.name, 0.0), output.max_error)
        return found

    @property
    def max_noise(self) -> dict[str, float]:
        """The largest noise of the original for every output with measured noise."""
        found: dict[str, float] = {}
        for output in self._judged:
            if output.noise is not None:
                found[output.name] = max(found.get(output.name, 0.0), output.noise)
        return found

    @property
    def failures(self) -> list[str]:
        """One line for each difference."""
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
        """The reasons why nothing could be compared, with advice; empty if something was compared."""
        if self.status != "not verified":
            return []
        if self.cannot:
            return [self.cannot]
        if self.at_rest and any(c.status == "passed" for c in self.cases):
            return [*self.at_rest, "give --inputs, a .npz file, or a folder with input_0.pb, ..."]
        refused = list(dict.fromkeys(r.reason for r in self.refused))
        lines: list[str] = []
        if refused:
            sizes = (
                "the sizes that its dims fix" if len(self.refused) == 1 else f"{len(self.refused)} of the sizes tried"
            )
            lines.append(f"the original model does not run at {sizes}")
            lines += [f"message of {self.against}: {reason}" for reason in refused[:3]]
        latest = reversed(self.cases)
        said = list(dict.fromkeys(c.reason for c in latest if c.reason))
        if said:
            lines.append(
                f"its outputs prove nothing at {sum(c.kind != BY_REGION for c in self.cases)} of the sizes tried"
            )
            lines += said[:3]
        symbols = next((list(c.shapes) for c in (*self.refused, *self.cases) if c.shapes), list[str]())
        how = f"sizes with --shape {','.join(f'{s}=N' for s in symbols)}, or " if symbols else ""
        return [*lines, f"give {how}inputs with --inputs: a .npz file, or a folder with input_0.pb, ..."]

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values. An infinite or NaN error becomes text."""
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
    """Returns sizes as text, such as `batch=1, seq=8`."""
    return ", ".join(f"{name}={size}" for name, size in shapes.items())


def plain(value: Any) -> Any:
    """Returns JSON values. Infinities and NaNs become text."""
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value
