"""The kernels of `lit_tests/examples`, scheduled by hand, compute what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.transforms.scheduled.scheduling import SCHEDULE, check

EXAMPLES = Path(__file__).parents[3] / "lit_tests" / "examples"
CASES = {
    "attention": [{"s": s, "t": t} for s, t in ((0, 4), (1, 1), (7, 5), (13, 50))],
    "gemm": [{}],
    "convolution": [{}],
}
MORE = {"attention": [{"s": s, "t": t} for s, t in ((8, 48), (16, 131), (33, 200))]}
"""Sizes of many blocks: the interpreter takes ten seconds for them."""


def check_example(name: str, sizes: list[dict[str, int]]) -> None:
    text = (EXAMPLES / f"{name}.mlir").read_text()
    check(text, sizes, machines=(64,), passes=SCHEDULE[1:], rtol=2e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_example(name: str) -> None:
    check_example(name, CASES[name])


@pytest.mark.full
@pytest.mark.parametrize("name", MORE)
def test_example_of_larger_sizes(name: str) -> None:
    check_example(name, MORE[name])
