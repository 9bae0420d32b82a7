"""Variants of kernels on GPUs: schedules for small, middle and large sizes of its symbols.

The best blocks of a product or an attention, and the best number of parts of a long sum, depend on the number of rows:
few rows need small blocks and parts to fill the GPU, many rows need large blocks. The author's estimates give the best
choice at each size of a ladder:

    rows      16 .. 256          512                 1024               2048 ..
    blocks    16 x 64, 8 parts   64 x 64, 4 parts    64 x 128           128 x 128

At most three choices are kept, fewer if they come near the best one at each size. The threshold between two choices is
the size at which their estimated times cross. The size of a kernel is the number of programs of its most expensive
launch but for constant factors: `batch*sequence` for the products and the attentions of a transformer.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise
from math import log
from typing import Any

from igniter.analysis.typical_sizes import give_sizes, sizes_with, typical_of
from igniter.dialects.loop import KernelOp, NestOp
from igniter.dialects.sym.expr import Expr
from igniter.schedules.product_blocks import LAUNCH_SECONDS
from igniter.schedules.size_variants import USUAL_VARIANTS, SizeVariant, SizeVariants

LADDER = tuple(1 << k for k in range(17))
"""The sizes at which choices are compared."""

WORTHWHILE = 1.1
"""A variant is formed if some size takes more than this multiple of its best time without it."""


@dataclass(frozen=True)
class Decision:
    """A choice that depends on sizes, at the kernel's present typical sizes."""

    best: Hashable
    """The author's choice."""
    seconds: Callable[[Any], float]
    """The expected seconds with a choice."""


Decide = Callable[[], Decision]
"""Returns a decision at the present typical sizes of the kernel of its nests."""


@dataclass(frozen=True)
class Decider:
    """The decision of one launch."""

    extent: Expr
    """The number of elements along the dims of its grid."""
    decide: Decide


@dataclass(frozen=True)
class _Rung:
    """The decisions of a kernel at one size."""

    size: int
    sizes: dict[str, int]
    best: tuple[Hashable, ...]
    decisions: tuple[Decision, ...]

    def seconds(self, choice: tuple[Hashable, ...]) -> float:
        taken = (decision.seconds(one) for decision, one in zip(self.decisions, choice, strict=True))
        return LAUNCH_SECONDS + sum(taken)


@dataclass(frozen=True)
class _Run:
    """A range of sizes with one choice."""

    rungs: Sequence[_Rung]
    choice: tuple[Hashable, ...]
    typical: _Rung
    """A size at which it is the author's choice."""


def launch_variants(
    kernel: KernelOp, deciders: Callable[[KernelOp], Sequence[Decider]], most: int = USUAL_VARIANTS
) -> SizeVariants | None:
    """Returns the profitable variants of a kernel; none of them, only typical sizes for the kernel, if one choice is
    near the best at all sizes. `None` if one choice is the best at all sizes, if all sizes are known or given, or if
    the kernel has schedules or variants already. `deciders` gives the decisions of a copy, whose typical sizes are
    then varied; there are at most `most` variants."""
    if kernel.variants or any(not isinstance(op, NestOp) or op.schedule is not None for op in kernel.computations):
        return None
    copy = kernel.clone()
    return _Ladder(copy, deciders(copy), most).variants()


class _Ladder:
    """The choices for a copy of a kernel at rising sizes."""

    def __init__(self, kernel: KernelOp, deciders: Sequence[Decider], most: int):
        self.kernel = kernel
        self.most = most
        self.deciders = deciders
        self.given = dict(typical_of(kernel).given)

        self.total = self._total()

    def variants(self) -> SizeVariants | None:
        if self.total is None:
            return None
        rungs = {rung.size: rung for rung in map(self.rung, LADDER)}
        runs = _runs([rungs[size] for size in sorted(rungs)], self.most)
        found: list[SizeVariant] = []
        for run, after in pairwise(runs):
            most = self.crossing(run, after)
            slower = max(rung.seconds(after.choice) / rung.seconds(run.choice) for rung in run.rungs)
            why = f"with the schedule for larger sizes it is expected to take up to {slower:.2g} times as long"
            found.append(SizeVariant(f"to_{most}", self.total, most, run.typical.sizes, why))
        differ = any(rung.best != runs[-1].choice for rung in rungs.values())
        return SizeVariants(tuple(found), runs[-1].typical.sizes) if differ else None

    def _total(self) -> Expr | None:
        """Returns the size of the kernel: that of its most expensive decision with symbols without a given size."""
        extents = {each.extent for each in self.deciders if each.extent.symbols - self.given.keys()}
        middle = LADDER[len(LADDER) // 2]
        costs: dict[Expr, float] = {}
        for extent in extents:
            give_sizes(self.kernel, sizes_with(extent, middle, self.given, self.kernel.symbol_names))
            decisions = [each.decide() for each in self.deciders if each.extent == extent]
            costs[extent] = sum(each.seconds(each.best) for each in decisions)
        return max(costs, key=lambda extent: (costs[extent], str(extent)), default=None)

    def rung(self, size: int) -> _Rung:
        assert self.total is not None
        sizes = sizes_with(self.total, size, self.given, self.kernel.symbol_names)
        give_sizes(self.kernel, sizes)
        decisions = tuple(each.decide() for each in self.deciders)
        return _Rung(self.total.evaluate(sizes), sizes, tuple(each.best for each in decisions), decisions)

    def crossing(self, run: _Run, after: _Run) -> int:
        """Returns the size between two runs up to which the choice of the first is the faster one, by bisection."""
        low, high = run.rungs[-1], after.rungs[0]
        while True:
            between = self.rung((low.size + high.size) // 2)
            if not low.size < between.size < high.size:
                return low.size
            if between.seconds(run.choice) <= between.seconds(after.choice):
                low = between
            else:
                high = between


def _runs(ladder: Sequence[_Rung], most: int) -> list[_Run]:
    """Returns the fewest runs whose choices are near the best one at each size, or as many as `most` variants allow."""
    choices = list(dict.fromkeys(rung.best for rung in ladder))
    times = [[rung.seconds(choice) for rung in ladder] for choice in choices]
    least = [min(column) for column in zip(*times, strict=True)]
    losses = [[log(time / best) for time, best in zip(row, least, strict=True)] for row in times]

    def cheapest(first: int, end: int) -> int:
        return min(range(len(choices)), key=lambda k: round(sum(losses[k][first:end]), 9))

    def divided(count: int) -> list[tuple[int, int, int]]:
        """Returns the first size, the end and the choice of each of `count` runs with the least loss."""
        ends = combinations(range(1, len(ladder)), count - 1)
        found = ([(a, b, cheapest(a, b)) for a, b in pairwise((0, *cuts, len(ladder)))] for cuts in ends)
        return min(found, key=lambda runs: round(sum(sum(losses[k][a:b]) for a, b, k in runs), 9))

    runs = divided(1)
    for count in range(2, min(most + 1, len(ladder)) + 1):
        if max(max(losses[k][a:b]) for a, b, k in runs) <= log(WORTHWHILE):
            break
        runs = divided(count)
    return [_Run(ladder[a:b], choices[k], _typical(ladder, a, b, choices[k])) for a, b, k in _merged(runs)]


def _merged(runs: Sequence[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Joins neighbouring runs with one choice."""
    found: list[tuple[int, int, int]] = []
    for first, end, choice in runs:
        if found and found[-1][2] == choice:
            first = found.pop()[0]
        found.append((first, end, choice))
    return found


def _typical(ladder: Sequence[_Rung], first: int, end: int, choice: tuple[Hashable, ...]) -> _Rung:
    """Returns the size nearest to the middle of a run at which the author makes its choice."""
    middle = (first + end - 1) / 2
    places = [k for k, rung in enumerate(ladder) if rung.best == choice]
    return ladder[min(places, key=lambda k: (abs(k - middle), -k))]
