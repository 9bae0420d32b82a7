"""Stages in processes of their own: one for every place of a folder, with a socket."""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
import tempfile
import threading
import time
from multiprocessing.connection import Listener, wait
from pathlib import Path
from typing import Any, Self

from igniter.errors import IgniterError
from igniter.toolbox.split.stages.manifest import Manifest, read_manifest
from igniter.toolbox.split.stages.running import RankRunner, StageRunner, Values, runner_of
from igniter.toolbox.split.stages.worker import KEY, READY, THREADS

START_SECONDS = 120.0
"""The time limit for loading the models in a process."""


class Worker:
    """One process; `call` runs one of its models, one call at a time."""

    def __init__(self, name: str, models: list[str], folder: Path, threads: int = 0):
        self.name = name
        key = secrets.token_bytes(32)
        address = str(folder / f"{name}.socket")
        with Listener(address, "AF_UNIX" if hasattr(os, "fork") else None, authkey=key) as listener:
            command = [sys.executable, "-m", "igniter.toolbox.split.stages.worker", str(listener.address), *models]
            environment = {
                **os.environ,
                KEY: key.hex(),
                THREADS: str(threads),
                "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
            }
            self.process = subprocess.Popen(command, env=environment)
            self._connection: Any = self._accept(listener)
        self._lock = threading.Lock()

    def _accept(self, listener: Listener) -> Any:
        """Accepts the connection from the process; raises if the process ends before."""
        got: list[Any] = []
        thread = threading.Thread(target=lambda: got.append(listener.accept()), daemon=True)
        thread.start()
        end = time.monotonic() + START_SECONDS
        while thread.is_alive() and self.process.poll() is None and time.monotonic() < end:
            thread.join(0.05)
        if not got:
            self.process.kill()
            raise IgniterError(f"the process of {self.name} did not start (exit status {self.process.wait()})")
        return got[0]

    def started(self) -> int:
        """Waits until the models are loaded; returns the process's id."""
        kind, what = self._receive(START_SECONDS)
        if kind != READY:
            raise IgniterError(f"{self.name}: {what}")
        return int(what)

    def call(self, index: int, values: Values) -> dict[str, Any]:
        """Returns the outputs of one of its models."""
        with self._lock:
            try:
                self._connection.send((index, dict(values)))
            except OSError as error:
                raise self._ended() from error
            kind, what = self._receive(None)
        if kind == "error":
            raise IgniterError(f"{self.name}: {what}")
        return what

    def _receive(self, seconds: float | None) -> Any:
        try:
            if not wait([self._connection], seconds):
                raise IgniterError(f"the process of {self.name} did not answer in {seconds:.0f} seconds")
            return self._connection.recv()
        except (EOFError, OSError) as error:
            raise self._ended() from error

    def _ended(self) -> IgniterError:
        """Returns the error for a closed socket, found by a write or a read."""
        return IgniterError(f"the process of {self.name} ended (exit status {self.process.wait()})")

    def stop(self) -> None:
        """Ends the process."""
        self._connection.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class ProcessStages:
    """The stages, or ranks, of a folder, each in a process; a context manager that ends them.

    with ProcessStages("stages") as stages:
        outputs = stages.runner.run({"x": x})
    """

    def __init__(self, folder: str | Path | Manifest):
        self.manifest = folder if isinstance(folder, Manifest) else read_manifest(folder)
        self._scratch = tempfile.TemporaryDirectory(prefix="igniter-stages-")
        self.workers: list[Worker] = []
        # All of them start at the same time.
        threads = max(1, (os.cpu_count() or 1) // len(self.manifest.stages))
        try:
            for stage, models in zip(self.manifest.stages, self.manifest.places(), strict=True):
                paths = [str((self.manifest.folder / m).resolve()) for m in models]
                self.workers.append(Worker(stage.name, paths, Path(self._scratch.name), threads))
            self.processes = [w.started() for w in self.workers]
        except BaseException:  # an interrupt, too, ends the processes; raised again
            self.close()
            raise
        self.runner: StageRunner | RankRunner = runner_of(self.manifest, [w.call for w in self.workers])

    def close(self) -> None:
        """Ends the processes."""
        for worker in self.workers:
            worker.stop()
        self.workers = []
        self._scratch.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
