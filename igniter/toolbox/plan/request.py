"""The arguments and options of `igniter plan`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from igniter.toolbox.options import Json, Target
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class PlanRequest(Request):
    """Plan a model's memory: lifetimes, places and the peak."""

    model: Annotated[str, Argument("An ONNX model, or the folder that `igniter compile` made.")]
    sizes: Annotated[str, Option("Sizes of symbolic dims, batch=1,seq=128.")] = ""
    order: Annotated[
        Literal["ort", "ort-priority", "model"],
        Option("ONNX Runtime's order, the one of its execution_order=1, or the model's."),
    ] = "ort"
    compiled: Annotated[bool, Option("The memory of the model as Igniter compiles it.", "--compiled")] = False
    target: Target = "native"
    inputs: Annotated[bool, Option("Count the inputs of the model too.", "--count-inputs")] = False
    fold: Annotated[bool, Option("Take what only weights lead to for weights, as ONNX Runtime does when it loads.")] = (
        True
    )
    views: Annotated[bool, Option("Give a view the buffer of what it is a view of.")] = True
    in_place: Annotated[bool, Option("Let elementwise nodes write where they read.")] = True
    align: Annotated[int, Option("Bytes that buffers are multiples of.", min=1)] = 64
    every: Annotated[bool, Option("List every step and every activation, not the largest alone.", "--all")] = False
    chart: Annotated[str, Option("Draw buffers over steps into this file, .svg or .html.")] = ""
    csv: Annotated[str, Option("Write every activation to this file, one a row.", "--csv")] = ""
    json: Json = False
