"""The choice of the faster of eager and compiled, timed in the first calls, where a user waits anyway.

A call of ONNX Runtime costs some 20 µs besides its kernels; eager computes a few small ops in this time. So the calls
after the first one run both ways. One measurement with the compiled part not clearly slower is enough to keep it. Eager
wins only after `CALLS` measurements in a row, each by `MARGIN`, so noise on a busy machine does not decide. Arguments
several times as large are measured again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

from igniter.torch.names import is_tensor

CALLS: int = 5
"""The number of measurements in a row that eager must win."""
MARGIN = 1.25
"""The minimum ratio of compiled time to eager time in each of them."""
GROWTH = 4
"""The growth of the arguments' element count beyond which they are measured again."""


class Race:
    """Measurements of a part."""

    def __init__(self) -> None:
        self.settled = CALLS == 0
        """True if the compiled part is kept."""
        self._times: list[tuple[float, float]] = []
        self._elements = 0
        self._slower = False

    def eager_is_faster(self, values: Sequence[Any]) -> bool:
        """True if eager was measured faster for arguments of about this size."""
        if not self._slower:
            return False
        if _elements(values) <= GROWTH * self._elements:
            return True
        self._slower, self._times = False, []
        return False

    def run(self, compiled: Callable[[], Any], eager: Callable[[], Any], values: Sequence[Any]) -> Any:
        """Returns the result of `compiled`. Both run and are timed, in alternating order."""
        first, second = (compiled, eager) if len(self._times) % 2 else (eager, compiled)
        start = time.perf_counter()
        one = first()
        middle = time.perf_counter()
        other = second()
        times = middle - start, time.perf_counter() - middle
        ours, theirs = times if first is compiled else times[::-1]
        self._elements = max(self._elements, _elements(values))
        self._times.append((ours, theirs))
        if ours <= MARGIN * theirs:
            self.settled = True
        elif len(self._times) >= CALLS:
            self._slower = True
        return one if first is compiled else other

    @property
    def reason(self) -> str:
        """The reason why the part is eager; empty if it is not."""
        if not self._slower:
            return ""
        ours, theirs = (min(times) * 1e3 for times in zip(*self._times, strict=True))
        return f"eager is faster: {theirs:.3f} ms, compiled {ours:.3f} ms"


def _elements(values: Sequence[Any]) -> int:
    return sum(value.numel() for value in values if is_tensor(value))
