"""The sets of nodes worth leaving to ONNX Runtime, by the times of single regions.

A region with convolutions reads and writes images with channels last, without conversions of its own. So two units are
compared: a single region, and a *component*, the regions connected by images with channels last, with the regions that
change the layout at its edges. Without the component these changes are gone; its excess counts them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from igniter.compiler.measuring.outcome import RegionOutcome


@dataclass(frozen=True)
class Candidate:
    """A set of nodes to leave to ONNX Runtime, by name with the reason of each. `excess` are the seconds of their
    regions beyond ONNX Runtime's."""

    what: str
    reasons: Mapping[str, str]
    excess: float = 0.0


def slow_regions(regions: Iterable[RegionOutcome]) -> list[Candidate]:
    """Returns the regions slower than their nodes by more than the noise, the largest excess first."""
    found = [
        Candidate(f"{r.region} ({'+'.join(r.ops)})", _all(r.nodes, r.ratio, "its kernel"), r.excess)
        for r in regions
        if r.nodes and not r.wrong and r.is_slower
    ]
    return sorted(found, key=lambda c: -c.excess)


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
        times = [t for each in labels for t in outcomes[each].times]
        own, theirs = sum(t.seconds for t in times), sum(t.ort_seconds for t in times)
        nodes = [node for each in labels for node in nodes_of[each]]
        if nodes and theirs and own > theirs:
            reasons = _all(nodes, own / theirs, "with its changes of layout, its part of the model")
            found.append(Candidate(f"the {len(labels)} regions around {labels[0]}", reasons, own - theirs))
    return sorted(found, key=lambda c: -c.excess)


def joined(candidates: Sequence[Candidate]) -> Candidate:
    """Returns the union of several regions."""
    reasons = {node: why for c in candidates for node, why in c.reasons.items()}
    return Candidate(f"{len(candidates)} slow regions", reasons, sum(c.excess for c in candidates))


def everything(regions: Iterable[RegionOutcome], ratio: float) -> Candidate:
    """Returns all nodes of all regions, for a model that takes `ratio` of ONNX Runtime's time."""
    return Candidate("all regions", _all([node for r in regions for node in r.nodes], ratio, "the whole model"))


def _all(nodes: Iterable[str], ratio: float, what: str) -> dict[str, str]:
    return dict.fromkeys(nodes, f"{what} takes {ratio:.2f} of ONNX Runtime's time on this machine")
