"""The command `igniter profile`."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from igniter.tools.cli.output import reported
from igniter.tools.commands.options import Debug, Json


class Table(StrEnum):
    """The subject of a table row."""

    node = "node"
    type = "type"
    module = "module"
    total = "total"


def add_to(app: typer.Typer) -> None:
    """Adds the command to the tool."""
    app.command()(profile)


def profile(
    model: Annotated[
        str, typer.Argument(help="An ONNX model, IR (.mlir), or the folder that `igniter compile` made of one.")
    ],
    by: Annotated[Table, typer.Option("--by", help="What a row is of.")] = Table.node,
    depth: Annotated[int, typer.Option(min=0, help="Levels of modules that --by module shows; 0: all.")] = 0,
    sizes: Annotated[
        str,
        typer.Option(
            help="Sizes of symbols, batch=1,seq=128; without them amounts are expressions.", show_default=False
        ),
    ] = "",
    sparsity: Annotated[
        bool, typer.Option("--sparsity", help="Read the weights, and say how many are zero and in which blocks.")
    ] = False,
    device: Annotated[
        str,
        typer.Option(
            help="Estimate the time on a device: native, a name of docs/how-to/profile.md, or a JSON file.",
            show_default=False,
        ),
    ] = "",
    context: Annotated[
        str,
        typer.Option(help="Context lengths of a decoder, 128,1024, with --device.", show_default=False),
    ] = "",
    csv: Annotated[str, typer.Option("--csv", help="Write the table to this file.", show_default=False)] = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Count a model's computation, memory and traffic: MACs, FLOPs, parameters, bytes."""
    from igniter.tools.cli.profile import ProfileRequest, run

    with reported(debug, json):
        run(ProfileRequest(model, by.value, depth, sizes, sparsity, device, context, csv, json))
