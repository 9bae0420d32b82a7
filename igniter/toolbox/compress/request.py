"""The arguments and options of `igniter compress`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from igniter.toolbox.options import DEFAULT_INPUTS, Except, InputRequest, Json, Only, Rounds, Threads
from igniter.toolbox.request import Argument, Option, Request, Some


@dataclass(frozen=True)
class CompressRequest(Request):
    """Store the weights of a model in fewer bits.

    The new model uses ops of ONNX Runtime; size, error and speed are reported.
    """

    model: Annotated[str, Argument("The ONNX model.")]
    output: Annotated[str, Option("The model to write.", "-o", "--output")]
    weights: Annotated[Literal["f16", "bf16", "int8", "int4"], Option("What weights are stored as.")]
    granularity: Annotated[
        str, Option("What has a scale of its own: tensor, channel, or block:32 for blocks of 32.")
    ] = "channel"
    symmetric: Annotated[bool, Option("No zero points.", "--symmetric")] = False
    only: Only = ()
    leave: Except = ()
    min_elements: Annotated[int, Option("Smaller weights stay as they are.", min=1)] = 4096
    standard: Annotated[bool, Option("No ops of com.microsoft.", "--standard")] = False
    accuracy_level: Annotated[
        int, Option("Of MatMulNBits: 4 lets the other factor be rounded to 8 bits.", min=0, max=4)
    ] = 0
    correct: Annotated[
        Literal["none", "gptq"],
        Option("Codes by samples, so that products keep their results: GPTQ, with --data. Rounding otherwise."),
    ] = "none"
    data: Annotated[
        str,
        Option("Samples: a .npz file, a folder of them, module:function, or a .txt file for a language model."),
    ] = ""
    samples: Annotated[int, Option("Windows of a .txt file, spread over it.", min=1)] = 32
    sample_tokens: Annotated[int, Option("The tokens of such a window.", min=1)] = 512
    compare: Annotated[bool, Option("Run both models and compare the outputs.")] = True
    time: Annotated[bool, Option("Time both models, and the new one compiled, in turns.", "--time")] = False
    given: Annotated[InputRequest, Some("shapes", "inputs", "seed")] = DEFAULT_INPUTS
    threads: Threads = 1
    rounds: Rounds = 5
    csv: Annotated[str, Option("Write the table here as CSV.", "--csv")] = ""
    json: Json = False
