"""The arguments and options of `igniter reduce`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from igniter.toolbox.options import Json, Seed
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class ReduceOptions:
    """The options of a reduction."""

    check: Annotated[
        Literal["wrong", "refuted", "crash", "refusal", "timeout"] | None,
        Option("How it has to fail: whatever the input does where this is left out."),
    ] = None
    command: Annotated[
        str, Option("Instead: a command that exits with 0 while the file {} is interesting.", "--check-command")
    ] = ""
    check_with: Annotated[
        str,
        Option("Instead: a pass of MLIR, 'mlir-opt --cse' say, that has a fault on a file of MLIR.", "--check-with"),
    ] = ""
    message: Annotated[str, Option("What the error has to contain.")] = ""
    passes: Annotated[
        str | None,
        Option("The pipeline that fails, rather than the whole compile.", "-p", "--passes", completes="pipeline"),
    ] = None
    at_pass: Annotated[bool, Option("Reduce the IR in front of the pass that fails.", "--at-pass")] = False
    bisect: Annotated[bool, Option("Name the first rewrite of a pass that makes the result fail.", "--bisect")] = False
    timeout: Annotated[float, Option("Seconds that a candidate may take.")] = 60.0
    target: Annotated[str, Option("The CPU that is compiled for, or that passes work for.", completes="targets")] = ""
    seed: Seed = 0
    strict: Annotated[bool, Option("A node without a kernel is a refusal.", "--strict")] = False


DEFAULTS = ReduceOptions()


@dataclass(frozen=True)
class ReduceRequest(Request):
    """Shrink a failing model, kernel or pipeline.

    The result still fails in the same way.
    """

    model: Annotated[str, Argument("An ONNX model, or IR (.mlir) of any level.")]
    options: ReduceOptions = DEFAULTS
    output: Annotated[str, Option("The file for the best found so far.", "-o", "--output")] = ""
    json: Json = False
