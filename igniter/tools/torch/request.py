"""The arguments and options of `igniter torch`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import Csv, Json
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class TorchRequest(Request):
    """Compile a PyTorch module and compare it with eager.

    The parts left to eager are listed, with the reasons.
    """

    module: Annotated[
        str, Argument("package.module:function or FILE.py:function, which returns a module and its arguments.")
    ]
    every_module: Annotated[bool, Option("Compile and compare each submodule by itself.", "--verify-every-module")] = (
        False
    )
    only: Annotated[str, Option("Submodules whose names fit this pattern.")] = "*"
    depth: Annotated[int, Option("Submodules at most so many names deep; 0: all.", min=0)] = 0
    record: Annotated[str, Option("Write what each submodule is given and gives to this folder.")] = ""
    rtol: Annotated[float, Option("The difference that is allowed, as a part of the largest value.", min=0)] = 1e-4
    csv: Csv = ""
    json: Json = False
