"""The command `igniter fuse`."""

from __future__ import annotations

from typing import Annotated

import typer

from igniter.tools.cli.output import reported
from igniter.tools.commands.options import Atol, Budget, Debug, Inputs, Json, Rtol, Seed, Shapes


def fuse(
    model: Annotated[str, typer.Argument(help="The ONNX model.")],
    pattern: Annotated[
        str, typer.Option("--pattern", help="The file of a pattern, or the name of one that comes with Igniter.")
    ],
    output: Annotated[str, typer.Option("-o", "--output", help="The file to write.")],
    into: Annotated[
        str,
        typer.Option(
            "--as",
            help="The op to put in its place, com.microsoft.Gelu or OP<name = @parameter>(inputs) => (outputs); "
            "default: the one that the pattern names. Without it, a function of the model.",
            show_default=False,
        ),
    ] = "",
    verify: Annotated[bool, typer.Option(help="Compare the result with the model in ONNX Runtime.")] = True,
    shape: Shapes = None,
    inputs: Inputs = "",
    rtol: Rtol = None,
    atol: Atol = 0.0,
    seed: Seed = 0,
    budget: Budget = 30.0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Replace the instances of a pattern in a model by a function or an op, and explain near misses."""
    from igniter.tools.cli.fuse import run
    from igniter.tools.cli.output import InputRequest

    with reported(debug, json):
        asked = InputRequest(tuple(shape or ()), inputs, rtol, atol, seed, budget)
        run(model, pattern, output, into, verify, asked, json)


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(fuse)
