"""What the authors of schedules share: the machine, the groups of nests, and the form that a schedule has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr
from xdsl.ir import Attribute, SSAValue

from igniter.analysis.machine import MachineModel
from igniter.analysis.structured.contractions import Contraction
from igniter.dialects.loop import IndexOp, NestOp, ReadOp, element_bytes, is_float
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import Expr, symbols_of

Machine = MachineModel
"""What a schedule depends on, besides the nests."""


@dataclass
class Group:
    """Nests that share outer loops; `levels` maps, for each common axis, a nest's label to its own name for it."""

    levels: list[tuple[Expr, dict[str, str]]]
    members: list[NestOp] = field(default_factory=list[NestOp])
    products: dict[NestOp, Contraction] = field(default_factory=dict[NestOp, Contraction])
    """The members that micro-kernels compute: the first, and in a group of rows others."""
    by_rows: bool = False
    """Whether only batch axes and rows are common: the members go over a block of rows one after the other."""


def as_schedule(
    order: list[str], loops: Mapping[str, Mapping[str, Attribute]], more: Mapping[str, Attribute] | None = None
) -> DictionaryAttr:
    """The attribute of a nest: the order of its loops, the hints of each, and what else is said of the whole."""
    hints = {n: DictionaryAttr(dict(h)) for n, h in loops.items() if h}
    return DictionaryAttr(
        {"order": ArrayAttr([StringAttr(n) for n in order]), "loops": DictionaryAttr(hints), **(more or {})}
    )


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
