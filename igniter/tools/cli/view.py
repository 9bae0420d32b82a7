"""`igniter view`: regions over the graph, loop trees and buffers over time, as a file."""

from __future__ import annotations

from pathlib import Path

from igniter.errors import IgniterError
from igniter.tools.cli.output import console, parse_sizes, progress

SUFFIXES = (".dot", ".html")


def run(path: str, output: str, kernel: str, sizes: str, target: str) -> None:
    """Draws and writes."""
    from igniter.runtime.files import write_whole
    from igniter.toolbox.view.views import Views

    output = output or f"{Path(path).stem}.html"
    suffix = Path(output).suffix
    if suffix not in SUFFIXES:
        raise IgniterError(f"{output} is neither {' nor '.join(SUFFIXES)}: the suffix says what is written")
    if suffix == ".dot" and (kernel or sizes):
        raise IgniterError("--kernel and --sizes are of kernels, which .html shows; .dot is the graph alone")
    given = parse_sizes(sizes)
    with progress("compiling", False):
        views = Views.of(path, target)
        text = views.dot() if suffix == ".dot" else views.html(given, kernel)
    write_whole(output, text)
    console().print(output, highlight=False)
