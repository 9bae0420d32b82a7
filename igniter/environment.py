"""What the environment asks for, besides where the cache and the linker are."""

from __future__ import annotations

import os


def wants_sanitizer() -> bool:
    """Whether kernels are sanitized unless an option says otherwise: how a whole test suite is run with them."""
    return os.environ.get("IGNITER_SANITIZE", "0") not in ("", "0")
