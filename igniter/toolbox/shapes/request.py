"""The arguments and options of `igniter shapes`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import Csv, Json
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class ShapesRequest(Request):
    """Show the shape of every value of a model, in symbols.

    The inputs of the model define the symbols.
    """

    model: Annotated[str, Argument("The ONNX model.")]
    sizes: Annotated[str, Option("Sizes of the symbols, batch=1,seq=128: show integers too.")] = ""
    value: Annotated[
        tuple[str, ...], Option("Show this value alone; * and ? are wild; may be repeated.", "--value")
    ] = ()
    weights: Annotated[bool, Option("Show weights and constants too.", "--weights")] = False
    compute_graph: Annotated[
        str,
        Option(
            "Write the model without the nodes that compute shapes here; with --sizes all dims are fixed.",
            "--compute-graph",
        ),
    ] = ""
    verify: Annotated[bool, Option("Compare the model without these nodes with the original in ONNX Runtime.")] = True
    csv: Csv = ""
    json: Json = False
