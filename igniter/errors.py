"""The errors for users."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

INTERNAL = "IGN0000"
"""The code of an error that is not the user's: a fault of Igniter."""
SYSTEM = "IGN0002"
"""The code of an error of the operating system: a missing file, a full disk."""


INVALID_IR = "IGN0107"
"""The code of xDSL's errors: IR that cannot be read, or that does not verify."""

REFUSED_BY_XDSL = ("ParseError", "VerifyException", "DiagnosticException")


class IgniterError(Exception):
    """An error within the user's control; the message is one clear paragraph, shown without a traceback."""

    code: ClassVar[str] = "IGN0001"
    """The code of the kind of error, for scripts (`docs/reference/errors.md`). It stays the same across versions."""
    exit_status: int = 1
    """The exit status of a tool after it: 1, 3 for a wrong result, 4 for a plug-in that failed."""

    def __init__(self, message: str):
        super().__init__(message)
        self.message = message
        self.reproducer = ""
        """The file that repeats the failure (`igniter.reproducers`), if one was written."""


def did_you_mean(name: str, known: Iterable[str], most: int = 3) -> str:
    """Returns `; did you mean 'a' or 'b'?` for the names most like `name`; "" if none is like it."""
    import difflib

    close = list(dict.fromkeys(difflib.get_close_matches(name, list(known), n=most)))
    return f"; did you mean {' or '.join(map(repr, close))}?" if close else ""


def code_of(error: BaseException) -> str:
    """Returns the code of an error: the class's own, or that of errors of the system or of faults of Igniter."""
    if isinstance(error, IgniterError):
        return error.code
    if isinstance(error, OSError):
        return SYSTEM
    # By name: xDSL takes a while to import.
    own = any(c.__name__ in REFUSED_BY_XDSL and c.__module__.startswith("xdsl.") for c in type(error).__mro__)
    return INVALID_IR if own else INTERNAL


def status_of(error: BaseException) -> int:
    """Returns the exit status of a tool after an error."""
    if isinstance(error, IgniterError):
        return error.exit_status
    return 2 if code_of(error) == INTERNAL else 1


def is_crash(error: BaseException) -> bool:
    """True for an error that no part of Igniter raised on purpose, or that such an error caused."""
    cause: BaseException | None = error
    while cause is not None:
        if not isinstance(cause, (IgniterError, OSError)):
            return True
        cause = cause.__cause__
    return False


def reproducer_of(error: BaseException) -> str:
    """Returns the path of the reproducer that an error, or one of its causes, left; "" if there is none."""
    seen: BaseException | None = error
    while seen is not None:
        if found := getattr(seen, "reproducer", ""):
            return str(found)
        seen = seen.__cause__
    return ""


def how_to_repeat(path: str) -> str:
    """Returns the sentence of messages about a reproducer."""
    return f"reproducer: {path} (igniter-opt {path} --run-reproducer repeats the failure; igniter reduce shrinks it)"
