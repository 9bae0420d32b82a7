"""Running stages: in turn, or as a pipeline in which every stage works on another item at the same time.

A *caller* runs a stage: a function of the index of a model in its place and of its inputs by name. It is a session of
this process (`local_callers`), another process (`workers`), or an actor of a cluster (`on_ray`).
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from igniter.errors import IgniterError
from igniter.runtime.session import make_session
from igniter.toolbox.split.stages.manifest import Manifest, last_reader, read_manifest

Values = Mapping[str, Any]
Caller = Callable[[int, Values], dict[str, Any]]
"""A function from the index of a model, and the inputs by name, to the outputs by name."""


def local_callers(manifest: Manifest, **options: Any) -> list[Caller]:
    """Returns a caller for each place of a folder, with sessions in this process; `options` are those of
    `make_session`."""
    return [local_caller([str(manifest.folder / m) for m in models], **options) for models in manifest.places()]


def local_caller(paths: Sequence[str], **options: Any) -> Caller:
    """Returns a caller that runs the models at `paths` in this process."""
    # Sessions wait for each other: spinning threads would take the others' time.
    quiet = {"session.intra_op.allow_spinning": "0"}
    chosen: dict[str, Any] = {"log_severity_level": 4, "config": quiet, **options}
    sessions: list[Any] = [make_session(path, **chosen) for path in paths]

    def call(index: int, values: Values) -> dict[str, Any]:
        session = sessions[index]
        names = [v.name for v in session.get_outputs()]
        # An input with a default may be omitted.
        known = {v.name for v in (*session.get_inputs(), *session.get_overridable_initializers())}
        try:
            return dict(zip(names, session.run(names, {k: v for k, v in values.items() if k in known}), strict=True))
        except Exception as error:  # ONNX Runtime's errors have no common base
            raise IgniterError(f"{Path(paths[index]).name} does not run: {error}") from error

    return call


class StageRunner:
    """The stages of a folder, run in turn."""

    def __init__(self, folder: str | Path | Manifest, callers: Sequence[Caller] | None = None):
        self.manifest = folder if isinstance(folder, Manifest) else read_manifest(folder)
        if self.manifest.kind != "pipeline":
            raise IgniterError(f"{self.manifest.folder} holds the ranks of a model, not stages that run in turn")
        self.callers = list(callers) if callers is not None else local_callers(self.manifest)
        self._last = last_reader(self.manifest.stages, self.manifest.outputs)

    def run(self, feed: Values) -> dict[str, Any]:
        """Returns the outputs of the whole model by name."""
        values = dict(require_inputs(self.manifest, feed))
        for i in range(len(self.callers)):
            values = self._step(i, values)
        return {n: values[n] for n in self.manifest.outputs}

    def _step(self, i: int, values: Values) -> dict[str, Any]:
        """Runs one stage; values without a later reader are dropped."""
        stage = self.manifest.stages[i]
        made = self.callers[i](0, {n: values[n] for n in stage.inputs if n in values})
        return {n: v for n, v in {**values, **made}.items() if self._last.get(n, -1) > i}

    def run_many(self, feeds: Iterable[Values], depth: int = 2) -> Iterator[dict[str, Any]]:
        """Yields the outputs for each of several inputs, in order, as a pipeline: while a stage works on one, earlier
        stages work on the next. At most `depth` items wait before a stage. An error of a stage is raised here."""
        queues: list[queue.Queue[Any]] = [queue.Queue(depth) for _ in range(len(self.callers) + 1)]
        stop = threading.Event()
        threads = [threading.Thread(target=self._feed, args=(feeds, queues[0], stop), daemon=True)]
        for i in range(len(self.callers)):
            arguments = (i, queues[i], queues[i + 1], stop)
            threads.append(threading.Thread(target=self._work, args=arguments, daemon=True))
        for thread in threads:
            thread.start()
        try:
            while (item := queues[-1].get()) is not None:
                if isinstance(item, BaseException):
                    raise item
                yield {n: item[n] for n in self.manifest.outputs}
        finally:
            stop.set()
            for one in queues:
                _drain(one)
            for thread in threads:
                thread.join(timeout=5)

    def _feed(self, feeds: Iterable[Values], out: queue.Queue[Any], stop: threading.Event) -> None:
        try:
            for feed in feeds:
                if not _put(out, dict(require_inputs(self.manifest, feed)), stop):
                    return
            _put(out, None, stop)
        except BaseException as error:  # the reader of the queue raises it
            _put(out, error, stop)

    def _work(self, i: int, source: queue.Queue[Any], out: queue.Queue[Any], stop: threading.Event) -> None:
        while not stop.is_set():
            try:
                item = source.get(timeout=0.1)
            except queue.Empty:
                continue
            try:
                made = item if item is None or isinstance(item, BaseException) else self._step(i, item)
            except BaseException as error:  # the reader of the queue raises it
                made = error
            if not _put(out, made, stop) or made is None:
                return


def _put(out: queue.Queue[Any], item: Any, stop: threading.Event) -> bool:
    while not stop.is_set():
        try:
            out.put(item, timeout=0.1)
            return True
        except queue.Full:
            continue
    return False


def _drain(one: queue.Queue[Any]) -> None:
    while True:
        try:
            one.get_nowait()
        except queue.Empty:
            return


class RankRunner:
    """The ranks of a folder, run side by side with synchronisation at its collectives."""

    def __init__(self, folder: str | Path | Manifest, callers: Sequence[Caller] | None = None):
        self.manifest = folder if isinstance(folder, Manifest) else read_manifest(folder)
        if self.manifest.kind != "tensor":
            raise IgniterError(f"{self.manifest.folder} holds stages that run in turn, not the ranks of a model")
        self.callers = list(callers) if callers is not None else local_callers(self.manifest)

    def run(self, feed: Values) -> dict[str, Any]:
        """Returns the outputs of the whole model by name, those of rank 0. Sums are computed in the order of the
        ranks."""
        ranks = len(self.callers)
        values = [dict(require_inputs(self.manifest, feed)) for _ in range(ranks)]
        with ThreadPoolExecutor(ranks) as pool:
            for step, segment in enumerate(self.manifest.segments):
                given: list[dict[str, Any]] = [{n: v[n] for n in segment.inputs if n in v} for v in values]
                asked = [pool.submit(c, step, g) for c, g in zip(self.callers, given, strict=True)]
                for mine, made in zip(values, asked, strict=True):
                    mine.update(made.result())
                for name, source in segment.reduces.items():
                    # Infinities of both signs sum to NaN, as in one product, without a warning.
                    with np.errstate(invalid="ignore", over="ignore"):
                        whole = reduce(add, [v[source] for v in values])
                    for mine in values:
                        mine.pop(source)
                        mine[name] = whole
        return {n: values[0][n] for n in self.manifest.outputs}

    def run_many(self, feeds: Iterable[Values]) -> Iterator[dict[str, Any]]:
        """Yields the outputs for each of several inputs, in order."""
        return map(self.run, feeds)


def runner_of(folder: str | Path | Manifest, callers: Sequence[Caller] | None = None) -> StageRunner | RankRunner:
    """Returns the runner for the models of a folder, of either kind."""
    manifest = folder if isinstance(folder, Manifest) else read_manifest(folder)
    return StageRunner(manifest, callers) if manifest.kind == "pipeline" else RankRunner(manifest, callers)


def require_inputs(manifest: Manifest, feed: Values) -> Values:
    """Raises `IgniterError` for an unknown input."""
    unknown = sorted(set(feed) - set(manifest.inputs))
    if unknown:
        raise IgniterError(f"the model has no input {', '.join(unknown)}; its inputs are {', '.join(manifest.inputs)}")
    return feed
