"""What the authors of schedules share: the machine, the groups of nests, and the form that a schedule has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Literal

from xdsl.ir import SSAValue

from igniter.analysis.machine import MachineModel
from igniter.analysis.structured.contractions import Contraction
from igniter.dialects.loop import ComputeOp, IndexOp, NestOp, ReadOp, ViewOp, element_bytes, is_float
from igniter.dialects.loop.schedule import Loop, Product, ScheduleAttr, Tail
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import Expr, symbols_of

Below = Literal["", "reductions", "loops"]

Machine = MachineModel
"""What a schedule depends on, besides the nests."""


NO_WORDS = Loop("")
"""A loop of which nothing is said."""


@dataclass
class Group:
    """Nests that share outer loops; `levels` maps, for each common axis, a nest's label to its own name for it."""

    levels: list[tuple[Expr, dict[str, str]]]
    members: list[NestOp] = field(default_factory=list[NestOp])
    products: dict[NestOp, Contraction] = field(default_factory=dict[NestOp, Contraction])
    """The members that micro-kernels compute: the first, and in a group of rows others."""
    by_rows: bool = False
    """Whether only batch axes and rows are common: the members go over a block of rows one after the other."""
    alone: bool = False
    """Whether no other nest may join."""


@dataclass
class Plan:
    """What an author has decided for one axis; `in_order` makes its loops of it."""

    outer: Loop = NO_WORDS
    """The words of its loops over blocks, or of its only one."""
    inner: Loop = NO_WORDS
    """The words of the loop inside a block."""
    blocks: tuple[int, ...] = ()
    """The sizes of its blocks, outermost first: its loops are where the order names the axis, once more than these."""
    tile: int = 1
    """Or the size of a tile, which is made once the nests of a group are in one loop: the order names the axis once."""
    tail: Tail = "mask"
    below: Below = ""
    """What the loop inside a tile goes below: nothing, the reductions in it, or all loops that are neither vectors nor
    unrolled."""


def in_order(
    nest: ComputeOp, order: Sequence[str], plans: Mapping[str, Plan], product: Product | None = None
) -> ScheduleAttr:
    """The schedule of a nest whose loops are in `order`, those inside of tiles below what they have to be below."""
    steps: list[Loop] = []
    sunk: list[tuple[Loop, int, Plan]] = []
    for name in order:
        plan = plans.get(name, Plan())
        number = sum(s.axis == name for s in steps)
        if plan.tile > 1:
            steps.append(replace(plan.outer, axis=name, by=plan.tile, tail=plan.tail))
            inner = replace(plan.inner, axis=name)
            if plan.below:
                sunk.append((inner, len(steps), plan))
            else:
                steps.append(inner)
        elif number < len(plan.blocks):
            steps.append(replace(plan.outer, axis=name, by=plan.blocks[number]))
        else:
            steps.append(replace(plan.inner if plan.blocks else plan.outer, axis=name))
    reductions = {a.name for a in nest.axes if a.kind == "reduction"}
    steps = put_below(steps, [(inner, least, plan.below) for inner, least, plan in sunk], reductions)
    if product is None:
        return ScheduleAttr(steps)
    place = next((k for k, s in enumerate(steps) if s.axis in product.axes and s.by == 1), len(steps))
    return ScheduleAttr([*steps[:place], product, *steps[place:]])


def put_below(steps: Sequence[Loop], sunk: Sequence[tuple[Loop, int, Below]], reductions: Set[str]) -> list[Loop]:
    """The loops with those inside of tiles, each with the least place that it may have, below what they have to be
    below; of those at one place the vector comes last."""
    places: list[tuple[int, Loop]] = []
    for inner, least, below in sunk:
        place = least
        for k, step in enumerate(steps[least:], least):
            plain = not step.vector and (below == "reductions" or step.unroll is None)
            if plain and (below == "loops" or (below == "reductions" and step.axis in reductions)):
                place = k + 1
        places.append((place, inner))
    found = list(steps)
    for place, inner in sorted(places, key=lambda x: (x[0], x[1].vector > 0))[::-1]:
        found.insert(place, inner)
    return found


def tensor_behind(value: SSAValue) -> SSAValue:
    """The tensor behind views."""
    while isinstance(value.owner, ViewOp):
        value = value.owner.source
    return value


def vector_width(nest: NestOp, machine: Machine, axis: str | None = None) -> int:
    """Lanes of a vector: as many of the widest element that the nest touches along `axis` as fill a register."""
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
            # What is read in few bits and computed in more fills registers with what it is computed in.
            elements += [r.type for r in op.results if is_float(r.type)]
    widest = max((element_bytes(e) for e in elements), default=4)
    return max(2, min(machine.vector_bytes // widest, 64))
