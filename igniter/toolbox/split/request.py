"""The arguments and options of `igniter split` and `igniter run-stages`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from igniter.toolbox.options import Inputs, Json, Seed, Shapes, WholeModel
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class SplitRequest(Request):
    """Cut a model into pipeline stages, or share products among ranks.

    The stages have even cost; a manifest lists the values between the parts.
    """

    model: Annotated[str, Argument("The ONNX model.")]
    output: Annotated[str, Option("The folder to write.", "-o", "--output")] = ""
    stages: Annotated[int, Option("Stages of a pipeline, which run in turn.", min=0, show_default=False)] = 0
    balance: Annotated[Literal["flops", "bytes", "time"], Option("What stages are to have the same of.")] = "flops"
    slack: Annotated[
        float, Option("How much dearer the dearest stage may be for fewer bytes to the next, 0.05: 5 %.", min=0)
    ] = 0.0
    tensor: Annotated[
        int, Option("Instead: ranks that share each product with a weight.", min=0, show_default=False)
    ] = 0
    alone: Annotated[bool, Option("With --tensor, share products too that none by columns leads to.")] = True
    sizes: Annotated[str, Option("Sizes of symbols that costs are counted for, batch=1,seq=128; else 64.")] = ""
    verify: Annotated[bool, Option("Run the parts beside the original.")] = True
    seed: Seed = 0
    json: Json = False


@dataclass(frozen=True)
class RunStagesRequest(Request):
    """Run the stages of a folder, each in a process of its own.

    With the whole model, its outputs are compared with the stages' outputs.
    """

    entry = "run_stages:run"

    folder: Annotated[str, Argument("A folder that `igniter split` or `igniter extract --part all` wrote.")]
    inputs: Inputs = ""
    shape: Shapes = ()
    items: Annotated[int, Option("How many inputs go through, made anew for each.", min=1)] = 4
    processes: Annotated[bool, Option("A process for each stage, or this one.", "--processes/--here")] = True
    reference: WholeModel = ""
    output: Annotated[str, Option("Write the outputs of the last item to this .npz file.", "-o", "--output")] = ""
    seed: Seed = 0
    json: Json = False
