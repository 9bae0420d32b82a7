"""The arguments and options of `igniter edit`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import Json, KeepWeights, Seed
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class EditRequest(Request):
    """Change names, dims, types, nodes, weights, outputs or the opset.

    Edits are made in the order of the options below, so all but --rename use the model's own names; each may be
    repeated.
    """

    model: Annotated[str, Argument("The ONNX model.")]
    output: Annotated[str, Option("The model to write.", "-o", "--output")] = ""
    opset: Annotated[int, Option("Write the model in this version of ai.onnx.", show_default=False)] = 0
    weights: Annotated[
        tuple[str, ...], Option("Take all weights in a .npz file, or a folder of .npy.", "--weights", metavar="FILE")
    ] = ()
    weight: Annotated[tuple[str, ...], Option("Take a weight from a .npy file.", "--weight", metavar="NAME=FILE")] = ()
    drop: Annotated[
        tuple[str, ...], Option("Take a node away, an input or VALUE in its place.", "--drop", metavar="NODE[=VALUE]")
    ] = ()
    replace: Annotated[
        tuple[str, ...],
        Option("Another node in the place of one: 'act => y = Relu (x)'.", "--replace", metavar="NODE=>TEXT"),
    ] = ()
    insert: Annotated[
        tuple[str, ...],
        Option(
            "A node behind a value, for all or some readers: 'h = Relu (h) @ add_1'.",
            "--insert",
            metavar="TEXT[@NODES]",
        ),
    ] = ()
    keep_last: Annotated[
        tuple[str, ...], Option("Keep the last row of an output: logits:1.", "--keep-last", metavar="OUTPUT:AXIS")
    ] = ()
    expose: Annotated[tuple[str, ...], Option("Make a value an output too.", "--expose", metavar="VALUE")] = ()
    expose_matching: Annotated[str, Option("So for values in whose name this is found.", metavar="REGEX")] = ""
    expose_all: Annotated[bool, Option("So for every value of the main graph.", "--expose-all")] = False
    remove_output: Annotated[
        tuple[str, ...], Option("Take an output away, and what only it needs.", "--remove-output", metavar="NAME")
    ] = ()
    remove_input: Annotated[
        tuple[str, ...], Option("Take an input away that nothing reads.", "--remove-input", metavar="NAME")
    ] = ()
    type: Annotated[
        tuple[str, ...], Option("Give an input or output another type: ids=int32.", "--type", metavar="NAME=TYPE")
    ] = ()
    free_dim: Annotated[
        tuple[str, ...], Option("Make a number a symbol: x:0=batch.", "--free-dim", metavar="INPUT:AXIS=NAME")
    ] = ()
    fix_dim: Annotated[tuple[str, ...], Option("Fix a dim: batch=1, x:0=1.", "--fix-dim", metavar="DIM=SIZE")] = ()
    bind_dim: Annotated[
        tuple[str, ...], Option("Make a dim equal to another: total=past+seq.", "--bind-dim", metavar="DIM=DIM")
    ] = ()
    rename_dim: Annotated[tuple[str, ...], Option("Give a dim another name.", "--rename-dim", metavar="OLD=NEW")] = ()
    rename_node: Annotated[
        tuple[str, ...], Option("Give a node another name.", "--rename-node", metavar="OLD=NEW")
    ] = ()
    rename: Annotated[
        tuple[str, ...], Option("Give an input, output, weight or value another name.", "--rename", metavar="OLD=NEW")
    ] = ()
    save_weights: Annotated[
        str,
        Option(
            "Write the model's weights, before it is edited: a .npz file, or a folder for .npy files.", metavar="PATH"
        ),
    ] = ""
    only: Annotated[
        tuple[str, ...], Option("With --save-weights, this weight alone; may be repeated.", "--only", metavar="NAME")
    ] = ()
    keep_weights: KeepWeights = True
    verify: Annotated[bool, Option("Check the result, and run it beside the original.")] = True
    seed: Seed = 0
    json: Json = False
