"""Commands about Igniter itself on this machine: what a shell completes, and whether all of it works."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from igniter.tools.cli.output import reported
from igniter.tools.commands.options import Debug, Json


class Shell(StrEnum):
    """The shells that there are scripts for: `igniter.tools.completion.scripts.SCRIPTS`."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell that is to read it.")],
) -> None:
    """Print what a shell reads to complete command lines of igniter and igniter-opt."""
    from igniter.tools.completion.scripts import script

    with reported(False):
        print(script(shell.value))


def doctor(json: Json = False, debug: Debug = False) -> None:
    """Look at the packages, the CPU, the linker, the cache and ONNX Runtime, and compile a small model.

    Exit status 1 where something that is needed is broken; each line says what to do.
    """
    from igniter.tools.cli.doctor import run

    with reported(debug, json):
        if not run(json):
            raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    """Adds the commands to the tool."""
    app.command()(doctor)
    app.command()(completion)
