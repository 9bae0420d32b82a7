"""What the environment asks for, besides where the cache and the linker are."""

from __future__ import annotations

import os
import sys

from igniter.errors import IgniterError


def require_lock() -> None:
    """`IgniterError` in a free-threaded Python that runs without its global lock: neither xDSL's IR nor the tables here
    are made for threads that change them at once."""
    if not getattr(sys, "_is_gil_enabled", lambda: True)():
        raise IgniterError(
            "this Python runs without its global lock (free-threaded), for which Igniter is not made: set "
            "PYTHON_GIL=1, or use a Python with the lock"
        )


def wants_sanitizer() -> bool:
    """Whether kernels are sanitized unless an option says otherwise: how a whole test suite is run with them."""
    return os.environ.get("IGNITER_SANITIZE", "0") not in ("", "0")


def pretended_machine() -> str:
    """The machine that the target `native` stands for, a file of figures (`.json`) or a target's name; "" for the
    machine that runs: how a whole test suite is run as if on another one (`igniter.backends.cpu.pretended`)."""
    return os.environ.get("IGNITER_NATIVE", "")
