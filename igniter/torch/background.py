"""Work in the background: one thread that exports and compiles, while eager serves.

A process that ends waits for the work in progress, whose result the cache keeps, and drops what has not begun.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

_lock = threading.Condition()
_jobs: deque[Callable[[], None]] = deque()
_worker: threading.Thread | None = None


def later(job: Callable[[], None]) -> None:
    """Runs `job` in the background, after those before it. It must not raise."""
    global _worker
    with _lock:
        _jobs.append(job)
        if _worker is None:
            _worker = threading.Thread(target=_work, name="igniter-torch")
            _worker.start()


def wait(seconds: float | None = None) -> bool:
    """Waits until nothing is left to do in the background; returns false if that takes longer than `seconds`."""
    with _lock:
        return _lock.wait_for(lambda: _worker is None, seconds)


def _work() -> None:
    global _worker
    while True:
        with _lock:
            if not _jobs or not threading.main_thread().is_alive():
                _jobs.clear()
                _worker = None
                _lock.notify_all()
                return
            job = _jobs.popleft()
        job()
