"""Runs of a model with limits on time and memory."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from igniter.errors import IgniterError
from igniter.frontend.ort_values import ArraySession, run
from igniter.memory import bound

POLL_SECONDS = 0.02


class TooMuch(IgniterError):
    """The error of a run over its limit of time or memory."""

    code = "IGN0602"


def guarded_run(
    session: Any, names: Sequence[str] | None, feed: Mapping[str, Any], seconds: float | None, memory: int | None = None
) -> list[Any]:
    """Calls `session.run`. Raises `TooMuch` after `seconds`, or if the process has grown by `memory` bytes.

    ONNX Runtime checks the request to stop between nodes, so one node can take longer.
    """
    if seconds is None:
        return run(session, feed, names)
    if isinstance(session, ArraySession):
        return session.run(names, feed, time.monotonic() + seconds)
    import onnxruntime

    ort: Any = onnxruntime
    options: Any = ort.RunOptions()
    options.log_severity_level = 4
    done = threading.Event()
    why: list[str] = []

    def watch() -> None:
        end, start = time.monotonic() + seconds, resident_bytes()
        while not done.wait(POLL_SECONDS):
            if time.monotonic() > end:
                why.append(f"it takes more than {seconds:.3g} s")
            elif memory is not None and resident_bytes() - start > memory:
                why.append(f"it takes more than {memory >> 20} MB")
                note_refused(f"a run of the model: {why[0]}")
            else:
                continue
            options.terminate = True
            return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        return run(session, feed, names, options)
    except Exception as error:  # ONNX Runtime's errors have no common base; raised again
        if why:
            raise TooMuch(why[0]) from error
        raise
    finally:
        done.set()
        watcher.join()


def resident_bytes() -> int:
    """Returns the memory of this process in bytes; 0 if the system does not report it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def memory_limit() -> int:
    """Returns the memory limit of a run in bytes: half of the free memory, at most 8 GB; in a process with a bound,
    half of what that leaves."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            free = next(int(line.split()[1]) << 10 for line in file if line.startswith("MemAvailable"))
    except (OSError, StopIteration, ValueError):
        free = 8 << 30
    bounded = bound()
    if bounded is not None and bounded.bytes:
        free = min(free, max(0, bounded.bytes - resident_bytes()))
    return min(free // 2, 8 << 30)


def note_refused(why: str) -> None:
    """Notes that a run was left out or ended for its memory, if the process has a bound."""
    bounded = bound()
    if bounded is not None:
        bounded.refused = why
