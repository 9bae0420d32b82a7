"""What the environment asks for, besides where the cache and the linker are."""

from __future__ import annotations

import os


def wants_sanitizer() -> bool:
    """Whether kernels are sanitized unless an option says otherwise: how a whole test suite is run with them."""
    return os.environ.get("IGNITER_SANITIZE", "0") not in ("", "0")


def pretended_machine() -> str:
    """The machine that the target `native` stands for, a file of figures (`.json`) or a target's name; "" for the
    machine that runs: how a whole test suite is run as if on another one (`igniter.backends.cpu.pretended`)."""
    return os.environ.get("IGNITER_NATIVE", "")
