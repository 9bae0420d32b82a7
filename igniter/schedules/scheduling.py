"""The common types of schedule authors: the machine, the groups of nests, and the form of a schedule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from xdsl.ir import SSAValue

from igniter.analysis.machine import MachineModel
from igniter.analysis.structured.contractions import Contraction
from igniter.dialects.loop import ComputeOp, IndexOp, NestOp, ReadOp, element_bytes, is_float
from igniter.dialects.loop.schedule import Loop, ScheduleAttr
from igniter.dialects.loop.words import Below, Tail
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import Expr, symbols_of
from igniter.schedules.primitives import put_below

Machine = MachineModel
"""The input of a schedule besides the nests."""


NO_WORDS = Loop("")
"""A loop without directives."""


@dataclass
class Group:
    """Nests that share outer loops; `levels` maps, for each common axis, a nest's label to its own name for it."""

    levels: list[tuple[Expr, dict[str, str]]]
    members: list[NestOp] = field(default_factory=list[NestOp])
    products: dict[NestOp, Contraction] = field(default_factory=dict[NestOp, Contraction])
    """The members computed by micro-kernels: the first, and in a group of rows others."""
    by_rows: bool = False
    """True if only batch axes and rows are common: the members run in sequence over a block of rows."""
    alone: bool = False
    """True if no other nest may join."""


@dataclass
class AxisPlan:
    """An author's decisions for one axis; `in_order` turns them into loops."""

    words: Loop = NO_WORDS
    """The words of its only loop, or of its loop over tiles."""
    tile: int = 1
    """The size of a tile, made once the nests of a group are in one loop."""
    tail: Tail = "mask"
    inner: Loop = NO_WORDS
    """The words of the loop inside a tile."""
    below: Below = ""
    """The place of the loop inside a tile: not sunk, below the tile's reductions, or below all loops that are neither
    vectors nor unrolled."""


def in_order(nest: ComputeOp, order: Sequence[str], plans: Mapping[str, AxisPlan]) -> ScheduleAttr:
    """Returns the schedule of a nest with its loops in `order`, and the loops inside tiles sunk to their places."""
    steps: list[Loop] = []
    sunk: list[tuple[Loop, int, Below]] = []
    for name in order:
        plan = plans.get(name, AxisPlan())
        if plan.tile == 1:
            steps.append(replace(plan.words, axis=name))
            continue
        steps.append(replace(plan.words, axis=name, by=plan.tile, tail=plan.tail))
        inner = replace(plan.inner, axis=name)
        if plan.below:
            sunk.append((inner, len(steps), plan.below))
        else:
            steps.append(inner)
    return ScheduleAttr(put_below(steps, sunk, {a.name for a in nest.axes if a.kind == "reduction"}))


def vector_width(nest: NestOp, machine: Machine, axis: str | None = None) -> int:
    """Returns the lanes of a vector: a register's worth of the widest element that the nest accesses along `axis`."""
    varying: set[SSAValue] = set()
    elements = [element_of(r.type) for r in nest.outputs]
    for op in nest.block.ops:
        moves = axis is None or any(v in varying for v in op.operands)
        if isinstance(op, ReadOp):
            moves = moves or axis in symbols_of((*op.subscripts, *op.guards))
            if moves:
                elements.append(element_of(op.source.type))
        elif isinstance(op, IndexOp):
            moves = moves or axis in op.value.symbols
        if moves:
            varying.update(op.results)
            # Elements read in few bits and widened fill registers with the wider type.
            elements += [r.type for r in op.results if is_float(r.type)]
    widest = max((element_bytes(e) for e in elements), default=4)
    return max(2, min(machine.vector_bytes // widest, 64))
