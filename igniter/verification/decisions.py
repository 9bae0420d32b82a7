"""Equally good choices of integers, booleans and indices computed from floats.

A comparison, a cast or an ArgMax jumps under tiny changes of its input. The choices of such a node are examined in the
original alone: its inputs are moved by their allowed error as outputs, and the node's results are its *alternatives*.
If the node computes an output, the output may consist of alternatives. For an output further downstream, the original
runs again with single choices replaced by alternatives, keeping the best one each time. The result must then agree with
the compiled model.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from igniter.activity import doing
from igniter.errors import IgniterError
from igniter.frontend import surgery
from igniter.frontend.evaluate import ort_errors
from igniter.frontend.ort_values import run
from igniter.runtime.session import make_session
from igniter.verification.judgement import NOISE_FACTOR, Allowance, Noise, compare_within
from igniter.verification.original import WITHOUT, Original, nudged_feed

if TYPE_CHECKING:
    import onnx

    Array = np.ndarray[Any, Any]

# fmt: off
ROUNDING = frozenset((
    "ArgMax", "ArgMin", "TopK", "Cast", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual", "Round", "Floor",
    "Ceil", "Sign", "QuantizeLinear", "DynamicQuantizeLinear", "NonMaxSuppression", "NonZero", "Hardmax", "Unique",
    "Mod",
))
# fmt: on
MOST_NODES = 64
MOST_CHANGES = 8
"""The maximum number of different choices at once."""
MOST_ELEMENTS = 16
"""The maximum number of tried elements of one node; elements that differ in most alternatives come first."""
SAMPLES = 24


@dataclass
class Choice:
    """A rounding node, its value in the original, and its alternatives."""

    node: Any
    output: str
    value: Array
    alternatives: list[Array]
    moved: list[tuple[Array, Array]]
    """The value and the allowed error of each float input."""


@dataclass
class Explainer:
    """The search for alternatives of one case: `feed`, and `drawn` from the random nodes. `deadline` is in
    `time.monotonic` seconds."""

    original: Original
    feed: Mapping[str, Any]
    drawn: Mapping[str, Any]
    allowed: Allowance
    deadline: float

    def explain(self, name: str, actual: Any, noise: Noise) -> str:
        """Returns the reason why `actual` is as good as the original's output `name`; "" if it is not."""
        if self.original.proto is None or not hasattr(actual, "dtype"):
            return ""
        choices = self._choices(name)
        for choice in choices:
            if choice.output == name:
                return (
                    (f"a different choice of {_label(choice.node)} is equally good")
                    if _is_as_good(choice, actual)
                    else ""
                )
        return self._with_changes(name, actual, noise, choices)

    # -- choices of the original --------------------------------------------------------------------------------------

    def _choices(self, name: str) -> list[Choice]:
        proto = self.original.proto
        assert proto is not None
        made = surgery.producers(proto)
        nodes = list(_roundings_above(name, made))[:MOST_NODES]
        if not nodes:
            return []
        wanted = [v for n in nodes for v in (*n.input, *n.output) if v and v not in self.feed and v not in self.drawn]
        session = self.original.exposing(list(dict.fromkeys(wanted)), self.drawn or None)
        values = self._values(session, wanted, self.feed)
        spreads = self._spreads(session, wanted, values)
        return [c for node in nodes if (c := self._choice(proto, node, values, spreads)) is not None]

    def _values(self, session: Any, names: Sequence[str], feed: Mapping[str, Any]) -> dict[str, Any]:
        names = list(dict.fromkeys(names))
        return {**feed, **self.drawn, **dict(zip(names, run(session, {**feed, **self.drawn}, names), strict=True))}

    def _spreads(self, session: Any, names: Sequence[str], values: Mapping[str, Any]) -> dict[str, float]:
        """Returns the noise of every value: its largest change when the inputs are perturbed."""
        found: dict[str, float] = {}
        for seed in range(2):
            nudged = nudged_feed(self.feed, 100 + seed)
            if nudged is None:
                return {}
            for name, value in self._values(session, names, nudged).items():
                base = values[name]
                if _is_float(base) and np.shape(value) == np.shape(base):
                    with np.errstate(invalid="ignore"):
                        off = np.nan_to_num(np.abs(value.astype(np.float64) - base.astype(np.float64)), nan=0.0)
                    found[name] = max(found.get(name, 0.0), float(np.max(off, initial=0.0)))
        return found

    def _choice(
        self, proto: onnx.ModelProto, node: Any, values: Mapping[str, Any], spreads: Mapping[str, float]
    ) -> Choice | None:
        inputs = {name: np.asarray(values[name]) for name in node.input if name}
        if not any(_is_float(a) for a in inputs.values()):
            return None
        off = {name: self._may_be_off(a, spreads.get(name, 0.0)) for name, a in inputs.items() if _is_float(a)}
        try:
            session: Any = make_session(surgery.one_node(proto, node, inputs), log_severity_level=4)
        except IgniterError:
            return None
        output = (
            node.output[1] if node.op_type == "TopK" and len(node.output) > 1 and node.output[1] else node.output[0]
        )
        found: dict[bytes, Array] = {}
        for moves in _samples(off):
            # Arithmetic on arrays of rank 0 returns NumPy scalars, and ONNX Runtime does not accept these.
            changed = {n: np.asarray(a + moves[n], a.dtype) if n in moves else a for n, a in inputs.items()}
            with doing(f"a node of the original ran, {node.op_type}", runs="onnxruntime", hint=WITHOUT):
                other: Array = np.asarray(run(session, changed, [output])[0])
            found.setdefault(other.tobytes() + str(other.shape).encode(), other)
        value = np.asarray(values[output])
        found = {
            key: jumps for key, other in found.items() if (jumps := _jumps(node, inputs, value, other)) is not None
        }
        return Choice(node, output, value, list(found.values()), [(inputs[n].astype(np.float64), off[n]) for n in off])

    def _may_be_off(self, array: Array, spread: float) -> Array:
        finite = np.abs(np.where(np.isfinite(array), array, 0).astype(np.float64))
        magnitude = float(np.max(finite, initial=0.0))
        return np.full(array.shape, max(self.allowed.of(array.dtype.name) * magnitude, NOISE_FACTOR * spread))

    # -- other choices upstream ---------------------------------------------------------------------------------------

    def _with_changes(self, name: str, actual: Any, noise: Noise, choices: Sequence[Choice]) -> str:
        """Replaces elements by alternatives, one at a time; each step takes the one with the nearest output."""
        candidates = list(_changes(choices))
        chosen: dict[str, Array] = {}
        changed: list[str] = []
        nearest = float("inf")
        for _ in range(MOST_CHANGES):
            best: tuple[float, dict[str, Array], int] | None = None
            for at, (choice, index, alternative) in enumerate(candidates):
                if time.monotonic() > self.deadline:
                    return ""
                trial = dict(chosen)
                trial[choice.output] = _replaced(chosen.get(choice.output, choice.value), index, alternative)
                output = self._run_with(name, trial)
                if output is None:
                    continue
                if compare_within(name, output, actual, self.allowed, noise).ok:
                    nodes = ", ".join(dict.fromkeys([*changed, _label(choice.node)]))
                    return f"as the original with {len(changed) + 1} different, equally good choices of {nodes}"
                distance = _distance(output, actual)
                if best is None or distance < best[0]:
                    best = (distance, trial, at)
            if best is None or best[0] >= nearest:
                return ""
            nearest, chosen = best[0], best[1]
            changed.append(_label(candidates.pop(best[2])[0].node))
        return ""

    def _run_with(self, name: str, values: Mapping[str, Array]) -> Any:
        """Returns the original's output with internal values replaced; `None` if it cannot run with them. For example,
        another length may not fit the draws of random nodes for the old length."""
        cut = {**self.drawn, **values}
        session = self.original.exposing([], cut)
        needed = {v.name for v in session.get_inputs()}
        feed = {k: v for k, v in {**self.feed, **cut}.items() if k in needed}
        try:
            return run(session, feed, [name])[0]
        except tuple(ort_errors()):
            return None


_SIZED_BY: dict[str, slice] = {
    "Range": slice(None),
    "ConstantOfShape": slice(0, 1),
    "NonZero": slice(0, 1),
    **dict.fromkeys(("Expand", "Tile", "Resize", "Slice", "Pad", "Reshape", "Compress", "OneHot"), slice(1, None)),
}
"""The operands whose values decide the size of a node's results."""


def sized_by_rounding(original: Original, name: str) -> str:
    """Returns the label of a rounding node that decides a size on the path to an output; "" if no node does, for
    example if sizes depend only on the sizes of the inputs."""
    if original.proto is None:
        return ""
    made = surgery.producers(original.proto)
    inputs = {v.name for v in original.proto.graph.input}
    for value in _above(name, made):
        node = made.get(value)
        if node is None or node.op_type not in _SIZED_BY:
            continue
        for operand in node.input[_SIZED_BY[node.op_type]]:
            for other in _above(operand, made):
                above = made.get(other)
                if above is not None and above.op_type in ROUNDING and not inputs.isdisjoint(_above(other, made)):
                    return _label(above)
    return ""


def _above(name: str, producers: Mapping[str, Any]) -> Iterator[str]:
    """Yields a value and its transitive operands, without operands used only for their sizes."""
    seen: set[str] = set()
    todo = [name]
    while todo:
        value = todo.pop()
        if not value or value in seen:
            continue
        seen.add(value)
        yield value
        node = producers.get(value)
        if node is not None and node.op_type not in ("Shape", "Size"):
            todo += node.input


def _roundings_above(name: str, producers: Mapping[str, Any]) -> Iterator[Any]:
    """Yields the rounding nodes upstream of a value, nearest first."""
    seen: set[str] = set()
    level = [name]
    while level:
        below: list[str] = []
        for value in level:
            node = producers.get(value)
            if value in seen or node is None:
                continue
            seen.add(value)
            if node.op_type in ROUNDING and node.domain in ("", "ai.onnx", "com.microsoft"):
                yield node
            below += [v for v in node.input if v]
        level = below


def _jumps(node: Any, inputs: Mapping[str, Array], value: Array, other: Array) -> Array | None:
    """Returns `value` with its elements replaced by those of `other` that are different choices; `None` if the node
    makes no choice. A result that follows its input, such as a Cast to a wider type, is no choice: it would excuse any
    error."""
    if node.op_type == "Cast" and np.can_cast(inputs[node.input[0]].dtype, value.dtype, "safe"):
        return None
    if other.shape != value.shape or not _is_float(value):
        return other
    if node.op_type == "Unique":
        return None
    if node.op_type == "Mod":
        period = np.abs(inputs[node.input[1]].astype(np.float64))
        with np.errstate(invalid="ignore"):
            jumps = np.abs(other.astype(np.float64) - value.astype(np.float64)) > period / 2
        return np.where(jumps, other, value)
    return other


def _samples(off: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    """Yields changes of the inputs: all up, all down, in opposite directions, and at random."""
    rng = np.random.default_rng(0)
    for first in (1.0, -1.0):
        yield {name: first * o for name, o in off.items()}
        yield {name: (first if i % 2 else -first) * o for i, (name, o) in enumerate(off.items())}
    for i in range(SAMPLES):
        size = 1.0 if i % 2 else 0.5
        yield {name: size * o * rng.choice((-1.0, 1.0), o.shape) for name, o in off.items()}


# -- equally good results ---------------------------------------------------------------------------------------------


def _is_as_good(choice: Choice, actual: Array) -> bool:
    if choice.node.op_type in ("ArgMax", "ArgMin"):
        return _is_extreme(choice, actual)
    if choice.node.op_type == "TopK":
        return _is_top(choice, actual)
    same = [a for a in choice.alternatives if a.shape == choice.value.shape]
    if actual.shape == choice.value.shape and len(same) == len(choice.alternatives):
        low, high = choice.value, choice.value
        for other in same:
            low, high = np.minimum(low, other), np.maximum(high, other)
        return bool(np.all((actual >= low) & (actual <= high)))
    return _rows_are_as_good(choice, actual)


def _rows_are_as_good(choice: Choice, actual: Array) -> bool:
    """True if every row occurs in some alternative, and the rows common to all alternatives are present. This is for
    results of varying length."""
    rows = [{r.tobytes() for r in _rows(a, choice.node.op_type)} for a in (choice.value, *choice.alternatives)]
    got = {r.tobytes() for r in _rows(actual, choice.node.op_type)}
    return set.intersection(*rows) <= got <= set.union(*rows)


def _rows(array: Array, op_type: str) -> Array:
    # NonZero returns the indices in columns.
    turned = array.T if op_type == "NonZero" else array
    return np.ascontiguousarray(turned.reshape(turned.shape[0], -1) if turned.ndim else turned.reshape(1, 1))


def _is_extreme(choice: Choice, actual: Array) -> bool:
    """True if the indices select the largest (smallest) values, within their allowed error."""
    value, off = choice.moved[0]
    axis = next((a.i for a in choice.node.attribute if a.name == "axis"), 0)
    keep = next((a.i for a in choice.node.attribute if a.name == "keepdims"), 1)
    indices = actual if keep else np.expand_dims(actual, axis)
    if indices.shape != choice.value.shape and keep:
        return False
    if indices.min(initial=0) < 0 or indices.max(initial=0) >= max(value.shape[axis], 1):
        return False
    sign = 1.0 if choice.node.op_type == "ArgMax" else -1.0
    picked = np.take_along_axis(sign * value, indices, axis)
    best = np.max(sign * value, axis=axis, keepdims=True)
    return bool(np.all((picked >= best - 2 * np.max(off, initial=0.0)) | np.isnan(picked)))


def _is_top(choice: Choice, actual: Array) -> bool:
    """True if the indices are distinct and select the top values in order, within their allowed error."""
    value, off = choice.moved[0]
    axis = next((a.i for a in choice.node.attribute if a.name == "axis"), -1)
    if actual.shape != choice.value.shape:
        return False
    if actual.min(initial=0) < 0 or actual.max(initial=0) >= max(value.shape[axis], 1):
        return False
    ordered = np.sort(actual, axis=axis)
    if np.any(np.diff(ordered, axis=axis) == 0):
        return False
    gap = np.abs(np.take_along_axis(value, actual, axis) - np.take_along_axis(value, choice.value, axis))
    return bool(np.all(gap <= 2 * np.max(off, initial=0.0)))


# -- single changes ---------------------------------------------------------------------------------------------------


def _changes(choices: Sequence[Choice]) -> Iterator[tuple[Choice, int | None, Array]]:
    """Yields the elements that differ in alternatives, the most frequently different first; `None` for a whole array of
    another shape."""
    for choice in choices:
        counts = np.zeros(choice.value.size, np.int64)
        other = choice.value.reshape(-1).copy()
        for alternative in choice.alternatives:
            if alternative.shape != choice.value.shape:
                yield choice, None, alternative
                continue
            differs = alternative.reshape(-1) != choice.value.reshape(-1)
            counts += differs
            other[differs] = alternative.reshape(-1)[differs]
        order = np.argsort(-counts, kind="stable")[:MOST_ELEMENTS]
        for index in order:
            if counts[index]:
                yield choice, int(index), other


def _replaced(value: Array, index: int | None, alternative: Array) -> Array:
    if index is None:
        return alternative
    changed = value.copy()
    changed.reshape(-1)[index] = alternative.reshape(-1)[index]
    return changed


def _distance(one: Any, two: Any) -> float:
    """Returns the distance of two arrays; it is larger for different shapes than for any arrays of the same shape."""
    if np.shape(one) != np.shape(two):
        return 1e30 + abs(np.size(one) - np.size(two))
    if np.asarray(one).dtype.kind not in "fiub":
        return 1e29
    with np.errstate(invalid="ignore"):
        return float(np.sum(np.nan_to_num(np.abs(one.astype(np.float64) - two.astype(np.float64)), nan=1e10)))


def _is_float(value: Any) -> bool:
    return getattr(getattr(value, "dtype", None), "name", "") in ("float16", "float32", "float64", "bfloat16")


def _label(node: Any) -> str:
    return f"{node.op_type} '{node.name or node.output[0]}'"
