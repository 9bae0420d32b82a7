"""Schedules of convolutions of small images by a large weight that is stored row by row.

The lines of a panel of such a weight are a row apart and crowd a few sets of the caches, and a copy to panels takes
longer than few places repay. So rows of the weight are streamed once for a block of places, whose sums wait in the
first-level cache:

    for each block of columns, block of places:
        for each part of the window, block of channels:
            for each place:
                for each vector of columns:
                    sums[place, vector] += weight[part, channels, vector] * image[place, part, channels]   (unrolled)

The weight is then read once, at the rate of the memory that holds it.
"""

from __future__ import annotations

from igniter.analysis.structured.contractions import Contraction
from igniter.analysis.structured.packing import are_crowded, is_packed
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import NestOp, element_bytes
from igniter.dialects.loop.schedule import Loop, ScheduleAttr
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import ONE, product, symbols_of
from igniter.schedules.scheduling import AxisPlan, Group, Machine, in_order, vector_width

FEW_PLACES = 8
"""The most places of a small image. Nine take as long as in Winograd tiles, whose weight is four times as large: 512
channels on 1 x 1 take 0.12 to 0.2 of the time, on 2 x 2 0.44 to 0.6, on 3 x 3 0.94, on 4 x 4 1.26; 256 channels 0.34,
0.27, 1.06 and 1.3 (one thread of a busy Zen 3)."""

SIDE = 4
"""The places of a block along each of two axes, whose sums are kept."""


def place_schedule(group: Group, machine: Machine) -> ScheduleAttr | None:
    """Returns the schedule of the contraction of a group, if its image is typically small and its weight crowds the
    caches; `None` for other groups. The other nests of the group do not share its loops."""
    anchor = group.members[0]
    found = group.products.get(anchor)
    if found is None or len(group.products) > 1 or group.by_rows or not _is_small(anchor, found, machine):
        return None
    width = vector_width(anchor, machine, found.columns)
    columns, depth = (anchor.axis(n).extent.constant for n in (found.columns, found.depth))
    if columns is None or depth is None or columns % width or depth % machine.read_streams:
        return None
    places = [a.name for a in anchor.axes if a.kind == "parallel" and a.name != found.columns]
    sums = [*(a.name for a in anchor.axes if a.kind == "reduction" and a.name != found.depth), found.depth]
    blocks = [name for name in places if anchor.axis(name).extent != ONE][-2:]
    size = SIDE if len(blocks) == 2 else SIDE * SIDE
    room = machine.l1d_bytes // 2 // (SIDE * SIDE * element_bytes(element_of(anchor.outputs[0].type)))
    plans = {name: AxisPlan() for name in (*places, *sums)}
    for name in blocks:
        plans[name] = AxisPlan(tile=size, inner=Loop(name), below="loops")
    across = max(width, min(columns, room) // width * width)
    lanes = Loop(found.columns, vector=width)
    plans[found.columns] = AxisPlan(Loop(found.columns, threads=0), tile=across, inner=lanes, below="loops")
    deep = Loop(found.depth, unroll=0)
    plans[found.depth] = AxisPlan(tile=machine.read_streams, inner=deep)
    return in_order(anchor, [found.columns, *places, *sums], plans)


def _is_small(nest: NestOp, contraction: Contraction, machine: Machine) -> bool:
    """True if the product of all places is unknown and typically small, and lines of the weight crowd the caches."""
    read = contraction.b
    if is_packed(read) or read.guards:
        return False
    places = product(a.extent for a in nest.axes if a.kind == "parallel" and a.name != contraction.columns)
    known = typical_of(nest).known(places)
    shared = {a.name for a in nest.axes if a.kind == "parallel" and a.name != contraction.columns}
    if places.constant is not None or known is None or known > FEW_PLACES or shared & symbols_of(read.subscripts):
        return False
    return are_crowded(nest, contraction, machine)
