"""`igniter` in a watched process: if native code crashes it, the watcher reports its activity.

The watcher is forked before any slow import, so it costs a few milliseconds and almost no memory, and the child runs at
full speed.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
from mmap import mmap

from igniter.activity import BOARD_BYTES, Activity, note_on, read_board
from igniter.toolbox.output import printable
from igniter.tools.errors import print_error

ASKED = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGPIPE", "SIGTERM", "SIGXCPU")
"""The signals sent on purpose: the process ends by them as without a watcher."""
FORWARDED = ("SIGHUP", "SIGTERM")
"""The signals sent to a single process, seen from outside the watcher; a terminal sends the rest to both."""

MEANINGS = {
    "SIGABRT": "it gave up",
    "SIGBUS": "memory that is not there, or a file that became shorter",
    "SIGFPE": "a division of integers by zero",
    "SIGILL": "an instruction that this CPU does not have",
    "SIGSEGV": "an access to memory that is not its own",
}


def watched(arguments: list[str]) -> None:
    """Continues in a forked child and waits for it here: returns only in the child."""
    board = mmap(-1, BOARD_BYTES)
    try:
        child = os.fork()
    except (AttributeError, OSError):  # a system without it, or without room for one more process
        return
    if child == 0:
        _dies_with_parent()
        note_on(board)
        if "--debug" in arguments:
            import faulthandler

            faulthandler.enable()
        return
    status = _wait(child)
    code = os.waitstatus_to_exitcode(status)
    if code < 0:
        code = _report(-code, board, as_json="--json" in arguments)
    # Not `sys.exit`: the caller continues in the child, and nothing is left to do here.
    os._exit(code)


def _dies_with_parent() -> None:
    """Makes the system end this process when its watcher ends by a signal that it cannot forward (Linux)."""
    if sys.platform != "linux":
        return
    import ctypes

    set_death_signal = 1
    ctypes.CDLL(None).prctl(set_death_signal, signal.SIGKILL)


def _wait(child: int) -> int:
    for name in ASKED:
        signal.signal(getattr(signal, name), signal.SIG_IGN)
    for name in FORWARDED:
        signal.signal(getattr(signal, name), lambda number, _: os.kill(child, number))
    return os.waitpid(child, 0)[1]


def _report(number: int, board: mmap, *, as_json: bool) -> int:
    """Reports the signal behind the child's end, removes its temporary folders, and returns the exit status."""
    activity, temporary = read_board(board)
    for folder in temporary:
        shutil.rmtree(folder, ignore_errors=True)
    name = signal.Signals(number).name if number in {s.value for s in signal.Signals} else f"signal {number}"
    if name in ASKED:
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)
    expected, message = explain(name, activity)
    status = print_error(printable(message), expected=expected, as_json=as_json)
    sys.stdout.flush()
    sys.stderr.flush()
    return status


def explain(name: str, activity: Activity | None) -> tuple[bool, str]:
    """Returns true if the user can act on the end by a signal, and the message."""
    meaning = f"{name}, {MEANINGS[name]}" if name in MEANINGS else name
    when = f", while {activity.what}" if activity is not None else ""
    hint = f"; {activity.hint}" if activity is not None and activity.hint else ""
    if name == "SIGKILL":
        return True, f"killed{when}: by the system, which does so when memory runs out, or by somebody{hint}"
    if activity is not None and activity.runs == "onnxruntime" and not activity.after_kernels:
        return True, f"ONNX Runtime itself crashes on this model ({meaning}){when}{hint}"
    return False, f"the process crashed ({meaning}){when}{hint}"
