"""The arguments and options of `igniter diff`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import DEFAULT_INPUTS, InputRequest, Json
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class DiffRequest(Request):
    """Compare two models: nodes, weights, interface and results.

    The exit status is 0 if they are equal, 1 if they differ, 2 if the comparison fails.
    """

    # As in diff: 1 is for different models.
    failure = 2

    a: Annotated[str, Argument("A model, or the folder of a compiled one.")]
    b: Annotated[str, Argument("Another one.")]
    compare: Annotated[
        bool, Option("Run both in ONNX Runtime on the same inputs, and compare the outputs.", "--run")
    ] = False
    given: InputRequest = DEFAULT_INPUTS
    json: Json = False
