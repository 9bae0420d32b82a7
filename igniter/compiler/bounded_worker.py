"""The process of a compile with bounds: `python -m igniter.compiler.bounded_worker BOARD BYTES`.

Reads one pickled request from standard input; answers on the original standard output with the stages and the outcome.
The board is a file shared with the parent, for the present activity (`igniter.activity`).
"""

from __future__ import annotations

import ctypes
import os
import pickle
import signal
import sys
import traceback
from functools import partial
from mmap import mmap
from typing import IO, Any

from igniter.activity import BOARD_BYTES, note_on
from igniter.memory import Bound, collect_rarely, set_bound
from igniter.registry import load


def main() -> None:
    answers: IO[bytes] = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    board, bytes_ = sys.argv[1:]
    with open(board, "r+b") as file:
        note_on(mmap(file.fileno(), BOARD_BYTES))
    _die_with_parent()
    set_bound(Bound(int(bytes_)))
    collect_rarely()
    _answer(answers, *_compile(answers))
    # The destructors of ONNX Runtime and LLVM free what the system frees.
    os._exit(0)


def _die_with_parent() -> None:
    """Makes the system end this process together with the one that enforces its bounds (Linux)."""
    if sys.platform != "linux":
        return
    set_death_signal = 1
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def _compile(answers: IO[bytes]) -> tuple[str, Any]:
    try:
        source, target, options = pickle.load(sys.stdin.buffer)
        # By name: the API is above the compiler.
        load("igniter.api:compile")(source, target, **options, progress=partial(_answer, answers, "progress"))
    except Exception as error:  # raised again by the parent
        return "error", _parts(error)
    return "done", None


def _parts(error: Exception) -> tuple[type[BaseException], tuple[Any, ...], dict[str, Any], str]:
    """Returns an error in parts that the parent can read; the state that cannot be pickled is left out."""
    state = {name: value for name, value in error.__dict__.items() if name != "__notes__" and _travels(value)}
    arguments = error.args if _travels(error.args) else (str(error),)
    kind: type[BaseException] = type(error) if _travels(type(error)) else RuntimeError
    return kind, arguments, state, traceback.format_exc()


def _travels(value: object) -> bool:
    try:
        pickle.dumps(value)
    except (pickle.PicklingError, TypeError, AttributeError):
        return False
    return True


def _answer(stream: IO[bytes], kind: str, value: object) -> None:
    pickle.dump((kind, value), stream)
    stream.flush()


if __name__ == "__main__":
    main()
