"""The arguments and options of `igniter kernel`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import Json, KernelSizes, Machine, Seed, Target
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class KernelRequest(Request):
    """Verify one kernel, time its schedules, and analyse its code."""

    model: Annotated[str, Argument("An ONNX model, or IR (.mlir).")]
    name: Annotated[str, Option("The kernel's name, where there are several.", "--kernel")] = ""
    schedule: Annotated[
        tuple[str, ...], Option("IR with the same kernel, scheduled another way; may be repeated.", "--schedule")
    ] = ()
    sizes: KernelSizes = ""
    target: Target = "native"
    machine: Machine = ""
    threads: Annotated[int, Option("Threads of the kernel.", min=1)] = 1
    rounds: Annotated[int, Option("How often each schedule gets its turn.", min=1)] = 9
    seed: Seed = 0
    output: Annotated[str, Option("Write the kernel with its schedule here.", "-o", "--output")] = ""
    asm: Annotated[bool, Option("Print the inner loop's assembly.", "--asm")] = False
    json: Json = False
