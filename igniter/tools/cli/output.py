"""What the commands share: the console, JSON, errors in one paragraph, sizes of dims on the command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from igniter.errors import IgniterError

if TYPE_CHECKING:
    from rich.console import Console


def console(*, stderr: bool = False) -> Console:
    """A console on standard output, or for progress and errors on standard error."""
    from rich.console import Console

    # A table cut to 80 columns is of no use in a file.
    width = None if (sys.stderr if stderr else sys.stdout).isatty() else 160
    return Console(stderr=stderr, highlight=False, width=width)


def print_json(value: object) -> None:
    """`value` on standard output, as JSON and nothing else."""
    json.dump(value, sys.stdout, indent=2, default=str)
    sys.stdout.write("\n")


@contextmanager
def reported(debug: bool) -> Generator[None]:
    """Turns what a user can act on into one paragraph and exit status 1; `debug` adds the traceback."""
    import typer

    try:
        yield
    except (IgniterError, OSError) as error:
        if debug:
            console(stderr=True).print_exception()
        print(f"igniter: error: {_paragraph(error)}", file=sys.stderr)
        raise typer.Exit(1) from None
    except (typer.Exit, typer.Abort, KeyboardInterrupt):
        raise
    except Exception as error:
        if debug:
            console(stderr=True).print_exception()
        message = f"{type(error).__name__}: {error}"
        print(f"igniter: internal error: {message} (--debug shows where; please report it)", file=sys.stderr)
        raise typer.Exit(2) from None


def _paragraph(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename}: {error.strerror}"
    return str(error).strip()


def parse_shapes(texts: Sequence[str]) -> list[dict[str, int]] | None:
    """`["batch=1,seq=8", "batch=3,seq=32"]` to dicts; `None` for none."""
    cases: list[dict[str, int]] = []
    for text in texts:
        case: dict[str, int] = {}
        for part in text.split(","):
            name, equals, value = part.partition("=")
            if not equals or not value.strip().isdigit():
                raise IgniterError(f"'{text}' is not a choice of sizes: write symbol=number,... as in batch=1,seq=128")
            case[name.strip()] = int(value)
        cases.append(case)
    return cases or None


@contextmanager
def progress(title: str, quiet: bool) -> Generator[Callable[[str], None]]:
    """A spinner that says which step runs, on standard error; nothing when quiet or not on a terminal."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    shown = console(stderr=True)
    with shown.status(title) as status:
        yield lambda step: status.update(f"{title}: {step}")


@contextmanager
def progress_bar(title: str, total: int, quiet: bool) -> Generator[Callable[[int], None]]:
    """A bar for work in `total` steps, on standard error."""
    if quiet or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.progress import Progress

    with Progress(console=console(stderr=True), transient=True) as bar:
        task = bar.add_task(title, total=total)
        yield lambda done: bar.update(task, completed=done)


def verification_table(verification: Any) -> Any:
    """The largest error of every output at every shape, as a table."""
    from rich.table import Table

    table = Table("shapes", "output", "type", "shape", "largest error", "relative to", "")
    for case in verification.cases:
        shapes = ", ".join(f"{k}={v}" for k, v in case.shapes.items()) or "as in the model"
        for output in case.outputs:
            verdict = "[green]ok" if output.ok else f"[red]{output.reason}"
            dims = "x".join(map(str, output.shape)) or "scalar"
            error = f"{output.max_error:.2e}"
            table.add_row(shapes, output.name, output.dtype, dims, error, f"{output.magnitude:.4g}", verdict)
            shapes = ""
        if not case.outputs:
            table.add_row(shapes, "", "", "", "", "", f"[yellow]{case.status}: {case.reason}")
    return table
