"""The comparison of two values of an output, within the tolerance or within the noise of the original."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from igniter.verification.report import OutputResult

if TYPE_CHECKING:
    Floats = np.ndarray[Any, np.dtype[np.float64]]

_TINY_FLOATS = {
    "float8_e4m3fn": 2.0**-3,
    "float8_e4m3fnuz": 2.0**-3,
    "float8_e5m2": 2.0**-2,
    "float8_e5m2fnuz": 2.0**-2,
    "float8_e8m0fnu": 1.0,
    "float4_e2m1fn": 2.0**-1,
}
"""The unit in the last place of 1, used as the tolerance: one different rounding causes this difference."""
TOLERANCES = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""The default tolerance by the type of the output."""

NOISE_FACTOR = 16
"""An output may differ by this multiple of the original's noise. The noise is a sample of a few runs, and Igniter
rounds differently from ORT at every op, not only at the inputs."""

SLICE_TOLERANCE = 10
"""A slice along an axis may differ by this multiple of the tolerance of its own magnitude ..."""
SLICE_NOISE_FACTOR = 64
"""... or by this multiple of its own noise. A slice has fewer elements than the whole, so its noise is less certain."""
SLICE_RANGE = 1e-5
"""A slice smaller than this share of the whole is not judged separately, like an element near zero."""

CHAOS = "the original, with inputs changed by one unit in the last place, changes"
SMALL = "the output is no larger than the rounding errors of the original:"
MOST_NOISE = 0.2
"""The largest allowed error as a share of the output's magnitude. If noise would allow more, the output is
inconclusive."""

BEYOND = 4
"""A difference larger than this multiple of the output's magnitude ..."""
BEYOND_NOISE = 64
"""... and this multiple of its noise is wrong even for an inconclusive output."""

SLICE_ELEMENTS = 32
"""The minimum size of a judged slice. With fewer elements, magnitude and noise are not reliable."""

SOURCE_ULPS = 64
"""The allowed error of an output with cancellation, in units in the last place of the largest cancelled value."""


@dataclass(frozen=True)
class Allowance:
    """The tolerance of an output: `rtol` of its magnitude (default: `TOLERANCES`) plus `atol`."""

    rtol: float | None = None
    atol: float = 0.0
    coarser: float = 1.0
    """The roundings of the compiled model as a multiple of those of the type: 2^13 with TF32. A slice whose terms
    cancel has that multiple of its own noise, which is measured with the roundings of the type."""

    def of(self, dtype: str) -> float:
        """Returns the relative tolerance for a type."""
        return TOLERANCES.get(dtype, _TINY_FLOATS.get(dtype, 1e-4)) if self.rtol is None else self.rtol


@dataclass(frozen=True)
class Noise:
    """The values of one output in other, equally good runs of the original."""

    others: Sequence[Any] = ()
    source: float = 0.0
    """The largest magnitude among the operands of the output's computation; 0 if unknown."""
    seen: bool = field(default=False)
    """True if the original ran again."""


NO_NOISE = Noise()


def compare_output(
    name: str, expected: Any, actual: Any, rtol: float | None = None, atol: float = 0.0, noise: Noise = NO_NOISE
) -> OutputResult:
    """Compares `actual` with `expected`. Sequences are compared element by element, and the worst element counts."""
    return compare_within(name, expected, actual, Allowance(rtol, atol), noise)


def compare_within(name: str, expected: Any, actual: Any, allowed: Allowance, noise: Noise = NO_NOISE) -> OutputResult:
    """Compares as `compare_output`, within an allowance."""
    if isinstance(expected, list) or isinstance(actual, list):
        return _compare_sequence(name, expected, actual, allowed, noise)
    kind = type(expected).__name__
    if kind in ("NoneType", "dict") or actual is None:
        return _same(name, kind) if _equal(expected, actual) else failure(name, kind, (), "the values differ")
    e, a = np.asarray(expected), np.asarray(actual)
    if e.dtype != a.dtype:
        return failure(name, str(a.dtype), a.shape, f"the type is {a.dtype}, ORT's is {e.dtype}")
    if e.shape != a.shape:
        return failure(name, str(a.dtype), a.shape, f"the shape is {list(a.shape)}, ORT's is {list(e.shape)}")
    if e.dtype.kind in "OUS":
        return _same(name, str(e.dtype), e.shape) if _equal(e, a) else failure(name, "string", e.shape, "text differs")
    if e.dtype.kind == "V" and "int" in e.dtype.name:
        # Integers of four or two bits, not supported by NumPy.
        e, a = e.astype(np.int8), a.astype(np.int8)
    if e.dtype.kind in "biu":
        return _compare_exact(name, e, a, noise)
    return _compare_floats(name, e, a, allowed, noise)


# -- integers ---------------------------------------------------------------------------------------------------------


def _compare_exact(name: str, e: np.ndarray[Any, Any], a: np.ndarray[Any, Any], noise: Noise) -> OutputResult:
    differs = e != a
    for other in _alike(noise, e):
        # The perturbed original gives the same value.
        differs &= other != a
    wrong = int(np.count_nonzero(differs))
    # Differences of integers can overflow 64 bits. They are only for the report.
    difference = float(np.max(np.abs(e.astype(np.float64) - a.astype(np.float64)), initial=0.0))
    magnitude = float(np.max(np.abs(e.astype(np.float64)), initial=0.0))
    error = difference / magnitude if magnitude else difference
    reason = f"{wrong} of {e.size} elements differ" if wrong else ""
    result = OutputResult(name, str(e.dtype), e.shape, error, difference, magnitude, not wrong, reason)
    return replace(result, note="as the original with changed inputs") if difference and not wrong else result


# -- floats -----------------------------------------------------------------------------------------------------------


def _compare_floats(
    name: str, e: np.ndarray[Any, Any], a: np.ndarray[Any, Any], allowed: Allowance, noise: Noise
) -> OutputResult:
    dtype, shape, eps = str(e.dtype), e.shape, _epsilon(e.dtype)
    others = list(_alike(noise, e))
    found = _Extremes()
    for part in _parts(e, a, others):
        found.add(part)
    strange, difference, magnitude, spread = found.strange, found.difference, found.magnitude, found.spread
    error = difference / magnitude if magnitude else difference
    tolerance = allowed.of(dtype)
    reason, note = "", ""
    within = tolerance * (magnitude or 1.0) + allowed.atol
    cancelled = SOURCE_ULPS * eps * noise.source
    excused = NOISE_FACTOR * spread if NOISE_FACTOR * spread <= MOST_NOISE * magnitude else 0.0
    off_by = max(within, cancelled, excused)
    if strange:
        reason = f"NaN or infinity in {strange} of {e.size} places on one side only"
    elif within < difference <= cancelled and cancelled > MOST_NOISE * magnitude:
        small = f"{SMALL} it is {magnitude:.3g} at most, and may be off by {cancelled:.3g}"
        moved_by = _relative(spread, magnitude) if noise.seen else None
        return OutputResult(name, dtype, shape, error, difference, magnitude, False, small, moved_by, "", off_by, True)
    elif within < difference <= cancelled:
        note = "its terms cancel"
    elif difference > max(BEYOND * magnitude, BEYOND_NOISE * spread, cancelled, within):
        reason = (
            f"the largest error, {difference:.3g}, is {_relative(difference, magnitude):.3g} times the output itself"
        )
    elif difference > within and NOISE_FACTOR * spread > MOST_NOISE * magnitude and spread > 0:
        relative = _relative(spread, magnitude)
        chaos = f"{CHAOS} by {relative:.3g} of the largest magnitude {magnitude:.3g}"
        return OutputResult(name, dtype, shape, error, difference, magnitude, False, chaos, relative, "", off_by, True)
    elif within < difference <= NOISE_FACTOR * spread:
        note = "within the model's own noise"
    elif difference > within:
        reason = f"the largest error, {error:.3g} of the largest magnitude {magnitude:.3g}, is over {tolerance:.3g}"
        if noise.seen:
            reason += f" and over {NOISE_FACTOR} times the original's own noise, {_relative(spread, magnitude):.3g}"
    elif noise.seen:
        reason = _worst_slice(e, a, others, magnitude, allowed, eps)
    relative = _relative(spread, magnitude) if noise.seen else None
    return OutputResult(name, dtype, shape, error, difference, magnitude, not reason, reason, relative, note, off_by)


BLOCK = 1 << 16
"""The elements that are compared at a time: in f64, with what is made of them, they stay in a cache."""


class _Part(NamedTuple):
    """A block of the arrays in f64 or c128, with its place."""

    place: tuple[slice, ...]
    e: Floats
    a: Floats
    others: list[Floats]


def _parts(e: np.ndarray[Any, Any], a: np.ndarray[Any, Any], others: Sequence[np.ndarray[Any, Any]]) -> Iterator[_Part]:
    """Yields the blocks of arrays of one shape: an output may be too large for several copies in f64."""
    wide: Any = np.complex128 if e.dtype.kind == "c" else np.float64
    for place in _blocks(e.shape):
        yield _Part(place, e[place].astype(wide), a[place].astype(wide), [o[place].astype(wide) for o in others])


def _blocks(shape: tuple[int, ...]) -> Iterator[tuple[slice, ...]]:
    """Yields the places of blocks of at most `BLOCK` elements, in order."""
    if math.prod(shape) <= BLOCK:
        yield (slice(None),) * len(shape)
        return
    inner = math.prod(shape[1:])
    if inner > BLOCK:
        for k in range(shape[0]):
            for rest in _blocks(shape[1:]):
                yield (slice(k, k + 1), *rest)
        return
    step = BLOCK // inner
    for k in range(0, shape[0], step):
        yield (slice(k, min(k + step, shape[0])), *[slice(None)] * (len(shape) - 1))


@dataclass
class _Extremes:
    """The largest numbers of a comparison, and the count of places with NaN or infinity on one side."""

    strange: int = 0
    difference: float = 0.0
    magnitude: float = 0.0
    spread: float = 0.0

    def add(self, part: _Part) -> None:
        e, a = part.e, part.a
        apart = _finite_distances(e, a)
        if apart is None:
            finite = np.isfinite(e) & np.isfinite(a)
            # Equal infinities agree. Any other pair with a value that is not finite must be NaN on both sides.
            odd = ~finite & ~(np.isnan(e) & np.isnan(a)) & ~(e == a)
            for other in part.others:
                odd &= np.isfinite(other) == np.isfinite(e)
            self.strange += int(np.count_nonzero(odd))
            apart = _apart(e, a)
        self.difference = max(self.difference, float(np.max(apart, initial=0.0)))
        self.magnitude = max(self.magnitude, float(np.max(np.abs(e), initial=0.0, where=np.isfinite(e))))
        self.spread = max(self.spread, float(np.max(_moved(e, part.others), initial=0.0)))


def _worst_slice(
    e: np.ndarray[Any, Any],
    a: np.ndarray[Any, Any],
    others: Sequence[np.ndarray[Any, Any]],
    magnitude: float,
    allowed: Allowance,
    eps: float,
) -> str:
    """Returns a message for the first slice that is wrong relative to its own magnitude; "" if all are right."""
    if e.ndim < 2 or not magnitude:
        return ""
    axes = [k for k, dim in enumerate(e.shape) if dim >= 2 and e.size // dim >= SLICE_ELEMENTS]
    # By axis: each slice's own magnitude, its error, and its noise.
    largest = {axis: np.zeros((3, e.shape[axis])) for axis in axes}
    for part in _parts(e, a, others) if axes else ():
        sizes = np.abs(np.where(np.isfinite(part.e), part.e, 0.0))
        values = (sizes, _apart(part.e, part.a), _moved(part.e, part.others))
        for axis, found in largest.items():
            rest = tuple(i for i in range(e.ndim) if i != axis)
            here = found[:, part.place[axis]]
            np.maximum(here, [np.max(v, axis=rest) for v in values], out=here)
    tolerance, times = allowed.of(str(e.dtype)), max(SLICE_NOISE_FACTOR, allowed.coarser)
    for axis, (own, wrong, noise) in largest.items():
        by_noise = np.maximum(times * noise, SLICE_NOISE_FACTOR * eps * own)
        limit = np.maximum(SLICE_TOLERANCE * tolerance * own + allowed.atol, by_noise)
        bad = (wrong > limit) & (own > SLICE_RANGE * magnitude)
        if bad.any():
            k = int(np.argmax(bad))
            return (
                f"slice {k} of axis {axis} is off by {wrong[k] / own[k]:.3g} of its largest magnitude {own[k]:.3g},"
                f" over {SLICE_TOLERANCE * tolerance:.3g} and over {times:g} times its own noise,"
                f" {noise[k] / own[k]:.3g}"
            )
    return ""


def _apart(one: Floats, two: Floats) -> Floats:
    """Returns the distance of each pair of elements; 0 if one of them is not finite."""
    found = _finite_distances(one, two)
    if found is not None:
        return found
    with np.errstate(invalid="ignore", over="ignore"):  # infinities of both
        return np.where(np.isfinite(one) & np.isfinite(two), np.abs(one - two), 0.0)


def _finite_distances(one: Floats, two: Floats) -> Floats | None:
    """Returns the distance of each pair of elements; `None` if one is not finite, because its distance is not."""
    with np.errstate(invalid="ignore", over="ignore"):
        found = np.abs(one - two)
    return found if np.isfinite(np.max(found, initial=0.0)) else None


def _moved(e: Floats, others: Sequence[Floats]) -> Floats:
    found = np.zeros(e.shape)
    for other in others:
        np.maximum(found, _apart(e, other), out=found)
    return found


def _alike(noise: Noise, e: np.ndarray[Any, Any]) -> Iterator[np.ndarray[Any, Any]]:
    for other in noise.others:
        array = np.asarray(other)
        if array.shape == e.shape and array.dtype == e.dtype:
            yield array


def _epsilon(dtype: np.dtype[Any]) -> float:
    """Returns the unit in the last place of 1."""
    known = {"float64": 2.0**-52, "complex128": 2.0**-52, "float16": 2.0**-10, "bfloat16": 2.0**-7, **_TINY_FLOATS}
    return known.get(dtype.name, 2.0**-23)


def _relative(value: float, magnitude: float) -> float:
    return value / magnitude if magnitude else value


# -- all else ---------------------------------------------------------------------------------------------------------


def _compare_sequence(name: str, expected: Any, actual: Any, allowed: Allowance, noise: Noise) -> OutputResult:
    if not isinstance(expected, list) or not isinstance(actual, list) or len(expected) != len(actual):  # pyright: ignore[reportUnknownArgumentType]
        return failure(name, "sequence", (), "the sequences differ in length, or one is not a sequence")
    e, a = _table(expected), _table(actual)  # pyright: ignore[reportUnknownArgumentType]
    if e is not None and a is not None:
        if e[0] != a[0]:
            return failure(name, "sequence", (), "the keys of its maps differ")
        others = [found[1] for o in noise.others if (found := _table(o)) is not None]
        return compare_within(name, e[1], a[1], allowed, replace(noise, others=others))
    parts = [compare_within(name, e, a, allowed) for e, a in zip(expected, actual, strict=True)]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if not parts:
        return _same(name, "sequence")
    return max(parts, key=lambda p: (not p.ok, p.max_error))


def _table(maps: Any) -> tuple[list[Any], np.ndarray[Any, Any]] | None:
    """Returns the keys and the values of a list of maps to floats with the same keys, as from ZipMap. The values are an
    array with one row per map. Returns `None` for anything else."""
    if not isinstance(maps, list) or not maps or not all(isinstance(m, dict) for m in maps):  # pyright: ignore[reportUnknownVariableType]
        return None
    rows = cast("list[dict[Any, Any]]", maps)
    keys = list(rows[0])
    if any(list(row) != keys for row in rows):
        return None
    values = np.array([list(row.values()) for row in rows])
    return (keys, values.astype(np.float32)) if values.dtype == np.float64 else None


def _equal(expected: Any, actual: Any) -> bool:
    return bool(np.array_equal(np.asarray(expected, object), np.asarray(actual, object)))


def _same(name: str, dtype: str = "", shape: tuple[int, ...] = ()) -> OutputResult:
    return OutputResult(name, dtype, shape, 0.0, 0.0, 0.0, True)


def failure(name: str, dtype: str, shape: tuple[int, ...], reason: str) -> OutputResult:
    """Returns the result of an output that differs in a way without a numeric error."""
    return OutputResult(name, dtype, shape, math.inf, math.inf, 0.0, False, reason)
