"""Schedules of convolutions that suit micro-kernels badly: tiles of sums in registers, in plain loops.

A micro-kernel fills whole panels: 24 output channels, or 24 of a group, take the time of 32. It also loads and stores
its sums in each call, which a window of nine elements does not repay. Here the sums of some places of an image's row by
one or two vectors of output channels stay in registers over the whole window:

    for each group, vector of output channels, row of the image, block of places:
        for each row of the window, channel:
            for each column of the window, place (unrolled):
                sums[place] += weight[row, column, channel, vector] * image[.., place + column, channel]

Neighbouring places share loads of the image, and the weights of a vector stay in the first-level cache. A tile has the
sums that hide the latency of a multiply-add, and not more: with 10 or 12 instead of 8, LLVM spills. Time by the time of
the micro-kernel (one thread of a Zen 3):

    3 x 3, 24 output channels a group    0.56 to 0.8
    5 x 5, 3 to 24 channels              0.74
    3 x 3, 8 to 8 channels               0.65
    3 x 3, 1 to 32 channels              0.48
    3 x 3, 3 to 32 channels              0.80
    3 x 3, 3 to 64 channels              0.93
    3 x 3, 7 to 64 channels              1.26      too many steps

Vectors as wide as a panel gain nothing for groups, and narrower ones were not measured: both keep the micro-kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from igniter.analysis.structured.contractions import Contraction
from igniter.dialects.loop import NestOp, element_bytes
from igniter.dialects.loop.panels import PANEL_BYTES, panel_lanes
from igniter.dialects.loop.schedule import Loop, ScheduleAttr
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import product, symbols_of
from igniter.schedules.scheduling import AxisPlan, Group, Machine, in_order, vector_width
from igniter.schedules.tiles import MOST_TAPS, NO_WINDOW, contiguous_last, is_whole, level_names, sliding_window

MOST_STEPS = 27
"""The most steps of a window, with its channels, at which a plain loop is faster for columns that fill panels."""

MOST_UNROLLED = 24
"""The most unrolled steps of a depth: a limit on code size."""


@dataclass(frozen=True)
class _Tile:
    """The tile of a convolution."""

    row: str
    columns: str
    vectors: int
    lanes: int
    unrolled: str
    """The innermost reduction."""
    first: int
    """The place of the loop over columns among the other common loops."""


def window_schedules(group: Group, label: str, machine: Machine) -> dict[str, ScheduleAttr] | None:
    """Returns the schedules of a convolution with output channels that fill no panels, or with a short window, and of
    the readers of its sums, by label; `None` for other groups of nests."""
    anchor = group.members[0]
    contraction = group.products.get(anchor)
    if contraction is None or len(group.products) > 1 or not is_whole(group):
        return None
    tile = _tile_of(anchor, contraction, group, machine)
    return None if tile is None else {n.label: _scheduled(n, tile, group, label, machine) for n in group.members}


def _tile_of(anchor: NestOp, contraction: Contraction, group: Group, machine: Machine) -> _Tile | None:
    row, columns = contraction.rows, contraction.columns
    if (
        row is None
        or not _is_window(anchor, contraction, row)
        or contraction.kind != "f32"
        or contraction.guarded
        or 2 * machine.vector_bytes != PANEL_BYTES
    ):
        return None
    lanes = min(vector_width(n, machine, level_names(group, columns)[n.label]) for n in group.members)
    element, width = element_of(contraction.b.source.type), anchor.axis(columns).extent.constant
    steps = product(a.extent for a in anchor.axes if a.kind == "reduction").constant
    unrolled = _unrolled(anchor, contraction, row, machine)
    if unrolled is None or not steps or not width or width % lanes:
        return None
    fills = width % panel_lanes(element) == 0
    names = [of[anchor.label] for _, of in group.levels]
    others = [n for n in names if n not in (row, columns)]
    # The loops over groups are outside those over places, and their columns too: weights of a vector are few.
    first = 1 + max((k for k, n in enumerate(others) if n in symbols_of(contraction.b.subscripts)), default=-1)
    if fills and (first or steps > MOST_STEPS):
        return None
    weights = steps * (lanes if first else width) * element_bytes(element)
    if weights > machine.l1d_bytes // 2:
        return None
    return _Tile(row, columns, 2 if fills else 1, lanes, unrolled, first or len(others))


def _is_window(anchor: NestOp, contraction: Contraction, row: str) -> bool:
    """True if a reduction moves along the rows, or is around the depth."""
    sums = {a.name for a in anchor.axes if a.kind == "reduction"}
    return bool(contraction.sums) or any(row in s.symbols and s.symbols & sums for s in contraction.a.subscripts)


def _unrolled(anchor: NestOp, contraction: Contraction, row: str, machine: Machine) -> str | None:
    """Returns the reduction to unroll: the one that slides along the row, else the depth if it is short."""
    window = sliding_window(anchor, row, contraction.columns, min(MOST_TAPS, machine.registers // 2), single=True)
    if window is not NO_WINDOW:
        return window.axis
    steps = anchor.axis(contraction.depth).extent.constant
    return contraction.depth if steps is not None and steps <= MOST_UNROLLED else None


def _scheduled(nest: NestOp, tile: _Tile, group: Group, label: str, machine: Machine) -> ScheduleAttr:
    """Returns the schedule of one nest of the group."""
    anchor = group.members[0]
    names = [of[anchor.label] for _, of in group.levels]
    mine = {n: level_names(group, n)[nest.label] for n in names}
    others = [n for n in names if n not in (tile.row, tile.columns)]
    order = [mine[n] for n in (*others[: tile.first], tile.columns, *others[tile.first :], tile.row)]
    ones = [a.name for a in nest.axes if a.kind == "parallel" and a.name not in mine.values()]
    sums = [a.name for a in nest.axes if a.kind == "reduction"]
    plans = {name: AxisPlan(Loop(name, fuse=label)) for name in order}
    if sums:
        sums = [*(n for n in contiguous_last(nest, mine[tile.row], sums) if n != tile.unrolled), tile.unrolled]
        plans[tile.unrolled] = AxisPlan(Loop(tile.unrolled, unroll=0))
    plans[order[0]].words = replace(plans[order[0]].words, threads=0)
    rows = anchor.axis(tile.row).extent.constant
    most = max(1, int(machine.fma_ports * machine.fma_latency) // tile.vectors)
    place, lane = plans[mine[tile.row]], plans[mine[tile.columns]]
    place.tile = most if not rows else -(-rows // -(-rows // most))
    place.tail, lane.tail = "peel" if rows else "rest", ""
    place.below = lane.below = "reductions" if sums else "loops"
    place.inner = Loop(mine[tile.row], unroll=0)
    lane.tile = tile.vectors * tile.lanes
    lane.inner = Loop(mine[tile.columns], vector=tile.lanes, unroll=0 if tile.vectors > 1 else None)
    return in_order(nest, [*ones, *order, *sums], plans)
