"""One process of the comparison: it creates a session of a system, runs it, and prints its times as JSON.

python -m benchmark.plugin_ep.process SYSTEM FOLDER PROVIDER THREADS SECONDS
"""

from __future__ import annotations

import json
import resource
import statistics
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort


def open_session(system: str, place: Path, provider: str, threads: int) -> Any:
    """Creates the session of a system."""
    ort.set_default_logger_severity(3)
    options = ort.SessionOptions()
    options.intra_op_num_threads = threads
    if system == "custom op":
        (library,) = (place / "model.igniter").glob("libigniter_*.so")
        options.register_custom_ops_library(str(library))
        return ort.InferenceSession(str(place / "model.igniter" / "model.onnx"), options)
    if system == "plugin":
        ort.register_execution_provider_library("Igniter", provider)
        devices = [d for d in ort.get_ep_devices() if d.ep_name == "Igniter"]
        options.add_provider_for_devices(devices, {"plan": str(place / "plan.txt")})
        return ort.InferenceSession(str(place / "model.onnx"), options)
    return ort.InferenceSession(str(place / "model.onnx"), options, providers=["CPUExecutionProvider"])


def measure(system: str, place: Path, provider: str, threads: int, seconds: float) -> None:
    """Prints the figures of one process as JSON, and stores its outputs."""
    start = time.perf_counter()
    session = open_session(system, place, provider, threads)
    created = time.perf_counter() - start
    feeds = dict(np.load(place / "inputs.npz"))
    outputs = session.run(None, feeds)
    np.savez(place / f"{system}.npz", *outputs)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        session.run(None, feeds)
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"start": created, "run": statistics.median(times), "peak": peak}))


if __name__ == "__main__":
    system, place, provider, threads, seconds = sys.argv[1:]
    measure(system, Path(place), provider, int(threads), float(seconds))
