"""The arguments and options of `igniter explain`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import DEFAULT_INPUTS, InputRequest, Json, Reference, Rounds, Threads
from igniter.toolbox.request import Argument, Option, Request, Some


@dataclass(frozen=True)
class ExplainRequest(Request):
    """Explain the difference in time between two compilations.

    Prints the regions, schedules and costs that differ, and the share of the difference that each part of the model
    explains. A and B are compiled folders of one model, or two variants of an experiment.
    """

    a: Annotated[str, Argument("A folder that `igniter compile` made, or a variant.")]
    b: Annotated[str, Argument("The other one.")]
    experiment: Annotated[str, Option("The folder of the experiment that A and B are variants of.")] = ""
    case: Annotated[str, Option("The comparison of the experiment, if it has several.")] = ""
    reference: Reference = ""
    given: Annotated[InputRequest, Some("shapes", "inputs", "seed")] = DEFAULT_INPUTS
    threads: Threads = 1
    rounds: Rounds = 9
    count: Annotated[int, Option("Parts to print; JSON has all.", min=1)] = 12
    json: Json = False
