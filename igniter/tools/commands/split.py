"""The commands `split`, to cut a model into several, and `run-stages` and `serve`, to run them."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from igniter.tools.cli.output import reported
from igniter.tools.commands.options import Debug, Inputs, Json, Seed, Shapes


def add_to(app: typer.Typer) -> None:
    """Adds the commands to the tool."""
    app.command()(split)
    app.command("run-stages")(run_stages)
    app.command()(serve)


class Balance(StrEnum):
    """`igniter.toolbox.split.cuts.BALANCES`, for the command line."""

    flops = "flops"
    bytes = "bytes"
    time = "time"


def split(
    model: Annotated[str, typer.Argument(help="The ONNX model.")],
    output: Annotated[str, typer.Option("-o", "--output", help="The folder to write.", show_default=False)] = "",
    stages: Annotated[
        int, typer.Option(min=0, help="Stages of a pipeline, which run in turn.", show_default=False)
    ] = 0,
    balance: Annotated[Balance, typer.Option(help="What stages are to have the same of.")] = Balance.flops,
    slack: Annotated[
        float,
        typer.Option(min=0, help="How much dearer the dearest stage may be for fewer bytes to the next, 0.05: 5 %."),
    ] = 0.0,
    tensor: Annotated[
        int, typer.Option(min=0, help="Instead: ranks that share each product with a weight.", show_default=False)
    ] = 0,
    alone: Annotated[
        bool, typer.Option(help="With --tensor, share products too that none by columns leads to.")
    ] = True,
    sizes: Annotated[
        str,
        typer.Option(help="Sizes of symbols that costs are counted for, batch=1,seq=128; else 64.", show_default=False),
    ] = "",
    verify: Annotated[bool, typer.Option(help="Run the parts beside the original.")] = True,
    seed: Seed = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Cut a model into stages of even cost for a pipeline, or share its products among ranks; a manifest lists the
    values between them."""
    from igniter.tools.cli.split import SplitRequest, run

    with reported(debug, json):
        asked = SplitRequest(model, output, stages, balance.value, slack, tensor, alone, sizes, verify, seed)
        if not run(asked, json):
            raise typer.Exit(1)


def run_stages(
    folder: Annotated[str, typer.Argument(help="A folder that `igniter split` or `igniter extract --part all` wrote.")],
    inputs: Inputs = "",
    shape: Shapes = None,
    items: Annotated[int, typer.Option(min=1, help="How many inputs go through, made anew for each.")] = 4,
    processes: Annotated[
        bool, typer.Option("--processes/--here", help="A process for each stage, or this one.")
    ] = True,
    reference: Annotated[str, typer.Option(help="Compare with this model, the whole one.", show_default=False)] = "",
    output: Annotated[
        str,
        typer.Option(
            "-o", "--output", help="Write the outputs of the last item to this .npz file.", show_default=False
        ),
    ] = "",
    seed: Seed = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Run the stages of a folder, each in a process of its own, and compare with the whole model."""
    from igniter.tools.cli.run_stages import RunRequest, run

    with reported(debug, json):
        asked = RunRequest(folder, inputs, tuple(shape or ()), items, processes, reference, output, seed)
        if not run(asked, json):
            raise typer.Exit(1)


def serve(
    folder: Annotated[str, typer.Argument(help="A folder that `igniter split` wrote.")],
    ray: Annotated[
        str,
        typer.Option(
            "--ray", help="The Ray cluster: an address, auto for the one of this machine, local for a new one."
        ),
    ] = "auto",
    inputs: Inputs = "",
    shape: Shapes = None,
    items: Annotated[int, typer.Option(min=1, help="How many inputs go through, made anew for each.")] = 4,
    cpus: Annotated[float, typer.Option(min=0, help="CPUs that the cluster reserves for each stage.")] = 1.0,
    reference: Annotated[str, typer.Option(help="Compare with this model, the whole one.", show_default=False)] = "",
    name: Annotated[
        str, typer.Option(help="Leave the stages running on the cluster under this name.", show_default=False)
    ] = "",
    seed: Seed = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Put the stages of a folder on the machines of a Ray cluster, and run them there (extra `ray`)."""
    from igniter.tools.cli.run_stages import ServeRequest
    from igniter.tools.cli.run_stages import serve as run

    with reported(debug, json):
        asked = ServeRequest(folder, ray, inputs, tuple(shape or ()), items, cpus, reference, name, seed)
        if not run(asked, json):
            raise typer.Exit(1)
