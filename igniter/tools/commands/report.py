"""`igniter report`: a page on a compiled model."""

from __future__ import annotations

from typing import Annotated

import typer

from igniter.tools.cli.output import reported
from igniter.tools.commands.options import Atol, Budget, Debug, Inputs, Json, Reference, Rtol, Seed, Shapes, Target


def report(
    model: Annotated[str, typer.Argument(help="An ONNX model, or the folder that `igniter compile` made.")],
    output: Annotated[
        str, typer.Option("-o", "--output", help="The page, by default MODEL.html.", show_default=False)
    ] = "",
    reference: Reference = "",
    shape: Shapes = None,
    inputs: Inputs = "",
    rtol: Rtol = None,
    atol: Atol = 0.0,
    seed: Seed = 0,
    budget: Budget = 30.0,
    threads: Annotated[int, typer.Option(min=1, help="ONNX Runtime's threads within an op.")] = 1,
    target: Target = "native",
    verify: Annotated[bool, typer.Option(help="Compare the model with ONNX Runtime on the original.")] = True,
    measure: Annotated[
        bool, typer.Option("--measure", help="Measure what this machine can do at the most, some 20 seconds.")
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Write one page on a model: its graph with kernels, its time and memory, the nodes left, and errors."""
    from igniter.tools.cli.output import InputRequest
    from igniter.tools.cli.report import ReportRequest, run

    with reported(debug, json):
        asked = InputRequest(tuple(shape or ()), inputs, rtol, atol, seed, budget)
        run(ReportRequest(model, output, reference, asked, threads, target, verify, measure, json))


def add_to(app: typer.Typer) -> None:
    """Adds the command to the tool."""
    app.command()(report)
