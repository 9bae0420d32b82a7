"""The arguments and options of `igniter doctor`."""

from __future__ import annotations

from dataclasses import dataclass

from igniter.toolbox.options import Json
from igniter.toolbox.request import Request


@dataclass(frozen=True)
class DoctorRequest(Request):
    """Check the installation, and compile a small model.

    The checks cover the packages, the CPU, the linker, the cache and ONNX Runtime. The exit status is 1 if a required
    part is broken; each line names the remedy.
    """

    json: Json = False
