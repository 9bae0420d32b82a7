"""The arguments and options of `igniter verify`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import DEFAULT_INPUTS, InputRequest, Json, Reference, Threads
from igniter.toolbox.request import Argument, Option, Request

PRINT = "print"
"""The value of `--digest` without a digest to compare with."""


@dataclass(frozen=True)
class VerifyRequest(Request):
    """Compare a compiled model with ONNX Runtime on the original.

    Several shapes are compared. With --digest, nothing is run: the bytes of the
    folder are compared with a digest, or their digest is printed.
    """

    artifact: Annotated[str, Argument("The folder that `igniter compile` made.")]
    reference: Reference = ""
    given: InputRequest = DEFAULT_INPUTS
    every_value: Annotated[bool, Option("Compare each region on the inputs that its nodes get.", "--every-value")] = (
        False
    )
    threads: Threads = 0
    digest: Annotated[
        str | None,
        Option(
            "Print the digest of the folder, sha256:HEX, or compare it with the one given.",
            "--digest",
            metavar="[=sha256:HEX]",
            bare=PRINT,
        ),
    ] = None
    json: Json = False
