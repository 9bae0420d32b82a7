"""The arguments and options of `igniter profile`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from igniter.toolbox.options import Csv, Json
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class ProfileRequest(Request):
    """Count a model's computation, memory and traffic.

    The amounts are MACs, FLOPs, parameters and bytes. The table has the largest nodes; --all lists all.
    """

    model: Annotated[str, Argument("An ONNX model, IR (.mlir), or the folder that `igniter compile` made of one.")]
    by: Annotated[Literal["node", "type", "module", "total"], Option("What a row is of.", "--by")] = "node"
    depth: Annotated[int, Option("Levels of modules that --by module shows; 0: all.", min=0)] = 0
    every: Annotated[bool, Option("List every node, not the largest alone.", "--all")] = False
    sizes: Annotated[str, Option("Sizes of symbols, batch=1,seq=128; without them amounts are expressions.")] = ""
    sparsity: Annotated[
        bool, Option("Read the weights, and say how many are zero and in which blocks.", "--sparsity")
    ] = False
    device: Annotated[
        str, Option("Estimate the time on a device: native, a name of docs/how-to/profile.md, or a JSON file.")
    ] = ""
    context: Annotated[str, Option("Context lengths of a decoder, 128,1024, with --device.")] = ""
    csv: Csv = ""
    json: Json = False
