"""Helper processes for compiling kernels of a model: each kernel is an independent unit, and the compiler is Python.

    with CompileHelpers(c, kernels) as helpers:
        for kernel in kernels:
            helpers.wait_for(kernel)      what another process has begun
            compile_kernel(c, ..)         out of the cache, where another process was at it

Helpers put their results into the cache of compiled kernels, and report finished kernels; they start with the last
kernels, the compilation with the first. So helpers are optional, may start late, and may fail: the compilation does the
rest itself, with its errors and remarks. Without a cache there are no helpers.

A helper is a fork of this process if no other thread could hold a lock that the fork needs: it begins at once. Else it
is a new process, which imports the compiler first.

`IGNITER_JOBS` is the number of processes, including this one; its default is the number of available CPUs, at most
`MOST`.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, NoReturn, Self, cast

from igniter.activity import note_off
from igniter.compiler.compile_worker import serve
from igniter.errors import IgniterError

if TYPE_CHECKING:
    from igniter.compiler.compilation import Compilation

MOST = 8
"""The limit of processes of one compilation, unless `IGNITER_JOBS` is larger."""

WORTHWHILE = 6
"""The least number of kernels for a new process: its start takes as long as compiling three."""

FORK_WORTHWHILE = 1
"""The least number of kernels for a fork."""


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


def can_fork() -> bool:
    """True if a fork of this process can compile: nobody else holds a lock of Python's or of LLVM's. The spinner of a
    terminal is a thread without such locks."""
    threads = [t for t in threading.enumerate() if type(t).__module__ != "rich.live"]
    return sys.platform == "linux" and len(threads) == 1


@dataclass(frozen=True)
class _Process:
    """A helper's process: the streams to it and from it, and the function to end it."""

    requests: IO[bytes]
    answers: IO[bytes]
    end: Callable[[], None]


class CompileHelpers:
    """Processes for compiling kernels, given as texts, beside this one; they end with the `with` block."""

    def __init__(self, c: Compilation, kernels: Sequence[str]):
        self._begun = (c.options, None if c.cache is None else (c.cache.folder, c.cache.limit), c.ctx.remarks.enabled)
        self._left = list(dict.fromkeys(kernels))
        self._lock = threading.Lock()
        self._doing: dict[str, threading.Event] = {}
        self._threads: list[threading.Thread] = []
        self._processes: list[_Process] = []
        self._forks = can_fork()
        alone = c.cache is None or c.cache.limit == 0 or not (self._forks or sys.executable)
        least = 2 * (FORK_WORTHWHILE if self._forks else WORTHWHILE)
        self._count = 0 if alone else min(jobs() - 1, len(self._left) // least)

    def __enter__(self) -> Self:
        # All forks come before the first thread.
        forks = [_fork() for _ in range(self._count)] if self._forks else [None] * self._count
        for fork in forks:
            thread = threading.Thread(target=self._help, args=(fork,), daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._left.clear()
            processes = list(self._processes)
        for process in processes:
            # Nobody waits for the result of a running one.
            process.end()
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

    def _help(self, fork: _Process | None) -> None:
        """Hands kernels to one process, until none is left or it ends."""
        try:
            process = _start() if fork is None else fork
        except OSError:
            return  # Without another process, this one compiles all.
        with self._lock:
            self._processes.append(process)
        try:
            _send(process.requests, self._begun)
            # A helper takes no kernel before it can begin one.
            pickle.load(process.answers)
            while (taken := self._take()) is not None:
                kernel, done = taken
                try:
                    _send(process.requests, kernel)
                    pickle.load(process.answers)
                finally:
                    done.set()
        except (OSError, EOFError, pickle.UnpicklingError):
            pass  # It has ended: this process compiles the rest.
        finally:
            for stream in (process.requests, process.answers):
                _close(stream)
            process.end()

    def _take(self) -> tuple[str, threading.Event] | None:
        with self._lock:
            if not self._left:
                return None
            kernel = self._left.pop()
            self._doing[kernel] = threading.Event()
            return kernel, self._doing[kernel]


def _start() -> _Process:
    """Starts a new process; raises `OSError` if that is not possible."""
    paths = {**os.environ, "PYTHONPATH": os.pathsep.join(p or os.getcwd() for p in sys.path), "IGNITER_JOBS": "1"}
    made = subprocess.Popen(
        [sys.executable, "-m", "igniter.compiler.compile_worker"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=paths,
    )

    def end() -> None:
        made.terminate()
        made.wait()

    return _Process(cast("IO[bytes]", made.stdin), cast("IO[bytes]", made.stdout), end)


def fork() -> int | None:
    """Calls `os.fork`; returns `None` if the system refuses."""
    try:
        # Later versions of Python warn of other threads, though ONNX Runtime's take no part in a compile.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            return os.fork()
    except OSError:
        return None


def _fork() -> _Process | None:
    """Forks this process; `None` if that is not possible."""
    theirs, requests = os.pipe()
    answers, ours = os.pipe()
    child = fork()
    if child is None:
        for end in (theirs, requests, answers, ours):
            os.close(end)
        return None
    if child == 0:
        for end in (requests, answers):
            os.close(end)
        _serve(theirs, ours)
    for end in (theirs, ours):
        os.close(end)
    lock = threading.Lock()
    running = [child]

    def end_it() -> None:
        # Once: the number of an ended process may become another's.
        with lock:
            for pid in running:
                os.kill(pid, signal.SIGTERM)
                os.waitpid(pid, 0)
            running.clear()

    return _Process(os.fdopen(requests, "wb"), os.fdopen(answers, "rb"), end_it)


def _serve(requests: int, answers: int) -> NoReturn:
    """Compiles what comes through a pipe, in a fork, and ends it: without the buffers, the handlers and the
    destructors of the process that it was."""
    try:
        for name in (signal.SIGTERM, signal.SIGINT):
            signal.signal(name, signal.SIG_DFL)
        note_off()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        serve(os.fdopen(requests, "rb"), os.fdopen(answers, "wb"))
    finally:
        os._exit(0)


def _send(stream: IO[bytes], value: object) -> None:
    pickle.dump(value, stream)
    stream.flush()


def _close(stream: IO[bytes]) -> None:
    # Buffered data has no reader any more.
    with contextlib.suppress(OSError):
        stream.close()
