"""Proofs of bounds: what is claimed holds at every point of small domains."""

from __future__ import annotations

from itertools import product

import pytest

from igniter.dialects.sym.expr import ZERO, Expr
from igniter.dialects.sym.proofs import proven
from igniter.dialects.sym.ranges import Ranges

SAME = "max(2*((n3 + 1) floordiv 2) - n3, 0)"
CLAIMS = (
    # A name that stands for a quotient must not be taken again when an axis has been put at its end.
    ("i4 - r1 + (i3 floordiv 2)", {"i3": "2", "i4": "(n3 + 2*n5) floordiv 2", "r1": "(n3 + 1) floordiv 2"}, False),
    ("i4 + (i3 floordiv 2)", {"i3": "2", "i4": "(n3 + 2*n5) floordiv 2"}, True),
    ("n3 - 1 - 2*r1", {"r1": "n3 floordiv 2"}, True),
    ("n3 - 1 - 2*r1", {"r1": "(n3 + 1) floordiv 2"}, True),
    ("n3 - 2 - 2*r1", {"r1": "(n3 + 1) floordiv 2"}, False),
    # The dim is positive, for the axis takes a value: once, and not once more inside of a call.
    ("min(n3 - 1, n5)", {"i3": "n3"}, True),
    ("min(n3 - 2, n5)", {"i3": "n3"}, False),
    ("max(n3 - 2, -3)", {"i3": "n3"}, False),
    # A half, rounded up, of what is not negative: what `SAME` padding leaves for the other side.
    (f"{SAME} - ({SAME} + 1) floordiv 2", {}, True),
    (f"{SAME} - {SAME} floordiv 2", {}, True),
    (f"{SAME} - ({SAME} + 2) floordiv 2", {}, False),
    ("n3 - (2*n3 + 2) floordiv 3", {}, True),
    ("n3 - (2*n3 + 4) floordiv 3", {}, False),
)
HALVES = CLAIMS[-5:]
HALF, LATER = "((n3 + 1) floordiv 2)", "max(n3 - 2, 0)"
WINDOWS = tuple(
    (f"{size} + {rim} - 2*i4 - r1", {"i4": f"({size} + 1) floordiv 2", "r1": "3"}, holds)
    for size in (HALF, LATER, f"{HALF} floordiv 2")
    for rim, holds in ((1, True), (0, False))
)
"""A window of 3 that goes on by 2 over an image with one row of zeros, or with none, around what is computed."""


@pytest.mark.parametrize("claim, extents, holds", (*CLAIMS, *WINDOWS))
def test_what_is_proven_holds(claim: str, extents: dict[str, str], holds: bool) -> None:
    e = Expr.parse(claim)
    sizes = {axis: Expr.parse(text) for axis, text in extents.items()}
    found = proven(e, Ranges({axis: (ZERO, size) for axis, size in sizes.items()}))
    assert not found or holds
    true = True
    for n3, n5 in product(range(1, 6), range(1, 4)):
        env = {"n3": n3, "n5": n5}
        for point in product(*(range(size.evaluate(env)) for size in sizes.values())):
            true = true and e.evaluate({**env, **dict(zip(sizes, point, strict=True))}) >= 0
    assert true == holds


@pytest.mark.parametrize("claim, extents, holds", HALVES)
def test_halves_are_proven(claim: str, extents: dict[str, str], holds: bool) -> None:
    assert proven(Expr.parse(claim), Ranges({})) == holds


@pytest.mark.parametrize("claim, extents, holds", WINDOWS)
def test_windows_over_images_of_computed_sizes_are_proven(claim: str, extents: dict[str, str], holds: bool) -> None:
    sizes = Ranges({axis: (ZERO, Expr.parse(text)) for axis, text in extents.items()})
    assert proven(Expr.parse(claim), sizes) == holds
