"""The measurement of candidates: each in a process of its own, here or on the machines of a Ray cluster.

A process that crashes, hangs or exhausts its memory costs one candidate. Processes are forked from a server that has
imported the compiler once and compiled nothing, so a process starts in milliseconds.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import TYPE_CHECKING, Any, Protocol

from igniter.distribution import install_command
from igniter.errors import IgniterError
from igniter.passes import flat_passes
from igniter.registry import DIALECTS, where_pass
from igniter.targets import backend_for
from igniter.toolbox.tune.measure import Job, Measurement, measure

if TYPE_CHECKING:
    from multiprocessing.context import DefaultContext, ForkServerContext, SpawnContext

Work = Callable[[Job], Measurement]


class Executor(Protocol):
    """A measurement service for candidates. `width` is the number of concurrent ones."""

    @property
    def width(self) -> int: ...

    def run(self, jobs: Sequence[Job]) -> list[Measurement]:
        """Returns the measurement of each job, in their order."""
        ...

    def close(self) -> None: ...


class LocalExecutor:
    """One process at a time on this machine: concurrent work would distort the time of a kernel."""

    width = 1

    def __init__(self, work: Work = measure):
        self.work = work

    def run(self, jobs: Sequence[Job]) -> list[Measurement]:
        return [isolated(self.work, job) for job in jobs]

    def close(self) -> None:
        pass


class RayExecutor:
    """A task of a Ray cluster for each candidate, one CPU each; there it runs in a process of its own, as it does here.

    `address` is a cluster's, "auto" this machine's own cluster, and "" creates one of this machine alone.
    """

    def __init__(self, address: str = "", work: Work = measure):
        if find_spec("ray") is None:
            raise IgniterError(f"--ray needs Ray: {install_command('ray')}")
        self._ray: Any = import_module("ray")
        self._owned = not self._ray.is_initialized()
        if self._owned:
            try:
                self._ray.init(
                    address=address or None, log_to_driver=False, include_dashboard=False if not address else None
                )
            except Exception as error:  # Ray's errors have no common base
                what = f"reach the Ray cluster '{address}'" if address else "start a Ray cluster on this machine"
                raise IgniterError(f"cannot {what}: {error}") from error
        # A candidate that crashes its worker is not retried on another one.
        self._task: Any = self._ray.remote(num_cpus=1, max_retries=0)(isolated)
        self.work = work

    @property
    def width(self) -> int:
        """The CPUs of the cluster."""
        return max(1, int(self._ray.cluster_resources().get("CPU", 1)))

    def run(self, jobs: Sequence[Job]) -> list[Measurement]:
        tasks = [self._task.remote(self.work, job) for job in jobs]
        found: list[Measurement] = []
        for task in tasks:
            try:
                found.append(self._ray.get(task))
            except Exception as error:  # a crash of the worker, or an error of Ray
                found.append(Measurement("failed", f"the Ray task ended: {str(error).strip().splitlines()[-1]}"))
        return found

    def close(self) -> None:
        if self._owned:
            self._ray.shutdown()


def isolated(work: Work, job: Job) -> Measurement:
    """Returns the result of `work` for a job in a process of its own, with a limit of `job.limit` seconds."""
    context = _context()
    ours, theirs = context.Pipe(duplex=False)
    # The job uses a pipe too: its arrays may be larger than the limit for arguments of a process.
    job_in, job_out = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(work, job_in, theirs), daemon=True)
    process.start()
    job_in.close()
    theirs.close()
    start = time.monotonic()
    try:
        with suppress(BrokenPipeError, ConnectionResetError):
            job_out.send(job)
        if not ours.poll(max(0.0, job.limit - (time.monotonic() - start))):
            return Measurement("late", f"it was not done in {job.limit:g} seconds")
        try:
            return ours.recv()
        except EOFError:
            process.join(10)
            return Measurement("crashed", _ending(process.exitcode))
    finally:
        process.kill()
        process.join()
        ours.close()
        job_out.close()


def _child(work: Work, jobs: Connection, answers: Connection) -> None:
    # Ctrl-C is for the waiting process: it ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    job: Job = jobs.recv()
    try:
        found = work(job)
    except Exception as error:  # any failure is a measurement of this candidate
        found = Measurement("failed", f"{type(error).__name__}: {error}")
    answers.send(found)


def _ending(status: int | None) -> str:
    if status is not None and status < 0:
        with suppress(ValueError):
            return f"its process was ended by {signal.Signals(-status).name}"
    return f"its process ended with status {status}"


def _context() -> DefaultContext | ForkServerContext | SpawnContext:
    """Returns the context of forked copies of a process with imports only; of new processes on systems without such a
    server."""
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return multiprocessing.get_context("spawn")
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_preloaded())
    return context


def _preloaded() -> list[str]:
    """Returns the imports of every process: the compiler after `choose-schedule`, and its dependencies."""
    backend = backend_for("native")
    names = [each.partition("{")[0] for each in flat_passes(backend.pipelines.schedule)]
    named = [where for name in names if (where := where_pass(name)) is not None]
    named += [where for where in DIALECTS.values() if where.startswith("igniter.")]
    return [
        # The program itself, otherwise imported by every process.
        "__main__",
        "numpy",
        *backend.modules,
        "igniter.api",
        "igniter.verification.check_inputs",
        "igniter.verification.interp.structured",
        "igniter.toolbox.tune.measure",
        "igniter.verification.judgement",
        "igniter.toolbox.kernel.workbench",
        *dict.fromkeys(where.partition(":")[0] for where in named),
    ]
