"""This machine as a device of the roofline: the measured peak of multiply-adds and memory reads, on all cores."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from igniter.analysis.devices import Device
from igniter.targets import backend_for
from igniter.toolbox.machine.measurement import aligned_bytes

ROUNDS = 5
"""The number of turns of each measurement; the best one counts."""

SECONDS = 0.02
"""The approximate duration of a turn."""

PART = 64 << 20
"""The bytes read by a thread, more than its share of any cache."""

KINDS: tuple[tuple[Literal["f32", "bf16", "int8"], str], ...] = (
    ("f32", "float"),
    ("bf16", "bfloat16"),
    ("int8", "int8"),
)
"""The measured kinds, each with the element type of its peak."""


def usable_cores() -> int:
    """Returns the number of cores available to this process."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def measure_device(step: Callable[[str], None] = lambda _: None) -> Device:
    """Measures this machine in some two seconds: multiply-adds in registers on every core, and memory reads by all."""
    rates, cores = backend_for("native").rates(), usable_cores()
    vector = np.zeros(256, np.uint8)
    peaks: dict[str, float] = {}
    for kind, element in KINDS:
        step(f"products of {element}")
        one = rates.peak(kind, 20_000)
        if one is None:
            continue
        func, operations = one
        alone = _seconds([func.prepared([vector.copy()], {})])
        repeats = max(1, round(SECONDS / alone))
        runs = [_repeated(func.prepared([vector.copy()], {}), repeats) for _ in range(cores)]
        peaks[element] = cores * repeats * operations / _seconds(runs)
    peaks["double"] = peaks["float"] / 2
    step("memory")
    reader = rates.reader()
    buffers = [aligned_bytes(PART) for _ in range(cores)]
    reads = [reader.prepared([b, np.zeros(64, np.uint8)], {"repeats": 1, "size": PART}) for b in buffers]
    bandwidth = cores * PART / _seconds(reads)
    memory = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")) if hasattr(os, "sysconf") else 0.0
    return Device("native", peaks, bandwidth, memory=memory, source=f"measured, {cores} cores")


def _repeated(run: Callable[[], object], repeats: int) -> Callable[[], object]:
    def all_of_them() -> None:
        for _ in range(repeats):
            run()

    return all_of_them


def _seconds(runs: list[Callable[[], Any]]) -> float:
    """Returns the time of concurrent runs, each on its own thread: the best of some turns."""
    fewest = float("inf")
    for _ in range(ROUNDS):
        threads = [threading.Thread(target=run) for run in runs[1:]]
        start = time.perf_counter()
        for thread in threads:
            thread.start()
        runs[0]()
        for thread in threads:
            thread.join()
        fewest = min(fewest, time.perf_counter() - start)
    return fewest
