"""The number of examples of a property test."""

from __future__ import annotations

import os

from hypothesis import settings

SHARE = 4
"""One example in so many is looked at, unless `--sweeps` asks for all."""


def examples(count: int) -> settings:
    """The settings of a test with so many examples in a run of everything."""
    return settings(max_examples=count if os.environ.get("IGNITER_ALL_EXAMPLES") else -(-count // SHARE), deadline=None)
