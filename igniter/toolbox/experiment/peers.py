"""The peers of an experiment, and the models of the benchmark: both are in `benchmark/` of Igniter's repository.

How a peer loads a model is `benchmark/peers/systems.py`. The package alone does not have it; a peer is then a row with
this reason, and so is a peer that is not installed.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from igniter.errors import IgniterError

if TYPE_CHECKING:
    from igniter.runtime.timing import Runnable, System

TOLERANCE = 1e-3
"""The largest difference from ONNX Runtime's outputs that counts as the same model, relative to the largest value."""


@dataclass(frozen=True)
class LoadedPeer:
    """A model in a peer. It keeps the task, because peers run on its arrays without keeping them."""

    run: Callable[[], object]
    outputs: Callable[[], list[Any]]
    task: Any


def require_peers() -> None:
    """Raises `IgniterError` without the folder of peers."""
    if find_spec("benchmark") is None or find_spec("benchmark.peers") is None:
        raise IgniterError("peers are in the folder benchmark/ of Igniter's repository: run from a checkout")


def unavailable(peer: str) -> str | None:
    """Returns the reason why a peer cannot take part, or `None`."""
    try:
        require_peers()
        import_module("benchmark.peers.systems").SYSTEMS[peer].version()
    except Exception as error:
        # `Unavailable` of the peers, or a package of theirs that is missing.
        return str(error)
    return None


def version_of(peer: str) -> str:
    """Returns the version of an installed peer."""
    return str(import_module("benchmark.peers.systems").SYSTEMS[peer].version())


def environment(threads: int, spinning: bool) -> Mapping[str, str]:
    """Returns the environment of a peer's process, which fixes its threads."""
    made: Mapping[str, str] = import_module("benchmark.peers.race").environment(
        threads or os.cpu_count() or 1, spinning
    )
    return made


def load_peer(system: System) -> Runnable:
    """Loads a model in a peer: the `entry` of its `System`."""
    require_peers()
    protocol, systems = import_module("benchmark.peers.protocol"), import_module("benchmark.peers.systems")
    with np.load(system.inputs) as stored:
        inputs = {name: stored[name] for name in stored.files}
    said = system.settings
    task = protocol.Task(system.model, inputs, system.threads, spinning=system.spinning, torch=tuple(said["torch"]))
    folder = Path(tempfile.mkdtemp(prefix="igniter-peer-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    prepared = systems.SYSTEMS[said["peer"]].prepare(task, folder)
    return LoadedPeer(prepared.run, prepared.outputs, task)


def largest_error(expected: Sequence[Any], found: Sequence[Any]) -> float:
    """Returns the largest difference of outputs, relative to the largest value of an output."""
    error: float = import_module("benchmark.peers.race").largest_error(expected, found)
    return error


def write_model(name: str, folder: str) -> dict[str, Any]:
    """Makes a model of the benchmark (a job)."""
    found: Any = import_module("benchmark.models.subjects").subject(name, Path(folder))
    return {"path": str(found.file), "torch": list(found.torch)}
