"""The arguments and options of `igniter fuse`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import DEFAULT_INPUTS, InputRequest, Json
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class FuseRequest(Request):
    """Replace the instances of a pattern by a function or an op.

    Near misses are explained.
    """

    model: Annotated[str, Argument("The ONNX model.")]
    pattern: Annotated[str, Option("The file of a pattern, or the name of one that comes with Igniter.", "--pattern")]
    output: Annotated[str, Option("The file to write.", "-o", "--output")]
    into: Annotated[
        str,
        Option(
            "The op to put in its place, com.microsoft.Gelu or OP<name = @parameter>(inputs) => (outputs); "
            "default: the one that the pattern names. Without it, a function of the model.",
            "--as",
        ),
    ] = ""
    verify: Annotated[bool, Option("Compare the result with the model in ONNX Runtime.")] = True
    given: InputRequest = DEFAULT_INPUTS
    json: Json = False
