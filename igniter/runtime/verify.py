"""Whether a compiled model computes what ONNX Runtime computes on the original.

Both run on the same random inputs at several shapes. Of every output the largest difference is taken relative to the
largest magnitude in ORT's output (an element near zero beside large ones is no better known than they are); NaN and
infinities must be in the same places; integers, booleans and strings must be equal. A shape that the original model
itself does not accept is skipped, with ORT's reason; at least one must be left.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

from igniter.errors import IgniterError
from igniter.runtime.random_inputs import default_shapes, random_inputs, specs_of

if TYPE_CHECKING:
    import numpy as np

STAMPS = "igniter.stamps."
"""What the names of the outputs start with that a model compiled for a profile has besides its own: the time stamps of
a program, whose name follows. They are not compared."""

TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""The largest error allowed by default, by the type of the output."""

PRECISIONS = {"bf16": 5e-2, "int8-dynamic": 2e-1}
"""The same for models that were compiled to lower precision on request. What is right depends on the model; the error
that was measured is what counts, and this only catches what is plainly wrong."""


@dataclass(frozen=True)
class OutputResult:
    """One output at one shape. `max_error` is relative to `magnitude`, the largest finite one in ORT's output."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    max_error: float
    max_difference: float
    magnitude: float
    ok: bool
    reason: str = ""


@dataclass(frozen=True)
class CaseResult:
    """All outputs for one choice of shapes; a case that did not run has a reason and no outputs."""

    shapes: dict[str, int]
    status: Literal["passed", "failed", "skipped"]
    outputs: tuple[OutputResult, ...] = ()
    reason: str = ""


@dataclass(frozen=True)
class Verification:
    """The result of a verification; true when it is good."""

    cases: tuple[CaseResult, ...]

    @property
    def ok(self) -> bool:
        """Whether nothing failed, and something was compared."""
        statuses = [case.status for case in self.cases]
        return "failed" not in statuses and "passed" in statuses

    def __bool__(self) -> bool:
        return self.ok

    @property
    def max_errors(self) -> dict[str, float]:
        """The largest error of every output over all cases."""
        found: dict[str, float] = {}
        for output in (o for case in self.cases for o in case.outputs):
            found[output.name] = max(found.get(output.name, 0.0), output.max_error)
        return found

    @property
    def failures(self) -> list[str]:
        """A line for everything that is wrong."""
        lines: list[str] = []
        for case in self.cases:
            where = f" at {', '.join(f'{k}={v}' for k, v in case.shapes.items())}" if case.shapes else ""
            if case.status == "failed" and case.reason:
                lines.append(f"{case.reason}{where}")
            lines += [f"output '{o.name}'{where}: {o.reason}" for o in case.outputs if not o.ok]
        if all(case.status == "skipped" for case in self.cases):
            reasons = "; ".join(dict.fromkeys(case.reason for case in self.cases))
            lines.append(f"the original model runs at none of the shapes tried: {reasons}")
        return lines

    def to_dict(self) -> dict[str, Any]:
        """JSON values; an error that is no number becomes text."""
        return _plain({"ok": self.ok, "max_errors": self.max_errors, "cases": [asdict(c) for c in self.cases]})

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType]
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def verify_sessions(
    reference: Any,
    candidate: Any,
    *,
    inputs: Mapping[str, Any] | Sequence[Mapping[str, Any]] | None = None,
    shapes: Sequence[Mapping[str, int]] | None = None,
    rtol: float | None = None,
    limits: Mapping[str, int] | None = None,
    seed: int = 0,
) -> Verification:
    """Compare two ORT sessions, of the original model and of the compiled one.

    `inputs` are feeds to use as they are; otherwise random ones are made for every element of `shapes` (a size for
    every symbolic dim), by default for a few chosen by `default_shapes`. `limits` bounds integer inputs
    (`igniter.runtime.random_inputs.index_limits`). `rtol` is the largest error allowed for floating-point outputs.
    """
    _same_interface(reference, candidate)
    if inputs is not None:
        feeds = [inputs] if isinstance(inputs, Mapping) else inputs
        return Verification(tuple(_compare({}, feed, reference, candidate, rtol) for feed in feeds))
    specs = specs_of(reference)
    cases: list[CaseResult] = []
    for i, case in enumerate(default_shapes(specs) if shapes is None else shapes):
        feed = random_inputs(specs, case, limits or {}, seed + i)
        cases.append(_compare(dict(case), feed, reference, candidate, rtol))
    return Verification(tuple(cases))


def _same_interface(reference: Any, candidate: Any) -> None:
    for what in ("inputs", "outputs"):
        theirs, ours = (
            [v.name for v in getattr(s, f"get_{what}")() if not v.name.startswith(STAMPS)]
            for s in (reference, candidate)
        )
        if theirs != ours:
            raise IgniterError(f"the compiled model has the {what} {ours}, the original {theirs}")


def _compare(
    shapes: dict[str, int], feed: Mapping[str, Any], reference: Any, candidate: Any, rtol: float | None
) -> CaseResult:
    names: list[str] = [value.name for value in reference.get_outputs()]
    try:
        expected = reference.run(None, dict(feed))
    except Exception as error:  # whatever ORT raises, it raises about the original model
        return CaseResult(shapes, "skipped", reason=_first_line(error))
    try:
        actual = candidate.run(names, dict(feed))
    except Exception as error:
        return CaseResult(shapes, "failed", reason=f"the compiled model fails: {_first_line(error)}")
    outputs = [compare_output(n, e, a, rtol) for n, e, a in zip(names, expected, actual, strict=True)]
    return CaseResult(shapes, "passed" if all(o.ok for o in outputs) else "failed", tuple(outputs))


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n", 1)[0]


def compare_output(name: str, expected: Any, actual: Any, rtol: float | None = None) -> OutputResult:
    """How far `actual` is from `expected`; sequences are compared element by element, and the worst counts."""
    import numpy as np

    if isinstance(expected, list) or isinstance(actual, list):
        return _compare_sequence(name, expected, actual, rtol)
    kind = type(expected).__name__
    if kind in ("NoneType", "dict") or actual is None:
        return _same(name, kind) if _equal(expected, actual) else _failure(name, kind, (), "the values differ")
    e, a = np.asarray(expected), np.asarray(actual)
    if e.dtype != a.dtype:
        return _failure(name, str(a.dtype), a.shape, f"the type is {a.dtype}, ORT's is {e.dtype}")
    if e.shape != a.shape:
        return _failure(name, str(a.dtype), a.shape, f"the shape is {list(a.shape)}, ORT's is {list(e.shape)}")
    if e.dtype.kind in "OUS":
        return _same(name, str(e.dtype), e.shape) if _equal(e, a) else _failure(name, "string", e.shape, "text differs")
    if e.dtype.kind in "biu":
        return _compare_exact(name, e, a)
    return _compare_floats(name, e, a, TOLERANCES.get(e.dtype.name, 1e-4) if rtol is None else rtol)


def _compare_exact(name: str, e: np.ndarray[Any, Any], a: np.ndarray[Any, Any]) -> OutputResult:
    import numpy as np

    wrong = int(np.count_nonzero(e != a))
    # Differences of integers can pass 64 bits; their size is only for the report.
    difference = float(np.max(np.abs(e.astype(np.float64) - a.astype(np.float64)), initial=0.0))
    magnitude = float(np.max(np.abs(e.astype(np.float64)), initial=0.0))
    error = difference / magnitude if magnitude else difference
    reason = f"{wrong} of {e.size} elements differ" if wrong else ""
    return OutputResult(name, str(e.dtype), e.shape, error, difference, magnitude, not wrong, reason)


def _compare_floats(name: str, e: np.ndarray[Any, Any], a: np.ndarray[Any, Any], tolerance: float) -> OutputResult:
    import numpy as np

    wide = np.complex128 if e.dtype.kind == "c" else np.float64
    dtype, shape = str(e.dtype), e.shape
    e, a = e.astype(wide), a.astype(wide)
    finite = np.isfinite(e) & np.isfinite(a)
    # Equal infinities are equal; all else that is not finite on both sides must be NaN on both.
    strange = int(np.count_nonzero(~finite & ~(np.isnan(e) & np.isnan(a)) & ~(e == a)))
    with np.errstate(invalid="ignore"):  # infinities of both
        difference = float(np.max(np.abs(e - a), initial=0.0, where=finite))
    magnitude = float(np.max(np.abs(e), initial=0.0, where=np.isfinite(e)))
    error = difference / magnitude if magnitude else difference
    reason = ""
    if strange:
        reason = f"NaN or infinity in {strange} of {e.size} places on one side only"
    elif error > tolerance:
        reason = f"the largest error, {error:.3g} of the largest magnitude {magnitude:.3g}, is over {tolerance:.3g}"
    return OutputResult(name, dtype, shape, error, difference, magnitude, not reason, reason)


def _compare_sequence(name: str, expected: Any, actual: Any, rtol: float | None) -> OutputResult:
    if not isinstance(expected, list) or not isinstance(actual, list) or len(expected) != len(actual):  # pyright: ignore[reportUnknownArgumentType]
        return _failure(name, "sequence", (), "the sequences differ in length, or one is none")
    parts = [compare_output(name, e, a, rtol) for e, a in zip(expected, actual, strict=True)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if not parts:
        return _same(name, "sequence")
    return max(parts, key=lambda p: (not p.ok, p.max_error))


def _equal(expected: Any, actual: Any) -> bool:
    import numpy as np

    return bool(np.array_equal(np.asarray(expected, object), np.asarray(actual, object)))


def _same(name: str, dtype: str = "", shape: tuple[int, ...] = ()) -> OutputResult:
    return OutputResult(name, dtype, shape, 0.0, 0.0, 0.0, True)


def _failure(name: str, dtype: str, shape: tuple[int, ...], reason: str) -> OutputResult:
    return OutputResult(name, dtype, shape, math.inf, math.inf, 0.0, False, reason)
