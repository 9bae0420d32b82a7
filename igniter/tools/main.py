"""The `igniter` command. `igniter.tools.verbs` lists its verbs; `igniter.tools.command` makes their command lines."""

from __future__ import annotations

import os
import sys
from functools import partial
from typing import Annotated

import typer

from igniter._version import __version__
from igniter.memory import collect_rarely
from igniter.tools.command import SETTINGS, Verbs
from igniter.tools.completion import REQUEST, answer_for, respond
from igniter.tools.watch import watched

app = typer.Typer(
    help="Compile ONNX models to native kernels that stock ONNX Runtime runs.",
    cls=Verbs,
    no_args_is_help=True,
    **SETTINGS,
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"igniter {__version__}")
        raise typer.Exit


@app.callback()
def top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Compile ONNX models to native kernels for stock ONNX Runtime."""


def complete() -> None:
    """Answers a shell's completion request for a command line of `igniter`."""
    respond(sys.argv[1:], partial(answer_for, typer.main.get_command(app)))


def main() -> None:
    """Runs the console script."""
    if REQUEST in os.environ:
        complete()
        return
    watched(sys.argv[1:])
    collect_rarely()
    app()


if __name__ == "__main__":
    main()
