"""What all tests share."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

STATES: dict[str, dict[str, Any]] = {}
"""Of the generators called `RNG`, by module: how they were when it was imported."""


@pytest.fixture(autouse=True)
def seeded(request: pytest.FixtureRequest) -> None:
    """A module's generator gives the same numbers in a test, whatever ran before it: tests are shared out among
    processes, and selected."""
    rng = getattr(request.module, "RNG", None)
    if isinstance(rng, np.random.Generator):
        rng.bit_generator.state = STATES.setdefault(request.module.__name__, dict(rng.bit_generator.state))
