"""Schedules of procedures: their threaded loops and their vector loops.

The order of the axes stays. The outermost axis is threaded. In a procedure without axes, the outermost loops of its
body are, if they have independent iterations and write nothing that another of them accesses. A loop of the body
becomes a vector if nothing in it is sequential or under a data-dependent condition, and if every access along it is
contiguous or invariant.
"""

from __future__ import annotations

from dataclasses import replace

from xdsl.ir import Attribute, Block, Operation

from igniter.analysis.scheduled.loop_accesses import shared_element
from igniter.dialects.loop import AccumulateOp, ForOp, IfOp, LoadOp, MemoryOp, ProcedureOp, StoreOp, element_bytes
from igniter.dialects.loop.schedule import Loop, ScheduleAttr
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, Expr, linearize
from igniter.schedules.scheduling import Machine


def schedule_procedure(op: ProcedureOp, machine: Machine) -> ScheduleAttr:
    """Returns the schedule of one procedure."""
    loops = {a.name: Loop(a.name) for a in op.axes}
    wide = [a for a in op.axes if a.extent != ONE]
    if wide:
        loops[wide[0].name] = Loop(wide[0].name, threads=0)
    else:
        for loop in _outermost(op.block):
            if not loop.is_sequential and not loop.indices and _apart(op, loop):
                loops[loop.axis] = Loop(loop.axis, threads=0)
    for loop in [x for x in op.walk() if isinstance(x, ForOp)]:
        width = _width(loop, machine)
        if width is not None:
            sums = machine.sum_chains if loop.is_reduction else 0
            words = loops.get(loop.axis, Loop(loop.axis))
            loops[loop.axis] = replace(words, vector=width, accumulators=sums)
    return ScheduleAttr(list(loops.values()))


def _outermost(block: Block) -> list[ForOp]:
    return [op for op in block.ops if isinstance(op, ForOp)]


def _apart(op: ProcedureOp, loop: ForOp) -> bool:
    """True if no two iterations of `loop` access the same element (no dependence). The quick test: every access to a
    written buffer has the loop's axis, bare, in one and the same dim. Other subscripts, such as rows per iteration,
    need a proof."""
    accesses = [x for x in loop.walk() if isinstance(x, MemoryOp)]
    name = Expr.of(loop.axis)
    for buffer in {x.accessed for x in accesses if not isinstance(x, LoadOp)}:
        mine = [x for x in accesses if x.accessed is buffer]
        places = range(len(dims_of(buffer.type)))
        if not any(all(x.subscripts[k] == name for x in mine) for k in places):
            return shared_element(loop) is None
    return True


def _width(loop: ForOp, machine: Machine) -> int | None:
    """Returns the lanes of a vector along `loop`; `None` if it stays scalar."""
    if loop.is_sequential or loop.indices or loop.step != 1 or (loop.end - loop.first).constant in (0, 1):
        return None
    elements: list[Attribute] = []
    varies = False
    for op in loop.walk():
        if op is loop:
            continue
        if isinstance(op, ForOp) and (not op.is_sequential or op.indices or op.going is not None):
            return None
        if isinstance(op, IfOp):
            return None
        if isinstance(op, MemoryOp):
            if not _contiguous(op, loop):
                return None
            moves = _moves(op, loop.axis)
            if isinstance(op, StoreOp) and not moves and not _inside(op, loop):
                return None
            if isinstance(op, AccumulateOp) and not moves and not loop.is_reduction:
                return None
            varies |= moves
            elements.append(element_of(op.accessed.type))
    widest = max((element_bytes(e) for e in elements), default=0)
    return max(2, min(machine.vector_bytes // widest, 64)) if varies and widest else None


def _inside(op: MemoryOp, loop: ForOp) -> bool:
    """True if the buffer belongs to an iteration."""
    return _within(op.accessed.owner, loop)


def _within(owner: Operation | Block, loop: ForOp) -> bool:
    parent = owner.parent_op()
    while parent is not None and parent is not loop:
        parent = parent.parent_op()
    return parent is loop


def _contiguous(op: MemoryOp, loop: ForOp) -> bool:
    """True if an access is contiguous along `loop` or invariant, and no value computed in the loop is a subscript."""
    axis = loop.axis
    if any(_within(index.owner, loop) for index in op.indices):
        return False
    step = linearize(op.subscripts, dims_of(op.accessed.type)).coefficient(axis)
    return step is not None and step.constant in (0, 1) and all(g.coefficient(axis) is not None for g in op.guards)


def _moves(op: MemoryOp, axis: str) -> bool:
    return any(axis in s.symbols for s in op.subscripts)
