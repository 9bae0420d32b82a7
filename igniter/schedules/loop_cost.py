"""The approximate cycles of a scheduled loop: enough to decide if work is worth a task for another thread.

The figures are the machine's (`igniter.analysis.machine`): throughputs of one core on vectors of the width in the
`vector` words. They decide grain sizes only, where a factor of two does not matter; they never affect correctness.

The count is separate from that of nests (`nest_counts.py`), because scheduled loops contain what nests do not: peeled
tails, packing, micro-kernels, and vectors whose number is rounded up in each block.
"""

from __future__ import annotations

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Operation

from igniter.analysis.machine import MachineModel
from igniter.analysis.scheduled.loop_accesses import ranges_at, trip_count
from igniter.dialects.loop import AllocOp, ForOp, IfOp, IfSharedOp, MemoryOp, TileProductOp, ViewOp
from igniter.dialects.sym.expr import ONE, ZERO, Expr, maximum, product
from igniter.dialects.sym.ranges import is_nonneg


def body_cycles(block: Block, machine: MachineModel, lanes: int = 1) -> Expr:
    """Returns the cycles of one run of `block`; `lanes` elements share the cost of a vector loop's ops."""
    total = 0
    nested = ZERO
    for op in block.ops:
        if isinstance(op, (ForOp, IfOp, IfSharedOp, TileProductOp)):
            nested = nested + op_cycles(op, machine, lanes)
        else:
            total += _op_cycles(op, machine)
    return nested + max(1, -(-total // lanes)) if total else nested


def op_cycles(op: Operation, machine: MachineModel, lanes: int = 1) -> Expr:
    """Returns the cycles of one run of a statement, with the statements in it."""
    if isinstance(op, ForOp):
        wide = op.words.vector or 1
        return _iterations(op) * body_cycles(op.block, machine, max(lanes, wide)) + machine.loop_cycles
    if isinstance(op, IfOp):
        return body_cycles(op.block, machine, lanes)
    if isinstance(op, IfSharedOp):
        return body_cycles(op.apart.block, machine, lanes)
    return tile_cycles(op, machine) if isinstance(op, TileProductOp) else Expr.of(_op_cycles(op, machine))


def _iterations(loop: ForOp) -> Expr:
    """Returns the number of iterations of a loop. Its bounds may cross, as over the rows of a stored padding; there are
    then none."""
    trips = trip_count(loop)
    return trips if is_nonneg(trips, ranges_at(loop)) else maximum(ZERO, trips)


def tile_cycles(op: TileProductOp, machine: MachineModel) -> Expr:
    """Returns the cycles of one call of a micro-kernel: a product and a sum count as one operation, as in
    `products_a_cycle`."""
    work = 1 if op.kernel is None else op.kernel.operations
    return (product(op.extents_attr.data) * work).ceildiv(machine.products_a_cycle)


def _op_cycles(op: Operation, machine: MachineModel) -> int:
    if isinstance(op, MemoryOp):
        gathers = any(isinstance(i.type, VectorType) for i in op.indices)
        return machine.access_cycles * (machine.gather_accesses if gathers else 1)
    if isinstance(op, (AllocOp, ViewOp)) or op.name == "arith.constant":
        return 0
    return machine.cycles_of(op.name)


def iteration_cycles(loop: ForOp, machine: MachineModel) -> Expr:
    """Returns the cycles of one iteration of `loop`, at least 1; symbolic where inner loops are."""
    cycles = body_cycles(loop.block, machine, loop.words.vector or 1)
    return cycles if cycles != ZERO else ONE
