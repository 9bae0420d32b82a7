"""`igniter view`: regions over the graph, loop trees and buffers over time, as a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from igniter.errors import IgniterError
from igniter.runtime.files import write_whole
from igniter.toolbox.output import console, parse_sizes, progress
from igniter.toolbox.view.views import Views

if TYPE_CHECKING:
    from igniter.toolbox.view.request import ViewRequest

SUFFIXES = (".dot", ".html")


def run(asked: ViewRequest) -> None:
    """Draws and writes."""
    output = asked.output or f"{Path(asked.model).stem}.html"
    suffix = Path(output).suffix
    if suffix not in SUFFIXES:
        raise IgniterError(f"{output} is neither {' nor '.join(SUFFIXES)}: the suffix says what is written")
    if suffix == ".dot" and (asked.kernel or asked.sizes):
        raise IgniterError("--kernel and --sizes are of kernels, which .html shows; .dot is the graph alone")
    given = parse_sizes(asked.sizes)
    with progress("compiling", False):
        views = Views.of(asked.model, asked.target)
        text = views.dot() if suffix == ".dot" else views.html(given, asked.kernel)
    write_whole(output, text)
    console().print(output, highlight=False)
