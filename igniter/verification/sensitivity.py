"""Detection of outputs at rest: the change of each output between inputs, compared with its allowed error.

An output that is 0, saturated, or the same for every input agrees with almost any model's. It is *at rest*, and its
comparison is inconclusive: it could not reveal a fault. An output independent of input values (constants, functions of
sizes) has no fault to reveal and is never at rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from igniter.verification.judgement import Allowance
from igniter.verification.report import OutputResult

if TYPE_CHECKING:
    import onnx

    Array = np.ndarray[Any, Any]

ENOUGH = 10.0
"""An output must move by this multiple of the error excused by noise and cancellation ..."""
ENOUGH_TOLERANCES = 2.0
"""... and by this multiple of the tolerance; for low-precision models the tolerance is a fifth of the magnitude."""
MOST_VALUES = 64
FEW_VALUES = 3
"""An output with fewer distinct values is saturated, unless it is a mask."""


@dataclass
class Watch:
    """The outputs of a model by name, and their movement between two compared inputs."""

    names: Sequence[str]
    allowed: Allowance
    dependent: frozenset[str]
    """The outputs with a dependence on input values."""
    alive: set[str] = field(default_factory=set[str])
    floats: set[str] = field(default_factory=set[str])
    words: dict[str, str] = field(default_factory=dict[str, str])
    """For each output at rest, its value in words for a sentence."""

    def see(self, one: OutputResult, a: Any, two: OutputResult, b: Any) -> None:
        """Records an output compared on two inputs of the same sizes, with its values `a` and `b`."""
        name = one.name
        if not hasattr(a, "dtype") or a.dtype.kind in "fcV":
            self.floats.add(name)
        if name in self.alive or name not in self.dependent:
            return
        if one.says_nothing or two.says_nothing:
            self.words.setdefault(name, f"proves nothing, {(one if one.says_nothing else two).reason},")
            return
        blur = max(one.allowed, two.allowed)
        if moved(a, b) >= self.enough(max(one.magnitude, two.magnitude), one.dtype, blur):
            self.alive.add(name)
            self.words.pop(name, None)
        else:
            self.words[name] = value_words(a, b, blur)

    def enough(self, magnitude: float, dtype: str, blur: float) -> float:
        """Returns the minimum movement of an output with the allowed error `blur`."""
        within = self.allowed.of(dtype) * (magnitude or 1.0) + self.allowed.atol
        return ENOUGH_TOLERANCES * within if blur <= within else max(ENOUGH * blur, ENOUGH_TOLERANCES * within)

    @property
    def at_rest(self) -> list[str]:
        """The outputs at rest: of all types if no output moves, otherwise float outputs only. Constant integers and
        booleans beside moving outputs are common, for example a class or a count."""
        resting = [n for n in self.names if n in self.dependent and n in self.words]
        return resting if not self.alive else [n for n in resting if n in self.floats]

    @property
    def unseen(self) -> list[str]:
        """The outputs without a movement yet: at rest, or not compared."""
        return [n for n in self.names if n in self.dependent and n not in self.alive]

    def sentences(self) -> tuple[str, ...]:
        """Returns the description of the outputs at rest, as sentences."""
        resting = self.at_rest
        if not resting:
            return ()
        said = {self.words[n] for n in resting}
        if len(said) == 1 and len(resting) == len(self.dependent):
            words = said.pop()
            plural = words.replace("is ", "are ", 1) if words.startswith("is ") else words
            return (f"the outputs {plural} for every tried input",)
        return tuple(f"output '{n}' {self.words[n]} for every tried input" for n in resting)


def moved(a: Any, b: Any) -> float:
    """Returns the largest difference of two values of an output. It is infinite if they differ in shape or in the
    places of finite values, or if they are different integers, booleans or strings."""
    if not hasattr(a, "dtype") or not hasattr(b, "dtype"):
        return 0.0 if repr(a) == repr(b) else float("inf")
    if a.shape != b.shape:
        return float("inf")
    if a.dtype.kind not in "fcV" or (a.dtype.kind == "V" and "int" in a.dtype.name):
        return 0.0 if a.tobytes() == b.tobytes() or np.array_equal(a, b) else float("inf")
    wide: Any = np.complex128 if a.dtype.kind == "c" else np.float64
    one, two = a.astype(wide), b.astype(wide)
    if not np.array_equal(np.isfinite(one), np.isfinite(two)):
        return float("inf")
    with np.errstate(invalid="ignore", over="ignore"):
        return float(np.max(np.abs(one - two), initial=0.0, where=np.isfinite(one)))


def value_words(a: Any, b: Any, blur: float) -> str:
    """Returns the description of an output at rest, as the rest of a sentence after its name."""
    if not hasattr(a, "dtype"):
        return "is the same"
    if a.size == 0:
        return "is empty"
    if a.dtype.kind in "OUSV" or not np.isfinite(a.astype(np.float64 if a.dtype.kind != "c" else np.complex128)).all():
        return "is the same"
    values: list[Any] = sorted({*np.unique(a).tolist(), *(np.unique(b).tolist() if a.shape == b.shape else ())})
    if len(values) == 1:
        return f"is {values[0]:g}" if a.dtype.kind != "b" else f"is {bool(values[0])}"
    largest = max(abs(v) for v in values)
    if largest <= 10 * blur:
        return f"is {largest:.2g} at most, and may be off by {blur:.2g},"
    return "is the same" if moved(a, b) == 0 else f"moves by less than {max(10 * blur, moved(a, b)):.2g}"


def variety(a: Any, blur: float) -> int:
    """Returns the number of values further apart than the allowed error, up to `MOST_VALUES`; 2 if saturated."""
    if not hasattr(a, "dtype") or a.dtype.kind != "f" or not a.size:
        return MOST_VALUES
    step = max(2 * blur, 1e-300)
    sample = [float(v) for v in a.reshape(-1)[:: max(1, a.size // 4096)]]
    return min(len({round(v / step) for v in sample if math.isfinite(v / step)}), MOST_VALUES)


def dependent_outputs(proto: onnx.ModelProto | None, names: Sequence[str]) -> frozenset[str]:
    """Returns the outputs that depend on input values, not only on sizes; all if the model is not available."""
    if proto is None:
        return frozenset(names)
    graph = proto.graph
    constants = {t.name for t in graph.initializer}
    known = {v.name for v in graph.input if v.name not in constants}
    for node in graph.node:
        if node.op_type in ("Shape", "Size") and node.domain in ("", "ai.onnx"):
            continue
        # A node with a subgraph also reads the values captured by the subgraph.
        if any(name in known for name in _reads(node)):
            known.update(name for name in node.output if name)
    return frozenset(name for name in names if name in known)


def _reads(node: onnx.NodeProto) -> set[str]:
    found = {name for name in node.input if name}
    for attribute in node.attribute:
        for graph in (attribute.g, *attribute.graphs):
            for inner in graph.node:
                found |= _reads(inner)
            found |= {v.name for v in graph.output}
    return found
