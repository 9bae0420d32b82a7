"""The memory of this process: how much it has used at most, and Python's cycle collector out of the way."""

from __future__ import annotations

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager


@contextmanager
def collection_paused() -> Generator[None]:
    """Runs the block without the cycle collector, and puts it back as it was. May be nested.

    Allocations start the collector, and it looks at every container that there is. While a compile builds large graphs
    that all stay alive, that is up to a fifth of the time, to free next to nothing.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def peak_memory() -> int:
    """The most memory that this process has held so far, in bytes, pages of mapped files included; 0 where the system
    does not say."""
    try:
        import resource
    except ImportError:
        return 0
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
