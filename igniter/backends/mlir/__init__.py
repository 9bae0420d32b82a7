"""Kernels as text for stock MLIR. The modules are imported at the first use."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from xdsl.dialects.builtin import ModuleOp

_EMITTERS = {"linalg": ("kernels", "emit_linalg"), "scf": ("scheduled", "emit_scf")}
FORMS = tuple(_EMITTERS)
"""The forms of text: `linalg` of structured kernels, `scf` of scheduled ones."""


def emit(module: ModuleOp, form: str) -> str:
    """Returns the kernels of a module in a form; raises `IgniterError` if it has none of that level."""
    place, name = _EMITTERS[form]
    return getattr(import_module(f"{__name__}.{place}"), name)(module)
