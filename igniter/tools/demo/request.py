"""The arguments and options of `igniter demo`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import Json, Rounds, Threads
from igniter.toolbox.request import Option, Request


@dataclass(frozen=True)
class DemoRequest(Request):
    """Compile, verify and time a MobileBERT-shaped model.

    The model is generated; the times are beside ONNX Runtime's.
    """

    output: Annotated[str, Option("Keep the compiled model here.", "-o", "--output")] = ""
    layers: Annotated[int, Option("Layers of the model.", min=1)] = 24
    sequence: Annotated[int, Option("The sequence length that is timed.", min=1)] = 32
    threads: Threads = 1
    rounds: Rounds = 7
    json: Json = False
