"""Places in an arena: nothing that is live together overlaps, for any values of the symbols, and little is wasted."""

from __future__ import annotations

from itertools import combinations, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from igniter.analysis.scheduled.placement import Conflicts, Span, place
from igniter.dialects.sym.expr import Expr
from tests.examples import examples

N, M = Expr.of("n"), Expr.of("m")
TYPICAL = {"n": 16, "m": 3}
VALUES = [{"n": n, "m": m} for n, m in product((0, 1, 5, 16, 100), (0, 1, 3, 40))]
KINDS = [Expr.of(64), N * 64, M * 64, N * M * 64]


def typical(size: Expr) -> int:
    return size.evaluate(TYPICAL)


def conflicts_of(spans: list[Span], instead: set[frozenset[int]] = frozenset()) -> Conflicts:
    """Those whose times meet are apart, but for the pairs `instead`."""
    found = Conflicts([set() for _ in spans], [set() for _ in spans])
    for (j, a), (k, b) in combinations(enumerate(spans), 2):
        if a.first <= b.last and b.first <= a.last:
            for x, y in ((j, k), (k, j)):
                (found.instead if frozenset((j, k)) in instead else found.apart)[x].add(y)
    return found


def check(spans: list[Span], conflicts: Conflicts) -> list[int]:
    """The offsets for the typical sizes, after a check for all."""
    offsets, total = place(spans, conflicts, typical, 0)
    for values in VALUES:
        places = [
            (o.evaluate(values), o.evaluate(values) + s.size.evaluate(values))
            for o, s in zip(offsets, spans, strict=True)
        ]
        assert all(0 <= first <= end <= total.evaluate(values) for first, end in places)
        assert all(first % 64 == 0 for first, _ in places)
        for j, k in combinations(range(len(spans)), 2):
            disjoint = places[j][1] <= places[k][0] or places[k][1] <= places[j][0]
            if k in conflicts.apart[j]:
                assert disjoint, (values, j, k)
            if k in conflicts.instead[j]:
                assert disjoint or places[j] == places[k], (values, j, k)
    return [o.evaluate(TYPICAL) for o in offsets]


def span(kind: int, factor: int, first: int, length: int) -> Span:
    return Span(KINDS[kind] * factor, first, first + length)


SPANS = st.lists(
    st.builds(
        span,
        st.integers(0, len(KINDS) - 1),
        st.integers(1, 9),
        st.integers(0, 12),
        st.integers(0, 4),
    ),
    max_size=14,
)


@pytest.mark.slow
@examples(200)
@given(SPANS, st.sets(st.frozensets(st.integers(0, 13), min_size=2, max_size=2), max_size=6))
def test_nothing_overlaps_for_any_sizes(found: list[Span], pairs: set[frozenset[int]]) -> None:
    def may_replace(pair: frozenset[int]) -> bool:
        j, k = sorted(pair, key=lambda i: found[i].first if i < len(found) else 0)
        known = max(pair) < len(found)
        return known and found[j].size == found[k].size and found[j].first < found[k].first == found[j].last

    check(found, conflicts_of(found, {p for p in pairs if may_replace(p)}))


def test_multiples_of_a_symbol_are_packed_as_numbers_are() -> None:
    # A small one between two large ones that share a place: slots would add the sizes up.
    sizes = [(N * 640, 0, 1), (N * 64, 1, 2), (N * 320, 2, 3), (N * 320, 3, 4), (N * 640, 4, 5)]
    given_spans = [Span(*s) for s in sizes]
    _, total = place(given_spans, conflicts_of(given_spans), typical, 0)
    assert total == N * 960


def test_what_is_in_the_place_of_another_is_at_its_place_or_apart() -> None:
    # The lowest place that is free for the last, 192, is inside of what it may replace: at 128 to 256.
    given_spans = [Span(Expr.of(s), *live) for s, live in ((192, (3, 4)), (128, (0, 1)), (128, (1, 2)), (128, (2, 3)))]
    places = check(given_spans, conflicts_of(given_spans, {frozenset((2, 3))}))
    assert places[3] == places[2] or abs(places[3] - places[2]) >= 128


def test_sizes_that_cannot_be_compared_are_maxima() -> None:
    given_spans = [Span(N * 64, 0, 1), Span(M * 64, 0, 1), Span(N * M * 64, 1, 2), Span(Expr.of(640), 2, 3)]
    check(given_spans, conflicts_of(given_spans))


def test_an_empty_arena_is_empty() -> None:
    assert place([], Conflicts([], []), typical, 0) == ([], Expr.of(0))


def test_a_plan_that_no_order_makes_tight_is_mended() -> None:
    """By size, by time or by peak, one of these gets in the way of another: 704 bytes, where 640 are live."""
    times = [(256, 2, 3), (64, 1, 4), (192, 3, 4), (320, 1, 2), (320, 4, 5)]
    spans = [Span(Expr.of(size), first, last) for size, first, last in times]
    assert place(spans, conflicts_of(spans), typical, 640)[1] == Expr.of(640)
    check(spans, conflicts_of(spans))
