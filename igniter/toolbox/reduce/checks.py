"""Checks whether a case fails, each time in a process of its own: Igniter's checks, or a command."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from igniter.errors import IgniterError
from igniter.toolbox.reduce.case import Case
from igniter.toolbox.reduce.outcome import COMMAND, INVALID, PASSED, TIMEOUT, CheckRequest, Outcome


@dataclass
class Worker:
    """The server for requests (`worker.py`), started at the first use; a context manager."""

    _process: subprocess.Popen[str] | None = None
    _folder: tempfile.TemporaryDirectory[str] | None = None

    def __enter__(self) -> Worker:
        self._folder = tempfile.TemporaryDirectory(prefix="igniter-reduce-")
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
        if self._folder is not None:
            self._folder.cleanup()

    def write(self, case: Case) -> Path:
        """Writes the case to a file; the next case overwrites it."""
        assert self._folder is not None
        path = Path(self._folder.name) / f"candidate{case.suffix}"
        path.write_bytes(case.data)
        return path

    def ask(self, request: CheckRequest) -> Outcome:
        """Returns the outcome of a request."""
        server = self._server()
        assert server.stdin is not None and server.stdout is not None
        server.stdin.write(json.dumps(request.to_dict()) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        if not answer:
            raise IgniterError(f"the process that runs candidates ended by itself (exit status {server.wait()})")
        return Outcome(**json.loads(answer))

    def _server(self) -> subprocess.Popen[str]:
        if not hasattr(os, "fork"):
            raise IgniterError("a model is reduced in forks of a process, which this system lacks: use Linux or macOS")
        if self._process is None:
            # The same modules as here, and nothing from the current directory by accident.
            paths = os.pathsep.join(p for p in sys.path if p)
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "igniter.toolbox.reduce.worker"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
                env={**os.environ, "PYTHONPATH": paths},
                # An interrupt is for the search, which then writes its best case.
                start_new_session=True,
            )
        return self._process


class Check(Protocol):
    """A function from a case to its outcome."""

    def run(self, case: Case, *, stop_after: int | None = None) -> Outcome: ...


@dataclass
class BuiltInCheck:
    """Igniter's own check: the pipeline of the case, or the whole compile."""

    worker: Worker
    request: CheckRequest
    """The request without the path and the passes."""

    def run(self, case: Case, *, stop_after: int | None = None) -> Outcome:
        """Returns the outcome of a case, with at most `stop_after` rewrites."""
        path = str(self.worker.write(case))
        return self.worker.ask(replace(self.request, path=path, passes=case.passes, stop_after=stop_after))


@dataclass
class CommandCheck:
    """A command that exits with 0 while the case is still interesting; `{}` in it is the file."""

    worker: Worker
    command: str
    request: CheckRequest

    def run(self, case: Case, *, stop_after: int | None = None) -> Outcome:
        """Returns `command` if the command exits with 0; otherwise `passed`, or `invalid`."""
        path = self.worker.write(case)
        if self.request.validate:
            valid = self.worker.ask(replace(self.request, task="validate", path=str(path)))
            if valid.kind != PASSED:
                return replace(valid, kind=INVALID)
        quoted = shlex.quote(str(path))
        text = self.command.replace("{}", quoted) if "{}" in self.command else f"{self.command} {quoted}"
        status = _run(text, self.request.timeout)
        if status is None:
            return Outcome(TIMEOUT, f"no end in {self.request.timeout:g} s")
        return Outcome(COMMAND if status == 0 else PASSED, f"exit status {status}")


def _run(command: str, timeout: float) -> int | None:
    """Returns the exit status of a command; `None` if it was ended."""
    process = subprocess.Popen(
        command,
        shell=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(timeout)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # Its child processes end with it.
        if hasattr(os, "killpg"):
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


@dataclass
class Interest:
    """A predicate: the case still fails as the first one did; outcomes are cached."""

    check: Check
    wanted: Outcome
    message: str = ""
    """A required part of the message."""
    tried: int = 0
    _known: dict[tuple[bytes, tuple[str, ...] | None], Outcome] = field(
        default_factory=dict[tuple[bytes, "tuple[str, ...] | None"], Outcome]
    )

    def outcome(self, case: Case) -> Outcome:
        """Returns the outcome of a case."""
        key = (hashlib.sha256(case.data).digest(), case.passes)
        if key not in self._known:
            self.tried += 1
            self._known[key] = self.check.run(case)
        return self._known[key]

    def holds(self, case: Case) -> bool:
        """True if a case fails in the same way."""
        return self.is_same(self.outcome(case))

    def is_same(self, found: Outcome) -> bool:
        """True if an outcome is the wanted failure."""
        return found.failure == self.wanted.failure and self.message in found.message
