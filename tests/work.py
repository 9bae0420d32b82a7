"""The work of a function, measured by the calls it makes: the same on every machine, whatever else that does."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def calls_of(function: Callable[[], object]) -> int:
    """The number of calls, of Python's functions and of C's, that are made until `function` returns."""
    count = 0

    def count_call(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(count_call)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count
