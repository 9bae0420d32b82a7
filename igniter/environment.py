"""Settings from environment variables, except those of the cache and the linker."""

from __future__ import annotations

import os
import sys

from igniter.errors import IgniterError


def require_lock() -> None:
    """Raises `IgniterError` in a free-threaded Python without the global lock: neither xDSL's IR nor the tables here
    are thread-safe."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise IgniterError(
            "this Python runs without its global lock (free-threaded), for which Igniter is not made: set "
            "PYTHON_GIL=1, or use a Python with the lock"
        )


def wants_sanitizer() -> bool:
    """True if kernels are sanitized by default; lets a whole test suite run with the sanitizer."""
    return os.environ.get("IGNITER_SANITIZE", "0") not in ("", "0")


def pretended_machine() -> str:
    """Returns the stand-in for this machine as target `native`: a file of figures (`.json`) or a target's name; "" for
    no stand-in. Lets a whole test suite run as on another machine (`igniter.backends.cpu.pretended`)."""
    return os.environ.get("IGNITER_NATIVE", "")
