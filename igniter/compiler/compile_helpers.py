"""Helper processes for compiling kernels of a model: each kernel is an independent unit, and the compiler is Python.

    with CompileHelpers(c, kernels) as helpers:
        for kernel in kernels:
            helpers.wait_for(kernel)      what another process has begun
            compile_kernel(c, ..)         out of the cache, where another process was at it

Helpers put their results into the cache of compiled kernels, and report finished kernels; they start with the last
kernels, the compilation with the first. So helpers are optional, may start late, and may fail: the compilation does the
rest itself, with its errors and remarks. Without a cache there are no helpers.

`IGNITER_JOBS` is the number of processes, including this one; its default is the number of available CPUs, at most
`MOST`.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Self, cast

from igniter.errors import IgniterError

if TYPE_CHECKING:
    from igniter.compiler.compilation import Compilation

MOST = 8
"""The limit of processes of one compilation, unless `IGNITER_JOBS` is larger."""

WORTHWHILE = 6
"""The least number of kernels for a helper: its start takes as long as compiling three."""


def jobs() -> int:
    """Returns the number of processes for a compilation. Raises `IgniterError` if the variable is not a number."""
    said = os.environ.get("IGNITER_JOBS", "")
    if not said:
        # Some systems do not report the CPUs available to a process.
        cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        return min(MOST, cpus)
    if not said.isdecimal() or int(said) < 1:
        raise IgniterError(f"IGNITER_JOBS is '{said}'; it must be the number of parallel compile processes, 1 or more")
    return int(said)


class CompileHelpers:
    """Processes for compiling kernels, given as texts, beside this one; they end with the `with` block."""

    def __init__(self, c: Compilation, kernels: Sequence[str]):
        self._begun = (c.options, None if c.cache is None else (c.cache.folder, c.cache.limit), c.ctx.remarks.enabled)
        self._left = list(dict.fromkeys(kernels))
        self._lock = threading.Lock()
        self._doing: dict[str, threading.Event] = {}
        self._threads: list[threading.Thread] = []
        self._processes: list[subprocess.Popen[bytes]] = []
        alone = c.cache is None or c.cache.limit == 0 or not sys.executable
        self._count = 0 if alone else min(jobs() - 1, len(self._left) // (2 * WORTHWHILE))

    def __enter__(self) -> Self:
        for _ in range(self._count):
            thread = threading.Thread(target=self._help, daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._left.clear()
            processes = list(self._processes)
        for process in processes:
            # Nobody waits for the result of a running one.
            process.terminate()
        for thread in self._threads:
            thread.join()

    def __bool__(self) -> bool:
        """True if there are helpers."""
        return bool(self._count)

    def wait_for(self, kernel: str) -> None:
        """Takes a kernel from the helpers, or waits for its helper."""
        with self._lock:
            if kernel in self._left:
                self._left.remove(kernel)
            done = self._doing.get(kernel)
        if done is not None:
            done.wait()

    def _help(self) -> None:
        """Hands kernels to one process, until none is left or it ends."""
        paths = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path), "IGNITER_JOBS": "1"}
        try:
            process = subprocess.Popen(
                [sys.executable, "-m", "igniter.compiler.compile_worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=paths,
            )
        except OSError:
            return  # Without another process, this one compiles all.
        with self._lock:
            self._processes.append(process)
        requests, answers = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
        try:
            _send(requests, self._begun)
            # A helper takes no kernel before it can begin one.
            pickle.load(answers)
            while (taken := self._take()) is not None:
                kernel, done = taken
                try:
                    _send(requests, kernel)
                    pickle.load(answers)
                finally:
                    done.set()
        except (OSError, EOFError, pickle.UnpicklingError):
            pass  # It has ended: this process compiles the rest.
        finally:
            for stream in (requests, answers):
                _close(stream)
            process.terminate()
            process.wait()

    def _take(self) -> tuple[str, threading.Event] | None:
        with self._lock:
            if not self._left:
                return None
            kernel = self._left.pop()
            self._doing[kernel] = threading.Event()
            return kernel, self._doing[kernel]


def _send(stream: IO[bytes], value: object) -> None:
    pickle.dump(value, stream)
    stream.flush()


def _close(stream: IO[bytes]) -> None:
    # Buffered data has no reader any more.
    with contextlib.suppress(OSError):
        stream.close()
