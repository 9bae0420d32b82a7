"""The arguments and options of `igniter verify`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import DEFAULT_INPUTS, InputRequest, Json, Reference, Threads
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class VerifyRequest(Request):
    """Compare a compiled model with ONNX Runtime on the original.

    Several shapes are compared.
    """

    artifact: Annotated[str, Argument("The folder that `igniter compile` made.")]
    reference: Reference = ""
    given: InputRequest = DEFAULT_INPUTS
    every_value: Annotated[bool, Option("Compare each region on the inputs that its nodes get.", "--every-value")] = (
        False
    )
    threads: Threads = 0
    json: Json = False
