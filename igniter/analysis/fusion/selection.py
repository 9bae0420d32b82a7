"""Selection of the groups of nodes for regions: growth, then unprofitable nodes are given back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from igniter.analysis.fusion.author import FusionAuthor, asking, checked
from igniter.analysis.fusion.finished_regions import finished_regions
from igniter.analysis.fusion.graph import FusionGraph
from igniter.analysis.fusion.graph_order import tangled_nodes, topological_order
from igniter.analysis.fusion.legality import Reason
from igniter.analysis.fusion.region_growing import Growth, Refusal, grow_regions
from igniter.analysis.fusion.region_policy import OWN_KINDS, Limits, RegionPolicy, ordered_candidates
from igniter.analysis.fusion.symbols import SymbolSources


@dataclass(frozen=True)
class Selection:
    """The division of a graph's nodes into regions."""

    groups: tuple[tuple[int, ...], ...]
    """The nodes of each region, in the order of the graph; regions in an executable order."""
    order: tuple[int, ...]
    """The resulting graph, in an executable order: `-1 - k` for group k, a node's number otherwise."""
    bindings: tuple[tuple[SSAValue, ...], ...]
    """For each region the tensors read only to bind its symbols."""
    left: dict[int, Reason]
    """The reason why each other node is in no region."""
    growth: Growth

    def first(self, count: int) -> Selection:
        """Returns the selection of the first `count` regions only; the nodes of the others stay unchanged."""
        if count >= len(self.groups):
            return self
        order: list[int] = []
        left = dict(self.left)
        for unit in self.order:
            if unit >= 0 or -1 - unit < count:
                order.append(unit)
                continue
            nodes = self.groups[-1 - unit]
            order += nodes
            left.update(dict.fromkeys(nodes, Reason("limit", "the limit on the number of regions was reached")))
        return replace(self, groups=self.groups[:count], order=tuple(order), bindings=self.bindings[:count], left=left)

    def reason_between(self, graph: FusionGraph, source: int, target: int) -> Reason:
        """Returns the reason why two nodes of an edge are not in one region."""
        for node in (source, target):
            own = graph.reasons[node]
            if own is not None:
                return own
        region_of = self.growth.region_of
        if region_of[source] == region_of[target]:
            return self.left.get(source) or self.left[target]
        pair = (region_of[source], region_of[target])
        for a, b, refusal in self.growth.refusals:
            if (a, b) == (min(pair), max(pair)):
                return as_reason(graph, refusal)
        return (
            self.left.get(source)
            or self.left.get(target)
            or Reason("cost", ("merging their regions is not profitable"))
        )

    def refused_merges(self, graph: FusionGraph) -> list[tuple[int, int, Reason]]:
        """Returns a candidate for each two regions kept apart by the author, with its reason."""
        refused = {(a, b): r for a, b, r in self.growth.refusals if r.kind not in OWN_KINDS}
        region_of = self.growth.region_of
        found: dict[tuple[int, int], tuple[int, int, Reason]] = {}
        for a, b in graph.candidates:
            pair = min(region_of[a], region_of[b]), max(region_of[a], region_of[b])
            if pair in refused:
                found.setdefault(pair, (a, b, as_reason(graph, refused[pair])))
        return sorted(found.values(), key=lambda entry: entry[:2])


def as_reason(graph: FusionGraph, refusal: Refusal) -> Reason:
    """Returns a refusal of the algorithm with the names of the nodes."""
    return Reason(refusal.kind, refusal.message, tuple(graph.labels[n] for n in refusal.nodes[:3]))


def select_regions(graph: FusionGraph, author: FusionAuthor, limits: Limits, sources: SymbolSources) -> Selection:
    """Returns the groups of nodes worth a region, by the author."""
    count = len(graph.nodes)
    candidates = ordered_candidates(graph, author)
    eligible = graph.eligible
    growth = grow_regions(count, graph.edges, eligible, candidates, RegionPolicy(graph, limits, author), range(count))
    grown = [m for m in growth.members if eligible[m[0]]]
    # A node needs shape arithmetic outside of its region, but not inside. If leaving closes a cycle, such nodes stay in
    # their regions: the grown regions are acyclic.
    needy = frozenset(target for _, target in graph.dropped)
    for bound in (frozenset[int](), needy):
        left = {node: reason for node, reason in enumerate(graph.reasons) if reason is not None}
        groups: list[tuple[int, ...]] = []
        bindings: list[tuple[SSAValue, ...]] = []
        for members in grown:
            group = _worthwhile(graph, author, members, bound, left)
            found = sources.bindings([graph.nodes[n] for n in group])
            if isinstance(found, Reason):
                left.update((n, found) for n in group)
            elif group:
                groups.append(group)
                bindings.append(found)
        _drop_refused(graph, author, bound, groups, bindings, left)
        if bound is needy:
            # Groups with unbound symbols were dissolved all the same.
            _dissolve_tangled(graph, groups, bindings, left)
        try:
            order = _order(graph, groups)
        except ValueError:
            continue
        ranked = [-1 - unit for unit in order if unit < 0]
        place = {old: new for new, old in enumerate(ranked)}
        return Selection(
            tuple(groups[old] for old in ranked),
            tuple(unit if unit >= 0 else -1 - place[-1 - unit] for unit in order),
            tuple(bindings[old] for old in ranked),
            left,
            growth,
        )
    raise AssertionError("regions that grew acyclic depend on each other")


def _worthwhile(
    graph: FusionGraph, author: FusionAuthor, members: tuple[int, ...], bound: frozenset[int], given: dict[int, Reason]
) -> tuple[int, ...]:
    """Returns the members worth a region together; records in `given` the reasons of the others."""
    kept = members
    reason = _region_reason(graph, author, kept)
    if reason is None:
        kept = _without_rim(graph, author, members, bound, given)
        if kept and kept != members:
            reason = _region_reason(graph, author, kept)
    if reason is None or any(n in bound or graph.must_compile(n) for n in kept):
        return kept
    for node in kept:
        given[node] = reason
    return ()


def _region_reason(graph: FusionGraph, author: FusionAuthor, members: tuple[int, ...]) -> Reason | None:
    labels = [graph.labels[n] for n in members[:3]]
    with asking(author, "refuse_region", *labels):
        answer = author.refuse_region([graph.node(n) for n in members])
    return checked(author, "refuse_region", answer, Reason, *labels)


def _drop_refused(
    graph: FusionGraph,
    author: FusionAuthor,
    bound: frozenset[int],
    groups: list[tuple[int, ...]],
    bindings: list[tuple[SSAValue, ...]],
    left: dict[int, Reason],
) -> None:
    """Dissolves the finished groups that the author refuses beside their neighbours."""
    regions = finished_regions(graph, groups)
    for k in reversed(range(len(groups))):
        if any(n in bound or graph.must_compile(n) for n in groups[k]):
            continue
        labels = [graph.labels[n] for n in groups[k][:3]]
        with asking(author, "refuse_finished", *labels):
            answer = author.refuse_finished(regions[k])
        reason = checked(author, "refuse_finished", answer, Reason, *labels)
        if reason is not None:
            left.update((n, reason) for n in groups[k])
            del groups[k], bindings[k]


def _without_rim(
    graph: FusionGraph, author: FusionAuthor, members: tuple[int, ...], bound: frozenset[int], given: dict[int, Reason]
) -> tuple[int, ...]:
    """Returns `members` without the nodes given back by the author, last node first.

    Only a node without readers among the members can leave: a path out of the region through it and back would have
    been a cycle before.
    """
    inside = {graph.nodes[n]: n for n in members}
    for node in reversed(members):
        op, label = graph.nodes[node], graph.labels[node]
        if node in bound or any(use.operation in inside for result in op.results for use in result.uses):
            continue
        with asking(author, "give_back", label):
            answer = author.give_back(graph.node(node), inside.keys())
        reason = checked(author, "give_back", answer, Reason, label)
        if reason is not None and not graph.must_compile(node):
            del inside[op]
            given[node] = reason
    return tuple(inside.values())


def _dissolve_tangled(
    graph: FusionGraph, groups: list[tuple[int, ...]], bindings: list[tuple[SSAValue, ...]], left: dict[int, Reason]
) -> None:
    """Dissolves groups, the smallest first and those without fallback last, until none depends on itself through a node
    outside."""
    count = len(graph.nodes)
    while tangled := tangled_nodes(count + len(groups), _edges(graph, groups)):
        # The nodes alone are acyclic, so at least one of these is a group.
        among = [k for k in range(len(groups)) if count + k in tangled]
        gone = min(among, key=lambda k: (any(map(graph.must_compile, groups[k])), len(groups[k])))
        reason = Reason("cycle", "its region would wait for a node that needs the region's own shape arithmetic")
        left.update((n, reason) for n in groups[gone])
        del groups[gone], bindings[gone]


def _edges(graph: FusionGraph, groups: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    """Returns the edges between units: a node by its number, the k-th group by the number of nodes and k."""
    unit = {n: len(graph.nodes) + k for k, group in enumerate(groups) for n in group}
    edges: dict[tuple[int, int], None] = {}
    for source, target in graph.edges:
        edges[unit.get(source, source), unit.get(target, target)] = None
    for source, target in graph.dropped:
        if target not in unit:
            edges[unit.get(source, source), target] = None
    return [e for e in edges if e[0] != e[1]]


def _order(graph: FusionGraph, groups: Sequence[tuple[int, ...]]) -> list[int]:
    """Returns groups and single nodes in an executable order, each as late as its last member.

    Raises `ValueError` where they depend on each other in a cycle.
    """
    grouped = {n for group in groups for n in group}
    priority = [*range(len(graph.nodes)), *(group[-1] for group in groups)]
    found = topological_order(len(priority), _edges(graph, groups), priority)
    return [u if u < len(graph.nodes) else len(graph.nodes) - 1 - u for u in found if u not in grouped]
