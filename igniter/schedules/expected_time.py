"""The expected time of scheduled nests on one core: a roofline over the decisions of the schedule author.

The time is the larger of two bounds, in cycles (Williams, Waterman and Patterson, "Roofline", 2009):

* Arithmetic. The cost of a point of a nest is the cost of its body (`nest_counts.py`): the ops by the machine's table,
  and an access for each read and write, one vector at a time where a loop has lanes. A micro-kernel sums as many
  products a cycle as the machine does. Accesses are assumed to hit the first-level cache, and loops to cost nothing.
* Memory. Every byte is moved once, at the rate of its level: the nearest that holds the working set, at typical sizes.
  The working set of inputs and results of the kernel is all of these together, since a run finds the data of the run
  before. For a tensor between two groups it is the tensor. For a tensor within a group it is the part stored in one
  iteration of the group's shared loops. Data in the first-level cache cost nothing here.

A shared cache counts with a core's share. Data read again are assumed to be in their cache still (the panels of a
product during the loop over rows): the schedule author has to ensure this.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import lcm
from typing import Literal, NamedTuple

from xdsl.ir import SSAValue

from igniter.analysis.machine import MachineModel
from igniter.analysis.structured.nest_bodies import tensor_behind
from igniter.analysis.structured.nest_counts import NestCount, count_nest, largest
from igniter.analysis.typical_sizes import MEMORY, TypicalSizes, typical_of
from igniter.dialects.loop import Clause, KernelOp, NestOp, ViewOp, element_bytes, stored_bytes
from igniter.dialects.loop.schedule import ScheduleAttr
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
    costs = [(count.points, *_point(count, schedule, machine)) for _, schedule, count in nests]
    whole = lcm(1, *(points_at_once for _, _, points_at_once in costs))
    total = ZERO
    for points, cycles, at_once in costs:
        total = total + points * (cycles * (whole // at_once))
    return total.ceildiv(whole)


def _point(count: NestCount, schedule: ScheduleAttr, machine: MachineModel) -> tuple[int, int]:
    """Returns cycles, and the number of points computed in them."""
    if schedule.product is not None:
        return 1, machine.products_a_cycle
    work = sum(machine.cycles_of(name) for name in (*count.body.ops, *count.body.addresses))
    accesses = count.body.reads + len(count.written)
    lanes = max((loop.vector for loop in schedule.loops), default=0)
    return work + accesses * machine.access_cycles, max(1, lanes)


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
