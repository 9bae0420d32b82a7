"""The arguments and options of `igniter machine`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import Json, Machine, Target
from igniter.toolbox.request import Option, Request


@dataclass(frozen=True)
class MachineRequest(Request):
    """Show the machine model used by schedules.

    Each figure has its source.
    """

    target: Target = "native"
    machine: Machine = ""
    measure: Annotated[
        bool, Option("Measure this machine, some 20 seconds, and show that beside the model.", "--measure")
    ] = False
    output: Annotated[str, Option("Write the model here, for --machine of other commands.", "-o", "--output")] = ""
    list_targets: Annotated[
        bool, Option("Print the names of all targets, and of the optional features of each kind.", "--list-targets")
    ] = False
    json: Json = False
