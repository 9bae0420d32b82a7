"""The arguments and options of `igniter view`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import KernelSizes, Target
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class ViewRequest(Request):
    """Draw a model's regions, the loops of its kernels, and buffers.

    Regions are drawn over the graph, buffers over time.
    """

    model: Annotated[str, Argument("An ONNX model, or IR (.mlir) with a graph or scheduled kernels.")]
    output: Annotated[str, Option("The file to write: .html, or .dot for Graphviz.", "-o", "--output")] = ""
    kernel: Annotated[str, Option("Show this kernel alone.")] = ""
    sizes: KernelSizes = ""
    target: Target = "native"
