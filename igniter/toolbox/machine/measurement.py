"""Measuring the machine: the figures of its model that a few seconds of generated loops can show.

Every figure is the best of several turns, because other work on the machine only slows a turn; cycles are those of the
fastest observed clock, from a chain of exclusive ors. A figure that cannot be measured is omitted, with the reason.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from igniter.analysis.machine import OP_CYCLES, Given, MachineModel
from igniter.api import parse
from igniter.errors import IgniterError
from igniter.runtime.session import make_session, silence
from igniter.targets import Rates, backend_for

if TYPE_CHECKING:
    Array: TypeAlias = np.ndarray[Any, Any]

ROUNDS = 5
"""The number of turns of each measurement; the best one counts."""

LARGEST = 1 << 26
"""The largest buffer read, in bytes."""

CHAIN = (8, 136)
"""The lengths of the two chains in ONNX Runtime whose difference gives the cost of a node."""


@dataclass
class Measurement:
    """The measurements of a machine: values by the names of figures, and the reasons for missing ones."""

    values: dict[str, Any] = field(default_factory=dict[str, Any])
    missing: dict[str, str] = field(default_factory=dict[str, str])
    reading: dict[int, float] = field(default_factory=dict[int, float])
    """The read bandwidth by the size of the buffer: bytes a cycle, for repeated reads."""
    seconds: float = 0.0

    def given(self) -> tuple[Given, ...]:
        """Returns the figures in the form for `override`."""
        values = dict(self.values)
        if "op_cycles" in values:
            values["op_cycles"] = tuple(sorted(values["op_cycles"].items()))
        return tuple((name, value, "measured") for name, value in values.items())


def measure(machine: MachineModel, step: Callable[[str], None] = lambda _: None) -> Measurement:
    """Measures this machine, described by the model `machine`; raises `IgniterError` if that is the model of another
    target."""
    if machine.name != "native":
        raise IgniterError(
            f"only this machine can be measured, and '{machine.name}' may be another: leave --target out, or run this "
            "where the code is to run"
        )
    found = Measurement()
    start = time.perf_counter()
    clock = Clock()
    for name, work in (
        ("arithmetic", _arithmetic),
        ("caches and memory", _reading),
        ("functions", _functions),
        ("hand-overs", _handover),
        ("launches", _launch),
    ):
        step(name)
        work(machine, clock, found)
    found.values["clock_ghz"] = round(clock.best, 2)
    found.seconds = round(time.perf_counter() - start, 1)
    return found


def _rates() -> Rates:
    return backend_for("native").rates()


# -- time -------------------------------------------------------------------------------------------------------------


class Clock:
    """The cycles of a nanosecond: the maximum observed on a chain of one cycle a link."""

    def __init__(self) -> None:
        func, self._links = _rates().clock()
        self._run = func.prepared([np.zeros(1, np.int64)], {})
        self.best = 0.0
        for _ in range(ROUNDS):
            self.look()

    def look(self) -> None:
        """Takes another sample."""
        self.best = max(self.best, self._links / _nanoseconds(self._run))

    def cycles(self, run: Callable[[], object], rounds: int = ROUNDS) -> float:
        """Returns the cycles of one call, the fewest of some turns."""
        run()
        fewest = min(_nanoseconds(run) for _ in range(rounds))
        self.look()
        return fewest * self.best


def _nanoseconds(run: Callable[[], object]) -> float:
    start = time.perf_counter_ns()
    run()
    return max(1, time.perf_counter_ns() - start)


# -- one core ---------------------------------------------------------------------------------------------------------


def _arithmetic(machine: MachineModel, clock: Clock, found: Measurement) -> None:
    rates = _rates()
    vector = np.zeros(machine.vector_bytes, np.uint8)
    func, links = rates.additions()
    found.values["add_latency"] = _rounded(clock.cycles(func.prepared([vector], {})) / links)
    if not machine.fma:
        found.missing |= dict.fromkeys(("fma_ports", "fma_latency"), "multiply-add is no instruction here")
        return
    lanes = machine.vector_bytes // 4
    # One chain for each free register: fewer would measure latency, more would spill.
    for name, chains in (("fma_ports", min(24, machine.registers - 3)), ("fma_latency", 1)):
        one = rates.peak("f32", 40_000 // chains, chains)
        assert one is not None
        func, operations = one
        spent = clock.cycles(func.prepared([vector], {})) / (operations / 2 / lanes)
        found.values[name] = _rounded(spent if chains == 1 else 1 / spent)


def _reading(machine: MachineModel, clock: Clock, found: Measurement) -> None:
    inside = {
        "l1_bytes_cycle": machine.l1d_bytes // 2,
        "l2_bytes_cycle": (machine.l1d_bytes + machine.l2_bytes) // 2,
    }
    if machine.l3_bytes:
        # A small part of a large cache: a neighbour may fill the rest.
        inside["l3_bytes_cycle"] = min((machine.l2_bytes + machine.l3_bytes) // 2, 8 * machine.l2_bytes)
    sizes = {name: min(size, LARGEST) // 512 * 512 for name, size in inside.items()}
    func, buffer, sums = _rates().reader(), aligned_bytes(LARGEST), np.zeros(64, np.uint8)
    spent: dict[int, float] = {}
    for size in sorted({*(1 << k for k in range(13, 40) if 1 << k <= LARGEST), *sizes.values()}):
        repeats = max(1, (4 << 20) // size)
        run = func.prepared([buffer, sums], {"repeats": repeats, "size": size})
        spent[size] = clock.cycles(run) / repeats
    rate = 0.0
    for size in sorted(spent, reverse=True):
        # A smaller buffer can have the rate of a larger one; if it was slower, something else ran.
        rate = max(rate, size / spent[size])
        found.reading[size] = _rounded(rate)
    found.reading = dict(sorted(found.reading.items()))
    found.values |= {name: found.reading[size] for name, size in sizes.items()}
    found.values["load_ports"] = _rounded(found.values["l1_bytes_cycle"] / machine.vector_bytes)
    found.missing["store_ports"] = "nothing is stored"
    _memory(machine, func.prepared([buffer, sums], {"repeats": 1, "size": LARGEST}), buffer, found)


def aligned_bytes(size: int) -> Array:
    """Returns a buffer aligned to a line: otherwise every vector would be two accesses. All its pages are its own."""
    memory = np.full(size + 64, 1, np.uint8)
    skipped = -memory.ctypes.data % 64
    return memory[skipped : skipped + size]


def _memory(machine: MachineModel, run: Callable[[], object], buffer: Array, found: Measurement) -> None:
    """Measures the memory, with a buffer outside all caches, because its lines were evicted, or because of its size."""
    flush = _rates().flusher()
    if flush is None and 2 * max(machine.l2_bytes, machine.l3_bytes) > LARGEST:
        found.missing["memory_bytes_us"] = "the caches hold what is read, and are not to be emptied on this CPU"
        return
    empty: Callable[[], object] = flush.prepared([buffer], {"size": LARGEST}) if flush is not None else lambda: None
    fewest = float("inf")
    for _ in range(ROUNDS):
        empty()
        fewest = min(fewest, _nanoseconds(run))
    found.values["memory_bytes_us"] = float(round(LARGEST / fewest * 1e3))


def _functions(machine: MachineModel, clock: Clock, found: Measurement) -> None:
    rates = _rates()
    ops = [op for op, _ in OP_CYCLES if op.startswith("math.") or op == "arith.divf"]
    lanes = machine.vector_bytes // 4
    # Between 0 and 1, where every function is defined; acosh is a NaN there, at the same cost.
    x = aligned_bytes(rates.VECTORS * machine.vector_bytes).view(np.float32)
    x[:] = np.linspace(0.01, 0.99, rates.VECTORS * lanes)
    y = aligned_bytes(rates.VECTORS * machine.vector_bytes)
    func, repeats = rates.functions(ops), 40 * rates.VECTORS
    cycles: dict[str, int] = {}
    for k, op in enumerate(ops):
        run = func.prepared([x, y], {"which": k, "repeats": repeats})
        cycles[op] = max(1, round(clock.cycles(run) / repeats))
    found.values["op_cycles"] = cycles


# -- several threads --------------------------------------------------------------------------------------------------


def _handover(machine: MachineModel, clock: Clock, found: Measurement) -> None:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if usable < 2:
        found.missing["handover_cycles"] = "this process has one core, and two threads would wait for each other's turn"
        return
    func, rounds, fewest = _rates().answers(), 2000, float("inf")
    for _ in range(ROUNDS):
        cell = np.zeros(8, np.int64)
        sides = [func.prepared([cell], {"side": side, "rounds": rounds}) for side in range(2)]
        other = threading.Thread(target=sides[1])
        other.start()
        spent = _nanoseconds(sides[0])
        other.join()
        if cell[0] == 2 * rounds:
            fewest = min(fewest, spent / rounds * clock.best)
    if fewest == float("inf"):
        found.missing["handover_cycles"] = "the two threads never ran at the same time: the machine is busy"
    else:
        found.values["handover_cycles"] = max(1, round(fewest))


def _launch(machine: MachineModel, clock: Clock, found: Measurement) -> None:
    """Measures ONNX Runtime's time for one more node of a chain, whose kernels negate one number."""
    silence()
    times: list[float] = []
    for nodes in CHAIN:
        session: Any = make_session(_chain(nodes), intra_op_num_threads=1, config={}, graph_optimization_level=_raw())
        feeds = {"x": np.ones(1, np.float32)}
        times.append(min(_nanoseconds(lambda s=session, f=feeds: s.run(None, f)) for _ in range(100)))
    found.values["launch_us"] = _rounded(max(0.01, (times[1] - times[0]) / (CHAIN[1] - CHAIN[0]) / 1e3))


def _raw() -> Any:
    """Returns ONNX Runtime's setting for no optimisation: it would remove a chain of negations."""
    import onnxruntime

    ort: Any = onnxruntime
    return ort.GraphOptimizationLevel.ORT_DISABLE_ALL


def _chain(nodes: int) -> bytes:
    lines = [
        f'    %v{k + 1} = onnx.Neg(%v{k}) <{{output_names = ["v{k + 1}"]}}> : (tensor<1xf32>) -> tensor<1xf32>'
        for k in range(nodes)
    ]
    text = "\n".join(
        [
            'builtin.module attributes {onnx.model = {ir_version = 8 : i64, opset_import = {"" = 17 : i64}}} {',
            '  onnx.graph @main(%v0: tensor<1xf32>) attributes {input_names = ["x"], output_names = ["y"]} {',
            *lines,
            f"    onnx.return %v{nodes} : tensor<1xf32>",
            "  }",
            "}",
        ]
    )
    return parse(text).to_onnx().SerializeToString()


def _rounded(value: float) -> float:
    """Rounds to three digits: the rest is noise."""
    return float(f"{value:.3g}")
