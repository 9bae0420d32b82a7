"""The process of one system in one setting: loads its sessions, and runs them when it is told.

It reads one JSON object (`Job`), answers "ready", and then answers each line with a number of seconds by the runs that
its callers completed and the seconds that they took.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Job:
    """The work of a worker."""

    system: str
    model: str
    library: str
    """The custom-op library, or nothing."""
    inputs: str
    """A file of arrays by name (`.npz`)."""
    sessions: tuple[int, ...]
    callers: int
    parallel: bool
    spinning: bool
    cpus: int | None = None

    def text(self) -> str:
        return json.dumps(asdict(self))


def _in_ort(job: Job, inputs: dict[str, Any]) -> list[Callable[[], object]]:
    import onnxruntime as ort

    calls: list[Callable[[], object]] = []
    for threads in job.sessions:
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", str(int(job.spinning)))
        options.add_session_config_entry("session.inter_op.allow_spinning", str(int(job.spinning)))
        if job.parallel:
            options.execution_mode = ort.ExecutionMode.ORT_PARALLEL
            options.inter_op_num_threads = 2
        if job.library:
            options.register_custom_ops_library(job.library)
        session = ort.InferenceSession(job.model, options, providers=["CPUExecutionProvider"])
        calls += [lambda session=session: session.run(None, inputs)] * job.callers
    return calls


def _in_openvino(job: Job, inputs: dict[str, Any]) -> list[Callable[[], object]]:
    import openvino as ov  # type: ignore[import-not-found]

    core = ov.Core()
    calls: list[Callable[[], object]] = []
    for threads in job.sessions:
        model = core.read_model(job.model)
        model.reshape({name: list(value.shape) for name, value in inputs.items()})
        settings = {"INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"}
        compiled = core.compile_model(model, "CPU", settings)
        for _ in range(job.callers):
            request = compiled.create_infer_request()
            calls.append(lambda request=request: request.infer(inputs))
    return calls


def _count(call: Callable[[], object], until: float, counts: list[int], place: int) -> None:
    while time.perf_counter() < until:
        call()
        counts[place] += 1


def rate(calls: list[Callable[[], object]], seconds: float) -> tuple[int, float]:
    """Returns the runs that the callers complete in about `seconds`, and the seconds until the last one ended."""
    counts = [0] * len(calls)
    start = time.perf_counter()
    others = [
        threading.Thread(target=_count, args=(call, start + seconds, counts, k), daemon=True)
        for k, call in enumerate(calls)
    ]
    for thread in others:
        thread.start()
    for thread in others:
        thread.join()
    return sum(counts), time.perf_counter() - start


def main() -> None:
    """Serves one setting."""
    job = Job(**json.loads(sys.stdin.readline()))
    if job.cpus is not None:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[: job.cpus])
    inputs = dict(np.load(job.inputs))
    calls = _in_openvino(job, inputs) if job.system == "openvino" else _in_ort(job, inputs)
    for call in calls:
        call()
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(rate(calls, float(line))), flush=True)


if __name__ == "__main__":
    main()
