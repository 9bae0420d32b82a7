"""A compile with bounds on its memory and time, in a process of its own.

    compile(model, output, max_memory="2G", max_seconds=60)

A stranger's model can ask for any amount of either, also inside of ONNX Runtime and LLVM, which no exception
interrupts. So the compile runs in a worker (`igniter.compiler.bounded_worker`), and this process measures it: if it
exceeds a bound, all its processes are killed, their temporary files removed, and `BoundReached` names the pass or the
stage that ran and the largest value of the model. Work with a known size does not begin if it does not fit:
verification at such sizes, and the folding of constants, which has limits of its own.

The memory of a compile is what its processes have written to: pages of mapped files, such as weights, do not count.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from mmap import mmap
from os import PathLike
from pathlib import Path
from typing import IO, Any, cast

from igniter.activity import BOARD_BYTES, leaving, read_board, read_largest
from igniter.compiler.artifact import Artifact
from igniter.errors import IgniterError
from igniter.memory import BoundReached, bytes_text
from igniter.runtime.cache import parse_size

POLL_SECONDS = 0.02
LOCAL = ("observers",)
"""The arguments of `compile` that act in this process, and have no effect in another."""


@dataclass(frozen=True)
class Bounds:
    """The bounds of a compile: bytes and seconds of wall time; `None` for no bound."""

    memory: int | None = None
    seconds: float | None = None

    @classmethod
    def of(cls, memory: int | str | None, seconds: float | None) -> Bounds | None:
        """Returns the bounds given to `compile`; `None` if there are none. Raises `IgniterError` for a wrong one."""
        if memory is None and seconds is None:
            return None
        size = parse_size(memory) if isinstance(memory, str) else memory
        for name, value in (("max_memory", size), ("max_seconds", seconds)):
            if value is not None and not value > 0:
                raise IgniterError(f"{name} is {value:g}: a bound is above 0")
        if size is not None and not Path("/proc/self/statm").exists():
            raise IgniterError(
                "max_memory needs Linux's /proc, which this system has not: bound the time, or a container"
            )
        return cls(size, seconds)


def compile_bounded(
    model: Any, output: str | PathLike[str] | None, options: Mapping[str, Any], bounds: Bounds
) -> Artifact:
    """Compiles `model`, a path, the bytes of a file or a `ModelProto`, as `igniter.compile` does, in a process that is
    killed beyond `bounds`; raises `BoundReached` then."""
    for name in LOCAL:
        if options.get(name):
            raise IgniterError(f"compile: '{name}' act in this process, and a compile with bounds runs in another")
    given = {name: value for name, value in options.items() if name not in ("progress", *LOCAL)}
    progress: Callable[[str], None] = options.get("progress") or _nothing
    # Also the worker's temporary files: they go with it.
    with tempfile.TemporaryDirectory(prefix="igniter-bounded-") as temporary, leaving(temporary):
        own = "" if output is not None else tempfile.mkdtemp(prefix="igniter-")
        target = Path(own, "model.igniter") if output is None else Path(os.path.abspath(output))
        try:
            source = _source_of(model)
            with _Worker(Path(temporary), bounds, progress) as worker:
                worker.compile(source, target, given)
            artifact = Artifact.load(target)
        except BaseException:  # an interrupt, too, removes the folder; raised again
            if own:
                shutil.rmtree(own, ignore_errors=True)
            raise
    artifact.source = str(source) if isinstance(source, Path) else source
    artifact.loads = artifact.report.get("loads", {}).get("tried", False)
    if own:
        weakref.finalize(artifact, shutil.rmtree, own, ignore_errors=True)
    return artifact


def _nothing(stage: str) -> None:
    """Takes no notice of a stage."""


def _source_of(model: Any) -> Path | bytes:
    """Returns the model as a path or as bytes, which another process can read."""
    if isinstance(model, bytes):
        return model
    if isinstance(model, (str, PathLike)):
        return Path(os.path.abspath(model))
    return model.SerializeToString()


class _Worker:
    """The process that compiles, in a `with` block: its end ends all its processes and removes what they left."""

    def __init__(self, temporary: Path, bounds: Bounds, progress: Callable[[str], None]):
        self._bounds, self._progress = bounds, progress
        board = temporary / "board"
        board.write_bytes(bytes(BOARD_BYTES))
        with board.open("r+b") as file:
            self._board = mmap(file.fileno(), BOARD_BYTES)
        paths = os.pathsep.join(p or os.getcwd() for p in sys.path)
        self._begun = time.monotonic()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "igniter.compiler.bounded_worker", str(board), str(bounds.memory or 0)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths, "TMPDIR": str(temporary)},
            # With a group of its own, its helpers end with it.
            start_new_session=True,
        )

    def __enter__(self) -> _Worker:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process.poll() is None:
            self._kill()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        for folder in read_board(self._board)[1]:
            shutil.rmtree(folder, ignore_errors=True)
        self._board.close()

    def compile(self, source: Path | bytes, target: Path, options: Mapping[str, Any]) -> None:
        """Has the process compile; raises its error, or `BoundReached`."""
        requests, answers = cast("IO[bytes]", self._process.stdin), cast("IO[bytes]", self._process.stdout)
        try:
            pickle.dump((source, target, dict(options)), requests)
            requests.flush()
        except BrokenPipeError:
            raise self._ended() from None
        except (pickle.PicklingError, TypeError, AttributeError) as error:
            raise IgniterError(f"compile: an argument cannot be given to the process with bounds: {error}") from error
        for kind, value in self._read(answers):
            if kind == "progress":
                self._progress(value)
            elif kind == "error":
                self._process.wait()
                raise _error_of(*value)
            elif kind == "done":
                self._process.wait()
                return
        raise self._ended()

    def _read(self, answers: IO[bytes]) -> Iterator[tuple[str, Any]]:
        """Yields the answers of the process until its end, and checks its bounds meanwhile."""
        read: queue.Queue[tuple[str, Any] | None] = queue.Queue()
        threading.Thread(target=_load_all, args=(answers, read), daemon=True).start()
        while True:
            try:
                answer = read.get(timeout=POLL_SECONDS)
            except queue.Empty:
                self._check()
                continue
            if answer is None:
                return
            yield answer

    def _check(self) -> None:
        """Raises `BoundReached` for a process beyond its bounds."""
        seconds, memory = self._bounds.seconds, self._bounds.memory
        if seconds is not None and time.monotonic() - self._begun > seconds:
            raise self._reached(f"it takes longer than max_seconds ({seconds:g} s)")
        if memory is not None and (found := _memory_of(self._process.pid, memory)) > memory:
            raise self._reached(f"it takes {bytes_text(found)}, more than max_memory ({bytes_text(memory)})")

    def _reached(self, what: str) -> BoundReached:
        self._kill()
        activity, largest = read_board(self._board)[0], read_largest(self._board)
        when = f" while {activity.what}" if activity is not None else " while it started"
        grew = f"; the largest value of known size is {largest}" if largest else ""
        return BoundReached(f"the compile was ended{when}: {what}{grew}")

    def _ended(self) -> IgniterError:
        """Returns the error for a process that ended without an answer."""
        code = self._process.wait()
        activity = read_board(self._board)[0]
        when = f" while {activity.what}" if activity is not None else ""
        how = f"by signal {-code} ({signal.Signals(-code).name})" if code < 0 else f"with status {code}"
        return IgniterError(f"the process of the compile ended {how}{when}")

    def _kill(self) -> None:
        """Kills all processes of the compile."""
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (AttributeError, ProcessLookupError):  # no groups on this system, or it has just ended
            self._process.kill()
        self._process.wait()


def _load_all(answers: IO[bytes], read: queue.Queue[tuple[str, Any] | None]) -> None:
    """Puts all answers of a process, and at its end `None`, into a queue."""
    # The end may come within an answer, and at a closed stream.
    with contextlib.suppress(EOFError, pickle.UnpicklingError, OSError, ValueError):
        while True:
            read.put(pickle.load(answers))
    read.put(None)


def _error_of(
    kind: type[BaseException], arguments: tuple[Any, ...], state: Mapping[str, Any], trace: str
) -> BaseException:
    """Returns the error of another process, without the calls of its class."""
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(state)
    error.add_note(trace)
    return error


def _memory_of(group: int, limit: int) -> int:
    """Returns the bytes that the processes of a group have written to. Pages shared between them count once if the
    plain sum is above `limit`: that count takes longer."""
    pids = [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if _group_of(pid) == group]
    found = sum(map(_private, pids))
    return found if found <= limit else sum(map(_proportional, pids))


def _group_of(pid: int) -> int:
    try:
        return os.getpgid(pid)
    except OSError:  # it has just ended
        return 0


def _private(pid: int) -> int:
    return _field(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:"))


def _proportional(pid: int) -> int:
    """Returns the bytes of a process, pages shared with others in parts."""
    return _field(f"/proc/{pid}/smaps_rollup", ("Pss_Anon:", "Pss_Shmem:")) or _private(pid)


def _field(path: str, names: tuple[str, ...]) -> int:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return sum(int(line.split()[1]) << 10 for line in file if line.startswith(names))
    except OSError:  # it has just ended
        return 0
