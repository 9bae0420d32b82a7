"""Schedules of sums with reused operands: tiles of them are kept in registers while the reductions run.

A nest has such tiles where one of its vectors does not depend on another axis, the rows: a convolution over pixels and
channels, a product without a micro-kernel. Rows by vectors of sums then share their loads. Readers of the sums over the
same axes (a bias, an activation, a residual) are computed on each tile as it is finished, as behind a micro-kernel.

Where the tile's rows are places of an image and a reduction is a window sliding along them, neighbouring rows read the
same elements: with the window unrolled as well, each is loaded once for all of a tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from igniter.dialects.loop import NestOp
from igniter.dialects.loop.schedule import Loop, ScheduleAttr
from igniter.dialects.sym.expr import ONE, Expr, symbols_of
from igniter.schedules.best_tile import best_tile
from igniter.schedules.scheduling import AxisPlan, Group, Machine, in_order, vector_width

SOME_ROWS = 4
"""The assumed number of rows where it is unknown; the remaining rows are computed without a tile. A guess at sizes and
not at a machine: with more, a larger part of few rows remains."""


@dataclass(frozen=True)
class Window:
    """A reduction sliding along the rows of a tile: row y reads at `stride * y + dilation * axis`."""

    axis: str
    taps: int
    """The extent of the axis."""
    stride: int
    dilation: int

    def places(self, rows: int) -> int:
        """Returns the number of distinct elements read by `rows` rows along the window."""
        return len({self.stride * row + self.dilation * tap for row in range(rows) for tap in range(self.taps)})


NO_WINDOW = Window("", 1, 1, 1)
"""The window of rows without a sliding reduction."""

MOST_TAPS = 7
"""The widest window to unroll: the weights alone of wider ones fill the registers, and the code gets long."""

NEARLY = 1.05
"""The largest ratio to the least time counted as equal: the accuracy of such a cost model."""


def register_tile(
    rows: int, extent: int | None, width: int, machine: Machine, window: Window = NO_WINDOW
) -> tuple[int, int]:
    """Returns the rows and vectors of a tile of sums, for `rows` rows and `extent` elements along the vector (`None`:
    unknown, and many). It is the fastest tile by the loads and multiplications of a step of the reduction, or of
    those around `window`, over all tiles. A tile with a sliding window is one vector wide: others share no element
    and no weight with it."""
    # An empty domain is scheduled like one element.
    rows, extent = max(rows, 1), None if extent is None else max(extent, 1)
    taps = window.taps

    def cycles(tile: tuple[int, int]) -> float:
        height, columns = tile
        across = 1 / columns if extent is None else -(-extent // (columns * width))
        multiplied = taps * height * columns / machine.fma_ports
        loaded = (window.places(height) + taps * columns) / machine.load_ports
        return -(-rows // height) * across * (max(multiplied, loaded, taps * machine.fma_latency) + machine.step_cycles)

    tiles = [
        (height, columns)
        for columns in range(1, 5 if taps == 1 else 2)
        for height in range(1, min(rows, machine.registers) + 1)
        if (height + taps) * columns + 1 <= machine.registers and (extent is None or (columns - 1) * width < extent)
    ]
    # An unrolled window is long code: take the smallest of the nearly equal tiles.
    near = NEARLY if taps > 1 else 1
    return best_tile(tiles, cycles, prefer=lambda tile: (tile[0] * tile[1], cycles(tile)), near=near)


def is_reused(nest: NestOp, row: str, vector: str) -> bool:
    """True if some vector operand does not depend on `row`: then rows share it from registers."""
    touched = [symbols_of(op.subscripts) for op in nest.reads]
    return any(vector in t and row not in t for t in touched) and any(row in t for t in touched)


def tile_row(nest: NestOp, names: Sequence[str], vector: str, machine: Machine) -> tuple[str, Window] | None:
    """Returns the innermost axis along which the rows of a tile of sums share operands, and the window along it, if
    half of the registers hold its weights."""
    for row in reversed(names):
        if row == vector:
            continue
        window = sliding_window(nest, row, vector, min(MOST_TAPS, machine.registers // 2))
        if is_reused(nest, row, vector) or window.places(2) < 2 * window.taps:
            return row, window
    return None


def sliding_window(nest: NestOp, row: str, vector: str, most: int, single: bool = False) -> Window:
    """Returns the reduction sliding along `row` in every subscript of the row, over elements along the vector; else no
    window. A window over single elements is none without `single`: beside several vectors it gains nothing from
    unrolling, as all of them share these."""
    sums = {a.name: a.extent.constant for a in nest.axes if a.kind == "reduction"}
    found: set[Window] = set()
    for op in nest.reads:
        for subscript in (s for s in op.subscripts if row in s.symbols):
            taps = [n for n in sums if n in subscript.symbols]
            if len(taps) != 1:
                return NO_WINDOW
            stride, dilation, size = subscript.coefficient(row), subscript.coefficient(taps[0]), sums[taps[0]]
            steps = [None if e is None else e.constant for e in (stride, dilation)]
            if size is None or not 1 < size <= most or not all(s is not None and s > 0 for s in steps):
                return NO_WINDOW
            if not single and vector not in symbols_of(op.subscripts):
                return NO_WINDOW
            found.add(Window(taps[0], size, steps[0] or 1, steps[1] or 1))
    return found.pop() if len(found) == 1 else NO_WINDOW


def tile_schedules(group: Group, label: str, vector: str, machine: Machine) -> dict[str, ScheduleAttr] | None:
    """Returns the schedules of a sum and of the readers of its tiles, by label; `None` for other groups. `vector` is
    the first nest's axis of the vectors."""
    anchor = group.members[0]
    if len(group.members) < 2 or not is_whole(group):
        return None
    names = [of[anchor.label] for _, of in group.levels]
    if vector not in names:
        return None
    tall = tile_row(anchor, names, vector, machine)
    if tall is None:
        return None
    row, window = tall
    rows, extent = anchor.axis(row).extent.constant, anchor.axis(vector).extent.constant
    lanes = min(vector_width(n, machine, of[n.label]) for n in group.members for of in [level_names(group, vector)])
    height, columns = register_tile(SOME_ROWS if rows is None else rows, extent, lanes, machine, window)
    order = [*(n for n in names if n not in (row, vector)), row, vector]
    found: dict[str, ScheduleAttr] = {}
    for nest in group.members:
        mine = {n: level_names(group, n)[nest.label] for n in names}
        ones = [a.name for a in nest.axes if a.kind == "parallel" and a.name not in mine.values()]
        sums = contiguous_last(nest, row, [a.name for a in nest.axes if a.kind == "reduction"])
        plans = {mine[n]: AxisPlan(Loop(mine[n], fuse=label)) for n in names}
        if window.axis in sums:
            sums = [*(n for n in sums if n != window.axis), window.axis]
            plans[window.axis] = AxisPlan(Loop(window.axis, unroll=0))
        plans[mine[order[0]]].words = replace(plans[mine[order[0]]].words, threads=0)
        below = "reductions" if sums else "loops"
        for name, size, known, inner in (
            (row, height, rows, Loop(row, unroll=0)),
            (vector, columns * lanes, extent, Loop(vector, vector=lanes, unroll=0)),
        ):
            plan = plans[mine[name]]
            plan.tile, plan.tail, plan.below, plan.inner = size, "peel" if known else "rest", below, inner
        found[nest.label] = in_order(nest, [*ones, *(mine[n] for n in order), *sums], plans)
    return found


def contiguous_last(nest: NestOp, row: str, sums: Sequence[str]) -> list[str]:
    """Returns the reductions of a tile with those last along which the elements of a row are contiguous: the lines of
    all rows then stay in the first-level cache while the reduction uses their elements up. With the channels of an
    image innermost a convolution of 256 channels in 32 groups takes 0.54 of the time with the channels outermost, 64
    channels and windows of 7 x 7 0.73 (one thread of a Zen 3)."""
    near = {
        name
        for read in nest.reads
        if not read.indices and row in symbols_of(read.subscripts)
        for name in sums
        if read.subscripts[-1].coefficient(name) == ONE and row not in read.subscripts[-1].symbols
    }
    return sorted(sums, key=lambda name: name in near)


def level_names(group: Group, name: str) -> dict[str, str]:
    """Returns the members' names of the group's axis that the first member calls `name`."""
    first = group.members[0].label
    return next(of for _, of in group.levels if of[first] == name)


def is_whole(group: Group) -> bool:
    """True if only the first member sums, one value, and all members run over the common axes and nothing else."""
    anchor, *others = group.members
    if not any(a.kind == "reduction" for a in anchor.axes) or len(anchor.outputs) != 1:
        return False

    def own(nest: NestOp) -> list[tuple[str, Expr]]:
        common = {names[nest.label] for _, names in group.levels}
        return [(a.kind, a.extent) for a in nest.axes if a.name not in common and a.extent != ONE]

    return all(kind == "reduction" for kind, _ in own(anchor)) and not any(own(nest) for nest in others)
