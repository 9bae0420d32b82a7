"""The commands `edit`, for changes of a model, and `extract`, for a part of one."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from igniter.tools.cli.output import reported
from igniter.tools.commands.options import Debug, Json, Seed, Shapes


def add_to(app: typer.Typer) -> None:
    """Adds the commands to the tool."""
    app.command()(edit)
    app.command()(extract)


def _many(flag: str, metavar: str, text: str) -> typer.models.OptionInfo:
    return typer.Option(flag, metavar=metavar, help=text, show_default=False)


Names = list[str] | None
Output = Annotated[str, typer.Option("-o", "--output", help="The model to write.", show_default=False)]
KeepWeights = Annotated[
    bool,
    typer.Option(
        "--keep-weights/--copy-weights",
        help="Refer to the files of external data that the model has, where they are in the folder of the output.",
    ),
]


def edit(
    model: Annotated[str, typer.Argument(help="The ONNX model.")],
    output: Output = "",
    opset: Annotated[int, typer.Option(help="Write the model in this version of ai.onnx.", show_default=False)] = 0,
    weights: Annotated[
        Names, _many("--weights", "FILE", "Take all weights in a .npz file, or a folder of .npy.")
    ] = None,
    weight: Annotated[Names, _many("--weight", "NAME=FILE", "Take a weight from a .npy file.")] = None,
    drop: Annotated[Names, _many("--drop", "NODE[=VALUE]", "Take a node away, an input or VALUE in its place.")] = None,
    replace: Annotated[
        Names, _many("--replace", "NODE=>TEXT", "Another node in the place of one: 'act => y = Relu (x)'.")
    ] = None,
    insert: Annotated[
        Names,
        _many("--insert", "TEXT[@NODES]", "A node behind a value, for all or some readers: 'h = Relu (h) @ add_1'."),
    ] = None,
    expose: Annotated[Names, _many("--expose", "VALUE", "Make a value an output too.")] = None,
    expose_matching: Annotated[
        str, typer.Option(metavar="REGEX", help="So for values in whose name this is found.", show_default=False)
    ] = "",
    expose_all: Annotated[bool, typer.Option("--expose-all", help="So for every value of the main graph.")] = False,
    remove_output: Annotated[
        Names, _many("--remove-output", "NAME", "Take an output away, and what only it needs.")
    ] = None,
    remove_input: Annotated[Names, _many("--remove-input", "NAME", "Take an input away that nothing reads.")] = None,
    type: Annotated[Names, _many("--type", "NAME=TYPE", "Give an input or output another type: ids=int32.")] = None,
    free_dim: Annotated[Names, _many("--free-dim", "INPUT:AXIS=NAME", "Make a number a symbol: x:0=batch.")] = None,
    fix_dim: Annotated[Names, _many("--fix-dim", "DIM=SIZE", "Fix a dim: batch=1, x:0=1.")] = None,
    bind_dim: Annotated[Names, _many("--bind-dim", "DIM=DIM", "Make a dim equal to another: total=past+seq.")] = None,
    rename_dim: Annotated[Names, _many("--rename-dim", "OLD=NEW", "Give a dim another name.")] = None,
    rename_node: Annotated[Names, _many("--rename-node", "OLD=NEW", "Give a node another name.")] = None,
    rename: Annotated[
        Names, _many("--rename", "OLD=NEW", "Give an input, output, weight or value another name.")
    ] = None,
    save_weights: Annotated[
        str,
        typer.Option(
            metavar="PATH",
            help="Write the model's weights, before it is edited: a .npz file, or a folder for .npy files.",
            show_default=False,
        ),
    ] = "",
    only: Annotated[Names, _many("--only", "NAME", "With --save-weights, this weight alone; may be repeated.")] = None,
    keep_weights: KeepWeights = True,
    verify: Annotated[bool, typer.Option(help="Check the result, and run it beside the original.")] = True,
    seed: Seed = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Change a model: names, dims, types, nodes, weights, outputs, opset. Edits are made in the order of the options
    below, so all but --rename use the model's own names; each may be repeated."""
    from igniter.tools.cli.edit import EditRequest, run

    with reported(debug, json):
        asked = EditRequest(
            model, output, opset, weight or [], weights or [], drop or [], replace or [], insert or [], expose or [],
            expose_matching, expose_all, remove_output or [], remove_input or [], type or [], free_dim or [],
            fix_dim or [], bind_dim or [], rename_dim or [], rename_node or [], rename or [], save_weights, only or [],
            keep_weights, verify, seed,
        )  # fmt: skip
        if not run(asked, json):
            raise typer.Exit(1)


class PartChoice(StrEnum):
    """`igniter.toolbox.extract.extract_part.PARTS`, and all of them, for the command line."""

    before = "before"
    inside = "inside"
    after = "after"
    all = "all"


def extract(
    model: Annotated[str, typer.Argument(help="The ONNX model.")],
    start: Annotated[
        str,
        typer.Option("--from", metavar="A,B", help="Values to begin with; the inputs by default.", show_default=False),
    ] = "",
    end: Annotated[
        str, typer.Option("--to", metavar="C,D", help="Values to end with; the outputs by default.", show_default=False)
    ] = "",
    output: Annotated[
        str,
        typer.Option("-o", "--output", help="The model to write, or the folder for --part all.", show_default=False),
    ] = "",
    part: Annotated[
        PartChoice, typer.Option(help="What to write; all of them are models that run in turn.")
    ] = PartChoice.inside,
    keep_weights: KeepWeights = True,
    verify: Annotated[bool, typer.Option(help="Run the parts in turn beside the original.")] = True,
    shape: Shapes = None,
    seed: Seed = 0,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Write the part of a model between some values and others as a model, or the part before or after it."""
    from igniter.tools.cli.extract import run

    with reported(debug, json):
        if not run(model, start, end, output, part.value, keep_weights, verify, shape or (), seed, json):
            raise typer.Exit(1)
