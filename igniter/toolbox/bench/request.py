"""The arguments and options of `igniter bench`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import DEFAULT_INPUTS, Csv, InputRequest, Json, Reference, Rounds, Target, Threads
from igniter.toolbox.request import Argument, Option, Request, Some


@dataclass(frozen=True)
class BenchRequest(Request):
    """Time a model in ONNX Runtime, before and after compilation.

    The systems take turns, each in its own process.
    """

    model: Annotated[str, Argument("An ONNX model, or the folder that `igniter compile` made.")]
    reference: Reference = ""
    given: Annotated[InputRequest, Some("shapes", "inputs", "rtol", "atol", "seed")] = DEFAULT_INPUTS
    threads: Threads = 1
    rounds: Rounds = 7
    sweep: Annotated[
        tuple[str, ...], Option("Every choice of these sizes, 'batch=1,8 seq=64,128'; may be repeated, a dim each.")
    ] = ()
    csv: Csv = ""
    target: Target = "native"
    spinning: Annotated[bool, Option("Let ONNX Runtime's threads spin between ops.")] = False
    sessions: Annotated[
        int,
        Option(
            "Measure under load instead: this many callers at a time, each with its own session. Prints calls per "
            "second and percentiles; OpenVINO too, where it is installed.",
            min=0,
        ),
    ] = 0
    profile: Annotated[bool, Option("Time every kernel of the compiled model instead.", "--profile")] = False
    trace: Annotated[str, Option("Write the profile as a trace that Chrome and Perfetto show.")] = ""
    json: Json = False
