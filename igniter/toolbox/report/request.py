"""The arguments and options of `igniter report`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import DEFAULT_INPUTS, InputRequest, Json, Reference, Target
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class ReportRequest(Request):
    """Write a page on a model: graph, kernels, time, memory, errors.

    The page lists the nodes left to ONNX Runtime too.
    """

    model: Annotated[str, Argument("An ONNX model, or the folder that `igniter compile` made.")]
    output: Annotated[str, Option("The page, by default MODEL.html.", "-o", "--output")] = ""
    reference: Reference = ""
    given: InputRequest = DEFAULT_INPUTS
    threads: Annotated[int, Option("ONNX Runtime's threads within an op.", min=1)] = 1
    target: Target = "native"
    verify: Annotated[bool, Option("Compare the model with ONNX Runtime on the original.")] = True
    measure: Annotated[bool, Option("Measure what this machine can do at the most, some 20 seconds.", "--measure")] = (
        False
    )
    json: Json = False
