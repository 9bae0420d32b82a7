"""Where sanitized kernels leave what they found, as LLVM IR: what kernels and the library around them agree on."""

from __future__ import annotations

VIOLATION = "igniter_violation"
"""The one cell that a sanitized library writes: null, or the text of an access that did not fit."""
DEFINITION = f"@{VIOLATION} = weak hidden global ptr null, align 8"
