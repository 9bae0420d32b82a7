"""The search of all choosers of tiles and blocks: the least cost among candidates, and a preference among near equals.

A chooser brings its candidates, their legality, and a cost: cycles of a register tile, seconds of a launch, products of
a convolution in tiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import log
from typing import Any, TypeVar

T = TypeVar("T")


def best_tile(candidates: Iterable[T], cost: Callable[[T], float], prefer: Callable[[T], Any], near: float = 1) -> T:
    """Returns the candidate with the least `prefer` among those whose cost is at most `near` times the least."""
    costs = [(candidate, cost(candidate)) for candidate in candidates]
    most = near * min(found for _, found in costs)
    return min((candidate for candidate, found in costs if found <= most), key=prefer)


def loss_over(cases: Sequence[Callable[[T], float]], candidates: Sequence[T]) -> Callable[[T], float]:
    """Returns the cost of a candidate over equally likely cases, each with its own cost: the sum of the logarithms of
    its ratios to the least of each case, rounded so that sums in another order are equal."""
    bests = [min(map(case, candidates)) for case in cases]
    return lambda candidate: round(sum(log(case(candidate) / best) for case, best in zip(cases, bests, strict=True)), 9)
