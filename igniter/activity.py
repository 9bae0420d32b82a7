"""The current activity of this process, recorded in memory shared with its watcher (`igniter.tools.watch`).

ONNX Runtime, LLVM and the kernels are native code: a fault in them ends the process, and no `except` catches it.
Without a watcher nothing is recorded.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from mmap import mmap
from typing import Any

BOARD_BYTES = 1 << 14
_LENGTH = 4
"""The size of the board's header, in bytes; it holds the length of the content."""


@dataclass(frozen=True)
class Activity:
    """An activity during which native code may end the process; `what` is a clause, "the original model was loaded"."""

    what: str
    runs: str = ""
    """`onnxruntime`: ONNX Runtime runs the user's model or nodes of it, without Igniter's kernels; `kernels`: kernels
    run too."""
    hint: str = ""
    """The user's remedy after a crash."""
    after_kernels: bool = False
    """True if kernels ran in this process before; the crash may be a late effect of theirs."""


_board: mmap | None = None
_now: list[Activity] = []
_kernels_ran = False
_temporary: list[str] = []
_largest = ""


def note_on(board: mmap) -> None:
    """Records activities in `board`, memory shared with the watcher."""
    global _board
    _board = board


def note_off() -> None:
    """Records nothing from here on: for a fork of this process, whose activities are not this one's."""
    global _board
    _board = None


@contextmanager
def doing(what: str, *, runs: str = "", hint: str = "") -> Generator[None]:
    """Records an activity for the duration of the block; a crash is attributed to the innermost one."""
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
    """Registers a temporary folder; the watcher removes it if this process ends before it does so itself."""
    _temporary.append(folder)
    _write()
    try:
        yield
    finally:
        _temporary.remove(folder)
        _write()


def note_largest(find: Callable[[], str]) -> None:
    """Records the largest value of the model, with its size, as `find` returns it; it is called only if somebody
    watches."""
    global _largest
    if _board is not None:
        _largest = find()
        _write()


def _write() -> None:
    if _board is None:
        return
    noted = {"doing": asdict(_now[-1]) if _now else None, "temporary": _temporary, "largest": _largest}
    data = json.dumps(noted).encode()
    if len(data) + _LENGTH > BOARD_BYTES:
        data = json.dumps({"doing": None, "temporary": [], "largest": ""}).encode()
    _board[: _LENGTH + len(data)] = len(data).to_bytes(_LENGTH, "little") + data


def read_board(board: mmap) -> tuple[Activity | None, list[str]]:
    """Returns the recorded activity, or None, and the temporary folders to remove."""
    noted = _read(board)
    return (Activity(**noted["doing"]) if noted.get("doing") else None), noted.get("temporary", [])


def read_largest(board: mmap) -> str:
    """Returns the recorded largest value of the model, with its size; "" if none is recorded."""
    return _read(board).get("largest", "")


def _read(board: mmap) -> dict[str, Any]:
    size = int.from_bytes(board[:_LENGTH], "little")
    try:
        noted: dict[str, Any] = json.loads(board[_LENGTH : _LENGTH + size])
    except ValueError:  # nothing recorded yet, or the process ended during a write
        return {}
    return noted
