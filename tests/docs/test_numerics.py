"""The bounds in docs/numerics.md are those that the functions are tested for."""

from __future__ import annotations

import re

from igniter.backends.cpu.vmath import FUNCTIONS
from igniter.runtime.verify import TOLERANCES
from tests.backends.cpu.test_vmath import BOUNDS32, BOUNDS64

from .transcripts import ROOT

PAGE = (ROOT / "docs" / "numerics.md").read_text(encoding="utf-8")
ROWS = {
    n: (float(a), float(b)) for n, a, b in re.findall(r"^\| `(\w+)` \| ([\d.]+) \| ([\d.]+) \|$", PAGE, re.MULTILINE)
}
EXACT = {"ceil", "floor", "round", "roundeven", "trunc"}


def test_every_function_has_its_bounds():
    assert set(ROWS) == set(FUNCTIONS.values()) - EXACT
    assert {n: r[0] for n, r in ROWS.items() if n in BOUNDS32} == {n: b for n, b in BOUNDS32.items() if n not in EXACT}
    assert {n: r[1] for n, r in ROWS.items() if n in BOUNDS64} == BOUNDS64
    assert all(BOUNDS32[n] == 0 for n in EXACT)


def test_tolerances():
    for limit in TOLERANCES.values():
        assert f"{limit:.0e}".replace("e-0", "e-") in PAGE
