"""Comparisons on the machines of a Ray cluster (the extra `ray`): one machine for each comparison.

Every machine of the cluster has one worker, which takes all of its CPUs and one comparison at a time, so no two
comparisons share a machine. The worker keeps its folder, so builds are shared by the comparisons of a machine. A model
is sent to the worker; plug-ins are not, so their folders must be on every machine. Records come back when a comparison
is complete; an interrupted run repeats the incomplete ones.
"""

from __future__ import annotations

import dataclasses
import tempfile
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from igniter.distribution import install_command
from igniter.errors import IgniterError
from igniter.runtime.digests import file_digest
from igniter.runtime.files import write_whole
from igniter.toolbox.experiment.comparison import Case, Comparison, is_complete
from igniter.toolbox.experiment.spec import Spec
from igniter.toolbox.experiment.store import Store

if TYPE_CHECKING:
    from igniter.toolbox.experiment.runs import Say


class Machine:
    """The worker of one machine."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="igniter-experiment-")

    def compare(self, spec: Spec, case: Case, model: bytes) -> dict[str, bytes]:
        """Runs a comparison; returns its records and those of its builds by path."""
        root = Path(self._folder.name)
        if model:
            place = root / "models" / Path(case.subject.path).name
            place.parent.mkdir(exist_ok=True)
            write_whole(place, model)
            case = dataclasses.replace(case, subject=dataclasses.replace(case.subject, path=str(place)))
        Comparison(spec, case, Store(root), lambda _: None).run()
        files = [*root.glob(f"cases/{case.id}/*.json"), *root.glob("builds/*/*.json"), *root.glob("builds/*/ir/*")]
        return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


class RayCluster:
    """The machines of a Ray cluster. `address` is a cluster's, "auto" this machine's own cluster, and "" creates one of
    this machine alone."""

    def __init__(self, address: str = ""):
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

    def run(self, spec: Spec, cases: list[Case], store: Store, say: Say) -> None:
        """Runs the incomplete comparisons, each on a machine of its own."""
        waiting = [case for case in cases if not is_complete(spec, case, store)]
        free = self._machines()
        running: dict[Any, tuple[Case, Any]] = {}
        while waiting or running:
            while waiting and free:
                case, machine = waiting.pop(0), free.pop()
                say(f"{case.id}: sent to a machine, {len(waiting)} are waiting")
                running[machine.compare.remote(spec, case, _model(case))] = case, machine
            (done, *_), _ = self._ray.wait(list(running), num_returns=1)
            case, machine = running.pop(done)
            try:
                for path, data in self._ray.get(done).items():
                    target = store.root / path
                    target.parent.mkdir(parents=True, exist_ok=True)
                    write_whole(target, data)
            except Exception as error:  # a crash of the worker, or an error of Ray
                raise IgniterError(f"the comparison {case.id} ended on its machine: {_last_line(error)}") from error
            say(f"{case.id}: done")
            free.append(machine)

    def _machines(self) -> list[Any]:
        """Returns a worker for each machine of the cluster, with all of its CPUs."""
        strategy = import_module("ray.util.scheduling_strategies").NodeAffinitySchedulingStrategy
        nodes: list[dict[str, Any]] = [node for node in self._ray.nodes() if node["Alive"]]
        made: list[Any] = []
        for node in nodes:
            cpus = node["Resources"].get("CPU", 0)
            if cpus:
                options = {"num_cpus": cpus, "scheduling_strategy": strategy(node["NodeID"], soft=False)}
                made.append(self._ray.remote(Machine).options(**options).remote())
        if not made:
            raise IgniterError("the Ray cluster has no machine with CPUs")
        return made

    def close(self) -> None:
        """Ends the cluster, if it was made here."""
        if self._owned:
            self._ray.shutdown()


def _model(case: Case) -> bytes:
    """Returns a model as bytes; none for a case without one."""
    path = case.subject.path
    if not path:
        return b""
    if file_digest(path) != case.subject.digest:
        raise IgniterError(f"{path} has changed since the experiment began")
    return Path(path).read_bytes()


def _last_line(error: Exception) -> str:
    lines = [line for line in str(error).strip().splitlines() if line]
    return lines[-1] if lines else type(error).__name__
