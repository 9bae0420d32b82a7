"""`igniter bench --sessions N`: a model under load, N callers at a time, each with a session of its own.

Each system runs in a process of its own, and they take turns. In a turn all callers of a system run for `SECONDS`, each
the next call when its last one is done (a closed loop), and every call is timed. Sessions are called by Python's
threads; a run releases the interpreter's lock, so calls of less than about 100 us wait for each other.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, cast

import numpy as np

from igniter.errors import IgniterError
from igniter.frontend.ort_values import runner, storable
from igniter.runtime.timing import Runnable, System, TimedProcess
from igniter.runtime.timing_worker import session_of

Array = np.ndarray[Any, Any]

SECONDS = 0.5
"""The duration of a system's turn."""
ENTRY, OPENVINO = "igniter.toolbox.bench.load:prepare", "openvino"
PERCENTILES = (50, 90, 99)


@dataclass(frozen=True)
class Load:
    """The calls of one system in all turns: the seconds of each, and of the turns together."""

    calls: Array
    seconds: float

    def to_dict(self) -> dict[str, float]:
        """Returns the calls per second, and percentiles of their milliseconds."""
        found = {f"p{p}_ms": float(1000 * np.percentile(self.calls, p)) for p in PERCENTILES}
        return {"per_second": len(self.calls) / self.seconds, "calls": len(self.calls), **found}


def measure_load(
    models: Mapping[str, tuple[str | Path | bytes, Sequence[str | Path]]],
    inputs: Mapping[str, Array],
    sessions: int,
    *,
    threads: int = 1,
    rounds: int = 7,
    spinning: bool = False,
    progress: Callable[[int], None] = lambda _: None,
) -> dict[str, Load]:
    """Puts each model, with its libraries, under the load of `sessions` callers; and OpenVINO, if it is installed, on
    the first model. The order rotates with the rounds."""
    with tempfile.TemporaryDirectory(prefix="igniter-load-") as folder, ExitStack() as stack:
        stored = Path(folder) / "inputs.npz"
        np.savez(stored, **cast("Any", storable(inputs)))
        workers: list[TimedProcess] = []
        for system in _systems(models, Path(folder), str(stored), sessions, threads, spinning):
            worker = _started(system)
            if worker is not None:
                stack.callback(worker.close)
                workers.append(worker)
        turns: dict[str, list[list[Any]]] = {worker.name: [] for worker in workers}
        for index in range(rounds):
            for worker in workers[index % len(workers) :] + workers[: index % len(workers)]:
                turns[worker.name].append(worker.outputs())
            progress(index + 1)
    return {
        name: Load(np.concatenate([calls for calls, _ in each]), sum(float(s) for _, s in each))
        for name, each in turns.items()
    }


def _systems(
    models: Mapping[str, tuple[str | Path | bytes, Sequence[str | Path]]],
    folder: Path,
    stored: str,
    sessions: int,
    threads: int,
    spinning: bool,
) -> list[System]:
    found: list[System] = []
    for name, (model, libraries) in models.items():
        path = model
        if isinstance(model, bytes):
            path = folder / f"{len(found)}.onnx"
            path.write_bytes(model)
        files = tuple(map(str, libraries))
        settings = {"sessions": sessions, "engine": "onnxruntime"}
        found.append(System(name, str(path), stored, files, threads, spinning, ENTRY, settings))
    if find_spec(OPENVINO) is not None:
        settings = {"sessions": sessions, "engine": OPENVINO}
        found.append(System(OPENVINO, found[0].model, stored, (), threads, spinning, ENTRY, settings))
    return found


def _started(system: System) -> TimedProcess | None:
    """Starts the process of a system; None for a peer that does not run the model."""
    try:
        return TimedProcess(system)
    except IgniterError:
        if system.name != OPENVINO:
            raise
        return None


# -- in the process of a system ---------------------------------------------------------------------------------------


@dataclass
class _Loaded:
    """The callers of a system: `run` makes one call, `outputs` a turn."""

    run: Callable[[], object]
    outputs: Callable[[], list[Any]]


def prepare(system: System) -> Runnable:
    """Loads a system with one session for each caller."""
    callers = (_openvino if system.settings["engine"] == OPENVINO else _onnxruntime)(system)
    for call in callers:
        call()
    return _Loaded(callers[0], lambda: _turn(callers))


def _onnxruntime(system: System) -> list[Callable[[], object]]:
    return [runner(*session_of(system, {})) for _ in range(int(system.settings["sessions"]))]


def _openvino(system: System) -> list[Callable[[], object]]:
    import openvino  # pyright: ignore[reportMissingImports]

    ov: Any = openvino
    sessions = int(system.settings["sessions"])
    with np.load(system.inputs) as stored:
        arrays: dict[str, Array] = {name: np.ascontiguousarray(stored[name]) for name in stored.files}
    model = ov.Core().read_model(system.model)
    model.reshape({port.any_name: list(arrays[port.any_name].shape) for port in model.inputs})
    settings = {
        "PERFORMANCE_HINT": "THROUGHPUT" if sessions > 1 else "LATENCY",
        "NUM_STREAMS": sessions,
        "INFERENCE_NUM_THREADS": sessions * max(1, system.threads),
        # It would use bf16 for models in f32 where the CPU has it.
        "INFERENCE_PRECISION_HINT": "f32",
    }
    compiled = ov.Core().compile_model(model, "CPU", settings)
    callers: list[Callable[[], object]] = []
    for _ in range(sessions):
        request = compiled.create_infer_request()
        for name, array in arrays.items():
            request.set_tensor(name, ov.Tensor(array))
        callers.append(request.infer)
    return callers


def _turn(callers: Sequence[Callable[[], object]]) -> list[Any]:
    """Returns the seconds of every call of a turn, and of the turn."""
    times: list[list[float]] = [[] for _ in callers]
    barrier = threading.Barrier(len(callers) + 1)

    def work(call: Callable[[], object], found: list[float]) -> None:
        barrier.wait()
        end = time.perf_counter() + SECONDS
        start = time.perf_counter()
        while start < end or not found:
            call()
            done = time.perf_counter()
            found.append(done - start)
            start = done

    threads = [threading.Thread(target=work, args=pair) for pair in zip(callers, times, strict=True)]
    for thread in threads:
        thread.start()
    barrier.wait()
    start = time.perf_counter()
    for thread in threads:
        thread.join()
    return [np.array([s for each in times for s in each]), time.perf_counter() - start]
