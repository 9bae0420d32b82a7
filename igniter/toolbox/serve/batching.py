"""Requests that wait while the model runs are computed together, as one batch.

A batch joins requests along the first dim of every input. Requests whose other dims differ are not joined. If a batch
fails, its requests run alone, so that one of them cannot fail the others.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from igniter.errors import IgniterError
from igniter.toolbox.serve.tensors import BadRequest, Tensor

Arrays = Mapping[str, np.ndarray[Any, Any]]
Run = Callable[[Arrays], Awaitable[dict[str, np.ndarray[Any, Any]]]]
Key = tuple[tuple[str, tuple[int, ...]], ...]


class Full(IgniterError):
    """Raised for a request beyond the queue's limit; the client may try again."""

    code = "IGN0802"


@dataclass(frozen=True)
class _Waiting:
    feed: Arrays
    rows: int
    since: float
    result: asyncio.Future[dict[str, np.ndarray[Any, Any]]]


class Batcher:
    """Calls `run` for up to `most` rows together, in `slots` calls at a time.

    A request starts at once if a slot is free and its batch is full, or `wait` seconds after it came. At most `queue`
    requests wait; another one raises `Full`. `on_batch` is called with the number of requests of each batch.
    """

    def __init__(
        self,
        run: Run,
        most: int = 1,
        wait: float = 0.0,
        slots: int = 1,
        queue: int = 1024,
        on_batch: Callable[[int], object] = lambda size: None,
    ):
        self._run, self._most, self._wait, self._free, self._queue = run, most, wait, slots, queue
        self._on_batch = on_batch
        self._groups: dict[Key, deque[_Waiting]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def waiting(self) -> int:
        """The number of requests that have not started."""
        return sum(map(len, self._groups.values()))

    async def __call__(self, feed: Arrays) -> dict[str, np.ndarray[Any, Any]]:
        """Returns the outputs for `feed`, computed alone or in a batch."""
        if self.waiting >= self._queue:
            raise Full(f"{self._queue} requests are waiting: try again later")
        loop = asyncio.get_running_loop()
        rows = self._rows(feed)
        item = _Waiting(feed, rows, loop.time(), loop.create_future())
        key: Key = tuple((name, feed[name].shape[1:]) for name in sorted(feed)) if rows else ()
        self._groups.setdefault(key, deque()).append(item)
        self._start()
        return await item.result

    def _rows(self, feed: Arrays) -> int:
        """Returns the rows of a request in a batch, 0 if batches are off."""
        if self._most <= 1:
            return 0
        sizes = {a.shape[0] if a.ndim else 0 for a in feed.values()}
        if len(sizes) != 1:
            raise BadRequest("the first dims of the inputs differ; with batching, all have the rows of the request")
        return sizes.pop()

    def _start(self) -> None:
        """Starts what can start; sets a timer for a batch that may still grow."""
        loop = asyncio.get_running_loop()
        for key in sorted(self._groups, key=lambda k: self._groups[k][0].since):
            if not self._free:
                return
            group = self._groups[key]
            due = group[0].since + self._wait
            if self._most > 1 and sum(i.rows for i in group) < self._most and loop.time() < due:
                loop.call_at(due, self._start)
                continue
            self._free -= 1
            task = loop.create_task(self._serve(self._take(key)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _take(self, key: Key) -> list[_Waiting]:
        """Removes the next batch of a group, at least one request."""
        group = self._groups[key]
        taken = [group.popleft()]
        while self._most > 1 and group and sum(i.rows for i in taken) + group[0].rows <= self._most:
            taken.append(group.popleft())
        if not group:
            del self._groups[key]
        return taken

    async def _serve(self, items: Sequence[_Waiting]) -> None:
        try:
            wanted = [i for i in items if not i.result.cancelled()]
            if len(wanted) > 1 and await self._together(wanted):
                return
            for item in wanted:
                await self._alone(item)
        finally:
            self._free += 1
            self._start()

    async def _together(self, items: Sequence[_Waiting]) -> bool:
        """Runs a batch; returns false if it failed."""
        joined = {n: np.concatenate([i.feed[n] for i in items]) for n in items[0].feed}
        try:
            results = await self._run(joined)
        except Exception:  # each request runs alone next, and has its own error
            return False
        self._on_batch(len(items))
        at = 0
        for item in items:
            if not item.result.done():
                item.result.set_result({n: a[at : at + item.rows] for n, a in results.items()})
            at += item.rows
        return True

    async def _alone(self, item: _Waiting) -> None:
        try:
            result = await self._run(item.feed)
        except Exception as error:  # handed to the caller
            if not item.result.done():
                item.result.set_exception(error)
            return
        self._on_batch(1)
        if not item.result.done():
            item.result.set_result(result)


def why_not_batched(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> str | None:
    """Returns why requests cannot be joined: a first dim that is a number, or not the same name everywhere."""
    first: set[str] = set()
    for tensor in (*inputs, *outputs):
        if not tensor.dims or not isinstance(tensor.dims[0], str):
            return f"the first dim of '{tensor.name}' is not symbolic: its shape is {tensor.shape}"
        first.add(tensor.dims[0])
    if len(first) > 1:
        return f"the first dims have different names: {', '.join(sorted(first))}"
    return None
