"""The expected time of scheduled nests on one core: a roofline over the decisions of the schedule author.

The time is the larger of two bounds, in cycles (Williams, Waterman and Patterson, "Roofline", 2009):

* Arithmetic. The cost of a point of a nest is the cost of its body (`nest_counts.py`): the ops by the machine's table,
  and an access for each read and write, one vector at a time where a loop has lanes. A micro-kernel sums as many
  products a cycle as the machine does. In a tile of sums in registers, copies of the body share equal reads, results
  are not accessed, and loads overlap with the ops. Accesses are assumed to hit the first-level cache, and loops to cost
  nothing.
* Memory. Every byte is moved once, at the rate of its level: the nearest that holds the working set, at typical sizes.
  The working set of inputs and results of the kernel is all of these together, since a run finds the data of the run
  before. For a tensor between two groups it is the tensor. For a tensor within a group it is the part stored in one
  iteration of the group's shared loops. Data in the first-level cache cost nothing here.

A shared cache counts with a core's share. Data read again are assumed to be in their cache still (the panels of a
product during the loop over rows): the schedule author has to ensure this.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm, prod
from typing import Literal, NamedTuple

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from igniter.analysis.machine import MachineModel
from igniter.analysis.structured.nest_bodies import tensor_behind
from igniter.analysis.structured.nest_counts import NestCount, count_body, count_nest, largest
from igniter.analysis.typical_sizes import MEMORY, TypicalSizes, typical_of
from igniter.dialects.loop import Clause, KernelOp, NestOp, ViewOp, element_bytes, stored_bytes
from igniter.dialects.loop.instructions import PANEL_BYTES
from igniter.dialects.loop.schedule import Loop, Product, ScheduleAttr
from igniter.dialects.sym.expr import ZERO, Expr, product, symbols_of

Bound = Literal["arithmetic", "memory"]
Scheduled = tuple[NestOp, ScheduleAttr]
Counted = tuple[NestOp, ScheduleAttr, NestCount]


class Level(NamedTuple):
    """A level of the memory hierarchy: its bytes for a core (`None`: unlimited), and its bytes a cycle for a core."""

    name: str
    holds: int | None
    rate: Fraction


@dataclass(frozen=True)
class Expectation:
    """The expected time of nests, in cycles of one core, as expressions of the kernel's symbols."""

    arithmetic: Expr
    memory: Expr
    moved: tuple[tuple[str, Expr], ...]
    """The bytes from each level behind the first, nearest first."""
    bound: Bound
    """The larger of the two bounds, at typical sizes."""

    @property
    def cycles(self) -> Expr:
        """The expected cycles: the larger bound."""
        return self.memory if self.bound == "memory" else self.arithmetic


def expected_time(nests: Sequence[Scheduled], machine: MachineModel, sizes: TypicalSizes | None = None) -> Expectation:
    """Returns the expected time of a group of scheduled nests; `sizes`: typical sizes, if not those of the kernel."""
    known = typical_of(nests[0][0]) if sizes is None else sizes
    counted = [(nest, schedule, count_nest(nest, known)) for nest, schedule in nests]
    arithmetic = _arithmetic(counted, machine)
    levels = _levels(machine)
    moved = dict.fromkeys((level.name for level in levels), ZERO)
    for size, part in _moves(counted, known):
        moved[_level_of(known.value(part, MEMORY), levels).name] += size
    memory = ZERO
    for level in levels[1:]:
        memory = memory + (moved[level.name] * level.rate.denominator).ceildiv(level.rate.numerator)
    bound = "memory" if known.value(memory, MEMORY) > known.value(arithmetic, MEMORY) else "arithmetic"
    told = tuple((level.name, moved[level.name]) for level in levels[1:] if moved[level.name] != ZERO)
    return Expectation(arithmetic, memory, told, bound)


def expected_times(kernel: KernelOp, machine: MachineModel, sizes: TypicalSizes | None = None) -> list[Expectation]:
    """Returns the expected time of each group of a kernel's nests; nests with the same `fuse` label are one group.
    Nests without a schedule, and procedures, are left out."""
    groups: dict[str, list[Scheduled]] = {}
    for nest in kernel.nests:
        if nest.schedule is not None:
            label = next((f"fuse {loop.fuse}" for loop in nest.schedule.loops if loop.fuse), f"nest {nest.label}")
            groups.setdefault(label, []).append((nest, nest.schedule))
    return [expected_time(group, machine, sizes) for group in groups.values()]


# -- arithmetic -------------------------------------------------------------------------------------------------------


def _arithmetic(nests: Sequence[Counted], machine: MachineModel) -> Expr:
    costs = [(count.points, _point(nest, schedule, count, machine)) for nest, schedule, count in nests]
    whole = lcm(1, *(cycles.denominator for _, cycles in costs))
    total = ZERO
    for points, cycles in costs:
        total = total + points * (cycles.numerator * (whole // cycles.denominator))
    return total.ceildiv(whole)


def _point(nest: NestOp, schedule: ScheduleAttr, count: NestCount, machine: MachineModel) -> Fraction:
    """Returns the cycles of a point."""
    if schedule.product is not None:
        return _padding(nest, schedule.product) / machine.products_a_cycle
    lanes = max((1, *(loop.vector for loop in schedule.loops)))
    tile = _register_tile(nest, schedule)
    if tile:
        return max(_folded(nest, machine, lanes), _loads(nest, tile, machine)) / lanes
    work = sum(machine.cycles_of(name) for name in (*count.body.ops, *count.body.addresses))
    accesses = count.body.reads + len(count.written)
    return Fraction(work + accesses * machine.access_cycles, lanes)


def _padding(nest: NestOp, tile: Product) -> Fraction:
    """Returns the products that a micro-kernel computes for one of the nest: the last panel of columns is filled up. A
    symbolic number of columns counts as whole panels."""
    columns = next((axis.extent.constant for axis in nest.axes if axis.name == tile.columns), None)
    if not columns:
        return Fraction(1)
    panel = PANEL_BYTES // element_bytes(nest.yield_op.clauses[0].value.type)
    return Fraction(-(-columns // panel) * panel, columns)


def _register_tile(nest: NestOp, schedule: ScheduleAttr) -> dict[str, int]:
    """Returns the copies of the body along each axis of a tile of sums in registers; empty if the sums of a nest are
    not in a tile: its innermost loops are written out, and a loop over a reduction is around them."""
    if any(clause.combiner == "none" for clause in nest.yield_op.clauses):
        return {}
    parallel = {axis.name for axis in nest.axes if axis.kind == "parallel"}
    extents = {axis.name: axis.extent.constant for axis in nest.axes}
    outer: list[Loop] = list(schedule.loops)
    copies: dict[str, int] = {}
    while outer and (outer[-1].unroll is not None or outer[-1].vector) and outer[-1].by == 1:
        loop = outer.pop()
        block = min((o.by for o in outer if o.axis == loop.axis and o.by > 1), default=extents[loop.axis])
        copies[loop.axis] = max(1, -(-(block or 1) // max(1, loop.vector)))
    around = any(loop.axis not in parallel for loop in outer)
    return copies if around and copies.keys() & parallel else {}


def _folded(nest: NestOp, machine: MachineModel, lanes: int) -> Fraction:
    """Returns the cycles of the ops for one vector of a tile; a product that is added counts as one op, at the rate of
    micro-kernels."""
    added = {c.value.owner for c in nest.yield_op.clauses if c.combiner == "add"}
    names = count_body(nest.block.ops).ops
    fused = sum(isinstance(op, arith.MulfOp) for op in added if isinstance(op, Operation))
    work = sum(machine.cycles_of(name) for name in names) - fused * machine.cycles_of("arith.mulf")
    return work + fused * Fraction(lanes, machine.products_a_cycle)


def _loads(nest: NestOp, tile: Mapping[str, int], machine: MachineModel) -> Fraction:
    """Returns the cycles of the loads for one vector of a tile; copies of the body share what they read alike."""
    loads = Fraction(0)
    for read in nest.reads:
        axes = set(tile) if read.indices else symbols_of(read.subscripts)
        loads += Fraction(1, prod(n for axis, n in tile.items() if axis not in axes))
    return loads * Fraction(machine.vector_bytes / machine.l1_bytes_cycle).limit_denominator(16)


# -- memory -----------------------------------------------------------------------------------------------------------


def _levels(machine: MachineModel) -> list[Level]:
    """Returns the levels, nearest first. A machine without a third level has memory behind the second."""
    memory = machine.memory_bytes_us / (machine.clock_ghz * 1e3)
    found = [
        ("l1", machine.l1d_bytes, machine.l1_bytes_cycle),
        ("l2", machine.l2_bytes, machine.l2_bytes_cycle),
        *([("l3", machine.l3_share, machine.l3_bytes_cycle)] if machine.l3_bytes else []),
        ("memory", None, memory),
    ]
    return [Level(name, holds, Fraction(rate).limit_denominator(16)) for name, holds, rate in found]


def _level_of(size: int, levels: Sequence[Level]) -> Level:
    """Returns the nearest level with room for `size` bytes."""
    return next(level for level in levels if level.holds is None or size <= level.holds)


def _moves(nests: Sequence[Counted], sizes: TypicalSizes) -> Iterator[tuple[Expr, Expr]]:
    """Yields the bytes moved by nests, each time with the size of their working set."""
    kernel = nests[0][0].parent_op()
    assert isinstance(kernel, KernelOp)
    members = [nest for nest, _, _ in nests]
    outside = dict.fromkeys([*kernel.block.args, *(tensor_behind(v) for v in kernel.returned)])
    whole = sum((stored_bytes(v.type) for v in outside), ZERO)
    read: dict[SSAValue, list[Expr]] = {}
    for _, _, count in nests:
        for value, part in count.read:
            read.setdefault(value, []).append(part)
    for value, parts in read.items():
        if value.owner not in members:
            yield largest(parts, sizes), whole if value in outside else stored_bytes(value.type)
    for nest, schedule, count in nests:
        for (value, size), clause in zip(count.written, nest.yield_op.clauses, strict=True):
            stays = value not in outside and _stays(value, members)
            if not stays:
                yield size, whole if value in outside else size
            times = len(read.get(value, ())) + stays
            yield size * times, _kept(nest, schedule, clause)


def _stays(value: SSAValue, members: Sequence[NestOp]) -> bool:
    """True if only the nests of a group read a tensor."""
    for use in value.uses:
        op = use.operation
        if isinstance(op, ViewOp):
            if not _stays(op.result, members):
                return False
        elif op.parent_op() not in members:
            return False
    return True


def _kept(nest: NestOp, schedule: ScheduleAttr, clause: Clause) -> Expr:
    """Returns the bytes of a result written by one iteration of the nest's shared loops."""
    extents = {a.name: a.extent for a in nest.axes}
    extents |= {loop.axis: Expr.of(loop.by) for loop in schedule.loops if loop.fuse}
    return product(extents[name] for name in sorted(symbols_of(clause.subscripts) & extents.keys())) * element_bytes(
        clause.value.type
    )
