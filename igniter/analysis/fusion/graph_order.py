"""Orders of directed acyclic graphs over the integers 0..n-1, and a list whose order answers queries in O(1).

`OrderedList` is the order-maintenance structure of Dietz and Sleator in the form of Bender, Cole, Demaine,
Farach-Colton and Zito (ESA 2002): a doubly linked list with integer labels. A crowded place is relabelled in the
smallest range around it that is sparse enough. An insertion costs O(log n) amortised, a comparison is one of two
integers.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence

_BITS = 62
_OVERFLOW = 1.3
"""The factor by which each doubling of a range must be sparser to be relabelled; between 1 and 2, speed against label
space."""


class OrderedList:
    """The items 0..n-1 in a changing order: `label[i] < label[j]` if i comes before j.

    Labels change when items move, so they have to be read again after each move.
    """

    __slots__ = ("_next", "_previous", "label")

    def __init__(self, order: Sequence[int]):
        """Makes a list in the given order, a permutation of 0..n-1."""
        count = len(order)
        # One more item, `count`, stands before the first and closes the circle.
        step = (1 << _BITS) // (count + 1)
        self.label = [0] * (count + 1)
        self._next = [count] * (count + 1)
        self._previous = [count] * (count + 1)
        before = count
        for position, item in enumerate(order):
            self.label[item] = (position + 1) * step
            self._next[before] = item
            self._previous[item] = before
            before = item
        self._next[before] = count
        self._previous[count] = before

    def __iter__(self) -> Iterator[int]:
        end = len(self.label) - 1
        item = self._next[end]
        while item != end:
            yield item
            item = self._next[item]

    def remove(self, item: int) -> None:
        """Removes an item."""
        before, after = self._previous[item], self._next[item]
        self._next[before] = after
        self._previous[after] = before

    def insert_after(self, item: int, anchor: int) -> None:
        """Inserts a removed item right after `anchor`."""
        label = self.label
        head = len(label) - 1
        after = self._next[anchor]
        if (1 << _BITS if after == head else label[after]) - label[anchor] < 2:
            self._relabel(after if anchor == head else anchor)
        label[item] = (label[anchor] + (1 << _BITS if after == head else label[after])) >> 1
        self._next[anchor] = item
        self._previous[item] = anchor
        self._next[item] = after
        self._previous[after] = item

    def insert_before(self, item: int, anchor: int) -> None:
        """Inserts a removed item right before `anchor`."""
        self.insert_after(item, self._previous[anchor])

    def take_place(self, item: int, other: int) -> None:
        """Puts a removed item in the place of `other`, and removes `other`."""
        before, after = self._previous[other], self._next[other]
        self.label[item] = self.label[other]
        self._next[before] = item
        self._previous[item] = before
        self._next[item] = after
        self._previous[after] = item

    def _relabel(self, around: int) -> None:
        """Spreads the labels evenly in the smallest sparse enough aligned range around an item."""
        label, after, before = self.label, self._next, self._previous
        head = len(label) - 1
        first = last = around
        count = 1
        for bits in range(1, _BITS + 1):
            base = label[around] >> bits << bits
            limit = base + (1 << bits)
            while before[first] != head and label[before[first]] >= base:
                first = before[first]
                count += 1
            while after[last] != head and label[after[last]] < limit:
                last = after[last]
                count += 1
            step = (limit - base) // (count + 1)
            if step >= 2 and count < (2 / _OVERFLOW) ** bits:
                break
        else:
            raise OverflowError(f"an ordered list of {head} items does not fit into {_BITS}-bit labels")
        item, position = first, base
        for _ in range(count):
            position += step
            label[item] = position
            item = after[item]


def topological_order(count: int, edges: Iterable[tuple[int, int]], priority: Sequence[int] | None = None) -> list[int]:
    """Returns the nodes 0..count-1 with every edge pointing forward; among ready nodes the least `priority` comes
    first.

    Without `priority` a node's number is its priority. Raises `ValueError` if the edges form a cycle.
    """
    if priority is None:
        edges = list(edges)
        if all(source < target for source, target in edges):
            return list(range(count))
    key = range(count) if priority is None else priority
    successors: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for source, target in edges:
        successors[source].append(target)
        missing[target] += 1
    ready = [(key[node], node) for node in range(count) if not missing[node]]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        node = heapq.heappop(ready)[1]
        order.append(node)
        for target in successors[node]:
            missing[target] -= 1
            if not missing[target]:
                heapq.heappush(ready, (key[target], target))
    if len(order) != count:
        stuck = next(node for node in range(count) if missing[node])
        raise ValueError(f"the graph has a cycle that contains node {stuck} or leads to it")
    return order


def tangled_nodes(count: int, edges: Iterable[tuple[int, int]]) -> set[int]:
    """Returns the nodes on a cycle, or on a path from one cycle to another; empty for an acyclic graph."""
    edges = list(edges)
    left = set(range(count))
    for forward in (True, False):
        after: list[list[int]] = [[] for _ in range(count)]
        missing = [0] * count
        for edge in edges:
            if left.issuperset(edge):
                source, target = edge if forward else edge[::-1]
                after[source].append(target)
                missing[target] += 1
        free = [node for node in left if not missing[node]]
        while free:
            node = free.pop()
            left.discard(node)
            for target in after[node]:
                missing[target] -= 1
                if not missing[target]:
                    free.append(target)
    return left
