"""A server for requests, each in a process of its own: `python -m igniter.toolbox.reduce.worker`.

It does the slow imports once and forks for each request, so a candidate costs milliseconds, and a crash or a timeout is
an answer. Requests and answers are JSON, one a line, on standard input and output. The server itself runs no code of a
candidate and starts no thread, so forking is safe.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import pkgutil
import select
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Mapping
from typing import Any

import igniter
from igniter.toolbox.reduce.outcome import CRASH, TIMEOUT, CheckRequest, Outcome

_child: int | None = None


def main() -> None:
    """Answers requests until the input ends."""
    _import_all()
    # Output of a candidate must not mix with the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    signal.signal(signal.SIGTERM, _end)
    for line in sys.stdin:
        outcome = run_apart(CheckRequest.from_dict(json.loads(line)))
        answers.write(json.dumps({**outcome.to_dict(), "text": outcome.text}) + "\n")


def _import_all() -> None:
    """Imports the modules for candidates, once for all. Nothing here starts a thread."""
    import onnxruntime  # pyright: ignore[reportUnusedImport] # noqa: F401

    # No candidate uses PyTorch; it may be missing, and starts threads.
    left_out = {"tools", "torch"}
    for top in pkgutil.iter_modules(igniter.__path__, "igniter."):
        if top.name.removeprefix("igniter.") in left_out:
            continue
        module = importlib.import_module(top.name)
        for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{top.name}."):
            if found.name != __name__:
                _import_if_installed(found.name)
    # The tables with construction at first use.
    from igniter.dialects.onnx.base import op_classes
    from igniter.registry import external

    op_classes()
    for group in ("dialects", "ops", "passes", "patterns", "pipelines"):
        external(group)
    # A collection would copy the pages of all these objects, in each process.
    gc.collect()
    gc.freeze()


def _import_if_installed(name: str) -> None:
    """Imports a module, unless it needs a missing package: then no candidate can need it either."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "igniter":
            raise


def run_apart(request: CheckRequest) -> Outcome:
    """Returns the outcome of a request in a process of its own, and cleans up after it."""
    global _child
    folder = tempfile.mkdtemp(prefix="igniter-reduce-")
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(ours)
        _run(request, theirs, folder)
    _child = child
    os.close(theirs)
    try:
        return _answer(child, ours, request.timeout)
    finally:
        _kill(child)
        _child = None
        os.close(ours)
        shutil.rmtree(folder, ignore_errors=True)


def _run(request: CheckRequest, pipe: int, folder: str) -> None:
    """Runs the child; never returns."""
    status = 1
    try:
        # A process group of its own, so that its child processes end with it.
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        tempfile.tempdir = folder
        from igniter.toolbox.reduce.judge import judge

        outcome = judge(request, lambda facts: _write(pipe, facts))
        _write(pipe, {**outcome.to_dict(), "text": outcome.text})
        status = 0
    finally:
        # Not `sys.exit`: the frames above on the stack are the server's.
        os._exit(status)


def _write(pipe: int, facts: Mapping[str, object]) -> None:
    data = (json.dumps(facts) + "\n").encode()
    while data:
        data = data[os.write(pipe, data) :]


def _answer(child: int, pipe: int, timeout: float) -> Outcome:
    """Reads the child's output until it is complete, the child has ended, or the time limit is reached."""
    end = time.monotonic() + timeout
    data = b""
    while True:
        ready, _, _ = select.select([pipe], [], [], max(0.0, end - time.monotonic()))
        if not ready:
            return Outcome(TIMEOUT, f"no result in {timeout:g} s", **_said(data))
        found = os.read(pipe, 1 << 16)
        if not found:
            break
        data += found
    lines = data.splitlines()
    last: dict[str, Any] = json.loads(lines[-1]) if lines else {}
    if "kind" in last:
        return Outcome(**last)
    _, status = os.waitpid(child, 0)
    code = os.waitstatus_to_exitcode(status)
    how = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    return Outcome(CRASH, f"the process ended by {how}", **_said(data))


def _said(data: bytes) -> dict[str, Any]:
    """Returns the child's progress so far: its place."""
    found: dict[str, Any] = {}
    for line in data.split(b"\n")[:-1]:
        found.update(json.loads(line))
    return found


def _kill(child: int) -> None:
    """Ends the rest of a child and its child processes."""
    for end in (lambda: os.killpg(child, signal.SIGKILL), lambda: os.kill(child, signal.SIGKILL)):
        try:
            end()
        except (ProcessLookupError, PermissionError):  # It has ended by itself, or has not created its group yet.
            continue
    try:
        os.waitpid(child, 0)
    except ChildProcessError:  # Its exit status was collected before.
        return


def _end(number: int, frame: object) -> None:
    if _child is not None:
        _kill(_child)
    os._exit(128 + number)


if __name__ == "__main__":
    main()
