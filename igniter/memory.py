"""The memory of this process: its peak, and the times of Python's cycle collector."""

from __future__ import annotations

import atexit
import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress


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
