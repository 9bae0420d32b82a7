"""The arguments and options of `igniter quantize`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from igniter.toolbox.options import Except, Json, Only
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class QuantizeRequest(Request):
    """Compute products and convolutions on quantised tensors.

    The ranges of values over samples give the scales; the error of each node is reported.
    """

    model: Annotated[str, Argument("The ONNX model.")]
    output: Annotated[str, Option("The model to write.", "-o", "--output")]
    data: Annotated[str, Option("Samples: a .npz file, a folder of them or of test_data_set_*, or module:function.")]
    calibrate: Annotated[
        Literal["min-max", "entropy", "percentile", "distribution", "best"], Option("How ranges are found.")
    ] = "min-max"
    percentile: Annotated[float, Option("Of --calibrate percentile: what a range holds.")] = 99.999
    activations: Annotated[str, Option("What activations are stored as: u8 or i8.")] = "u8"
    symmetric: Annotated[bool, Option("The zero points of activations are the middle.", "--symmetric")] = False
    granularity: Annotated[str, Option("What of a weight has a scale: channel or tensor.")] = "channel"
    asymmetric_weights: Annotated[bool, Option("Weights have zero points.", "--asymmetric-weights")] = False
    op: Annotated[tuple[str, ...], Option("The ops to quantise; may be repeated.", "--op")] = ()
    only: Only = ()
    leave: Except = ()
    max_error: Annotated[
        float | None, Option("The error that an output may have: nodes are left in float until it is met.")
    ] = None
    held: Annotated[
        str, Option("Samples like --data that nothing is fitted to: the error is said, and met, on them too.")
    ] = ""
    correct: Annotated[bool, Option("Have biases make up for the mean errors of channels.")] = True
    equalize: Annotated[bool, Option("Scale channels so that they spend codes evenly.")] = True
    parameters: Annotated[str, Option("A file for what calibration found, for the pass quantize-model.")] = ""
    csv: Annotated[str, Option("Write the table here as CSV.", "--csv")] = ""
    json: Json = False
