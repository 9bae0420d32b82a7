"""From a graph to the groups of nodes that become regions: growth, then what is not worth a kernel is given back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from igniter.analysis.fusion.cost import CostModel
from igniter.analysis.fusion.graph import FusionGraph, Limits, RegionPolicy
from igniter.analysis.fusion.graph_order import tangled_nodes, topological_order
from igniter.analysis.fusion.legality import Reason, operand_kind
from igniter.analysis.fusion.region_growing import Growth, Refusal, grow_regions
from igniter.analysis.fusion.symbols import SymbolSources
from igniter.dialects.onnx.names import VIEWS, op_name


@dataclass(frozen=True)
class Selection:
    """Which nodes of a graph become regions."""

    groups: tuple[tuple[int, ...], ...]
    """The nodes of each region, in the order of the graph; regions in the order in which they can run."""
    order: tuple[int, ...]
    """What the graph becomes, in an order in which it can run: `-1 - k` for group k, a node's number otherwise."""
    bindings: tuple[tuple[SSAValue, ...], ...]
    """For each region the tensors that it reads only to learn its symbols."""
    left: dict[int, Reason]
    """Why each other node is in no region."""
    growth: Growth

    def first(self, count: int) -> Selection:
        """The same with the first `count` regions only; the nodes of the others are left as they are."""
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
            left.update(dict.fromkeys(nodes, Reason("limit", "no more regions were to be formed")))
        return replace(self, groups=self.groups[:count], order=tuple(order), bindings=self.bindings[:count], left=left)

    def reason_between(self, graph: FusionGraph, source: int, target: int) -> Reason:
        """Why two nodes that share an edge are not in one region."""
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
        return self.left.get(source) or self.left.get(target) or Reason("cost", "their regions are not worth merging")


def as_reason(graph: FusionGraph, refusal: Refusal) -> Reason:
    """A refusal of the algorithm with the names of the nodes."""
    return Reason(refusal.kind, refusal.message, tuple(graph.labels[n] for n in refusal.nodes[:3]))


def select_regions(graph: FusionGraph, cost: CostModel, limits: Limits, sources: SymbolSources) -> Selection:
    """The groups of nodes that are worth a region each."""
    count = len(graph.nodes)
    # What moves the operands of a contraction goes to it, before what computes them can take it.
    candidates = [*graph.moves, *_by_target(graph.edges), *graph.siblings]
    eligible = graph.eligible
    growth = grow_regions(count, graph.edges, eligible, candidates, RegionPolicy(graph, limits), range(count))
    grown = [m for m in growth.members if eligible[m[0]]]
    # A node that leaves a region needs the shape arithmetic that the region did without. If that closes a cycle, such
    # nodes stay where they are: what was grown is acyclic.
    needy = frozenset(target for _, target in graph.dropped)
    for bound in (frozenset[int](), needy):
        left = {node: reason for node, reason in enumerate(graph.reasons) if reason is not None}
        groups: list[tuple[int, ...]] = []
        bindings: list[tuple[SSAValue, ...]] = []
        for members in grown:
            group = _worthwhile(graph, cost, members, bound, left)
            found = sources.bindings([graph.nodes[n] for n in group])
            if isinstance(found, Reason):
                left.update((n, found) for n in group)
            elif group:
                groups.append(group)
                bindings.append(found)
        if bound is needy:
            # What cannot learn its symbols left all the same.
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


def _by_target(edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    return sorted(edges, key=lambda edge: (edge[1], -edge[0]))


def _worthwhile(
    graph: FusionGraph, cost: CostModel, members: tuple[int, ...], bound: frozenset[int], given: dict[int, Reason]
) -> tuple[int, ...]:
    """The members that are worth a region together; `given` learns why the others are not."""
    kept = members
    reason = cost.region_reason([graph.nodes[n] for n in kept])
    if reason is None and cost.views != "all":
        kept = _without_views(graph, members, bound, given)
        reason = cost.region_reason([graph.nodes[n] for n in kept])
    if reason is None or any(n in bound for n in kept):
        return kept
    for node in kept:
        given[node] = reason
    return ()


def _without_views(
    graph: FusionGraph, members: tuple[int, ...], bound: frozenset[int], given: dict[int, Reason]
) -> tuple[int, ...]:
    """`members` less the views that only leave the region and whose source leaves it or enters it as well.

    Such a view costs ORT nothing, and a kernel a copy.
    """
    inside = {graph.nodes[n]: n for n in members}
    for node in reversed(members):
        op = graph.nodes[node]
        if op_name(op) not in VIEWS or node in bound or operand_kind(op, 0) != "tensor":
            continue
        if any(use.operation in inside for result in op.results for use in result.uses):
            continue
        source = op.operands[0]
        enters = source.owner not in inside
        if enters or any(use.operation not in inside for use in source.uses):
            del inside[op]
            given[node] = Reason("view", "a view of a tensor that the region gets or gives anyway costs ORT nothing")
    return tuple(inside.values())


def _dissolve_tangled(
    graph: FusionGraph, groups: list[tuple[int, ...]], bindings: list[tuple[SSAValue, ...]], left: dict[int, Reason]
) -> None:
    """Gives groups back, the smallest first, until none depends on itself through a node that left another."""
    count = len(graph.nodes)
    while tangled := tangled_nodes(count + len(groups), _edges(graph, groups)):
        # The nodes alone are acyclic, so there is a group among them.
        gone = min((k for k in range(len(groups)) if count + k in tangled), key=lambda k: len(groups[k]))
        reason = Reason("cycle", "its region would wait for a node that needs the region's own shape arithmetic")
        left.update((n, reason) for n in groups[gone])
        del groups[gone], bindings[gone]


def _edges(graph: FusionGraph, groups: Sequence[tuple[int, ...]]) -> list[tuple[int, int]]:
    """The edges between units: a node by its number, the k-th group by the number of nodes and k."""
    unit = {n: len(graph.nodes) + k for k, group in enumerate(groups) for n in group}
    edges: dict[tuple[int, int], None] = {}
    for source, target in graph.edges:
        edges[unit.get(source, source), unit.get(target, target)] = None
    for source, target in graph.dropped:
        if target not in unit:
            edges[unit.get(source, source), target] = None
    return [e for e in edges if e[0] != e[1]]


def _order(graph: FusionGraph, groups: Sequence[tuple[int, ...]]) -> list[int]:
    """Groups and single nodes in an order that they can run in, as late as their last member stood.

    `ValueError` where they depend on each other in a cycle.
    """
    grouped = {n for group in groups for n in group}
    priority = [*range(len(graph.nodes)), *(group[-1] for group in groups)]
    found = topological_order(len(priority), _edges(graph, groups), priority)
    return [u if u < len(graph.nodes) else len(graph.nodes) - 1 - u for u in found if u not in grouped]
