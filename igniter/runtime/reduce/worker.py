"""A server that runs every request in a process of its own: `python -m igniter.runtime.reduce.worker`.

It imports what takes long once and forks for each request, so that a candidate costs milliseconds and its end, by a
signal or by the clock, is an answer. Requests and answers are JSON, one a line, on standard input and output. The
server itself runs no code of a candidate and starts no thread, which makes it safe to fork.
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

from igniter.runtime.reduce.outcome import CRASH, TIMEOUT, Outcome, Request

_child: int | None = None


def main() -> None:
    """Answers until the input ends."""
    _import_all()
    # What a candidate prints must not get between the answers.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 1)
    signal.signal(signal.SIGTERM, _end)
    for line in sys.stdin:
        outcome = run_apart(Request.from_dict(json.loads(line)))
        answers.write(json.dumps({**outcome.to_dict(), "text": outcome.text}) + "\n")


def _import_all() -> None:
    """Imports the modules that a candidate may need, so that none imports them again. Nothing starts a thread."""
    import onnxruntime  # pyright: ignore[reportUnusedImport] # noqa: F401

    import igniter

    # PyTorch is no part of a candidate, may be missing, and starts threads.
    left_out = {"tools", "torch"}
    for top in pkgutil.iter_modules(igniter.__path__, "igniter."):
        if top.name.removeprefix("igniter.") in left_out:
            continue
        module = importlib.import_module(top.name)
        for found in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{top.name}."):
            if found.name != __name__:
                _import_if_installed(found.name)
    # The tables that are made when they are first asked for.
    from igniter.dialects.onnx.base import op_classes
    from igniter.registry import external

    op_classes()
    for group in ("dialects", "ops", "passes", "patterns", "pipelines"):
        external(group)
    # A collection would copy the pages of all that, in each process.
    gc.collect()
    gc.freeze()


def _import_if_installed(name: str) -> None:
    """Imports a module, unless it needs a package that is not installed: no candidate can need it either."""
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] == "igniter":
            raise


def run_apart(request: Request) -> Outcome:
    """What becomes of a request in a process of its own, which leaves nothing behind."""
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


def _run(request: Request, pipe: int, folder: str) -> None:
    """The child: it never returns."""
    status = 1
    try:
        # Its own group, so that what it starts ends with it.
        os.setpgid(0, 0)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(null, stream)
        tempfile.tempdir = folder
        from igniter.runtime.reduce.judge import judge

        outcome = judge(request, lambda facts: _write(pipe, facts))
        _write(pipe, {**outcome.to_dict(), "text": outcome.text})
        status = 0
    finally:
        # Not `sys.exit`: what is above this in the stack is the server's.
        os._exit(status)


def _write(pipe: int, facts: Mapping[str, object]) -> None:
    data = (json.dumps(facts) + "\n").encode()
    while data:
        data = data[os.write(pipe, data) :]


def _answer(child: int, pipe: int, timeout: float) -> Outcome:
    """Reads what the child says until it has said all, has ended, or its time is over."""
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
    """What the child said on its way: where it was."""
    found: dict[str, Any] = {}
    for line in data.split(b"\n")[:-1]:
        found.update(json.loads(line))
    return found


def _kill(child: int) -> None:
    """Ends what is left of a child and of what it started."""
    for end in (lambda: os.killpg(child, signal.SIGKILL), lambda: os.kill(child, signal.SIGKILL)):
        try:
            end()
        except (ProcessLookupError, PermissionError):  # It has ended by itself, or has not made its group yet.
            continue
    try:
        os.waitpid(child, 0)
    except ChildProcessError:  # It was waited for when it was asked how it ended.
        return


def _end(number: int, frame: object) -> None:
    if _child is not None:
        _kill(_child)
    os._exit(128 + number)


if __name__ == "__main__":
    main()
