"""Region growing on random graphs: what is promised of the regions, checked by brute force."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from igniter.analysis.fusion.graph_order import OrderedList, topological_order
from igniter.analysis.fusion.region_growing import Growth, Refusal, grow_regions
from tests.work import calls_of

Edges = list[tuple[int, int]]


@dataclass(frozen=True)
class Graph:
    count: int
    edges: Edges
    eligible: list[bool]


@st.composite
def graphs(draw: st.DrawFn, largest: int = 24) -> Graph:
    """Random DAGs whose node numbers are in no topological order; several kinds of locality, hubs, double edges."""
    count = draw(st.integers(1, largest))
    reach = draw(st.sampled_from((2, 5, count)))
    edges: Edges = []
    for target in range(1, count):
        sources = st.integers(max(0, target - reach), target - 1)
        edges += [(source, target) for source in draw(st.lists(sources, max_size=3))]
    names = draw(st.permutations(range(count)))
    eligible = draw(st.lists(st.sampled_from((True, True, True, False)), min_size=count, max_size=count))
    return Graph(count, [(names[a], names[b]) for a, b in edges], eligible)


class LargestSize:
    """Refuses regions of more than so many nodes, for good."""

    def __init__(self, count: int, limit: int):
        self.sizes = [1] * count
        self.limit = limit

    def refuse(self, a: int, b: int) -> Refusal | None:
        return Refusal("size", "too large") if self.sizes[a] + self.sizes[b] > self.limit else None

    def merged(self, kept: int, gone: int) -> None:
        self.sizes[kept] += self.sizes[gone]


class EvenSizes:
    """Refuses what would make a region of 3 nodes, for now: two of 1 and 2 merge once one of them has grown."""

    def __init__(self, count: int):
        self.sizes = [1] * count

    def refuse(self, a: int, b: int) -> Refusal | None:
        return Refusal("three", "three nodes", final=False) if self.sizes[a] + self.sizes[b] == 3 else None

    def merged(self, kept: int, gone: int) -> None:
        self.sizes[kept] += self.sizes[gone]


def quotient(graph: Graph, growth: Growth) -> list[set[int]]:
    """The successors of each region."""
    successors: list[set[int]] = [set() for _ in growth.members]
    for source, target in graph.edges:
        a, b = growth.region_of[source], growth.region_of[target]
        if a != b:
            successors[a].add(b)
    return successors


def reachable(successors: Sequence[set[int]], start: set[int]) -> set[int]:
    seen, stack = set(start), list(start)
    while stack:
        for following in successors[stack.pop()]:
            if following not in seen:
                seen.add(following)
                stack.append(following)
    return seen


def check_partition(graph: Graph, growth: Growth) -> None:
    """Every node is in one region, barriers are alone, and regions are numbered in a topological order."""
    assert sorted(itertools.chain(*growth.members)) == list(range(graph.count))
    for number, members in enumerate(growth.members):
        assert all(growth.region_of[node] == number for node in members)
        assert len(members) == 1 or all(graph.eligible[node] for node in members)
    assert all(growth.region_of[a] <= growth.region_of[b] for a, b in graph.edges)


def check_convex(graph: Graph, growth: Growth) -> None:
    """No path leaves a region and comes back."""
    successors: list[set[int]] = [set() for _ in range(graph.count)]
    for source, target in graph.edges:
        successors[source].add(target)
    for members in growth.members:
        inside = set(members)
        outside = set().union(*(successors[n] for n in members)) - inside
        assert not reachable(successors, outside) & inside


def closes_cycle(successors: Sequence[set[int]], a: int, b: int) -> bool:
    """True if the regions `a` and `b`, made one, would lie on a cycle."""
    return any(
        end in reachable(successors, {n for n in successors[start] if n != end})
        for start, end in ((a, b), (b, a))
    )  # fmt: skip


def check_maximal(graph: Graph, growth: Growth, pairs: Edges) -> None:
    """Every pair that is left has a reason; where the reason is a path, there is one, through the nodes it names."""
    successors = quotient(graph, growth)
    reasons = {(a, b): refusal for a, b, refusal in growth.refusals}
    for source, target in pairs:
        a, b = sorted((growth.region_of[source], growth.region_of[target]))
        if a == b or not (graph.eligible[source] and graph.eligible[target]):
            continue
        refusal = reasons[a, b]
        if refusal.kind not in ("barrier", "cycle"):
            continue
        assert closes_cycle(successors, a, b)
        named = {growth.region_of[n] for n in refusal.nodes}
        assert named and not named & {a, b}
        if refusal.kind == "barrier":
            assert not any(graph.eligible[n] for n in refusal.nodes)
        for region in named:
            assert region in reachable(successors, {a})
            assert b in reachable(successors, {region})


@given(graphs())
def test_regions_are_convex_and_maximal(graph: Graph) -> None:
    growth = grow_regions(graph.count, graph.edges, graph.eligible)
    check_partition(graph, growth)
    check_convex(graph, growth)
    check_maximal(graph, growth, graph.edges)


@pytest.mark.slow
@given(graphs(), st.randoms(use_true_random=False), st.integers(1, 5))
def test_policies_and_orders_of_candidates(graph: Graph, random: object, limit: int) -> None:
    candidates = list(dict.fromkeys(graph.edges))
    random.shuffle(candidates)  # type: ignore[attr-defined]
    for policy in (LargestSize(graph.count, limit), EvenSizes(graph.count)):
        growth = grow_regions(graph.count, graph.edges, graph.eligible, candidates, policy)
        check_partition(graph, growth)
        check_convex(graph, growth)
        check_maximal(graph, growth, candidates)
        sizes = [len(m) for m in growth.members]
        reasons = {(a, b): refusal for a, b, refusal in growth.refusals}
        for (a, b), refusal in reasons.items():
            if refusal.kind == "size":
                assert sizes[a] + sizes[b] > limit
            if refusal.kind == "three":
                assert sizes[a] + sizes[b] == 3


@given(graphs(12), st.data())
def test_pairs_without_an_edge(graph: Graph, data: st.DataObject) -> None:
    """Siblings merge as edges do: unless a path connects them through another region."""
    node = st.integers(0, graph.count - 1)
    pairs = [(a, b) for a, b in data.draw(st.lists(st.tuples(node, node), max_size=20)) if a != b]
    growth = grow_regions(graph.count, graph.edges, graph.eligible, pairs)
    check_partition(graph, growth)
    check_convex(graph, growth)
    check_maximal(graph, growth, pairs)


@given(graphs())
def test_no_barriers_no_limits_leave_one_region_a_component(graph: Graph) -> None:
    growth = grow_regions(graph.count, graph.edges, [True] * graph.count)
    assert all(growth.region_of[a] == growth.region_of[b] for a, b in graph.edges)
    assert not growth.refusals


@given(graphs())
def test_deterministic(graph: Graph) -> None:
    first = grow_regions(graph.count, graph.edges, graph.eligible)
    assert first == grow_regions(graph.count, list(graph.edges), list(graph.eligible))


def test_the_reason_names_the_barrier_in_the_way() -> None:
    growth = grow_regions(4, [(0, 1), (1, 2), (0, 3), (2, 3)], [True, False, True, True])
    assert growth.members == ((0,), (1,), (2, 3))
    assert [(a, b, r.kind, r.nodes) for a, b, r in growth.refusals] == [(0, 2, "barrier", (1,))]


def test_two_merges_that_exclude_each_other() -> None:
    """Either merge is legal alone; after the first the second would close a cycle between the two regions."""
    edges = [(0, 1), (2, 3), (0, 4), (4, 3), (2, 5), (5, 1)]
    growth = grow_regions(6, edges, [True, True, True, True, False, False], [(0, 1), (2, 3)])
    assert growth.region_of[0] == growth.region_of[1]
    assert growth.region_of[2] != growth.region_of[3]
    ((_, _, refusal),) = growth.refusals
    assert refusal.kind == "barrier" and set(refusal.nodes) <= {4, 5}


def test_a_path_through_a_region_is_looked_at_again() -> None:
    """0 -> 1 -> 2 and 0 -> 2, tried in the order that meets the cycle first."""
    growth = grow_regions(3, [(0, 1), (1, 2), (0, 2)], [True] * 3, [(0, 2), (0, 1), (1, 2)])
    assert growth.members == ((0, 1, 2),)


def test_a_cyclic_graph_is_refused() -> None:
    with pytest.raises(ValueError, match="cycle"):
        grow_regions(3, [(0, 1), (1, 2), (2, 0)], [True] * 3)


def test_no_nodes() -> None:
    assert grow_regions(0, [], []).members == ()


@given(st.lists(st.tuples(st.integers(0, 7), st.integers(0, 7), st.booleans()), max_size=300))
def test_ordered_list_keeps_its_order(moves: list[tuple[int, int, bool]]) -> None:
    """Against a python list; few items and many moves to the same places, so that labels run out."""
    items = OrderedList(range(8))
    expected = list(range(8))
    for item, anchor, after in moves:
        if item == anchor:
            continue
        items.remove(item)
        expected.remove(item)
        (items.insert_after if after else items.insert_before)(item, anchor)
        expected.insert(expected.index(anchor) + after, item)
    assert list(items) == expected
    assert sorted(range(8), key=items.label.__getitem__) == expected


@pytest.mark.parametrize("after", [True, False])
def test_ordered_list_relabels(after: bool) -> None:
    """Always inserting at one place uses up the labels there in 60 moves."""
    count = 1000
    items = OrderedList(range(count))
    for item in range(1, count):
        items.remove(item)
        (items.insert_after if after else items.insert_before)(item, 0)
    order = list(items)
    assert order == ([0, *range(count - 1, 0, -1)] if after else [*range(1, count), 0])
    assert all(items.label[a] < items.label[b] for a, b in itertools.pairwise(order))


@given(graphs())
def test_topological_order(graph: Graph) -> None:
    order = topological_order(graph.count, graph.edges)
    position = {node: index for index, node in enumerate(order)}
    assert sorted(order) == list(range(graph.count))
    assert all(position[a] < position[b] for a, b in graph.edges)


def test_work_is_linear() -> None:
    """Ten times the nodes, ten times the work: what is quadratic would do a hundred times as much. Figures for 100,000
    nodes are `benchmark/region_growing.py`'s."""
    import random

    def work(count: int) -> int:
        rng = random.Random(0)
        edges = [(max(0, v - 1 - int(rng.expovariate(0.1))), v) for v in range(1, count) for _ in range(2)]
        eligible = [rng.random() > 0.2 for _ in range(count)]
        growths: list[Growth] = []
        done = calls_of(lambda: growths.append(grow_regions(count, edges, eligible)))
        check_partition(Graph(count, edges, eligible), growths[0])
        return done

    assert work(10_000) < 13 * work(1_000)
