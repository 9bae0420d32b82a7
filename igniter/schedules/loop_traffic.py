"""The bytes that scheduled loops move into each cache, by the footprints of their loops.

The footprint of a loop is what one run of it touches: for each buffer the cache lines of its accesses, whose elements
are the iterations of the loops that the subscripts depend on. A loop whose footprint fits into a cache loads it once a
run. A loop that does not fit loads what the loops in it load, once for each of its iterations. Conflicts between lines,
and lines left by a loop before, do not count.

The count is a feature of the learned cost model (`cost_features.py`); nothing else depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.ir import Block, Operation, SSAValue

from igniter.analysis.scheduled.loop_accesses import base_of, trip_count, vector_width
from igniter.analysis.typical_sizes import TypicalSizes
from igniter.dialects.loop import ForOp, IfOp, IfSharedOp, MemoryOp, TileProductOp, element_bytes
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr, symbols_of


@dataclass(frozen=True)
class Touch:
    """The elements of a buffer that one access touches: along the contiguous dim, and in all others."""

    base: SSAValue
    along: frozenset[str]
    """The axes that the last subscript depends on."""
    across: frozenset[str]
    """The axes that the other subscripts depend on."""
    last: int
    others: int
    element: int
    """Bytes of an element."""
    most: int
    """Elements of the buffer."""

    def repeated(self, loop: ForOp, trips: int) -> Touch:
        """Returns the elements touched by all iterations of a loop."""
        bounds = symbols_of((loop.first, loop.end))
        along, across = self.along, self.across
        if loop.axis in along:
            return replace(self, along=along | bounds, last=self.last * trips)
        if loop.axis in across:
            return replace(self, across=across | bounds, others=self.others * trips)
        return self

    def bytes(self, line: int) -> int:
        """Returns the bytes of the lines touched, at most those of the buffer: windows overlap."""
        whole = -(-self.most * self.element // line)
        return min(whole, self.others * -(-self.last * self.element // line)) * line


@dataclass(frozen=True)
class Node:
    """One run of a statement: its accesses, and the statements in it."""

    touches: tuple[Touch, ...]
    parts: tuple[Node, ...]
    times: int
    """The runs of `parts`."""
    line: int

    @cached_property
    def footprint(self) -> int:
        """The bytes of one run: for each buffer those of its largest access."""
        found: dict[SSAValue, int] = {}
        for touch in self.touches:
            found[touch.base] = max(found.get(touch.base, 0), touch.bytes(self.line))
        return sum(found.values())

    def moved(self, holds: int) -> int:
        """Returns the bytes that one run moves into a cache that holds `holds` bytes."""
        if self.footprint <= holds or not self.parts:
            return self.footprint
        return self.times * sum(part.moved(holds) for part in self.parts)


def traffic_of(block: Block, sizes: Mapping[str, int], line: int) -> Node:
    """Returns the footprints of all loops of a scheduled kernel's block; axes around a loop count as 0 in its bounds.
    `line`: bytes of a cache line."""
    return _block(block, TypicalSizes(tuple(sizes.items())), line)


def _block(block: Block, sizes: TypicalSizes, line: int) -> Node:
    return _joined([node for op in block.ops if (node := _statement(op, sizes, line)) is not None], line)


def _joined(parts: Sequence[Node], line: int) -> Node:
    return Node(tuple(touch for part in parts for touch in part.touches), tuple(parts), 1, line)


def _statement(op: Operation, sizes: TypicalSizes, line: int) -> Node | None:
    if isinstance(op, ForOp):
        inner, trips = _block(op.block, sizes, line), max(0, sizes.value(trip_count(op), 0))
        return Node(tuple(t.repeated(op, trips) for t in inner.touches), (inner,), trips, line)
    if isinstance(op, IfOp):
        return _block(op.block, sizes, line)
    if isinstance(op, IfSharedOp):
        return _block(op.apart.block, sizes, line)
    if isinstance(op, TileProductOp):
        extents = {name: max(0, sizes.value(extent, 0)) for name, extent in op.extents.items()}
        return Node(tuple(_tile_touch(v, at, extents, sizes) for v, _, at in op.accesses), (), 1, line)
    if isinstance(op, MemoryOp):
        found = _touch(op.accessed, op.subscripts, set(), sizes)
        return Node((replace(found, last=vector_width(op)),), (), 1, line)
    return None


def _tile_touch(buffer: SSAValue, subscripts: Sequence[Expr], extents: Mapping[str, int], sizes: TypicalSizes) -> Touch:
    found = _touch(buffer, subscripts, set(extents), sizes)
    last = symbols_of(subscripts[-1:]) & extents.keys()
    others = (symbols_of(subscripts[:-1]) & extents.keys()) - last
    return replace(found, last=_times(extents[n] for n in last), others=_times(extents[n] for n in others))


def _touch(buffer: SSAValue, subscripts: Sequence[Expr], own: set[str], sizes: TypicalSizes) -> Touch:
    along = frozenset(symbols_of(subscripts[-1:]) - own)
    across = frozenset(symbols_of(subscripts[:-1]) - own)
    base = base_of(buffer)
    most = _times(max(0, sizes.value(dim, 0)) for dim in dims_of(base.type))
    return Touch(base, along, across - along, 1, 1, element_bytes(element_of(base.type)), most)


def _times(values: Iterable[int]) -> int:
    total = 1
    for value in values:
        total *= value
    return total
