"""The faulty model in a process of its own, since a patched kernel may crash or hang, and an original that remembers
its runs."""

from __future__ import annotations

import hashlib
import multiprocessing
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from igniter.compiler.artifact import Artifact
from igniter.compiler.artifact_checks import Checks
from igniter.runtime.session import SessionError
from igniter.verification.original import Original

LIMIT_BYTES = 1 << 30
"""Results of the original that are remembered."""


class Remembering(Original):
    """An original that runs once for each feed, however often it is asked."""

    _known: dict[tuple[Any, ...], Any]
    _bytes = 0

    def run(
        self, feed: Mapping[str, Any], seconds: float | None = None, memory: int | None = None
    ) -> tuple[list[Any], dict[str, Any]]:
        return self._once(("run", digest(feed)), lambda: Original.run(self, feed, seconds, memory))

    def run_again(self, feed: Mapping[str, Any], drawn: Mapping[str, Any], seconds: float | None = None) -> list[Any]:
        key = ("again", digest(feed), digest(drawn))
        return self._once(key, lambda: Original.run_again(self, feed, drawn, seconds))

    def others(
        self, feed: Mapping[str, Any], drawn: Mapping[str, Any], seed: int, *, thorough: bool, seconds: float | None
    ) -> list[list[Any]]:
        key = ("others", digest(feed), digest(drawn), seed, thorough)
        return self._once(key, lambda: Original.others(self, feed, drawn, seed, thorough=thorough, seconds=seconds))

    def _once(self, key: tuple[Any, ...], compute: Any) -> Any:
        known = self.__dict__.setdefault("_known", {})
        if key in known:
            return known[key]
        found = compute()
        size = _size(found)
        if self._bytes + size <= LIMIT_BYTES:
            self._bytes += size
            known[key] = found
        return found


def _size(value: Any) -> int:
    if isinstance(value, (list, tuple)):
        return sum(_size(v) for v in value)
    if isinstance(value, dict):
        return sum(_size(v) for v in value.values())
    return int(getattr(value, "nbytes", 64))


def digest(feed: Mapping[str, Any]) -> bytes:
    """What a feed is known by."""
    made = hashlib.blake2b(digest_size=16)
    for name, value in feed.items():
        for array in value if isinstance(value, list) else [value]:
            made.update(f"{name} {getattr(array, 'dtype', '')} {getattr(array, 'shape', '')}".encode())
            made.update(
                array.tobytes() if hasattr(array, "tobytes") and array.dtype != object else repr(array).encode()
            )
    return made.digest()


class Worker:
    """A process that runs sessions of compiled models; one that ends or hangs is replaced at the next use."""

    def __init__(self, timeout: float):
        self.timeout = timeout
        self._process: Any = None
        self._pipe: Any = None

    def ask(self, *item: Any) -> Any:
        """The answer; `SessionError` carries what went wrong there."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_work, args=(theirs,), daemon=True)
            self._process.start()
            theirs.close()
        try:
            self._pipe.send(item)
            if not self._pipe.poll(self.timeout):
                self.close()
                raise SessionError(f"the run takes more than {self.timeout:g} s")
            good, answer = self._pipe.recv()
        except (EOFError, OSError):
            self.close()
            raise SessionError("the process ends in the run") from None
        if not good:
            raise SessionError(answer)
        return answer

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._pipe.close()
            self._process = None


def _work(pipe: Any) -> None:
    from igniter.frontend.ort_values import run
    from igniter.runtime.session import silence

    silence()
    sessions: dict[Any, Any] = {}
    while True:
        try:
            folder, threads, cut, names, feed, options = pipe.recv()
        except EOFError:
            return
        key = (folder, threads, tuple(cut), repr(options))
        try:
            if key not in sessions:
                if not any(k[0] == folder for k in sessions):
                    sessions.clear()
                sessions[key] = Checks(Artifact.load(folder)).candidate(threads, cut, options)
            if names is None:
                ends = (sessions[key].get_inputs(), sessions[key].get_outputs())
                pipe.send((True, [[(v.name, v.type, v.shape) for v in end] for end in ends]))
            else:
                pipe.send((True, run(sessions[key], feed, names)))
        except Exception as error:
            pipe.send((False, str(error).split("\n", 1)[0]))


class Remote:
    """A session of a compiled model in a worker, as far as verification uses one."""

    def __init__(self, worker: Worker, folder: Path, threads: int, cut: Mapping[str, Any], options: Mapping[str, Any]):
        self._ask = lambda names, feed: worker.ask(str(folder), threads, dict(cut), names, feed, dict(options))

    @cached_property
    def _ends(self) -> list[list[Any]]:
        return [[SimpleNamespace(name=n, type=t, shape=s) for n, t, s in end] for end in self._ask(None, {})]

    def get_inputs(self) -> list[Any]:
        return self._ends[0]

    def get_outputs(self) -> list[Any]:
        return self._ends[1]

    def run(self, names: Sequence[str] | None, feed: Mapping[str, Any], options: Any = None) -> list[Any]:
        return self._ask([o.name for o in self.get_outputs()] if names is None else list(names), dict(feed))
