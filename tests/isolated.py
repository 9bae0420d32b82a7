"""Running a function on many items in another process, which is replaced when native code takes it down."""

from __future__ import annotations

import importlib
import multiprocessing
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, TypeVar

Item = TypeVar("Item")


@dataclass(frozen=True)
class Lost:
    """Instead of a result."""

    status: str
    """crash | timeout"""
    message: str


def run_isolated(
    function: str, items: Sequence[Item], timeout: float = 120.0, batch: int = 500
) -> Iterator[tuple[Item, Any]]:
    """Each item with what `function`, given as `module:name`, makes of it, or `Lost`.

    A process does no more than `batch` items, so that what a session leaks does not add up.
    """
    context = multiprocessing.get_context("spawn")
    pending = list(items)[::-1]
    while pending:
        ours, theirs = context.Pipe()
        worker = context.Process(target=_work, args=(theirs, function), daemon=True)
        worker.start()
        theirs.close()
        for _ in range(min(batch, len(pending))):
            item = pending.pop()
            answer = _ask(ours, item, timeout)
            if answer is None or isinstance(answer, Lost):
                yield item, answer or _crash(worker)
                break
            yield item, answer[0]
        ours.close()
        worker.join(5)
        if worker.is_alive():
            worker.kill()


def _ask(pipe: Connection, item: Any, timeout: float) -> tuple[Any] | Lost | None:
    """The answer; None where the process ended."""
    try:
        pipe.send(item)
        return (pipe.recv(),) if pipe.poll(timeout) else Lost("timeout", f"no answer in {timeout:.0f} s")
    except (EOFError, OSError):
        return None


def _crash(worker: Any) -> Lost:
    # A dump of what it did can take a while.
    worker.join(30)
    return Lost("crash", f"the process ended with {worker.exitcode}")


def _work(pipe: Connection, function: str) -> None:
    module, _, name = function.partition(":")
    call = getattr(importlib.import_module(module), name)
    while True:
        try:
            item = pipe.recv()
        except EOFError:
            return
        pipe.send(call(item))
