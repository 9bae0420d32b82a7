"""`igniter compile` on hostile files, each in a process of its own with limits of time and memory."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

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
    """What became of one file: one of `OUTCOMES`, what was said, and what it took."""

    status: str
    message: str
    seconds: float
    peak: int

    @property
    def failed(self) -> bool:
        return self.status in FAILURES


def compile_hostile(file: HostileFile, folder: Path) -> Outcome:
    """Write the file into `folder`, and compile it as the command line does.

    The child is forked, so that what every compile imports is imported once.
    """
    _warm()
    case = Path(tempfile.mkdtemp(dir=folder))
    inside = case / "model"
    inside.mkdir()
    path = file.write(inside)
    start = time.perf_counter()
    before = _resident()
    child = os.fork()
    if child == 0:
        _child(path, case)
    status, usage = _wait(child, PATIENCE)
    elapsed = time.perf_counter() - start
    seconds = elapsed if elapsed > PATIENCE else usage.ru_utime + usage.ru_stime
    said = (case / "stderr").read_text(errors="replace")
    # A forked child starts with the memory of its parent, which may have run many other tests.
    outcome = _judge(status, said, case, seconds, max(0, usage.ru_maxrss * 1024 - before))
    shutil.rmtree(case, ignore_errors=True)
    return outcome


def _warm() -> None:
    import onnx
    import onnxruntime

    import igniter.api
    import igniter.tools.main

    assert igniter.api and igniter.tools.main and onnx and onnxruntime.get_available_providers()


def _child(path: Path, case: Path) -> None:
    """Never returns."""
    from igniter.tools.main import app

    # A stop, so that no file takes the machine down with it; what counts is the peak. The limit is on what is
    # mapped: a parent that has run other tests has mapped more than it keeps in memory.
    limit = _mapped() + 8 * BYTES
    resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
    os.chdir(case)
    for number, name in ((1, "stdout"), (2, "stderr")):
        os.dup2(os.open(case / name, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
    code = 99
    try:
        app(["compile", str(path), "-o", str(case / "out"), "--json", "--no-cache"])
    except SystemExit as done:
        code = done.code if isinstance(done.code, int) else 98
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _wait(child: int, seconds: float) -> tuple[int, resource.struct_rusage]:
    end = time.monotonic() + seconds
    while True:
        done, status, usage = os.wait4(child, os.WNOHANG)
        if done:
            return status, usage
        if time.monotonic() > end:
            os.kill(child, signal.SIGKILL)
        time.sleep(0.01)


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
