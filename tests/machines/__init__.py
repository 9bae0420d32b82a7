"""The suite as if on other machines: files of machines, and a record of the tests whose outcome can follow from them.

A test sees the machine that runs it in two ways: it, or something that it calls, asks for the target `native` or for
the number of CPUs, or it starts a process that may. `Reach` notes the files whose tests do, so that `make
test-machines` runs all tests on the first machine and only the noted files on the others. The granularity is a file
because fixtures, caches and module constants are shared among the tests of one.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from igniter.backends.cpu import target as targets
from igniter.backends.cpu.target import Target

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MACHINES = tuple(sorted(path.stem for path in HERE.glob("*.json")))
"""The machines that the suite is run on, by the names of their files."""


class Reach:
    """Writes to `record` each test file that reaches the machine, one a line."""

    def __init__(self, record: Path):
        self._record = record
        self._file = ""
        self._noted: set[str] = set()
        on_new_processes(lambda _: self.note())
        native = targets._native

        def noted() -> Target:
            self.note()
            return native()

        targets._native = noted

    def enter(self, file: str) -> None:
        """Begins a test of `file`; a target that an earlier test asked for is looked up again."""
        self._file = file
        targets.target_of.cache_clear()

    def note(self) -> None:
        """Notes the file of the test that runs."""
        if self._file and self._file not in self._noted:
            self._noted.add(self._file)
            # Workers share the record: a line is one write.
            with self._record.open("a") as out:
                out.write(f"{self._file}\n")

    def note_if_holding(self, file: str, module: ModuleType) -> None:
        """Notes a file that took the machine when it was imported, as a constant of its own or of its helpers."""
        if any(isinstance(v, Target) and v.name == "native" for v in _values(module)):
            self._file = file
            self.note()


def on_new_processes(react: Callable[[str], None]) -> None:
    """Calls `react` with the program of each process that is about to start; "" for a copy of this one."""

    def audit(event: str, arguments: tuple[Any, ...]) -> None:
        if event == "subprocess.Popen":
            command = arguments[1]
            react(str(arguments[0] or (command if isinstance(command, (str, bytes)) else command[0])))
        elif event == "os.fork":
            react("")

    start = BaseProcess.start

    def started(self: BaseProcess) -> None:
        react(sys.executable)
        start(self)

    BaseProcess.start = started
    sys.addaudithook(audit)


def _values(module: ModuleType) -> list[Any]:
    own = list(vars(module).values())
    helpers = [v.__globals__ for v in own if isinstance(v, FunctionType)]
    kits = [g for g in helpers if str(g.get("__file__", "")).startswith(str(HERE.parent))]
    return own + [v for g in kits for v in g.values()]


def pretend(given: str) -> str:
    """Resolves what `IGNITER_NATIVE` names, a machine of this folder too, for tests that change their folder."""
    if given in MACHINES:
        return str(HERE / f"{given}.json")
    return str(Path(given).resolve()) if given.endswith(".json") else given


def pretend_cores(count: int) -> None:
    """Lets Python see `count` CPUs."""
    os.cpu_count = lambda: count
    if hasattr(os, "sched_getaffinity"):
        os.sched_getaffinity = lambda _: set(range(count))  # type: ignore[assignment]
