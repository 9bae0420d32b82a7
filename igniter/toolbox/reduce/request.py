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
        Literal["wrong", "crash", "refusal", "timeout"] | None,
        Option("How it has to fail: whatever the input does where this is left out."),
    ] = None
    command: Annotated[
        str, Option("Instead: a command that exits with 0 while the file {} is interesting.", "--check-command")
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

    def check_combination(self) -> None:
        """Raises `IgniterError` for incompatible options."""
        from igniter.errors import IgniterError
        from igniter.passes import parse_passes
        from igniter.rewrite_budget import what_counts
        from igniter.toolbox.reduce.outcome import FAILURES

        if self.check and self.check not in FAILURES:
            raise IgniterError(f"a check is one of {', '.join(FAILURES)}, not '{self.check}'")
        if self.command and (self.check or self.message or self.passes is not None or self.strict or self.target):
            raise IgniterError("--check-command is the whole check: what it runs is said in the command")
        if self.passes is None and (self.at_pass or self.bisect):
            raise IgniterError("--at-pass and --bisect are about the passes of a pipeline: name it with --passes")
        if self.passes is not None and self.strict:
            raise IgniterError("--strict is for whole compiles: leave out --passes")
        if not self.timeout > 0:
            raise IgniterError(f"--timeout is {self.timeout:g} s: it is more than 0")
        passes = parse_passes(self.passes or "")
        if self.bisect and not any(map(what_counts, passes)):
            raise IgniterError("--bisect counts rewrites, and no pass of the pipeline makes any that count")


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

    def run(self) -> None:
        from igniter.toolbox.reduce.show import run

        run(self)
