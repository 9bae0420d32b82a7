"""Schedules of convolutions in groups that fill no panels: the sums of a row of places in registers, without a
micro-kernel.

A micro-kernel fills whole panels: 24 output channels of a group take the time of 32. Here one vector of output channels
is computed for several places of an image's row, with their sums in registers over the whole window:

    for each group, vector of output channels, row of the image, block of places:
        for each row of the window, channel:
            for each column of the window, place (unrolled):
                sums[place] += weight[row, column, channel, vector] * image[.., place + column, channel]

Neighbouring places share the loads of the image. The weights of a vector stay in the first-level cache during the
loops over places. 3 x 3 windows with 24 channels a group take 0.56 to 0.8 of the micro-kernel's time (one thread of a
Zen 3). Groups that fill panels gain nothing: 0.97 to 1.05. Nor do vectors as wide as a panel.
"""

from __future__ import annotations

from dataclasses import replace

from igniter.dialects.loop import element_bytes
from igniter.dialects.loop.panels import PANEL_BYTES, panel_lanes
from igniter.dialects.loop.schedule import Loop, ScheduleAttr
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import product, symbols_of
from igniter.schedules.scheduling import AxisPlan, Group, Machine, in_order, vector_width
from igniter.schedules.tiles import (
    MOST_TAPS,
    NO_WINDOW,
    SOME_ROWS,
    contiguous_last,
    is_whole,
    level_names,
    register_tile,
    sliding_window,
)


def window_schedules(group: Group, label: str, machine: Machine) -> dict[str, ScheduleAttr] | None:
    """Returns the schedules of a convolution whose groups fill no panels, and of the readers of its sums, by label;
    `None` for other groups of nests."""
    anchor = group.members[0]
    contraction = group.products.get(anchor)
    if contraction is None or len(group.products) > 1 or not contraction.sums or not is_whole(group):
        return None
    row, columns = contraction.rows, contraction.columns
    if row is None or contraction.kind != "f32" or contraction.guarded or 2 * machine.vector_bytes != PANEL_BYTES:
        return None
    lanes = min(vector_width(n, machine, level_names(group, columns)[n.label]) for n in group.members)
    element = element_of(contraction.b.source.type)
    width, rows = anchor.axis(columns).extent.constant, anchor.axis(row).extent.constant
    window = sliding_window(anchor, row, columns, min(MOST_TAPS, machine.registers // 2), single=True)
    steps = product(a.extent for a in anchor.axes if a.kind == "reduction").constant
    if window is NO_WINDOW or steps is None or width is None or width % lanes or width % panel_lanes(element) == 0:
        return None
    weights = steps * lanes * element_bytes(element)
    names = [of[anchor.label] for _, of in group.levels]
    others = [n for n in names if n not in (row, columns)]
    # The loops over the weights are outside those over places.
    first = 1 + max((k for k, n in enumerate(others) if n in symbols_of(contraction.b.subscripts)), default=-1)
    if not first or weights > machine.l1d_bytes // 2:
        return None
    height, _ = register_tile(SOME_ROWS if rows is None else rows, lanes, lanes, machine, window)
    order = [*others[:first], columns, *others[first:], row]
    found: dict[str, ScheduleAttr] = {}
    for nest in group.members:
        mine = {n: level_names(group, n)[nest.label] for n in names}
        ones = [a.name for a in nest.axes if a.kind == "parallel" and a.name not in mine.values()]
        sums = contiguous_last(nest, mine[row], [a.name for a in nest.axes if a.kind == "reduction"])
        plans = {mine[n]: AxisPlan(Loop(mine[n], fuse=label)) for n in names}
        if sums:
            sums = [*(n for n in sums if n != window.axis), window.axis]
            plans[window.axis] = AxisPlan(Loop(window.axis, unroll=0))
        plans[mine[order[0]]].words = replace(plans[mine[order[0]]].words, threads=0)
        below = "reductions" if sums else "loops"
        lane, place = plans[mine[columns]], plans[mine[row]]
        place.tile, place.tail, place.below = height, "peel" if rows else "rest", below
        place.inner = Loop(mine[row], unroll=0)
        lane.tile, lane.tail, lane.below, lane.inner = lanes, "", below, Loop(mine[columns], vector=lanes)
        found[nest.label] = in_order(nest, [*ones, *(mine[n] for n in order), *sums], plans)
    return found
