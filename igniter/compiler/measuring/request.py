"""The options of a measured compile."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from igniter.errors import IgniterError
from igniter.runtime.turns import Timer, time_turns

Asked: TypeAlias = bool | Literal["again"]
"""The values of the keyword `measure`: `"again"` ignores the outcome in the cache and replaces it."""


@dataclass(frozen=True)
class Measure:
    """The options of a measurement."""

    threads: int = 1
    """ONNX Runtime's threads within an op; 0 leaves the number to it."""
    again: bool = False
    """True to ignore outcomes in the cache."""
    region_seconds: float = 0.3
    """The duration of timing one region."""
    model_seconds: float = 2.0
    """The duration of timing whole models in turns."""
    timer: Timer = time_turns

    @staticmethod
    def of(asked: Asked, threads: int) -> Measure | None:
        """Returns the options from the keywords of a compile; `None` without a measurement. Raises `IgniterError` for
        other values, and for threads without a measurement."""
        given = cast("object", asked)
        if given not in (False, True, "again"):
            raise IgniterError(f"measure must be True, False or 'again', not {given!r}")
        if threads < 0:
            raise IgniterError(f"threads is {threads}: it cannot be negative")
        if not asked:
            if threads != 1:
                raise IgniterError(f"threads={threads} is for a measured compile: add measure, or leave threads out")
            return None
        return Measure(threads, asked == "again")
