"""Import and export of ONNX models: the only place to import `onnx`, at the first use of a function here."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from igniter.frontend.diagnosis import why_invalid
    from igniter.frontend.models import export_model, fits_message, import_model, save_model

__all__ = ["export_model", "fits_message", "import_model", "save_model", "why_invalid"]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'igniter.frontend' has no attribute '{name}'")
    return getattr(import_module(f"igniter.frontend.{'diagnosis' if name == 'why_invalid' else 'models'}"), name)
