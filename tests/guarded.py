"""Buffers that end, and begin, at a page that is not mapped: one byte too far, read or written, is a fault.

`run_guarded` calls a compiled kernel on such copies of its buffers in a forked process, so that a fault is a failed
test with a message. What is left of a buffer's pages is filled with a pattern, of which every byte must still be there
afterwards, and inputs are mapped for reading only.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import warnings
from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

Array = np.ndarray[Any, Any]
Side = Literal["after", "before"]
SIDES: tuple[Side, ...] = ("after", "before")

PAGE = mmap.PAGESIZE
PATTERN = 0xA5
_LIBC = ctypes.CDLL(None, use_errno=True)
_NONE, _READ = 0, 1


class Guarded:
    """A copy of an array in pages of its own, next to a page that nothing may touch."""

    def __init__(self, array: Array, side: Side):
        self._pages = max(1, -(-array.nbytes // PAGE)) * PAGE
        # Shared, so that the parent of a fork sees what the child wrote.
        self._map = mmap.mmap(-1, self._pages + 2 * PAGE, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)
        whole = np.frombuffer(self._map, np.uint8)
        whole[:] = PATTERN
        start = PAGE if side == "before" else PAGE + self._pages - array.nbytes
        self.array: Array = whole[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
        self.array[...] = array
        self._rest = (whole[PAGE:start], whole[start + array.nbytes : PAGE + self._pages])
        self._start = whole.ctypes.data
        self._protect(self._start, PAGE, _NONE)
        self._protect(self._start + PAGE + self._pages, PAGE, _NONE)

    def make_read_only(self) -> None:
        self._protect(self._start + PAGE, self._pages, _READ)

    def check(self, what: str) -> None:
        """Fails where a byte beside the array has changed."""
        for rest, where in zip(self._rest, ("before", "after"), strict=True):
            assert (rest == PATTERN).all(), f"{what}: {int((rest != PATTERN).sum())} bytes written {where} the buffer"

    def _protect(self, start: int, size: int, mode: int) -> None:
        if _LIBC.mprotect(ctypes.c_void_p(start), ctypes.c_size_t(size), mode):
            raise OSError(ctypes.get_errno(), "mprotect")


def run_guarded(name: str, call: Callable[[Sequence[Array]], None], buffers: Sequence[Array], outputs: int) -> None:
    """`call` on copies of `buffers`, of which the last `outputs` are written; results are copied back.

    Once with the guard after and once with the guard before every buffer. Raises AssertionError where a byte outside
    is touched, or both runs differ.
    """
    inputs = len(buffers) - outputs
    runs = {side: [Guarded(b, side) for b in buffers] for side in SIDES}
    for copies in runs.values():
        for copy in copies[:inputs]:
            copy.make_read_only()
    done = mmap.mmap(-1, PAGE, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)

    def both() -> None:
        for number, copies in enumerate(runs.values()):
            call([c.array for c in copies])
            done[0] = number + 1

    status = _in_child(both)
    assert status == 0, f"{name}: {_reason(status)}, with a page that is not mapped {SIDES[done[0]]} every buffer"
    for copies in runs.values():
        for number, copy in enumerate(copies):
            copy.check(f"{name}, buffer {number}")
    for buffer, first, second in zip(buffers[inputs:], *(copies[inputs:] for copies in runs.values()), strict=True):
        assert first.array.tobytes() == second.array.tobytes(), f"{name}: two runs differ"
        buffer[...] = first.array


def _in_child(call: Callable[[], None]) -> int:
    """The exit status of `call` in a forked process, as `os.waitstatus_to_exitcode` says it."""
    with warnings.catch_warnings():
        # The child runs native code on memory that it has, and nothing of the parent's threads.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 1
    try:
        # pytest's handler of faults would print the parent's stack.
        for number in (signal.SIGSEGV, signal.SIGBUS):
            signal.signal(number, signal.SIG_DFL)
        call()
        status = 0
    finally:
        os._exit(status)


def _reason(status: int) -> str:
    return f"the kernel faulted ({signal.Signals(-status).name})" if status < 0 else "the call raised an exception"
