"""Offsets of buffers in an arena, without overlaps of buffers with overlapping live ranges.

Sizes may have symbols, and a plan is valid for all their values. It is made in two steps. With typical sizes, each
buffer in turn gets the lowest free place. The places then order each two buffers, and an offset is the largest end of
the buffers below. Where all sizes are multiples of one symbol, offsets are multiples of it too, and the plan is as
tight for any value as for the typical one. Where sizes cannot be compared, offsets are maxima, valid for every value
and tight for typical ones.

The first step is the greedy one of Pisarchyk and Lee (Efficient memory management for deep neural net inference, 2020),
in several orders. It ends as soon as a plan takes no more than the peak of live bytes. If none does, the best of them
is improved: the last-ending buffer in the arena is placed first, again and again (the squeaky wheel of Joslin and
Clements, 1999). A caller with time can search more orders (`search`); compiled programs do not, since the measured ones
reach the bound without.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from igniter.dialects.sym.expr import ZERO, Atom, Expr, floordiv, maximum
from igniter.dialects.sym.ranges import is_nonneg

ALIGNMENT = 64

MENDING = 4096
"""The number of buffer placements in the improvement of a plan: a fraction of the time to make it, at any size."""


@dataclass(frozen=True)
class Span:
    """A buffer to place: `size` in bytes, and the first and the last moment of its live range."""

    size: Expr
    first: int
    last: int


@dataclass(frozen=True)
class Conflicts:
    """The buffers with separate memory, by number; both relations are symmetric."""

    apart: Sequence[set[int]]
    """For each buffer, those with overlapping live ranges."""
    instead: Sequence[set[int]]
    """For each buffer, candidates of its own size for its exact place, in either direction; otherwise they must be
    apart."""

    def with_all(self, k: int) -> set[int]:
        return self.apart[k] | self.instead[k]


def place(
    spans: Sequence[Span], conflicts: Conflicts, typical: Callable[[Expr], int], enough: int, search: int = 0
) -> tuple[list[Expr], Expr]:
    """Returns the offset of every buffer, and the size of the arena. `typical` is the value of a size. `enough` is the
    value of an arena that no plan can beat: it ends the search. A larger plan is searched further, for `search` more
    placements of buffers."""
    # Empty buffers count as 1: separate buffers need distinct places, which give the order.
    weights = [max(1, typical(s.size)) for s in spans]
    plans: list[_Placed] = []
    for order in _orders(spans, weights):
        plans.append(_placed(order, weights, conflicts))
        if plans[-1].total <= enough:
            break
    best = min(plans, key=lambda p: p.total, default=_Placed([], [], 0))
    if best.total > enough:
        best = min([best, *(_mended(p, weights, conflicts, enough) for p in plans)], key=lambda p: p.total)
    if best.total > enough:
        best = _searched(best, weights, conflicts, enough, search // max(1, len(weights)))
    return _offsets(spans, best.places, conflicts)


@dataclass(frozen=True)
class _Placed:
    """The result of placing buffers in an order."""

    order: list[int]
    places: list[int]
    total: int


def _placed(order: list[int], weights: Sequence[int], conflicts: Conflicts) -> _Placed:
    places = _first_fit(order, weights, conflicts)
    return _Placed(order, places, max((p + w for p, w in zip(places, weights, strict=True)), default=0))


def _mended(plan: _Placed, weights: Sequence[int], conflicts: Conflicts, enough: int) -> _Placed:
    """Returns the best plan from repeatedly placing the last-ending buffer first."""
    best, current = plan, plan
    for _ in range(max(1, MENDING // max(1, len(weights)))):
        ends = [p + w for p, w in zip(current.places, weights, strict=True)]
        last = [k for k in current.order if ends[k] == current.total]
        order = [*last, *(k for k in current.order if k not in last)]
        if order == current.order:
            break
        current = _placed(order, weights, conflicts)
        best = min(best, current, key=lambda p: p.total)
        if best.total <= enough:
            break
    return best


def _searched(plan: _Placed, weights: Sequence[int], conflicts: Conflicts, enough: int, trials: int) -> _Placed:
    """Returns the best plan of a random walk through orders. Each step moves a last-ending buffer, or any other,
    further to the front, and is undone if the plan grows. The walk is deterministic."""
    chance = random.Random(len(weights))
    best, current = plan, plan
    for _ in range(trials):
        ends = [p + w for p, w in zip(current.places, weights, strict=True)]
        order = list(current.order)
        moved = [k for k in order if ends[k] == current.total] if chance.random() < 0.5 else order
        at = order.index(chance.choice(moved))
        order.insert(chance.randrange(at + 1), order.pop(at))
        tried = _placed(order, weights, conflicts)
        if tried.total <= current.total:
            current = tried
        best = min(best, tried, key=lambda p: p.total)
        if best.total <= enough:
            break
    return best


def _orders(spans: Sequence[Span], weights: Sequence[int]) -> Iterator[list[int]]:
    """Yields the orders of placement: by size, by size times live range, by the peak of live memory, by first use, and
    by last use backwards."""
    numbers = range(len(spans))
    yield sorted(numbers, key=lambda k: (-weights[k], k))
    yield sorted(numbers, key=lambda k: (-weights[k] * (spans[k].last - spans[k].first + 1), k))
    live = {s.first: 0 for s in spans}
    for moment in live:
        live[moment] = sum(w for s, w in zip(spans, weights, strict=True) if s.first <= moment <= s.last)
    peaks = [max(n for moment, n in live.items() if s.first <= moment <= s.last) for s in spans]
    yield sorted(numbers, key=lambda k: (-peaks[k], -weights[k], k))
    yield sorted(numbers, key=lambda k: (spans[k].first, -weights[k], k))
    yield sorted(numbers, key=lambda k: (-spans[k].last, -weights[k], k))


def _first_fit(order: Sequence[int], weights: Sequence[int], conflicts: Conflicts) -> list[int]:
    """Returns the lowest free place for each buffer in turn, or a shared place."""
    places: dict[int, int] = {}
    for k in order:
        taken = [j for j in conflicts.with_all(k) if j in places]
        ends = (places[j] + weights[j] for j in taken)
        same = {places[j] for j in conflicts.instead[k] if j in places}
        for start in sorted({0, *ends, *same}):
            if all(
                start + weights[k] <= places[j]
                or places[j] + weights[j] <= start
                or (start == places[j] and j in conflicts.instead[k])
                for j in taken
            ):
                places[k] = start
                break
    return [places[k] for k in range(len(weights))]


def _offsets(spans: Sequence[Span], places: Sequence[int], conflicts: Conflicts) -> tuple[list[Expr], Expr]:
    """Returns offsets that keep the order of `places` for all values of symbols: each is the end of the blocks
    below."""
    blocks = _blocks(places, conflicts)
    ends: list[Expr] = []
    offsets: dict[int, Expr] = {}
    below: list[set[int]] = []
    home = {k: n for n, block in enumerate(blocks) for k in block}
    for n, block in enumerate(blocks):
        others = {j for k in block for j in conflicts.with_all(k)} - set(block)
        under = {home[j] for j in others if home[j] < n}
        # Blocks below one of these add nothing.
        direct = [m for m in sorted(under) if not any(m in below[other] for other in under)]
        below.append(under.union(*(below[m] for m in under)))
        offset = _largest([ends[m] for m in direct])
        offsets.update(dict.fromkeys(block, offset))
        ends.append(offset + spans[block[0]].size)
    return [offsets[k] for k in range(len(spans))], _largest(ends)


def _blocks(places: Sequence[int], conflicts: Conflicts) -> list[list[int]]:
    """Groups buffers by their places, lowest first; buffers in one place in sequence are one block."""
    blocks: list[list[int]] = []
    home: dict[int, list[int]] = {}
    for k in sorted(range(len(places)), key=lambda k: (places[k], k)):
        at = [j for j in conflicts.instead[k] if j in home and places[j] == places[k]]
        if not at:
            blocks.append([])
        block = home[at[0]] if at else blocks[-1]
        for other in [home[j] for j in at if home[j] is not block]:
            # A buffer in the place of two blocks joins them.
            block.extend(other)
            home.update(dict.fromkeys(other, block))
            blocks = [b for b in blocks if b is not other]
        block.append(k)
        home[k] = block
    return blocks


def _largest(sizes: Sequence[Expr]) -> Expr:
    """Returns the largest of sizes, as a maximum of all sizes not provably smaller than another."""
    kept: list[Expr] = []
    for size in dict.fromkeys(sizes):
        if any(_covers(other, size) for other in kept):
            continue
        kept = [other for other in kept if not _covers(size, other)]
        kept.append(size)
    return ZERO if not kept else kept[0] if len(kept) == 1 else maximum(*kept)


@cache
def _covers(large: Expr, small: Expr) -> bool:
    return is_nonneg(large - small)


def aligned(size: Expr, to: int = ALIGNMENT) -> Expr:
    """Rounds a size up to units of `to` bytes, by default cache lines. A size with many bytes for each value of its
    symbols can afford a unit more, so it is rounded in its factors: sizes without roundings can be compared."""
    if size.terms and all(c >= 16 * to and all(map(_is_dim, atoms)) for atoms, c in size.terms):
        return Expr({atoms: -(-c // to) * to for atoms, c in size.terms})
    return floordiv(size + (to - 1), Expr.of(to)) * to


def _is_dim(atom: Atom) -> bool:
    return is_nonneg(Expr({(atom,): 1}))


def larger(a: Expr, b: Expr) -> Expr:
    """Returns the larger of two sizes if it is known, else their maximum."""
    if is_nonneg(b - a):
        return b
    return a if is_nonneg(a - b) else maximum(a, b)


__all__ = ["ALIGNMENT", "Conflicts", "Span", "aligned", "larger", "place"]
