"""`igniter plan`: the memory of a model."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from igniter.tools.cli.output import reported
from igniter.tools.commands.options import Debug, Json, Target


class Order(StrEnum):
    """`igniter.toolbox.plan.plan_order.ORDERS`, as a choice of the command line."""

    ort = "ort"
    ort_priority = "ort-priority"
    model = "model"


def plan(
    model: Annotated[str, typer.Argument(help="An ONNX model, or the folder that `igniter compile` made.")],
    sizes: Annotated[str, typer.Option(help="Sizes of symbolic dims, batch=1,seq=128.", show_default=False)] = "",
    order: Annotated[
        Order, typer.Option(help="ONNX Runtime's order, the one of its execution_order=1, or the model's.")
    ] = Order.ort,
    compiled: Annotated[
        bool, typer.Option("--compiled", help="The memory of the model as Igniter compiles it.")
    ] = False,
    target: Target = "native",
    inputs: Annotated[bool, typer.Option("--count-inputs", help="Count the inputs of the model too.")] = False,
    fold: Annotated[
        bool, typer.Option(help="Take what only weights lead to for weights, as ONNX Runtime does when it loads.")
    ] = True,
    views: Annotated[bool, typer.Option(help="Give a view the buffer of what it is a view of.")] = True,
    in_place: Annotated[bool, typer.Option(help="Let elementwise nodes write where they read.")] = True,
    align: Annotated[int, typer.Option(min=1, help="Bytes that buffers are multiples of.")] = 64,
    every: Annotated[
        bool, typer.Option("--all", help="List every step and every activation, not the largest alone.")
    ] = False,
    chart: Annotated[
        str, typer.Option(help="Draw buffers over steps into this file, .svg or .html.", show_default=False)
    ] = "",
    csv: Annotated[
        str, typer.Option("--csv", help="Write every activation to this file, one a row.", show_default=False)
    ] = "",
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Plan a model's memory: the lifetime and place of each activation, and the peak."""
    from igniter.tools.cli.plan import PlanRequest, run

    with reported(debug, json):
        asked = PlanRequest(
            model, sizes, order.value, compiled, target, inputs, fold, views, in_place, align, every, chart, csv, json
        )
        run(asked)


def add_to(app: typer.Typer) -> None:
    """Adds the command to the tool."""
    app.command()(plan)
