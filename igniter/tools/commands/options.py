"""The options of several commands."""

from __future__ import annotations

from typing import Annotated

import typer

from igniter.tools.completion.values import targets

Json = Annotated[bool, typer.Option("--json", help="Print JSON and nothing else on standard output.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show a traceback with an error.")]
TARGETS = "The CPU, the GPUs, or both: native, x86-64-v3, znver4, aarch64+dotprod, cuda, native,cuda, ..."
CompileTarget = Annotated[str, typer.Option("--target", help=TARGETS, autocompletion=targets)]
Target = Annotated[
    str,
    typer.Option(help="The CPU: native, x86-64-v3, znver4, aarch64, aarch64+dotprod, ...", autocompletion=targets),
]
Machine = Annotated[
    str,
    typer.Option(
        help="Figures of the machine in the place of the target's own: a file that `igniter machine -o` wrote.",
        show_default=False,
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option("--shape", help="Sizes of dims, batch=1,seq=128, or an input's shape, x=1x3x8x8; may be repeated."),
]
Inputs = Annotated[
    str,
    typer.Option(
        "--inputs", help="Inputs to use: a .npz file, or a folder with input_0.pb and so on", show_default=False
    ),
]
Rtol = Annotated[float | None, typer.Option(help="The largest error allowed, relative to the largest value.")]
Atol = Annotated[float, typer.Option(help="An error that is allowed besides, in absolute terms.")]
Seed = Annotated[int, typer.Option(help="Of the random inputs.")]
Budget = Annotated[float, typer.Option(help="Seconds for finding sizes and comparing.")]
Threads = Annotated[int, typer.Option(min=0, help="ONNX Runtime's threads within an op; 0 leaves it to ONNX Runtime.")]
Database = Annotated[
    str, typer.Option("--db", help="The database of tuned schedules; beside the cache by default.", show_default=False)
]
Reference = Annotated[
    str, typer.Option(help="The original model, where the folder does not know it.", show_default=False)
]
