"""The arguments and options of `igniter schedule`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

from igniter.errors import IgniterError
from igniter.toolbox.options import Database, Json, KernelSizes
from igniter.toolbox.request import Argument, Option, Request


@dataclass(frozen=True)
class ScheduleRequest(Request):
    """Cite schedules, or move them between machines.

    `cite` prints the name, the version and the hash of each schedule in a file; without a file, of every author.
    `export` writes the kernels of a model with the schedules that the database has for them, as IR. `import` checks
    such a file, times its schedules on this machine, and adds them to the database, for `igniter compile --tuned`.
    """

    action: Annotated[Literal["cite", "export", "import"], Argument("What to do.")]
    file: Annotated[str, Argument("A model or IR; for import, IR with schedules on every nest.")] = ""
    kernel: Annotated[str, Option("This kernel alone.", "--kernel")] = ""
    output: Annotated[str, Option("export: write the IR here.", "-o", "--output")] = ""
    author: Annotated[
        bool, Option("export: take the default author's schedules where the database has none.", "--author")
    ] = False
    cite_as: Annotated[str, Option("export: the name to cite the schedules by.", "--name")] = ""
    cite_version: Annotated[str, Option("export: the version of the schedules.", "--cite-version")] = ""
    source: Annotated[str, Option("export: a publication or an origin, in words.", "--source")] = ""
    target: Annotated[
        str, Option("The CPU or the GPU: native, x86-64-v3, znver4, cuda:sm_90, ...", completes="targets")
    ] = "native"
    sizes: KernelSizes = ""
    threads: Annotated[int, Option("import: threads of the timed kernels.", min=1)] = 1
    timed: Annotated[
        bool, Option("import: compare results with the interpreter's, and time beside the default.", "--time/--no-time")
    ] = True
    db: Database = ""
    json: Json = False

    def __post_init__(self) -> None:
        if self.action != "cite" and not self.file:
            raise IgniterError(f"igniter schedule {self.action} needs a file")
        given = {"--output": self.output, "--name": self.cite_as, "--cite-version": self.cite_version}
        given |= {"--source": self.source, "--author": self.author}
        unused = [flag for flag, value in given.items() if value and self.action != "export"]
        if unused:
            raise IgniterError(f"{unused[0]} has no effect on igniter schedule {self.action}; it belongs to export")
        if self.action == "export" and not self.output:
            raise IgniterError("igniter schedule export needs a file to write: -o FILE.mlir")
