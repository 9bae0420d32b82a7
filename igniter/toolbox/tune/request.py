"""The arguments and options of `igniter tune`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import Database, Json, KernelSizes, Seed
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class TuneRequest(Request):
    """Search for faster schedules of kernels by measuring.

    A database keeps them for `compile --tuned`.
    """

    model: Annotated[str, Argument("An ONNX model, or IR (.mlir).")]
    name: Annotated[str, Option("This kernel alone.", "--kernel")] = ""
    sizes: KernelSizes = ""
    seconds: Annotated[float, Option("Seconds for all kernels.", "--budget", min=1)] = 600.0
    trials: Annotated[int, Option("Candidates of a kernel; 0: no limit.", min=0)] = 0
    patience: Annotated[int, Option("Candidates of a kernel since the best one; 0: no limit.", min=0)] = 32
    limit: Annotated[float, Option("Seconds for one candidate.", min=1)] = 60.0
    db: Database = ""
    ray: Annotated[
        str | None, Option("Spread candidates over this Ray cluster; auto: the one of this machine; local: a new one.")
    ] = None
    target: Annotated[
        str, Option("The CPU or the GPU: native, x86-64-v3, znver4, cuda, cuda:sm_90, ...", completes="targets")
    ] = "native"
    threads: Annotated[int, Option("Threads of the kernels.", min=1)] = 1
    rounds: Annotated[int, Option("How often a candidate and the best get their turns.", min=1)] = 9
    estimate: Annotated[
        bool, Option("Order candidates for a GPU by their expected time; run and keep nothing.", "--estimate")
    ] = False
    learned: Annotated[
        bool,
        Option("Order candidates by a cost model learned from the database's trials; needs scikit-learn.", "--learned"),
    ] = False
    seed: Seed = 0
    json: Json = False
