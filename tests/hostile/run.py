"""`igniter compile` on hostile files, each in a process of its own with limits of time and memory."""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections.abc import Iterable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path

import pytest

import igniter
from tests.hostile.files import HostileFile

SECONDS = 30
"""An outcome that takes more of the processor's time is a failure."""
PATIENCE = 10 * SECONDS
"""The child is killed after so much time by the clock, which a busy machine needs for what is quick."""
BYTES = 1 << 30
PARAGRAPH = 2100

OUTCOMES = ("compiled", "unverified", "error", "internal error", "not a paragraph", "crash", "too slow", "too big")
FAILURES = OUTCOMES[3:]


@dataclass(frozen=True)
class Outcome:
    """The outcome of one file: one of `OUTCOMES`, what was said, and what it took."""

    status: str
    message: str
    seconds: float
    peak: int

    @property
    def failed(self) -> bool:
        return self.status in FAILURES


def compile_hostile(file: HostileFile, folder: Path) -> Outcome:
    """Write the file into `folder`, and compile it as the command line does."""
    ((_, outcome),) = compile_all([file], folder, jobs=1)
    return outcome


def compile_all(files: Iterable[HostileFile], folder: Path, jobs: int) -> Iterator[tuple[HostileFile, Outcome]]:
    """What becomes of each file, in the order in which they are done; `jobs` of them at a time, each in a process.

    The processes are forked from one that has imported all that a compile imports: that takes as long as most files.
    """
    _warm()
    waiting, running = iter(files), list[_Running]()
    while True:
        while len(running) < jobs and (file := next(waiting, None)) is not None:
            running.append(_Running(file, folder))
        if not running:
            return
        done = [(r, outcome) for r in running if (outcome := r.outcome()) is not None]
        running = [r for r in running if all(r is not d for d, _ in done)]
        yield from ((r.file, outcome) for r, outcome in done)
        if not done:
            time.sleep(0.01)


class _Running:
    """A file that a child compiles."""

    def __init__(self, file: HostileFile, folder: Path):
        self.file = file
        self.case = Path(tempfile.mkdtemp(dir=folder))
        inside = self.case / "model"
        inside.mkdir()
        path = file.write(inside)
        self.start = time.monotonic()
        self.before = _resident()
        self.child = os.fork()
        if self.child == 0:
            _child(path, self.case)

    def outcome(self) -> Outcome | None:
        """`None` as long as the child runs."""
        done, status, usage = os.wait4(self.child, os.WNOHANG)
        elapsed = time.monotonic() - self.start
        if not done:
            if elapsed > PATIENCE:
                os.kill(self.child, signal.SIGKILL)
            return None
        seconds = elapsed if elapsed > PATIENCE else usage.ru_utime + usage.ru_stime
        said = (self.case / "stderr").read_text(errors="replace")
        # A forked child starts with the memory of its parent, which may have run many other tests.
        outcome = _judge(status, said, self.case, seconds, max(0, usage.ru_maxrss * 1024 - self.before))
        shutil.rmtree(self.case, ignore_errors=True)
        return outcome


@cache
def _warm() -> None:
    """Import all that a compile imports, and what the command line does before it reads a file."""
    import llvmlite.binding
    import numpy.random
    import onnx.reference
    import onnxruntime
    import rich.console

    from igniter.tools.main import app

    assert llvmlite.binding and numpy.random and onnx.reference and rich.console and onnxruntime.__version__
    for top in pkgutil.iter_modules(igniter.__path__, "igniter."):
        if top.name == "igniter.torch":
            # No part of a compile, and PyTorch may be missing.
            continue
        inside = getattr(importlib.import_module(top.name), "__path__", ())
        for module in pkgutil.walk_packages(inside, f"{top.name}."):
            if not module.name.endswith(("__main__", "_worker")):
                importlib.import_module(module.name)
    with pytest.raises(SystemExit), redirect_stderr(StringIO()), redirect_stdout(StringIO()):
        app(["compile", "missing.onnx", "--json"])
    # A collection in a child would copy every page that an object is on.
    gc.collect()
    gc.freeze()


def _child(path: Path, case: Path) -> None:
    """Never returns."""
    from igniter.tools.main import app
    from igniter.tools.watch import watched

    # A stop, so that no file takes the machine down with it; what counts is the peak. The limit is on what is
    # mapped: a parent that has run other tests has mapped more than it keeps in memory.
    limit = _mapped() + 8 * BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    resource.setrlimit(resource.RLIMIT_CPU, (SECONDS + 1, SECONDS + 1))
    os.chdir(case)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(case / name, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    code = 99
    try:
        arguments = ["compile", str(path), "-o", str(case / "out"), "--json", "--no-cache"]
        watched(arguments)
        app(arguments)
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else 98
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _resident() -> int:
    """The memory of this process in bytes."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def _mapped() -> int:
    """What RLIMIT_DATA counts of this process, in bytes: private memory that can be written, used or not."""
    line = next(ln for ln in Path("/proc/self/status").read_text().splitlines() if ln.startswith("VmData:"))
    return int(line.split()[1]) * 1024


def _judge(status: int, said: str, case: Path, seconds: float, peak: int) -> Outcome:
    code = os.waitstatus_to_exitcode(status)
    line = said.strip()
    if seconds > SECONDS:
        what = "too slow"
    elif code < 0:
        what, line = "crash", f"signal {-code}: {line[-300:]}"
    elif peak > BYTES:
        what = "too big"
    elif code == 0:
        what, line = _compiled(case)
    elif code == 1:
        fits = len(line) <= PARAGRAPH and "\n\n" not in line and line.startswith("igniter: ")
        what = "error" if fits and "Traceback" not in line else "not a paragraph"
    else:
        what, line = "internal error", line[-1000:]
    return Outcome(what, line, seconds, peak)


def _compiled(case: Path) -> tuple[str, str]:
    report = json.loads((case / "stdout").read_text())
    verification = report.get("verification") or {}
    return ("compiled" if verification.get("ok") else "unverified"), str(verification.get("reason", ""))
