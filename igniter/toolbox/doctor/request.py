"""The arguments and options of `igniter doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from igniter.toolbox.options import Json
from igniter.toolbox.request import Argument, Request


@dataclass(frozen=True)
class DoctorRequest(Request):
    """Check the installation, or why a session of a folder fails.

    Without FOLDER the checks cover the packages, the CPU, the linker, the cache
    and ONNX Runtime, and a small model is compiled. With FOLDER they cover its
    files, its library on this machine, and a session. The exit status is 1 if
    something required is broken; each line names the remedy.
    """

    folder: Annotated[str, Argument("A compiled model to check on this machine.")] = ""
    json: Json = False
