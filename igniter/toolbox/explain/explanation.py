"""The explanation of a difference: for every part of the model its time on both sides, and what differs in it."""

from __future__ import annotations

import re
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from igniter.toolbox.explain.matching import Part, parts_of
from igniter.toolbox.explain.measurement import Difference, Times
from igniter.toolbox.explain.sides import Side, SideStep

GROUP = re.compile(r' "[^"]*"')
"""The name of a group of fused loops, which differs between kernels of equal schedules."""


@dataclass(frozen=True)
class PartDifference:
    """What a part of the model contributes to the difference."""

    what: str
    nodes: tuple[str, ...]
    a_ms: float
    b_ms: float
    difference: Difference
    share: float | None
    """Its part of the whole difference; `None` if the whole is within the noise."""
    reasons: tuple[str, ...]
    """What differs in regions, schedules and costs."""


@dataclass(frozen=True)
class Explanation:
    """The difference of two compilations in time, B's without A's."""

    a: str
    b: str
    sizes: Mapping[str, int]
    a_ms: float
    b_ms: float
    total: Difference
    control: Difference
    """A's difference from itself in the same rounds."""
    same_code: bool
    """True if both sides have the same kernels, to the byte."""
    parts: tuple[PartDifference, ...]
    """The parts, by the size of their difference; parts that are alike are one. One is what ONNX Runtime runs."""
    notes: tuple[str, ...]

    @property
    def is_clear(self) -> bool:
        """True if the difference is larger than A's from itself."""
        noise = max(abs(self.control.ms), self.control.high - self.control.low)
        return self.total.is_clear and abs(self.total.ms) > noise

    @property
    def kernel_share(self) -> float:
        """The share of the kernels in the time of both sides; the rest is ONNX Runtime's."""
        kernels = sum(part.a_ms + part.b_ms for part in self.parts if part.nodes)
        return kernels / (self.a_ms + self.b_ms)

    def to_dict(self) -> dict[str, Any]:
        """Returns JSON values."""
        return {**asdict(self), "is_clear": self.is_clear}


def explain(a: Side, b: Side, times: Times, sizes: Mapping[str, int]) -> Explanation:
    """Returns the explanation of measured times at these sizes."""
    total, control = times.total(), times.control()
    before, after = (statistics.median(p.run_ms for p in side) for side in (times.a, times.b))
    notes = tuple(filter(None, _notes(a, b)))
    whole = Explanation(a.name, b.name, sizes, before, after, total, control, a.digest == b.digest, (), notes)
    shares = total.ms if whole.is_clear else None
    alike: dict[Any, list[Part]] = {}
    for part in parts_of(a, b):
        alike.setdefault(_likeness(part, a, b), []).append(part)
    parts = [_part(each, a, b, times, sizes, shares) for each in alike.values()]
    parts.append(_rest(a, b, times, shares))
    return replace(whole, parts=tuple(sorted(parts, key=lambda each: -abs(each.difference.ms))))


def _notes(a: Side, b: Side) -> list[str]:
    before, after = a.artifact.report["versions"], b.artifact.report["versions"]
    versions = [
        f"{name} {before.get(name)} in A, {after.get(name)} in B"
        for name in {**before, **after}
        if before.get(name) != after.get(name)
    ]
    options, others = a.artifact.report["options"], b.artifact.report["options"]
    changed = [
        f"option {name}: {options.get(name)!r} in A, {others.get(name)!r} in B"
        for name in {**options, **others}
        if options.get(name) != others.get(name)
    ]
    return [*versions, *changed, a.unknown, b.unknown]


def _likeness(part: Part, a: Side, b: Side) -> Any:
    """Returns a key: parts with the same one, such as the layers of a transformer, are one row."""
    ops = [[step.ops for step in side] for side in (part.a, part.b)]
    return str([ops, *([_by_label(s, steps) for s, steps in ((a, part.a), (b, part.b))])])


def _part(
    alike: Sequence[Part], a: Side, b: Side, times: Times, sizes: Mapping[str, int], total: float | None
) -> PartDifference:
    """Returns the contribution of parts that are alike, with the reasons of the first."""
    part = alike[0]
    own, other = [s for each in alike for s in each.a], [s for each in alike for s in each.b]
    found = times.part(own, other)
    before, after = statistics.median(Times.of(times.a, own)), statistics.median(Times.of(times.b, other))
    reasons = [*_regions(part), *_left(part, a, b), *_schedules(part, a, b), *_amounts(part, sizes)]
    same = ["regions, schedules and costs are the same: code around it, memory or noise"]
    what = f"{len(alike)} x {part.what}" if len(alike) > 1 else part.what
    nodes = tuple(node for each in alike for node in each.nodes)
    return PartDifference(what, nodes, before, after, found, _share(found, total), tuple(reasons or same))


def _rest(a: Side, b: Side, times: Times, total: float | None) -> PartDifference:
    found = times.rest()
    before, after = (statistics.median(p.rest_ms for p in side) for side in (times.a, times.b))
    reasons: list[str] = []
    if len(a.left) != len(b.left):
        reasons.append(f"{len(a.left)} nodes left to ONNX Runtime in A, {len(b.left)} in B")
    programs = [len({s.key[0] for s in side.steps}) for side in (a, b)]
    if programs[0] != programs[1]:
        reasons.append(f"{programs[0]} programs in A, {programs[1]} in B")
    what = "ONNX Runtime: its nodes, and calls"
    return PartDifference(what, (), before, after, found, _share(found, total), tuple(reasons))


def _share(found: Difference, total: float | None) -> float | None:
    return None if not total else found.ms / total


def _regions(part: Part) -> list[str]:
    if len(part.a) == len(part.b):
        return []
    counts = ["1 region" if len(side) == 1 else f"{len(side) or 'no'} regions" for side in (part.a, part.b)]
    return [f"{counts[0]} in A, {counts[1]} in B"]


def _left(part: Part, a: Side, b: Side) -> list[str]:
    found: list[str] = []
    for letter, side, steps in (("A", a, part.a), ("B", b, part.b)):
        inside = {node for step in steps for node in step.nodes}
        left = [node for node in part.nodes if node not in inside and node in side.left]
        if left:
            found.append(f"left to ONNX Runtime in {letter}: {left[0]} ({side.left[left[0]]})")
            if len(left) > 1:
                found[-1] += f" and {len(left) - 1} more"
    return found


def _schedules(part: Part, a: Side, b: Side) -> list[str]:
    before, after = (_by_label(side, steps) for side, steps in ((a, part.a), (b, part.b)))
    found: list[str] = []
    for label in {**before, **after}:
        one, other = before.get(label), after.get(label)
        if one is None or other is None:
            where = "A" if other is None else "B"
            found.append(f"nest '{label}' only in {where}: {one or other}")
        elif one != other:
            found.append(f"nest '{label}': {one} in A, {other} in B")
    return found


def _by_label(side: Side, steps: Sequence[SideStep]) -> dict[str, str]:
    """Returns the schedules of the kernels of some steps; a label that occurs again is numbered."""
    found: dict[str, str] = {}
    for kernel in dict.fromkeys(step.kernel for step in steps):
        for label, text in side.schedules.get(kernel, {}).items():
            name, number = label, 1
            while name in found:
                number += 1
                name = f"{label} ({number})"
            found[name] = GROUP.sub("", text)
    return found


def _amounts(part: Part, sizes: Mapping[str, int]) -> list[str]:
    found: list[str] = []
    for name in ("flops", "bytes"):
        sums: list[int | None] = []
        for steps in (part.a, part.b):
            each = [step.amount(getattr(step, name), sizes) for step in steps]
            sums.append(None if None in each else sum(v for v in each if v is not None))
        if sums[0] != sums[1] and part.a and part.b and None not in sums:
            what = "operations" if name == "flops" else "bytes in and out of its kernels"
            found.append(f"{sums[0]:,} {what} in A, {sums[1]:,} in B")
    return found
