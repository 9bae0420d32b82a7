"""`igniter compress` and `igniter quantize`: models of fewer bits."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from igniter.tools.cli.output import reported
from igniter.tools.commands.options import Debug, Inputs, Json, Seed, Shapes, Threads


class Weights(StrEnum):
    """`igniter.toolbox.compress.compress_weights.WEIGHTS`, as a choice of the command line."""

    f16 = "f16"
    bf16 = "bf16"
    int8 = "int8"
    int4 = "int4"


Output = Annotated[str, typer.Option("-o", "--output", help="The model to write.")]
Only = Annotated[
    list[str] | None,
    typer.Option("--only", help="Only what has this name or op (* and ? stand for any); may be repeated."),
]
Except = Annotated[
    list[str] | None, typer.Option("--except", help="What stays as it is, named likewise; may be repeated.")
]
Csv = Annotated[str, typer.Option("--csv", help="Write the table here as CSV.", show_default=False)]


def add_to(app: typer.Typer) -> None:
    """Adds the commands."""
    app.command()(compress)
    app.command()(quantize)


def compress(
    model: Annotated[str, typer.Argument(help="The ONNX model.")],
    output: Output,
    weights: Annotated[Weights, typer.Option(help="What weights are stored as.")],
    granularity: Annotated[
        str, typer.Option(help="What has a scale of its own: tensor, channel, or block:32 for blocks of 32.")
    ] = "channel",
    symmetric: Annotated[bool, typer.Option("--symmetric", help="No zero points.")] = False,
    only: Only = None,
    leave: Except = None,
    min_elements: Annotated[int, typer.Option(min=1, help="Smaller weights stay as they are.")] = 4096,
    standard: Annotated[bool, typer.Option("--standard", help="No ops of com.microsoft.")] = False,
    accuracy_level: Annotated[
        int,
        typer.Option(min=0, max=4, help="Of MatMulNBits: 4 lets the other factor be rounded to 8 bits."),
    ] = 0,
    compare: Annotated[bool, typer.Option(help="Run both models and compare the outputs.")] = True,
    time: Annotated[bool, typer.Option("--time", help="Time both models, and the new one compiled, in turns.")] = False,
    shape: Shapes = None,
    inputs: Inputs = "",
    seed: Seed = 0,
    threads: Threads = 1,
    rounds: Annotated[int, typer.Option(min=1, help="How often each system gets its turn.")] = 5,
    csv: Csv = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Store the weights of a model in fewer bits, in ops of ONNX Runtime, and report size, error and speed."""
    from igniter.tools.cli.compress import CompressRequest, run
    from igniter.tools.cli.output import InputRequest

    with reported(debug, json):
        run(
            CompressRequest(
                model,
                output,
                weights.value,
                granularity,
                symmetric,
                tuple(only or ()),
                tuple(leave or ()),
                min_elements,
                standard,
                accuracy_level,
                compare,
                time,
                InputRequest(tuple(shape or ()), inputs, seed=seed),
                threads,
                rounds,
                csv,
                json,
            )
        )


class Calibrate(StrEnum):
    """A method of `igniter.toolbox.quantize.calibration.histogram`, or the best of them."""

    min_max = "min-max"
    entropy = "entropy"
    percentile = "percentile"
    distribution = "distribution"
    best = "best"


def quantize(
    model: Annotated[str, typer.Argument(help="The ONNX model.")],
    output: Output,
    data: Annotated[
        str,
        typer.Option(help="Samples: a .npz file, a folder of them or of test_data_set_*, or module:function."),
    ],
    calibrate: Annotated[Calibrate, typer.Option(help="How ranges are found.")] = Calibrate.min_max,
    percentile: Annotated[float, typer.Option(help="Of --calibrate percentile: what a range holds.")] = 99.999,
    activations: Annotated[str, typer.Option(help="What activations are stored as: u8 or i8.")] = "u8",
    symmetric: Annotated[
        bool, typer.Option("--symmetric", help="The zero points of activations are the middle.")
    ] = False,
    granularity: Annotated[str, typer.Option(help="What of a weight has a scale: channel or tensor.")] = "channel",
    asymmetric_weights: Annotated[bool, typer.Option("--asymmetric-weights", help="Weights have zero points.")] = False,
    op: Annotated[list[str] | None, typer.Option("--op", help="The ops to quantise; may be repeated.")] = None,
    only: Only = None,
    leave: Except = None,
    max_error: Annotated[
        float | None,
        typer.Option(help="The error that an output may have: nodes are left in float until it is met."),
    ] = None,
    held: Annotated[
        str,
        typer.Option(help="Samples like --data that nothing is fitted to: the error is said, and met, on them too."),
    ] = "",
    correct: Annotated[bool, typer.Option(help="Have biases make up for the mean errors of channels.")] = True,
    equalize: Annotated[bool, typer.Option(help="Scale channels so that they spend codes evenly.")] = True,
    parameters: Annotated[
        str, typer.Option(help="A file for what calibration found, for the pass quantize-model.")
    ] = "",
    csv: Csv = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Quantise products and convolutions by the ranges of values over samples, and report the error of each."""
    from igniter.tools.cli.quantize import QuantizeRequest, run

    with reported(debug, json):
        choices = {
            "calibrate": calibrate.value,
            "percentile": percentile,
            "activations": activations,
            "symmetric": symmetric,
            "granularity": granularity,
            "asymmetric_weights": asymmetric_weights,
            "ops": tuple(op or ()),
            "only": tuple(only or ()),
            "leave": tuple(leave or ()),
            "max_error": max_error,
            "held": held or None,
            "correct": correct,
            "equalize": equalize,
        }
        run(QuantizeRequest(model, output, data, choices, csv, parameters, json))
