"""The command `igniter shapes`."""

from __future__ import annotations

from typing import Annotated

import typer

from igniter.tools.cli.output import reported
from igniter.tools.commands.options import Debug, Json


def shapes(
    model: Annotated[str, typer.Argument(help="The ONNX model.")],
    sizes: Annotated[
        str, typer.Option(help="Sizes of the symbols, batch=1,seq=128: show integers too.", show_default=False)
    ] = "",
    value: Annotated[
        list[str] | None, typer.Option("--value", help="Show this value alone; * and ? are wild; may be repeated.")
    ] = None,
    weights: Annotated[bool, typer.Option("--weights", help="Show weights and constants too.")] = False,
    compute_graph: Annotated[
        str,
        typer.Option(
            "--compute-graph",
            help="Write the model without the nodes that compute shapes here; with --sizes all dims are fixed.",
            show_default=False,
        ),
    ] = "",
    verify: Annotated[
        bool, typer.Option(help="Compare the model without these nodes with the original in ONNX Runtime.")
    ] = True,
    csv: Annotated[str, typer.Option("--csv", help="Write the table to this file.", show_default=False)] = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Show the shape of every value of a model, in the symbols of its inputs."""
    from igniter.tools.cli.shapes import run

    with reported(debug, json):
        run(model, sizes, value or (), weights, compute_graph, verify, csv, json)


def add_to(app: typer.Typer) -> None:
    """Adds the command."""
    app.command()(shapes)
