"""Errors at the command line: one paragraph, as JSON on request, and an exit status."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager

import typer

from igniter.crashes import crash_text
from igniter.environment import require_lock
from igniter.errors import INTERNAL, IgniterError, code_of, how_to_repeat, reproducer_of, status_of
from igniter.toolbox.output import console, print_json, printable
from igniter.tools.log_lines import shown_warnings


@contextmanager
def reported(debug: bool, as_json: bool = False) -> Generator[None]:
    """Turns an error within the user's control into one paragraph and exit status 1; `debug` adds the traceback.

    With `as_json`, standard output gets the error too: `{"error": {"kind": ..., "message": ...}}`.
    """
    try:
        require_lock()
        with shown_warnings("igniter"):
            yield
    except (typer.Exit, typer.Abort, KeyboardInterrupt):
        raise
    except Exception as error:  # any error is reported, with a status
        if debug:
            console(stderr=True).print_exception()
        expected = isinstance(error, (IgniterError, OSError))
        message = _paragraph(error) if expected else printable(crash_text(error))
        status = print_error(
            message, expected=expected, as_json=as_json, code=code_of(error), reproducer=reproducer_of(error)
        )
        raise typer.Exit(status_of(error) if expected else status) from None


def print_error(message: str, *, expected: bool, as_json: bool, code: str = INTERNAL, reproducer: str = "") -> int:
    """Prints an error, and returns the exit status; `expected` marks errors within the user's control, `code` is its
    code and `reproducer` the file that repeats it."""
    kind = "error" if expected else "internal error"
    if as_json:
        named = {"reproducer": reproducer} if reproducer else {}
        print_json({"error": {"kind": kind, "code": code, "message": message, **named}})
    told = message if expected else f"{message} (--debug shows where; please report it)"
    print(f"igniter: {kind}: {told}", file=sys.stderr)
    if reproducer:
        print(f"igniter: {how_to_repeat(reproducer)}", file=sys.stderr)
    return 1 if expected else 2


def _paragraph(error: Exception) -> str:
    """Returns the text of an error; names of a model may contain any character."""
    if isinstance(error, OSError) and error.filename is not None:
        text = f"{error.filename}: {error.strerror}"
    else:
        text = str(error)
    return printable(text)
