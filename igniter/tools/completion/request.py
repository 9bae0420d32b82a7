"""The arguments and options of `igniter completion`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from igniter.toolbox.request import Argument, Request


@dataclass(frozen=True)
class CompletionRequest(Request):
    """Print the completion script of a shell.

    It completes command lines of igniter and igniter-opt.
    """

    has_debug = False
    entry = "scripts:show"

    shell: Annotated[Literal["bash", "zsh", "fish"], Argument("The shell that is to read it.")]
