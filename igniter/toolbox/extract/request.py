"""The arguments and options of `igniter extract`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from igniter.toolbox.options import Json, KeepWeights, Seed, Shapes
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class ExtractRequest(Request):
    """Write the part of a model between some values and others.

    --part chooses the part before or after them instead.
    """

    model: Annotated[str, Argument("The ONNX model.")]
    start: Annotated[str, Option("Values to begin with; the inputs by default.", "--from", metavar="A,B")] = ""
    end: Annotated[str, Option("Values to end with; the outputs by default.", "--to", metavar="C,D")] = ""
    output: Annotated[str, Option("The model to write, or the folder for --part all.", "-o", "--output")] = ""
    part: Annotated[
        Literal["before", "inside", "after", "all"], Option("What to write; all of them are models that run in turn.")
    ] = "inside"
    keep_weights: KeepWeights = True
    verify: Annotated[bool, Option("Run the parts in turn beside the original.")] = True
    shape: Shapes = ()
    seed: Seed = 0
    json: Json = False
