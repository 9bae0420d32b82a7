"""What this machine can do at most, measured: multiply-adds a second in registers, and bytes read a second.

The loops are those of `igniter.backends.cpu.rates`. Threads are Python's, which a call into generated code lets go of;
all start together, and the last to end counts. A rate is the median of its samples: a
caller takes one between the runs of what it holds against the rate, since a core's clock drifts.
"""

from __future__ import annotations

import os
import platform
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, Self

import numpy as np

from igniter.backends.cpu.machine import machine_for
from igniter.backends.cpu.rates import Arithmetic, peak, reader
from igniter.backends.cpu.target import target_of

Level = Literal["l2", "l3", "memory"]
LEVELS: tuple[Level, ...] = ("l2", "l3", "memory")


@dataclass(frozen=True)
class Machine:
    """Measured rates with some number of threads: scalar operations a second, bytes a second, cache sizes in bytes."""

    threads: int
    flops: dict[Arithmetic, float]
    """A multiply-add counts as two; a kind that the CPU has no instruction for is not there."""
    bandwidth: dict[Level, float]
    l2: int
    """Of all threads together; `l3` is shared."""
    l3: int

    def level(self, size: int) -> Level:
        """Where a buffer of that size lies when it is read again."""
        return "l2" if size <= self.l2 else "l3" if size <= self.l3 else "memory"

    def seconds(self, size: int) -> float:
        """What moving that many bytes takes at the bandwidth of where they lie."""
        return size / self.bandwidth[self.level(size)]


# -- measuring --------------------------------------------------------------------------------------------------------


@contextmanager
def together(calls: Sequence[Callable[[], object]]) -> Iterator[Callable[[], float]]:
    """A function that runs all calls at the same time, each on a thread of its own, and returns the seconds."""
    begin, end = threading.Barrier(len(calls)), threading.Barrier(len(calls))
    running = True

    def work(call: Callable[[], object]) -> None:
        while True:
            begin.wait()
            if not running:
                return
            call()
            end.wait()

    helpers = [threading.Thread(target=work, args=(call,), daemon=True) for call in calls[1:]]
    for helper in helpers:
        helper.start()

    def run() -> float:
        begin.wait()
        start = time.perf_counter()
        calls[0]()
        end.wait()
        return time.perf_counter() - start

    try:
        yield run
    finally:
        running = False
        begin.wait()


@dataclass
class Probe:
    """Samples of one rate: `work` (operations or bytes) is what one run of all threads does."""

    work: float
    run: Callable[[], float]
    samples: list[float] = field(default_factory=list[float])

    def sample(self) -> None:
        self.samples.append(self.work / self.run())

    def rate(self, best: bool = False) -> float:
        return max(self.samples) if best else statistics.median(self.samples)


class Probes:
    """Probes of everything that a `Machine` says, and of buffers of other sizes; `sample` takes one of each.

    A sample is 5 to 20 ms a probe, long beside what it takes to start the threads.
    """

    TRIPS = 1_500_000
    READ = 1 << 29

    def __init__(self, threads: int, levels: Sequence[Level] = LEVELS, buffers: Sequence[int] = ()):
        self.threads = threads
        self._open = ExitStack()
        self._flops: dict[Arithmetic, Probe] = {}
        self._levels = {level: self._reader(sizes(threads)[level]) for level in levels}
        self._buffers = {size: self._reader(size) for size in dict.fromkeys(buffers)}
        for kind in ("f32", "bf16", "int8"):
            found = peak(kind, self.TRIPS)
            if found is not None:
                func, operations = found
                vector = target_of("native").vector_bytes
                calls = [func.prepared([np.zeros(vector, np.uint8)], {}) for _ in range(threads)]
                self._flops[kind] = Probe(threads * operations, self._open.enter_context(together(calls)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._open.close()

    def sample(self, rounds: int = 1) -> None:
        for _ in range(rounds):
            for probe in self._all:
                probe.sample()

    def restart(self) -> None:
        """Forget the samples so far."""
        for probe in self._all:
            probe.samples.clear()

    @property
    def sampled(self) -> bool:
        return all(probe.samples for probe in self._all)

    @property
    def _all(self) -> list[Probe]:
        return [*self._flops.values(), *self._levels.values(), *self._buffers.values()]

    @property
    def spread(self) -> float:
        """How far apart the quartiles of the f32 rate are, relative to its median: how disturbed the machine was."""
        samples = self._flops["f32"].samples
        if len(samples) < 2:
            return 0.0
        low, middle, high = statistics.quantiles(samples, n=4, method="inclusive")
        return (high - low) / middle

    def machine(self, best: bool = False) -> Machine:
        """The rates so far, medians or the best."""
        model = machine_for("native")
        flops = {kind: probe.rate(best) for kind, probe in self._flops.items()}
        bandwidth = {level: probe.rate(best) for level, probe in self._levels.items()}
        return Machine(self.threads, flops, bandwidth, self.threads * model.l2_bytes, model.l3_bytes)

    def reading(self, size: int) -> float:
        """Bytes a second when one of `buffers` is read again and again."""
        return self._buffers[size].rate()

    def _reader(self, size: int) -> Probe:
        share = max(512, size // self.threads // 512 * 512)
        repeats = max(1, self.READ // (share * self.threads))
        func = reader(share)
        # Written once, so that every page is one of its own and not the zero page.
        buffers = [np.full(share // 4, 1, np.int32) for _ in range(self.threads)]
        calls = [func.prepared([b, np.zeros(64, np.uint8)], {"repeats": repeats}) for b in buffers]
        return Probe(share * self.threads * repeats, self._open.enter_context(together(calls)))


def sizes(threads: int) -> dict[Level, int]:
    """A buffer's size for each level: half of what the level holds, and for memory what no cache does."""
    model = machine_for("native")
    memory = max(1 << 28, 4 * model.l3_bytes)
    return {"l2": threads * model.l2_bytes // 2, "l3": model.l3_bytes // 2, "memory": memory}


def measure(threads: int, rounds: int = 9) -> Machine:
    """Every rate with that many threads: the best samples, where nothing is run beside that is disturbed as well."""
    with Probes(threads) as probes:
        probes.sample(rounds)
        return probes.machine(best=True)


def describe(machine: Machine) -> str:
    """One line: what was measured."""
    flops = ", ".join(f"{kind} {rate / 1e9:.0f} GFLOP/s" for kind, rate in machine.flops.items())
    read = ", ".join(f"{level} {rate / 1e9:.1f} GB/s" for level, rate in machine.bandwidth.items())
    return f"threads {machine.threads}: {flops}; read {read}"


def cpu() -> dict[str, Any]:
    """What results say of the machine that they were taken on."""
    model = machine_for("native")
    return {
        "cpu": model.cpu,
        "cores": os.cpu_count(),
        "vector_bytes": model.vector_bytes,
        "l2": model.l2_bytes,
        "l3": model.l3_bytes,
        "python": platform.python_version(),
    }
