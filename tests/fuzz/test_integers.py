"""A few random graphs of integers at the limits of their types; more by `python -m tests.fuzz.integers`."""

from __future__ import annotations

import pytest

from tests.fuzz.integers import run_seed


@pytest.mark.parametrize("seed", range(4))
def test_graphs_of_integers_are_exact(seed: int) -> None:
    assert run_seed(seed) == ""
