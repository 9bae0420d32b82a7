"""The memory of this process: its peak, its bound, and the times of Python's cycle collector."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from igniter.errors import IgniterError


class BoundReached(IgniterError):
    """Raised for a compile that reached its bound of memory or time; the message has the step and what grew."""

    code = "IGN0006"


@dataclass
class Bound:
    """The bounds of this process, which another process enforces (`igniter.compiler.bounded`)."""

    bytes: int = 0
    """The bound on memory; 0 for none."""
    refused: str = ""
    """The last work that was left out because it would have exceeded the bound: the value and its size."""


_bound: Bound | None = None


def bound() -> Bound | None:
    """Returns the bound of this process; `None` without one."""
    return _bound


def set_bound(given: Bound | None) -> None:
    """Sets the bounds of this process: work that knows its size beforehand keeps to them."""
    global _bound
    _bound = given


@contextmanager
def collection_paused() -> Generator[None]:
    """Runs the block without the cycle collector, and restores it afterwards. Can be nested.

    Allocations trigger the collector, and it scans every container. The large graphs of a compile all stay alive; there
    the collector takes up to a fifth of the time and frees almost nothing.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def collect_rarely() -> None:
    """Sets the cycle collector up for a command: it runs seldom, and not over everything again when the process ends.

    The defaults, after every 700 allocations, cost a start 0.1 s, and the end of a large compile half a second.
    """
    gc.set_threshold(50_000, 20, 100)
    atexit.register(gc.freeze)


def bytes_text(size: int) -> str:
    """Returns a number of bytes in words: `1.5 GB`."""
    for unit, one in (("TB", 1 << 40), ("GB", 1 << 30), ("MB", 1 << 20)):
        if size >= one:
            # A hostile file has sizes that are too large for a float.
            return f"{size * 10 // one / 10:,.1f} {unit}" if size < 1 << 200 else f"2^{size.bit_length() - 1} bytes"
    return f"{size:,} bytes"


def peak_memory() -> int:
    """Returns the peak memory of this process in bytes, including pages of mapped files; 0 if the system does not
    report it."""
    # Not `ru_maxrss` where there is another way: on Linux it begins with the peak of the process that started this one.
    with suppress(OSError), open("/proc/self/status", encoding="utf-8", errors="replace") as status:
        for line in status:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) << 10
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
