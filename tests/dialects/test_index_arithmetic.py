"""Symbolic index arithmetic against numbers: division, views, inverted writes and proofs never say what is not so."""

from __future__ import annotations

from itertools import product as points
from math import prod
from random import Random

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from igniter.dialects.sym.expr import Expr, delinearize, floordiv, linearize, maximum, minimum, mod
from igniter.dialects.sym.proofs import proven
from igniter.dialects.sym.ranges import Ranges, simplify
from igniter.dialects.sym.reindexing import dim_groups, invert, is_injective, reindex

NAMES = ("m", "n")
AXES = ("i", "j", "_0")


def polynomial(random: Random, names: tuple[str, ...], depth: int = 2) -> Expr:
    """A random expression, calls included."""
    kind = random.randint(0, 9) if depth else random.randint(0, 1)
    if kind == 0:
        return Expr.of(random.randint(-4, 9))
    if kind <= 3:
        return Expr.of(random.choice(names))
    a, b = polynomial(random, names, depth - 1), polynomial(random, names, depth - 1)
    if kind == 6:
        return floordiv(a, Expr.of(random.randint(1, 5)))
    if kind == 7:
        return mod(a, Expr.of(random.randint(1, 5)))
    return (a + b, a * b, a - b, a + b, minimum(a, b), maximum(a, b))[kind - 4]


@pytest.mark.slow
@settings(max_examples=600, deadline=None)
@given(st.integers(0, 1 << 32))
def test_division_by_sums(seed: int) -> None:
    random = Random(seed)
    b = polynomial(random, NAMES, 1) + random.randint(0, 3)
    a = polynomial(random, NAMES) * b + polynomial(random, NAMES, 1)
    env = {name: random.randint(0, 9) for name in NAMES}
    divisor = b.evaluate(env)
    assume(divisor > 0)
    assert floordiv(a, b).evaluate(env) == a.evaluate(env) // divisor
    assert mod(a, b).evaluate(env) == a.evaluate(env) % divisor


@pytest.mark.parametrize(
    ("a", "b", "quotient", "rest"),
    [
        ("i*(m + 4) + j", "m + 4", "i + j floordiv (m + 4)", "j mod (m + 4)"),
        ("(m + 1)*(m + 2)", "m + 2", "m + 1", "0"),
        ("m", "m + 1", "m floordiv (m + 1)", "m mod (m + 1)"),
        ("3*m + 3*n", "m + n", "3", "0"),
    ],
)
def test_division_by_a_sum_is_exact_or_leaves_terms_alone(a: str, b: str, quotient: str, rest: str) -> None:
    assert floordiv(Expr.parse(a), Expr.parse(b)) == Expr.parse(quotient)
    assert mod(Expr.parse(a), Expr.parse(b)) == Expr.parse(rest)


DIMS = (1, 1, 2, 3, 4, "m", "n")


def split_dims(random: Random) -> tuple[list[Expr], list[Expr]]:
    """Two ways to write the dims of one tensor: neighbours joined or apart, ones added."""
    base = [Expr.of(random.choice(DIMS)) for _ in range(random.randint(0, 4))]

    def written() -> list[Expr]:
        dims: list[Expr] = []
        for d in base:
            if dims and random.random() < 0.4:
                dims[-1] = dims[-1] * d
            else:
                dims.append(d)
            if random.random() < 0.2:
                dims.append(Expr.of(1))
        return dims

    return written(), written()


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 1 << 32))
def test_reindex_is_the_row_major_position(seed: int) -> None:
    random = Random(seed)
    a, b = split_dims(random)
    if not a and not b:
        return
    env = {"m": random.randint(1, 4), "n": random.randint(1, 3)}
    sizes = [d.evaluate(env) for d in a]
    subscripts = [Expr.of(f"x{k}") for k in range(len(a))]
    ranges = Ranges({f"x{k}": (Expr.of(0), d) for k, d in enumerate(a)})
    if prod(sizes) != prod(d.evaluate(env) for d in b):
        return
    there = reindex(subscripts, a, b, ranges)
    for at in points(*map(range, sizes)):
        here = {**env, **{f"x{k}": v for k, v in enumerate(at)}}
        offset = linearize(subscripts, a).evaluate(here) if a else 0
        assert (linearize(there, b).evaluate(here) if b else 0) == offset
        assert all(0 <= e.evaluate(here) < d.evaluate(env) for e, d in zip(there, b, strict=True))


def test_dims_are_cut_where_products_agree() -> None:
    def cut(a: str, b: str) -> list[tuple[list[int], list[int]]]:
        left, right = ([Expr.parse(t) for t in text.split()] for text in (a, b))
        return [(list(x), list(y)) for x, y in dim_groups(left, right)]

    assert cut("b s 768", "b s 12 64") == [([0], [0]), ([1], [1]), ([2], [2, 3])]
    assert cut("b s 12 64", "b*s 768") == [([0, 1], [0]), ([2, 3], [1])]
    assert cut("6 4", "4 6") == [([0, 1], [0, 1])]
    assert cut("b 1 s", "b s") == [([0], [0]), ([1], []), ([2], [1])]


def test_writes_are_inverted_or_refused() -> None:
    extents = {"i": Expr.of(12), "j": Expr.of(64), "k": Expr.of("b")}
    parse = Expr.parse
    found = invert([parse("64*i + j"), parse("k")], [parse("c"), parse("d")], [parse("768"), parse("b")], extents)
    assert found == {"i": parse("c floordiv 64"), "j": parse("c mod 64"), "k": parse("d")}
    half = invert(
        [parse("i"), parse("j"), parse("k")], [parse("x")] * 3, [parse("24"), parse("64"), parse("b")], extents
    )
    assert half == "it does not write every element: i does not cover 24"
    mixed = invert([parse("63*i + j"), parse("k")], [parse("c"), parse("d")], [parse("768"), parse("b")], extents)
    assert mixed == "its subscript 63*i + j cannot be inverted"


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 1 << 32))
def test_what_is_proven_holds(seed: int) -> None:
    random = Random(seed)
    names = (*NAMES, *AXES)
    e = polynomial(random, names, 3)
    facts = [polynomial(random, names, 2) for _ in range(random.randint(0, 3))]
    extents = {"i": polynomial(random, NAMES, 1) + 1, "j": Expr.of(random.randint(1, 6))}
    ranges = Ranges({name: (Expr.of(0), extent) for name, extent in extents.items()})
    claimed = proven(e, ranges, facts)
    simpler = simplify(e, ranges)
    for _ in range(60):
        env = {name: random.randint(0, 6) for name in NAMES}
        sizes = {name: extent.evaluate(env) for name, extent in extents.items()}
        if min(sizes.values()) < 1:
            continue
        env |= {name: random.randrange(size) for name, size in sizes.items()}
        assert simpler.evaluate({**env, "_0": 2}) == e.evaluate({**env, "_0": 2})
        env["_0"] = random.randint(-8, 8)
        if claimed and all(f.evaluate(env) >= 0 for f in facts):
            assert e.evaluate(env) >= 0, f"{e} at {env}"


def test_delinearize_undoes_linearize_under_the_ranges() -> None:
    dims = [Expr.of("b"), Expr.of(12), Expr.of(64)]
    axes = [Expr.of(name) for name in "xyz"]
    ranges = Ranges({str(a): (Expr.of(0), d) for a, d in zip(axes, dims, strict=True)})
    assert [simplify(e, ranges) for e in delinearize(linearize(axes, dims), dims)] == axes


@pytest.mark.parametrize(
    ("subscripts", "apart"),
    [
        (["i", "j"], True),
        (["8*i + j"], True),
        (["i + j"], False),
        (["2*i + 1", "j"], True),
        (["i"], False),
        (["j", "i*3"], True),
    ],
)
def test_points_that_are_told_apart(subscripts: list[str], apart: bool) -> None:
    extents = {"i": Expr.of("n"), "j": Expr.of(8)}
    assert is_injective([Expr.parse(s) for s in subscripts], extents) is apart
