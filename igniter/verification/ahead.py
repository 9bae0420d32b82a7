"""Runs of the original beside the compilation that is verified against it afterwards.

The original's outputs do not depend on the compiled model. While the compiler uses one CPU, a fork of its process with
the lowest priority searches for sizes, runs the original at them, and again for its noise, in the order in which the
verification does. Each result goes to a file. The verification ends the fork, and takes a result instead of making a
run of the same kind of session on the same inputs. Each result is taken once, so the verification compares with as many
runs as without a fork; the runs that the fork has not finished are made as usual.

The fork is optional: it may fail, or not begin. There is none if this process has threads, ONNX Runtime or a debugger's
trace already, or a single CPU.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NoReturn, Self

from igniter.activity import note_off
from igniter.errors import IgniterError
from igniter.frontend.reading import external_files
from igniter.runtime.session import CPU_PROVIDER, onnxruntime_package
from igniter.verification.graph_facts import model_facts
from igniter.verification.kept_results import KeptResults
from igniter.verification.original import Original
from igniter.verification.verify import BUDGET_SECONDS, VerifyOptions, reference_cases

LOWEST_PRIORITY = 19
LEAST_BYTES = 4 << 20
"""The least bytes of a model for a fork: smaller ones are verified in less time than it needs to begin."""
PATIENCE = 10
"""The factor of limits of time in the fork, which may wait for the compiler."""


class Ahead:
    """The fork and its results, in a `with` block: its end ends the fork and removes the results."""

    def __init__(self, folder: Path, child: int):
        self.folder = folder
        self._child: int | None = child

    def finish(self) -> KeptResults:
        """Ends the fork; returns its results."""
        if self._child is not None:
            child, self._child = self._child, None
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
        return KeptResults(self.folder)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.finish()
        shutil.rmtree(self.folder, ignore_errors=True)


def start(
    model: str,
    shapes: Sequence[Mapping[str, int]] | None,
    seed: int,
    budget: float | None,
    least: int = LEAST_BYTES,
    providers: Sequence[str] = (CPU_PROVIDER,),
) -> Ahead | None:
    """Forks this process to run the original in the file `model` as a verification with these options does; returns
    `None` if it cannot be forked, or the model is small. The fork makes no runs if ONNX Runtime has none of the
    `providers` of the compiled model."""
    if not can_fork() or _bytes(model) < least:
        return None
    options = VerifyOptions(shapes=shapes, seed=seed, budget=PATIENCE * (BUDGET_SECONDS if budget is None else budget))
    folder = Path(tempfile.mkdtemp(prefix="igniter-ahead-"))
    try:
        # Later versions of Python warn of other threads, but there are none of Python's or ONNX Runtime's.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            child = os.fork()
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return None
    if child == 0:
        _work(model, options, folder, providers)
    return Ahead(folder, child)


def _bytes(model: str) -> int:
    """Returns the bytes of a model and of the external data beside it."""
    try:
        beside = [path for name in external_files(model) if (path := Path(model).parent / name).is_file()]
        return sum(path.stat().st_size for path in (Path(model), *beside))
    except (IgniterError, OSError):  # the session will report it
        return 0


def can_fork() -> bool:
    """True if a fork of this process can run ONNX Runtime, on a CPU of its own."""
    if sys.platform != "linux" or "onnxruntime" in sys.modules or sys.gettrace() is not None:
        return False
    threads = [t for t in threading.enumerate() if type(t).__module__ != "rich.live"]
    return len(threads) == 1 and len(os.sched_getaffinity(0)) > 1


def _work(model: str, options: VerifyOptions, folder: Path, providers: Sequence[str]) -> NoReturn:
    """Runs the original in the fork, and ends it: without the buffers, the handlers and the destructors of the process
    that it was."""
    try:
        _become_a_helper(folder)
        # Not in the parent: with ONNX Runtime imported it could not be forked.
        if {*onnxruntime_package().get_available_providers()} & {*providers}:
            for _ in runs(model, options, KeptResults(folder, keeps=True)):
                pass
    finally:
        os._exit(0)


def _become_a_helper(folder: Path) -> None:
    for name in (signal.SIGTERM, signal.SIGINT):
        signal.signal(name, signal.SIG_DFL)
    kill_with_parent = 1
    ctypes.CDLL(None).prctl(kill_with_parent, signal.SIGKILL)
    os.nice(LOWEST_PRIORITY)
    note_off()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    # The copy of a large model is removed together with the results.
    tempfile.tempdir = str(folder)


def runs(model: str, options: VerifyOptions, results: KeptResults) -> Iterator[None]:
    """Runs the original in the order of a verification, a case at a time, and keeps the results."""
    original = Original(model, options={"config": {"session.intra_op.allow_spinning": "0"}}, is_shared=True)
    if original.by_threads or original.random_values != []:
        return
    original.results = results
    assert original.model is not None
    for number, ready in enumerate(reference_cases(original, model_facts(original.model), options)):
        if number == 0:
            original.run_again(ready.feed, ready.drawn)
        original.others(ready.feed, ready.drawn, ready.seed, thorough=False, seconds=options.budget)
        yield
