"""The kernels of `lit_tests/examples`, scheduled by hand, compute what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transforms.scheduled.scheduling import SCHEDULE, check

EXAMPLES = Path(__file__).parents[3] / "lit_tests" / "examples"
CASES = {
    "attention": [{"s": s, "t": t} for s, t in ((0, 4), (1, 1), (7, 5), (8, 48), (13, 50), (16, 131), (33, 200))],
    "gemm": [{}],
    "convolution": [{}],
}


@pytest.mark.parametrize("name", CASES)
def test_example(name: str) -> None:
    text = (EXAMPLES / f"{name}.mlir").read_text()
    check(text, CASES[name], machines=(64,), passes=SCHEDULE[1:], rtol=2e-5)
