"""What this process is doing, noted where the process that watches it (`igniter.tools.watch`) finds it after a crash.

ONNX Runtime, LLVM and the kernels are native code: what they do wrong ends the process, and no `except` sees it.
Without a watcher nothing is noted.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from mmap import mmap

BOARD_BYTES = 1 << 14
_LENGTH = 4
"""The bytes of the board that say how many follow."""


@dataclass(frozen=True)
class Activity:
    """Something that native code may end the process in: `what` is a clause, "the original model was loaded"."""

    what: str
    runs: str = ""
    """`onnxruntime`: ONNX Runtime on the model that the user gave, or on nodes of it, without a kernel of Igniter's;
    `kernels`: kernels too."""
    hint: str = ""
    """What the user can do about a crash."""
    after_kernels: bool = False
    """Kernels have run in this process before, and what goes wrong may be what they left."""


_board: mmap | None = None
_now: list[Activity] = []
_kernels_ran = False
_temporary: list[str] = []


def note_on(board: mmap) -> None:
    """Note what goes on in this memory, which the watcher shares."""
    global _board
    _board = board


@contextmanager
def doing(what: str, *, runs: str = "", hint: str = "") -> Generator[None]:
    """What is done inside, as `Activity` has it; the innermost is what a crash is blamed on."""
    global _kernels_ran
    if _board is None:
        yield
        return
    activity = Activity(what, runs, hint, _kernels_ran)
    _kernels_ran = _kernels_ran or runs == "kernels"
    _now.append(activity)
    _write()
    try:
        yield
    finally:
        _now.remove(activity)
        _write()


@contextmanager
def leaving(folder: str) -> Generator[None]:
    """A folder of the user's that is removed afterwards: by the watcher, where this process does not come to it."""
    _temporary.append(folder)
    _write()
    try:
        yield
    finally:
        _temporary.remove(folder)
        _write()


def _write() -> None:
    if _board is None:
        return
    noted = {"doing": asdict(_now[-1]) if _now else None, "temporary": _temporary}
    data = json.dumps(noted).encode()
    if len(data) + _LENGTH > BOARD_BYTES:
        data = json.dumps({"doing": None, "temporary": []}).encode()
    _board[: _LENGTH + len(data)] = len(data).to_bytes(_LENGTH, "little") + data


def read_board(board: mmap) -> tuple[Activity | None, list[str]]:
    """What was going on, if anything was noted, and the folders that are to go."""
    size = int.from_bytes(board[:_LENGTH], "little")
    try:
        noted = json.loads(board[_LENGTH : _LENGTH + size])
    except ValueError:  # nothing was noted yet, or the process ended just as it wrote
        return None, []
    return (Activity(**noted["doing"]) if noted["doing"] else None), noted["temporary"]
