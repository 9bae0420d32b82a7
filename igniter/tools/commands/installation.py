"""Commands about the installation of Igniter: shell completion, and a check."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

import typer

from igniter.tools.cli.output import reported
from igniter.tools.commands.options import Debug, Json


class Shell(StrEnum):
    """The shells with a script: `igniter.tools.completion.scripts.SCRIPTS`."""

    bash = "bash"
    zsh = "zsh"
    fish = "fish"


def completion(
    shell: Annotated[Shell, typer.Argument(help="The shell that is to read it.")],
) -> None:
    """Print the script for a shell to complete command lines of igniter and igniter-opt."""
    from igniter.tools.completion.scripts import script

    with reported(False):
        print(script(shell.value))


def doctor(json: Json = False, debug: Debug = False) -> None:
    """Check the packages, the CPU, the linker, the cache and ONNX Runtime, and compile a small model.

    Exit status 1 if a required part is broken; each line names the remedy.
    """
    from igniter.tools.cli.doctor import run

    with reported(debug, json):
        if not run(json):
            raise typer.Exit(1)


def add_to(app: typer.Typer) -> None:
    """Adds the commands to the tool."""
    app.command()(doctor)
    app.command()(completion)
