"""What a scheduled nest is expected to take, in cycles of one core: what the author of its schedule says of it.

Every point of a nest costs what its body does: arithmetic by the machine's table, an access each for what it reads and
writes, a vector at a time where a loop of it has lanes. A micro-kernel adds up as many products a cycle as the machine
does. Operands are taken to be in the caches, and loops to cost nothing: it is what the arithmetic takes.
"""

from __future__ import annotations

from math import lcm

from igniter.analysis.machine import MachineModel
from igniter.dialects.loop import NestOp, ReadOp, YieldOp
from igniter.dialects.loop.schedule import ScheduleAttr
from igniter.dialects.sym.expr import ZERO, Expr, product


def expected_cycles(nests: list[tuple[NestOp, ScheduleAttr]], machine: MachineModel) -> Expr:
    """The cycles of nests with their schedules, as an expression of the kernel's symbols."""
    costs = [(product(a.extent for a in nest.axes), *_point(nest, schedule, machine)) for nest, schedule in nests]
    whole = lcm(1, *(points_at_once for _, _, points_at_once in costs))
    total = ZERO
    for points, cycles, at_once in costs:
        total = total + points * (cycles * (whole // at_once))
    return total.ceildiv(whole)


def _point(nest: NestOp, schedule: ScheduleAttr, machine: MachineModel) -> tuple[int, int]:
    """The cycles of so many points."""
    if schedule.product is not None:
        return 1, machine.products_a_cycle
    accesses = len(nest.reads) + len(nest.yield_op.clauses)
    work = sum(machine.cycles_of(op.name) for op in nest.block.ops if not isinstance(op, (ReadOp, YieldOp)))
    lanes = max((loop.vector for loop in schedule.loops), default=0)
    return work + accesses * machine.access_cycles, max(1, lanes)
