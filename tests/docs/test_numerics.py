"""The bounds in docs/explanation/numerics.md are those that the functions are tested for."""

from __future__ import annotations

import re

from igniter.backends.cpu.vmath import FUNCTIONS
from igniter.verification.decisions import MOST_CHANGES
from igniter.verification.judgement import (
    NOISE_FACTOR,
    SLICE_NOISE_FACTOR,
    SLICE_TOLERANCE,
    SOURCE_ULPS,
    TOLERANCES,
)
from igniter.verification.verify import BUDGET_SECONDS
from tests.backends.cpu.test_vmath import BOUNDS32, BOUNDS64

from .transcripts import ROOT

VERIFICATION = " ".join((ROOT / "docs" / "explanation" / "verification.md").read_text(encoding="utf-8").split())
PAGE = (ROOT / "docs" / "explanation" / "numerics.md").read_text(encoding="utf-8")
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
        assert f"{limit:.0e}".replace("e-0", "e-") in VERIFICATION
    assert f"{NOISE_FACTOR} times the noise" in VERIFICATION
    assert f"{SLICE_TOLERANCE} times the tolerance" in VERIFICATION
    assert f"{SLICE_NOISE_FACTOR} times its own noise" in VERIFICATION
    assert f"{SOURCE_ULPS} units in the last place" in VERIFICATION
    assert f"up to {MOST_CHANGES}" in VERIFICATION
    assert f"`--budget`, {BUDGET_SECONDS:.0f} s" in VERIFICATION
