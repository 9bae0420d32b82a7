"""The arguments and options of `igniter inspect`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import Json
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class InspectRequest(Request):
    """Show the contents of a model, a compiled model or a library."""

    path: Annotated[str, Argument("A compiled model's folder, a library, or an ONNX model.")]
    everything: Annotated[bool, Option("Print all that is known, and not a summary.", "--all")] = False
    json: Json = False
