"""Cutting a line of nodes into stages: first the largest stage cost is minimised, then the bytes across the cuts.

Each node comes after its sources in the order, and a stage is a stretch of it. So stages are convex and run in
sequence. For one order the answer is exact: a dynamic program over positions and stages, O(nodes * stages) by a window
whose least element is kept in a queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

INFINITE = float("inf")


@dataclass(frozen=True)
class Cuts:
    """The first nodes of the stages behind the first, the largest stage cost, and the bytes across all cuts."""

    positions: tuple[int, ...]
    dearest: float
    bytes: float


def best_cuts(costs: Sequence[float], crossing: Sequence[float], stages: int, slack: float = 0.0) -> Cuts:
    """Returns the best cuts of nodes with these costs into `stages` stages, none of them empty.

    `crossing[i]` are the bytes that flow from in front of node `i` to it and behind. A stage may cost `slack` (0.05 for
    5 %) more than the optimal largest one, if fewer bytes cross then. Raises `ValueError` for more stages than nodes.
    """
    count = len(costs)
    if not 1 <= stages <= count:
        raise ValueError(f"{count} nodes do not make {stages} stages")
    total = [0.0, *accumulate(costs)]
    limit = _least_limit(costs, total, stages) * (1 + slack)
    # Rounding of sums in another order.
    limit += 1e-9 * total[-1]
    best = [0.0, *[INFINITE] * count]
    origin: list[list[int]] = []
    for stage in range(stages):
        best, came = _one_more(total, crossing, best, limit, first=stage == 0)
        origin.append(came)
    positions: list[int] = []
    end = count
    for came in reversed(origin):
        end = came[end]
        positions.append(end)
    cuts = tuple(reversed(positions[:-1]))
    edges = (0, *cuts, count)
    dearest = max(total[b] - total[a] for a, b in pairwise(edges))
    return Cuts(cuts, dearest, sum(crossing[c] for c in cuts))


def _one_more(
    total: Sequence[float], crossing: Sequence[float], best: Sequence[float], limit: float, *, first: bool
) -> tuple[list[float], list[int]]:
    """Returns the least bytes with one more stage, ending in front of each node, and the start of the stage."""
    count = len(total) - 1
    found, came = [INFINITE] * (count + 1), [0] * (count + 1)
    window: deque[tuple[int, float]] = deque()
    for end in range(1, count + 1):
        start = end - 1
        value = best[start] + (0.0 if first else crossing[start])
        while window and window[-1][1] >= value:
            window.pop()
        window.append((start, value))
        while window and total[end] - total[window[0][0]] > limit:
            window.popleft()
        if window and window[0][1] < INFINITE:
            came[end], found[end] = window[0]
    return found, came


def _least_limit(costs: Sequence[float], total: Sequence[float], stages: int) -> float:
    """Returns the least possible cost of the largest stage, by bisection."""
    low, high = max(costs), total[-1]
    for _ in range(100):
        middle = (low + high) / 2
        if _fits(costs, middle, stages):
            high = middle
        else:
            low = middle
        if high - low <= 1e-12 * max(1.0, high):
            break
    return high


def _fits(costs: Sequence[float], limit: float, stages: int) -> bool:
    """True if stages of at most `limit`, each filled greedily, are enough."""
    used, now = 1, 0.0
    for cost in costs:
        if cost > limit:
            return False
        if now + cost > limit:
            used, now = used + 1, 0.0
        now += cost
    return used <= stages
