"""Symbolic expressions against isl: what is simplified, bounded or proven holds at all points, not at samples."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from math import prod
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from igniter.analysis.scheduled.loop_accesses import _with_own_axes, all_in_same_iteration, same_iteration_only
from igniter.dialects.sym.expr import ZERO, Expr, linearize, maximum, minimum
from igniter.dialects.sym.proofs import proven, upper_bound
from igniter.dialects.sym.ranges import Ranges, is_nonneg, simplify
from igniter.dialects.sym.reindexing import invert, is_injective, reindex

pytest.importorskip("islpy")

from tests.dialects.isl_points import (
    DATA,
    SYMBOLS,
    Points,
    TooHard,
    built,
    empty,
    limited,
    meetings,
    random_access,
    random_ranges,
    random_tree,
    random_writes,
    twins,
)


def on_random(examples: int) -> Callable[[Callable[[Random], None]], Callable[[], None]]:
    """Runs a test on so many generators of numbers. A question that isl would take long to answer is none."""

    def decorated(test: Callable[[Random], None]) -> Callable[[], None]:
        @settings(max_examples=examples, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck))
        @given(random=st.randoms(use_true_random=False))
        @wraps(test)
        def run(random: Random) -> None:
            try:
                with limited():
                    test(random)
            except TooHard:
                return

        return run

    return decorated


def names_of(ranges: Ranges) -> tuple[str, ...]:
    return (*SYMBOLS, *DATA, *ranges.axes)


@pytest.mark.slow
@on_random(250)
def test_the_canonical_form_and_the_simplified_one_are_equal(random: Random) -> None:
    ranges = random_ranges(random)
    points = Points(names_of(ranges))
    tree = random_tree(random, names_of(ranges))
    e = built(tree)
    domain, meant = points.domain(ranges), points.tree(tree)
    assert empty(points.expr(e).ne_set(meant).intersect(domain)), f"{tree} is not {e}"
    simple = simplify(e, ranges)
    assert empty(points.expr(simple).ne_set(meant).intersect(domain)), f"{e} is not {simple} in {ranges}"
    assert Expr.parse(str(e)) == e
    assert Expr.parse(str(simple)) == simple


@pytest.mark.slow
@on_random(200)
def test_what_is_proven_is_so_at_all_points(random: Random) -> None:
    """Claims that just hold and claims that just do not: `e` less its least value, and one less than that."""
    ranges = random_ranges(random)
    points = Points(names_of(ranges))
    e = built(random_tree(random, names_of(ranges)))
    facts = [built(random_tree(random, names_of(ranges), 1)) for _ in range(random.randint(0, 2))]
    for known in ([], facts):
        domain = points.domain(ranges, known)
        if empty(domain):
            continue
        least = points.least(e, domain)
        claims = [e, e + 3] if least is None else [e - least, e - least - 1]
        claims += [minimum(claims[-1], Expr.of("m")), maximum(claims[-1], Expr.of(-3))]
        for claim in claims:
            if proven(claim, ranges, known) or (not known and is_nonneg(claim, ranges)):
                below = points.expr(claim).lt_set(points.expr(ZERO))
                assert empty(below.intersect(domain)), f"{claim} >= 0 in {ranges}, given {known}"


@on_random(150)
def test_upper_bounds_bound(random: Random) -> None:
    ranges = random_ranges(random)
    points = Points(names_of(ranges))
    e = built(random_tree(random, names_of(ranges)))
    bound = upper_bound(e, ranges)
    if bound is not None:
        above = points.expr(e).gt_set(points.expr(bound))
        assert empty(above.intersect(points.domain(ranges))), f"{e} <= {bound} in {ranges}"


@on_random(250)
def test_iterations_that_never_meet_do_not(random: Random) -> None:
    x, y = random_access(random, "k"), random_access(random, random.choice(("k", "l")))
    other = _with_own_axes(y, {"o", "i"})
    step = random.choice((1, 1, 2, 4))
    if same_iteration_only(x, "i", other, "i", step):
        assert empty(meetings(x, other, step)), f"{x.subscripts} in {x.ranges}, {y.subscripts} in {y.ranges} by {step}"


@on_random(250)
def test_what_is_seen_at_a_glance_never_meets(random: Random) -> None:
    """Of accesses as they are, the axes of loops inside under one name; a step of 1 is the closest that they come."""
    x, y = random_access(random, "k"), random_access(random, random.choice(("k", "l")))
    if all_in_same_iteration([x], "i", [y], "i", {"o", "i"}):
        assert empty(meetings(x, _with_own_axes(y, {"o", "i"}), 1)), f"{x.subscripts} and {y.subscripts}"


@on_random(250)
def test_subscripts_that_tell_points_apart_do(random: Random) -> None:
    subscripts, extents = random_writes(random)
    if is_injective(subscripts, extents):
        assert empty(twins(subscripts, extents)), f"{subscripts} over {extents}"


@on_random(200)
def test_an_inverted_write_is_the_point_that_writes(random: Random) -> None:
    """The point is in the nest, writes the element, and no other one does."""
    written, extents = random_writes(random)
    dims = [Expr.of(random.choice((1, 2, 4, 8, 3 * 4, 4 * 4, 32, 64))) for _ in written]
    at = [Expr.of(f"e{d}") for d in range(len(dims))]
    values = invert(written, at, dims, extents)
    if isinstance(values, str):
        return
    elements = {f"e{d}": (ZERO, dim) for d, dim in enumerate(dims)}
    axes = {name: (ZERO, extent) for name, extent in extents.items()}
    points = Points((*SYMBOLS, *elements, *axes))
    zero = points.expr(ZERO)
    domain = points.domain(Ranges({**elements, **axes}))
    for subscript, element in zip(written, at, strict=True):
        reached = points.expr(subscript.substitute(values))
        assert empty(reached.ne_set(points.expr(element)).intersect(domain)), f"{written} at {values}"
        domain = domain.intersect(points.expr(subscript).eq_set(points.expr(element)))
    inside = points.domain(Ranges(elements))
    for name, extent in extents.items():
        value = points.expr(values[name])
        assert empty(value.lt_set(zero).union(value.ge_set(points.expr(extent))).intersect(inside)), f"{name}: {values}"
        assert empty(value.ne_set(points.expr(Expr.of(name))).intersect(domain)), f"{written} at {values} is not alone"


@pytest.mark.slow
@on_random(200)
def test_a_view_names_the_same_element(random: Random) -> None:
    """The offset is the same, and every subscript is inside of its dim, where those that are given are."""
    factors = [random.choice((1, 2, 3, 4)) for _ in range(random.randint(1, 4))]
    n = [Expr.of("n")] if random.random() < 0.3 else []
    dims, to = ([*n, *cut(random, factors)] for _ in range(2))
    ranges = random_ranges(random, numbers=True)
    subscripts = [*(Expr.of("m") for _ in n)]
    points = Points((*SYMBOLS, *ranges.axes))
    domain = points.domain(ranges)
    while len(subscripts) < len(dims):
        subscripts.append(built(random_tree(random, tuple(ranges.axes), 1)))
    for s, dim in zip(subscripts, dims, strict=True):
        domain = domain.intersect(points.expr(s).ge_set(points.expr(ZERO)))
        domain = domain.intersect(points.expr(s).lt_set(points.expr(dim)))
    # `reindex` may use the ranges only; that the subscripts are inside of their dims is the caller's promise.
    found = reindex(subscripts, dims, to, ranges)
    before, after = (points.expr(linearize(s, d)) for s, d in ((subscripts, dims), (found, to)))
    assert empty(before.ne_set(after).intersect(domain)), f"{subscripts} of {dims} are not {found} of {to}"
    for s, dim in zip(found, to, strict=True):
        outside = points.expr(s).lt_set(points.expr(ZERO)).union(points.expr(s).ge_set(points.expr(dim)))
        assert empty(outside.intersect(domain)), f"{s} is outside of {dim}"


def cut(random: Random, factors: list[int]) -> list[Expr]:
    """The factors joined to dims of the same product, with ones in between."""
    dims: list[Expr] = []
    left = list(factors)
    while left:
        count = random.randint(1, len(left))
        dims.append(Expr.of(prod(left[:count])))
        left = left[count:]
        if random.random() < 0.2:
            dims.append(Expr.of(1))
    return dims
