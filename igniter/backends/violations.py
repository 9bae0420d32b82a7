"""The cell for the findings of sanitized kernels, as LLVM IR, shared by the kernels and the library around them."""

from __future__ import annotations

VIOLATION = "igniter_violation"
"""The one cell of a sanitized library: null, or the text of an access out of bounds."""
DEFINITION = f"@{VIOLATION} = weak hidden global ptr null, align 8"
