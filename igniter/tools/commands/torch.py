"""The command for modules of PyTorch."""

from __future__ import annotations

from typing import Annotated

import typer

from igniter.tools.cli.output import reported
from igniter.tools.commands.options import Debug, Json


def add_to(app: typer.Typer) -> None:
    """Adds the command to the tool."""
    app.command(name="torch")(compare_with_eager)


def compare_with_eager(
    module: Annotated[
        str,
        typer.Argument(help="package.module:function or FILE.py:function, which returns a module and its arguments."),
    ],
    every_module: Annotated[
        bool, typer.Option("--verify-every-module", help="Compile and compare each submodule by itself.")
    ] = False,
    only: Annotated[str, typer.Option(help="Submodules whose names fit this pattern.")] = "*",
    depth: Annotated[int, typer.Option(min=0, help="Submodules at most so many names deep; 0: all.")] = 0,
    record: Annotated[
        str, typer.Option(help="Write what each submodule is given and gives to this folder.", show_default=False)
    ] = "",
    rtol: Annotated[
        float, typer.Option(min=0, help="The difference that is allowed, as a part of the largest value.")
    ] = 1e-4,
    csv: Annotated[str, typer.Option("--csv", help="Write the table to this file.", show_default=False)] = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Compile a PyTorch module, compare it with eager, and list the parts left to eager, with the reasons."""
    from igniter.tools.cli.torch import TorchRequest, run

    with reported(debug, json):
        if not run(TorchRequest(module, every_module, only, depth, record, rtol, csv, json)):
            raise typer.Exit(1)
