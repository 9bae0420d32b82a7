"""Growing regions over a directed acyclic graph: merge candidate pairs while the quotient graph stays acyclic.

    graph       nodes 0..n-1, edges, and the nodes that may be in a region; the others are *barriers*
    candidates  pairs of nodes whose regions should become one: edges, and siblings that share an input
    policy      other conditions of a merge (legality, limits, profit), asked for two regions at a time

Each node starts as its own region. A pair is merged unless the policy refuses or the quotient graph would get a cycle.
A cycle arises exactly when a path of at least two edges leads from one region to the other. Because the quotient is
acyclic, every region is convex.

The check is exact and local. A topological order of the regions is maintained, in the spirit of Pearce and Kelly (A
dynamic topological sort algorithm for directed acyclic graphs, JEA 2006), so a path between two regions can only pass
through regions between them in the order. The search runs from both ends at once, always on the side with the lower
cost so far, forward by the smallest and backward by the largest position, and ends when the two sides cross (Haeupler,
Kavitha, Mathew, Sen, Tarjan: Incremental cycle detection, topological ordering, and strong component maintenance, TALG
2012). A merge moves only regions visited by the search. Membership is a union-find; of two regions the one with more
edges keeps its identity, so an edge is moved O(log n) times.

A refusal is recorded. One through a barrier is final: barriers never merge, so the path remains. One through other
regions, or a revisable one of the policy, is checked again when a region involved has changed, until nothing changes.
So the reason of every pair left unmerged holds for the final regions.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from igniter.analysis.fusion.graph_order import OrderedList, topological_order
from igniter.memory import collection_paused

_LANDMARKS = 512


@dataclass(frozen=True)
class Refusal:
    """The reason why two regions do not merge."""

    kind: str
    """`barrier` or `cycle` from the algorithm; a policy adds its own."""
    message: str
    nodes: tuple[int, ...] = ()
    """The blocking nodes: for `barrier` and `cycle`, one of each region on a path between the two."""
    final: bool = True
    """True if the refusal holds however the two regions grow."""


class Policy(Protocol):
    """The conditions of a merge besides acyclicity. Regions are named by one of their nodes, the representative."""

    def refuse(self, a: int, b: int) -> Refusal | None:
        """Returns the reason why the regions represented by `a` and `b` do not merge; `None` if they may."""
        ...

    def merged(self, kept: int, gone: int) -> None:
        """Records a merge of two regions; `kept` represents both from now on."""
        ...


class Anything:
    """The policy without refusals."""

    def refuse(self, a: int, b: int) -> Refusal | None:
        return None

    def merged(self, kept: int, gone: int) -> None:
        pass


@dataclass(frozen=True)
class Statistics:
    """Counts of the growth."""

    merges: int
    checks: int
    """Searches for a path."""
    visited: int
    """Edges visited by the searches."""
    rounds: int


@dataclass(frozen=True)
class Growth:
    """The regions of a graph."""

    region_of: tuple[int, ...]
    """The region number of each node; regions are numbered in a topological order of the quotient graph."""
    members: tuple[tuple[int, ...], ...]
    """The nodes of each region, by number."""
    refusals: tuple[tuple[int, int, Refusal], ...]
    """The reason of each pair of regions connected by candidates, by region numbers."""
    statistics: Statistics


def grow_regions(
    count: int,
    edges: Iterable[tuple[int, int]],
    eligible: Sequence[bool],
    candidates: Iterable[tuple[int, int]] | None = None,
    policy: Policy | None = None,
    order: Sequence[int] | None = None,
) -> Growth:
    """Divides the nodes 0..count-1 into regions.

    `candidates` are tried in the order given; by default they are the edges, by target and nearest source first.
    `order` is a topological order of the nodes, computed by default (`ValueError` for a cyclic graph).
    """
    with collection_paused():
        edges = list(edges)
        if order is None:
            order = topological_order(count, edges)
        if candidates is None:
            candidates = _by_target(count, edges, order)
        growing = _Quotient(order, edges, eligible)
        return _Growing(growing, policy or Anything()).run(
            [(a, b) for a, b in candidates if a != b and eligible[a] and eligible[b]]
        )


def _by_target(count: int, edges: Iterable[tuple[int, int]], order: Sequence[int]) -> list[tuple[int, int]]:
    """Returns the distinct edges, by the position of the target, and the nearest source first."""
    position = [0] * count
    for index, node in enumerate(order):
        position[node] = index
    # One integer an edge sorts several times faster than a pair.
    keys = sorted({position[target] * count + count - 1 - position[source] for source, target in edges})
    return [(order[count - 1 - key % count], order[key // count]) for key in keys]


class _Growing:
    """One run over candidates, with its refusals and the pairs to try again."""

    def __init__(self, quotient: _Quotient, policy: Policy):
        self.quotient = quotient
        self.policy = policy
        self.final: dict[int, Refusal] = {}
        """Refusals by pair of representatives. A kept representative has only a larger region: the refusal holds."""
        self.merges = 0
        self.rounds = 0

    def run(self, candidates: list[tuple[int, int]]) -> Growth:
        settled: list[tuple[int, int, Refusal]] = []
        revisable: list[tuple[int, int, Refusal, int]] = []
        for a, b in candidates:
            self._settle(a, b, settled, revisable)
        self.rounds = 1
        merges = 0
        while revisable and merges != self.merges:
            self.rounds += 1
            merges = self.merges
            pending, revisable = revisable, []
            for a, b, refusal, stamp in pending:
                if self._changed(a, b, refusal, stamp):
                    self._settle(a, b, settled, revisable)
                else:
                    revisable.append((a, b, refusal, stamp))
        settled.extend((a, b, refusal) for a, b, refusal, _ in revisable)
        return self._result(settled)

    def _settle(
        self, a: int, b: int, settled: list[tuple[int, int, Refusal]], revisable: list[tuple[int, int, Refusal, int]]
    ) -> None:
        """Merges the regions of two nodes, or records the refusal."""
        refusal = self._try(a, b)
        if refusal is not None and refusal.final:
            settled.append((a, b, refusal))
        elif refusal is not None:
            revisable.append((a, b, refusal, self.merges))

    def _try(self, a: int, b: int) -> Refusal | None:
        """Merges the regions of two nodes, or returns the refusal."""
        quotient = self.quotient
        a, b = quotient.find(a), quotient.find(b)
        if a == b:
            return None
        label = quotient.order.label
        if label[a] > label[b]:
            a, b = b, a
        key = a * quotient.count + b
        known = self.final.get(key)
        if known is not None:
            return known
        refusal = self.policy.refuse(a, b)
        if refusal is None:
            path = quotient.search(a, b)
            if path is not None:
                refusal = self._blocked(path)
        if refusal is None:
            self.merges += 1
            kept, gone = quotient.merge(a, b, self.merges)
            self.policy.merged(kept, gone)
        elif refusal.final:
            self.final[key] = refusal
        return refusal

    def _blocked(self, path: list[int]) -> Refusal:
        eligible = self.quotient.eligible
        barriers = [x for x in path if not eligible[x]]
        if barriers:
            return Refusal("barrier", "a path through a node that cannot be fused connects them", tuple(barriers))
        return Refusal("cycle", "a path through another region connects them", tuple(path), final=False)

    def _changed(self, a: int, b: int, refusal: Refusal, stamp: int) -> bool:
        """True if a revisable refusal may have become invalid since merge number `stamp`."""
        find, touched = self.quotient.find, self.quotient.touched
        ends = find(a), find(b)
        if refusal.kind == "cycle":
            return any(find(x) in ends for x in refusal.nodes)
        return touched[ends[0]] > stamp or touched[ends[1]] > stamp

    def _result(self, settled: list[tuple[int, int, Refusal]]) -> Growth:
        quotient = self.quotient
        number = {root: index for index, root in enumerate(quotient.order)}
        region_of = tuple(number[quotient.find(node)] for node in range(quotient.count))
        members: list[list[int]] = [[] for _ in number]
        for node, region in enumerate(region_of):
            members[region].append(node)
        between: dict[tuple[int, int], Refusal] = {}
        for a, b, refusal in settled:
            pair = min(region_of[a], region_of[b]), max(region_of[a], region_of[b])
            if pair[0] != pair[1]:
                between.setdefault(pair, refusal)
        return Growth(
            region_of,
            tuple(map(tuple, members)),
            tuple((a, b, refusal) for (a, b), refusal in sorted(between.items(), key=lambda item: item[0])),
            Statistics(self.merges, quotient.checks, quotient.visited, self.rounds),
        )


class _Quotient:
    """The graph of regions, with its topological order. A region is named by its representative, a node."""

    def __init__(self, order: Sequence[int], edges: Iterable[tuple[int, int]], eligible: Sequence[bool]):
        self.count = len(order)
        self.eligible = eligible
        self.order = OrderedList(order)
        self.successors: list[set[int]] = [set() for _ in range(self.count)]
        self.predecessors: list[set[int]] = [set() for _ in range(self.count)]
        for source, target in edges:
            self.successors[source].add(target)
            self.predecessors[target].add(source)
        self.landmarks = _Landmarks(order, self.successors, self.predecessors, eligible)
        self.touched = [0] * self.count
        """For each region, the number of its last merge."""
        self.checks = 0
        self.visited = 0
        self._parent = list(range(self.count))
        # The last search's discoveries: the predecessor of a region, on either side. Valid if the mark is the search's
        # own.
        self._forward_mark = [0] * self.count
        self._backward_mark = [0] * self.count
        self._forward_from = [0] * self.count
        self._backward_from = [0] * self.count
        self._after: list[int] = []
        self._before: list[int] = []
        self._anchor = 0

    def find(self, node: int) -> int:
        """Returns the representative of a node's region."""
        parent = self._parent
        while parent[node] != node:
            parent[node] = node = parent[parent[node]]
        return node

    def search(self, a: int, b: int) -> list[int] | None:
        """Returns the regions strictly between `a` and `b` on a path of at least two edges; `None` without a path.

        `a` is before `b` in the order. Without a path, the search keeps its visits for `merge(a, b)`: the visited
        descendants of `a`, to be placed after the merged region, in order, and the visited ancestors of `b`, to be
        placed before it, in reverse order.
        """
        self.checks += 1
        mark = self.checks
        label = self.order.label
        successors, predecessors, landmarks = self.successors, self.predecessors, self.landmarks
        landmark = landmarks.between(a, b)
        if landmark is not None:
            return [landmark]
        forward_mark, backward_mark = self._forward_mark, self._backward_mark
        forward_mark[a] = backward_mark[b] = mark
        forward, backward = [(label[a], a)], [(-label[b], b)]
        forward_cost, backward_cost = 0, 0
        self._after, self._before = [], []
        passed = a
        while forward and backward and forward[0][0] < -backward[0][0]:
            x, z = forward[0][1], backward[0][1]
            if forward_cost + len(successors[x]) <= backward_cost + len(predecessors[z]):
                heapq.heappop(forward)
                forward_cost += len(successors[x])
                limit = -backward[0][0]
                if x != a:
                    self._after.append(x)
                for y in successors[x]:
                    if backward_mark[y] == mark:
                        if x == a and y == b:
                            continue
                        self.visited += forward_cost + backward_cost
                        return self._path(a, b, x, y)
                    if forward_mark[y] != mark and label[y] < limit:
                        forward_mark[y] = mark
                        self._forward_from[y] = x
                        landmark = landmarks.between(y, b)
                        if landmark is not None:
                            self.visited += forward_cost + backward_cost
                            return [*self._path(a, b, y, b), landmark]
                        if b in successors[y]:
                            self.visited += forward_cost + backward_cost
                            return self._path(a, b, y, b)
                        heapq.heappush(forward, (label[y], y))
            else:
                heapq.heappop(backward)
                backward_cost += len(predecessors[z])
                limit = forward[0][0]
                if z != b:
                    self._before.append(z)
                for y in predecessors[z]:
                    if forward_mark[y] == mark:
                        if z == b and y == a:
                            continue
                        self.visited += forward_cost + backward_cost
                        return self._path(a, b, y, z)
                    if backward_mark[y] != mark:
                        if label[y] > limit:
                            backward_mark[y] = mark
                            self._backward_from[y] = z
                            landmark = landmarks.between(a, y)
                            if landmark is not None:
                                self.visited += forward_cost + backward_cost
                                return [landmark, *self._path(a, b, a, y)]
                            if a in predecessors[y]:
                                self.visited += forward_cost + backward_cost
                                return self._path(a, b, a, y)
                            heapq.heappush(backward, (-label[y], y))
                        elif label[y] > label[passed]:
                            passed = y
        self.visited += forward_cost + backward_cost
        # The merged region comes after the old place of every visited descendant, and after every ancestor that was
        # found but not visited: it stays in place.
        last = self._after[-1] if self._after else a
        found = backward[0][1] if backward else passed
        self._anchor = max(last, found, passed, key=label.__getitem__)
        return None

    def _path(self, a: int, b: int, x: int, y: int) -> list[int]:
        """Returns the path through the edge from `x` to `y`, without its ends."""
        path: list[int] = []
        while x != a:
            path.append(x)
            x = self._forward_from[x]
        path.reverse()
        while y != b:
            path.append(y)
            y = self._backward_from[y]
        return path

    def merge(self, a: int, b: int, stamp: int) -> tuple[int, int]:
        """Merges two regions, right after `search(a, b)` found no path; returns the one kept and the one gone."""
        kept, gone = (a, b) if self._degree(a) >= self._degree(b) else (b, a)
        self._reorder(a, b, kept)
        self._parent[gone] = kept
        self.touched[kept] = stamp
        _rename(self.successors, self.predecessors, kept, gone)
        _rename(self.predecessors, self.successors, kept, gone)
        self.landmarks.merged(kept, gone)
        return kept, gone

    def _degree(self, region: int) -> int:
        return len(self.successors[region]) + len(self.predecessors[region])

    def _reorder(self, a: int, b: int, kept: int) -> None:
        """Places the merged region before the descendants of `a` and after the ancestors of `b`."""
        order, anchor = self.order, self._anchor
        if anchor in (a, b):
            other = b if anchor == a else a
            order.remove(other)
            if kept == other:
                order.take_place(kept, anchor)
        else:
            order.remove(a)
            order.remove(b)
            order.insert_after(kept, anchor)
        for x in reversed(self._before):
            order.remove(x)
            order.insert_before(x, kept)
        place = kept
        for x in self._after:
            order.remove(x)
            order.insert_after(x, place)
            place = x


class _Landmarks:
    """Barriers, spread over the order, and reachability from and to them for each node, as bit sets.

    A landmark between two regions proves, in one operation, that they never merge. Most pairs with a long search before
    their refusal have a landmark between them. Its absence proves nothing: the bit sets describe the original graph,
    without the paths of later merges.
    """

    def __init__(
        self,
        order: Sequence[int],
        successors: Sequence[set[int]],
        predecessors: Sequence[set[int]],
        eligible: Sequence[bool],
    ):
        barriers = [node for node in order if not eligible[node] and successors[node] and predecessors[node]]
        wanted = min(_LANDMARKS // 2, len(barriers))
        spread = [barriers[(2 * k + 1) * len(barriers) // (2 * wanted)] for k in range(wanted)]
        # Barriers at equal distances suit deep graphs; barriers on many paths suit shallow ones.
        ancestors = _count_paths(order, predecessors)
        descendants = _count_paths(reversed(order), successors)
        busiest = heapq.nlargest(wanted, barriers, key=lambda node: ancestors[node] * descendants[node])
        self._chosen = list(dict.fromkeys(spread + busiest))
        self._reached = [0] * len(order)
        self._reaching = [0] * len(order)
        bits = [0] * len(order)
        for k, node in enumerate(self._chosen):
            bits[node] = 1 << k
        _spread(order, predecessors, bits, self._reaching)
        _spread(reversed(order), successors, bits, self._reached)

    def between(self, a: int, b: int) -> int | None:
        """Returns a landmark on a path from region `a` to region `b`, if one is known."""
        common = self._reached[a] & self._reaching[b]
        return self._chosen[common.bit_length() - 1] if common else None

    def merged(self, kept: int, gone: int) -> None:
        self._reached[kept] |= self._reached[gone]
        self._reaching[kept] |= self._reaching[gone]


def _count_paths(order: Iterable[int], sources: Sequence[set[int]]) -> dict[int, int]:
    """Returns for each node, in `order`, the number of paths to it from its sources, at most the number of nodes."""
    paths: dict[int, int] = {}
    limit = len(sources)
    for node in order:
        total = 1
        for source in sources[node]:
            total += paths[source]
        paths[node] = min(total, limit)
    return paths


def _spread(order: Iterable[int], sources: Sequence[set[int]], bits: Sequence[int], found: list[int]) -> None:
    """Computes for each node, in `order`, the union of the bits of its transitive sources."""
    for node in order:
        union = 0
        for source in sources[node]:
            union |= found[source] | bits[source]
        found[node] = union


def _rename(
    outward: Sequence[set[int]],
    inward: Sequence[set[int]],
    kept: int,
    gone: int,
) -> None:
    """Moves the edges that leave `gone`, in one direction, to `kept`."""
    mine = outward[kept]
    for other in outward[gone]:
        inward[other].discard(gone)
        if other != kept:
            inward[other].add(kept)
            mine.add(other)
    outward[gone].clear()
