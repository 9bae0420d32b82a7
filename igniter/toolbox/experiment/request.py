"""The arguments and options of `igniter experiment`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import Json, Shapes
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class ExperimentRequest(Request):
    """Compare variants beside each other, with intervals.

    The result is a folder: tables, plots, and an archive of everything.
    """

    spec: Annotated[str, Argument("A specification in TOML, or the name of a shipped one (--list).")] = ""
    output: Annotated[
        str, Option("The folder; SPEC.experiment by default. A run in it continues.", "-o", "--output")
    ] = ""
    list_specs: Annotated[bool, Option("List the shipped specifications.", "--list")] = False
    models: Annotated[
        tuple[str, ...], Option("A model in place of those of the specification; may be repeated.", "--model")
    ] = ()
    shapes: Shapes = ()
    rounds: Annotated[int, Option("Rounds of a launch; 0: as in the specification.", min=0)] = 0
    launches: Annotated[int, Option("Launches of the processes; 0: as in the specification.", min=0)] = 0
    replay: Annotated[str, Option("Compute the tables of an archive again from its raw times.", "--replay")] = ""
    rerun: Annotated[bool, Option("With --replay: build and time everything again, and compare.", "--rerun")] = False
    ray: Annotated[
        str | None,
        Option("Spread comparisons over this Ray cluster; auto: the one of this machine; local: a new one."),
    ] = None
    json: Json = False
