"""The features of a scheduled kernel: the input of the learned cost model (`learned_costs.py`).

    features_of(kernel, func, machine, sizes)     # {"cycles": 14.2, "arithmetic": 13.9, "l1_traffic": 9.1, ...}

`kernel` is a structured kernel with its schedules, `func` the same kernel as scheduled loops. All is counted from
the IR and the machine model; nothing runs. Quantities that vary by factors are logarithms (base 2, of 1 + the
quantity), so a difference of two vectors is a ratio. The order and the names are fixed: `FEATURES` is their version.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from math import log2, prod

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Operation

from igniter.analysis.machine import MachineModel
from igniter.analysis.scheduled.loop_accesses import trip_count, vector_width
from igniter.analysis.structured.contractions import TALL, WIDENED, tile_in_registers
from igniter.analysis.structured.nest_counts import count_nest
from igniter.analysis.typical_sizes import TypicalSizes
from igniter.dialects.loop import AllocOp, ForOp, FuncOp, IfOp, IfSharedOp, KernelOp, MemoryOp, TileProductOp, ViewOp
from igniter.dialects.loop.panels import PANEL_BYTES
from igniter.schedules.expected_time import expected_times
from igniter.schedules.loop_cost import body_cycles, tile_cycles
from igniter.schedules.loop_traffic import traffic_of
from igniter.schedules.paired_blocks import has_pairs

FEATURES = 2
"""The version of the features. Trials with features of another version are not learned from."""

ADDING = frozenset({"arith.addf", "arith.mulf", "math.fma"})
"""Ops that a register tile of sums repeats."""


def features_of(kernel: KernelOp, func: FuncOp, machine: MachineModel, sizes: Mapping[str, int]) -> dict[str, float]:
    """Returns the features of a scheduled kernel at `sizes` of its symbols."""
    known = TypicalSizes(tuple(sizes.items()))
    cycles = max(0, known.value(body_cycles(func.block, machine), 0))
    found = {"cycles": _log(cycles), **_bounds(kernel, machine, known), **_traffic(func, machine, sizes)}
    work = _Work(machine, known)
    work.block(func.block, 1, 1)
    points = sum(known.value(count_nest(nest, known).points, 1) for nest in kernel.nests)
    return {**found, **work.features(), **_shape(kernel, func), "points": _log(points)}


def _log(quantity: float) -> float:
    return log2(1 + max(0.0, float(quantity)))


def _bounds(kernel: KernelOp, machine: MachineModel, sizes: TypicalSizes) -> dict[str, float]:
    """Returns the two bounds of the expected time, and the larger one of each group."""
    parts = expected_times(kernel, machine, sizes)
    arithmetic = [sizes.value(part.arithmetic, 0) for part in parts]
    memory = [sizes.value(part.memory, 0) for part in parts]
    most = sum(max(pair) for pair in zip(arithmetic, memory, strict=True))
    return {"arithmetic": _log(sum(arithmetic)), "memory": _log(sum(memory)), "expected": _log(most)}


def _traffic(func: FuncOp, machine: MachineModel, sizes: Mapping[str, int]) -> dict[str, float]:
    """Returns the bytes moved into each cache, and the cycles of these moves."""
    node = traffic_of(func.block, sizes, machine.line_bytes)
    into = [node.moved(holds) for holds in (machine.l1d_bytes, machine.l2_bytes, machine.l3_share or machine.l2_bytes)]
    rates = machine.l2_bytes_cycle, machine.l3_bytes_cycle, machine.memory_bytes_us / (machine.clock_ghz * 1e3)
    cycles = sum(moved / rate for moved, rate in zip(into, rates, strict=True))
    told = {f"l{k}_traffic": _log(moved) for k, moved in enumerate(into, 1)}
    return {**told, "traffic_cycles": _log(cycles), "footprint": _log(node.footprint)}


def _shape(kernel: KernelOp, func: FuncOp) -> dict[str, float]:
    """Returns the sizes of the code, and the words of the schedules."""
    loops = [loop for nest in kernel.nests if nest.schedule is not None for loop in nest.schedule.loops]
    groups = {loop.fuse for loop in loops if loop.fuse}
    return {
        "code": _log(sum(1 for _ in func.walk())),
        "copies": _log(sum(_copies(op) for op in func.walk() if isinstance(op, ForOp))),
        "loops": float(sum(1 for op in func.walk() if isinstance(op, ForOp))),
        "buffers": float(sum(1 for op in func.walk() if isinstance(op, AllocOp))),
        "groups": float(len(groups)),
        "lanes": _log(max((loop.vector for loop in loops), default=0)),
    }


def _copies(loop: ForOp) -> int:
    """Returns the copies of a loop's body in the code; a fully unrolled loop has one for each iteration."""
    if loop.words.unroll is None:
        return 1
    return loop.words.unroll or trip_count(loop).constant or 1


def _conversions(kind: str, height: int, rows: int, stripes: int, machine: MachineModel) -> int:
    """Returns how often a call of a micro-kernel converts or interleaves its panels, for `rows` rows in `stripes`."""
    if kind not in WIDENED and not has_pairs(kind, machine):
        return 0
    tall = TALL[kind]
    return 1 if height == tall.rows and rows > tall.few else stripes


class _Work:
    """The statements that run, counted by kind through all loops."""

    def __init__(self, machine: MachineModel, sizes: TypicalSizes):
        self.machine = machine
        self.sizes = sizes
        self.counts: Counter[str] = Counter()
        self.weighted: Counter[str] = Counter()
        self.tasks = 1

    def block(self, block: Block, times: int, lanes: int) -> None:
        """Counts `times` runs of a block; `lanes` elements share an op."""
        self.counts["blocks"] += -(-times // lanes)
        for op in block.ops:
            self._statement(op, times, lanes)

    def _statement(self, op: Operation, times: int, lanes: int) -> None:
        if isinstance(op, ForOp):
            trips = max(0, self.sizes.value(trip_count(op), 0))
            self.counts["entries"] += times
            if op.words.threads is not None:
                self.tasks = max(self.tasks, trips)
            wide = op.words.vector or 1
            self.counts["masked"] += times * (-trips % wide)
            self.counts["iterations"] += times * trips
            self.block(op.block, times * trips, max(lanes, wide))
        elif isinstance(op, IfOp):
            self.counts["branches"] += times
            self.block(op.block, times, lanes)
        elif isinstance(op, IfSharedOp):
            self.block(op.apart.block, times, lanes)
        elif isinstance(op, TileProductOp):
            self._tile(op, times)
        elif isinstance(op, MemoryOp):
            self._access(op, times, lanes)
        elif not isinstance(op, (AllocOp, ViewOp)) and op.name != "arith.constant":
            runs = -(-times // lanes)
            self.counts["ops"] += runs
            self.counts["adding" if op.name in ADDING else "other"] += runs * self.machine.cycles_of(op.name)

    def _access(self, op: MemoryOp, times: int, lanes: int) -> None:
        runs = -(-times // lanes)
        gathers = any(isinstance(i.type, VectorType) for i in op.indices)
        self.counts["gathers" if gathers else "accesses"] += runs
        self.weighted["width"] += runs * max(lanes, vector_width(op))

    def _tile(self, op: TileProductOp, times: int) -> None:
        """Counts the calls of a micro-kernel: the registers that its tile needs, its loads for each product, and the
        steps of panels that it converts or interleaves."""
        kind, group = ("", 1) if op.kernel is None else (op.kernel.name, op.kernel.group)
        height, panels = tile_in_registers(kind, op.tile)
        across = panels * max(1, PANEL_BYTES // self.machine.vector_bytes)
        steps = times * max(1, self.sizes.value(tile_cycles(op, self.machine), 0))
        rows, wide, _, depth, *rounds = (max(1, self.sizes.value(e, 1)) for e in op.extents_attr.data)
        stripes = -(-rows // height)
        self.counts["tile_calls"] += times
        self.counts["tile_cycles"] += steps
        lines = times * wide * -(-depth // group) * prod(rounds)
        self.counts["tile_conversions"] += lines * _conversions(kind, op.tile[0], rows, stripes, self.machine)
        self.weighted["tile_registers"] += steps * (height + 1) * across
        self.weighted["tile_sums"] += steps * height * across
        self.weighted["tile_loads"] += steps * 1000 * (height + across) // (height * across)
        self.weighted["tile_filled"] += steps * 1000 * rows // (stripes * height)

    def features(self) -> dict[str, float]:
        """Returns the counts as features."""
        kinds = ("blocks", "entries", "iterations", "masked", "branches", "accesses", "gathers", "ops", "adding")
        tiles = ("tile_calls", "tile_cycles", "tile_conversions")
        found = {kind: _log(self.counts[kind]) for kind in (*kinds, "other", *tiles)}
        accesses, steps = self.counts["accesses"] + self.counts["gathers"], self.counts["tile_cycles"]
        found["width"] = _log(self.weighted["width"] / accesses) if accesses else 0.0
        for name in ("tile_registers", "tile_sums", "tile_loads", "tile_filled"):
            scale = 1000 if name in ("tile_loads", "tile_filled") else 1
            found[name] = self.weighted[name] / steps / scale if steps else 0.0
        needed = found["tile_registers"] + (1 if steps else 0)
        found["tile_spills"] = max(0.0, needed - self.machine.registers)
        found["tasks"] = _log(self.tasks)
        return found
