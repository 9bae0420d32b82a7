"""The command `igniter diff`."""

from __future__ import annotations

from typing import Annotated

import typer

from igniter.errors import IgniterError
from igniter.tools.cli.output import reported
from igniter.tools.commands.options import Atol, Budget, Debug, Inputs, Json, Rtol, Seed, Shapes


def diff(
    a: Annotated[str, typer.Argument(help="A model, or the folder of a compiled one.")],
    b: Annotated[str, typer.Argument(help="Another one.")],
    compare: Annotated[
        bool, typer.Option("--run", help="Run both in ONNX Runtime on the same inputs, and compare the outputs.")
    ] = False,
    shape: Shapes = None,
    inputs: Inputs = "",
    rtol: Rtol = None,
    atol: Atol = 0.0,
    seed: Seed = 0,
    budget: Budget = 30.0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compare two models; the exit status is 0 if they are equal, 1 if they differ, 2 if the comparison fails."""
    from igniter.tools.cli.diff import run
    from igniter.tools.cli.output import InputRequest

    try:
        with reported(debug, json):
            asked = InputRequest(tuple(shape or ()), inputs, rtol, atol, seed, budget)
            if asked != InputRequest() and not compare:
                raise IgniterError("--shape, --inputs, --rtol, --atol, --seed and --budget are for --run: give it too")
            differs = run(a, b, compare, asked, json)
    except typer.Exit as error:
        # As in diff: 1 is for different models.
        raise typer.Exit(2 if error.exit_code else 0) from None
    raise typer.Exit(1 if differs else 0)


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(diff)
