"""Groups that depend on each other through nodes that left a region are given back, and no more than that."""

from __future__ import annotations

from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from igniter.analysis.fusion.graph import FusionGraph
from igniter.analysis.fusion.graph_order import tangled_nodes
from igniter.analysis.fusion.legality import Reason
from igniter.analysis.fusion.selection import _dissolve_tangled, _order

COUNT = 7


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sets(st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1))))
def test_tangled_nodes_are_those_between_cycles(edges: set[tuple[int, int]]) -> None:
    after = {n: {t for s, t in edges if s == n} for n in range(COUNT)}

    def reached(start: int) -> set[int]:
        seen: set[int] = set()
        stack = list(after[start])
        while stack:
            node = stack.pop()
            if node not in seen:
                seen.add(node)
                stack += after[node]
        return seen

    reach = {n: reached(n) for n in range(COUNT)}
    cyclic = {n for n in range(COUNT) if n in reach[n]}
    between = {n for n in range(COUNT) if reach[n] & cyclic and any(n in reach[c] for c in cyclic)}
    assert tangled_nodes(COUNT, edges) == cyclic | between


def graph(edges: Any, dropped: Any, count: int) -> FusionGraph:
    nodes: Any = (None,) * count
    return FusionGraph(nodes, ("",) * count, (None,) * count, edges, dropped, (), ("",) * count)


def test_a_group_that_waits_for_itself_is_given_back() -> None:
    # Node 1 left its region and now needs the shape arithmetic of node 0, which is in a group with what reads node 1.
    tangle = graph(((0, 2), (1, 2), (3, 4)), ((0, 1),), 5)
    groups, left = [(0, 2), (3, 4)], dict[int, Reason]()
    bindings: list[Any] = [(), ()]
    _dissolve_tangled(tangle, groups, bindings, left)
    assert groups == [(3, 4)]
    assert bindings == [()]
    assert {n: r.kind for n, r in left.items()} == {0: "cycle", 2: "cycle"}
    assert sorted(_order(tangle, groups)) == [-1, 0, 1, 2]


def test_the_smallest_group_of_a_tangle_goes() -> None:
    """Two groups read each other; without the smaller one the other is acyclic."""
    tangle = graph(((0, 3), (4, 1)), (), 6)
    groups: list[tuple[int, ...]] = [(0, 1, 2), (3, 4)]
    left = dict[int, Reason]()
    _dissolve_tangled(tangle, groups, [(), ()], left)
    assert groups == [(0, 1, 2)]
    assert sorted(left) == [3, 4]
