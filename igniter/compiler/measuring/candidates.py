"""The sets of nodes worth leaving to ONNX Runtime, by the times of single regions.

A region with convolutions reads and writes images with channels last, without conversions of its own. So two units are
compared: a single region, and a *component*, the regions connected by images with channels last, with the regions that
change the layout at its edges. Without the component these changes are gone; its excess counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from igniter.compiler.measuring.outcome import RegionOutcome, Times


@dataclass(frozen=True)
class Candidate:
    """A set of nodes to leave to ONNX Runtime, by name with the reason of each. `excess` are the seconds of their
    regions beyond ONNX Runtime's, at each choice of sizes."""

    what: str
    reasons: Mapping[str, str]
    excess: tuple[float, ...]


def slow_regions(regions: Iterable[RegionOutcome]) -> list[Candidate]:
    """Returns the regions slower than their nodes by more than the noise, the largest excess first."""
    found = [
        Candidate(f"{r.region} ({'+'.join(r.ops)})", _all(r.nodes, r.ratio, "its kernel"), r.excess)
        for r in regions
        if r.nodes and not r.wrong and r.is_slower
    ]
    return _largest_first(found)


def slow_components(
    components: Iterable[Sequence[str]], outcomes: Mapping[str, RegionOutcome], nodes_of: Mapping[str, Sequence[str]]
) -> list[Candidate]:
    """Returns the components slower than their nodes, their changes of layout counted, the largest excess first.

    `components` are the labels of their regions, `outcomes` and `nodes_of` the figures and the nodes by label. A
    component with a region without times is left out.
    """
    found: list[Candidate] = []
    for labels in components:
        if len(labels) < 2 or any(outcomes[each].wrong or outcomes[each].unmeasured for each in labels):
            continue
        by_size = list(zip(*(outcomes[each].times for each in labels), strict=True))
        sums = [(sum(t.seconds for t in times), sum(t.ort_seconds for t in times)) for times in by_size]
        nodes = [node for each in labels for node in nodes_of[each]]
        if nodes and any(0 < theirs < own for own, theirs in sums):
            ratio = max(own / theirs for own, theirs in sums if theirs)
            reasons = _all(nodes, ratio, "with its changes of layout, its part of the model")
            excess = tuple(own - theirs for own, theirs in sums)
            found.append(Candidate(f"the {len(labels)} regions around {labels[0]}", reasons, excess))
    return _largest_first(found)


def joined(candidates: Sequence[Candidate]) -> Candidate:
    """Returns the union of several regions."""
    reasons = {node: why for c in candidates for node, why in c.reasons.items()}
    excess = tuple(map(sum, zip(*(c.excess for c in candidates), strict=True)))
    return Candidate(f"{len(candidates)} slow regions", reasons, excess)


def everything(regions: Iterable[RegionOutcome], whole: Sequence[Times]) -> Candidate:
    """Returns all nodes of all regions; `whole` are the times of the model beside ONNX Runtime's."""
    nodes = [node for r in regions for node in r.nodes]
    reasons = _all(nodes, max(t.ratio for t in whole), "the whole model")
    return Candidate("all regions", reasons, tuple(t.seconds - t.ort_seconds for t in whole))


def _largest_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    return sorted(candidates, key=lambda c: -sum(max(0.0, excess) for excess in c.excess))


def _all(nodes: Iterable[str], ratio: float, what: str) -> dict[str, str]:
    return dict.fromkeys(nodes, f"{what} takes {ratio:.2f} of ONNX Runtime's time on this machine")
