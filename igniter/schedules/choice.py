"""The default author's choices for nests: shared outer loops, vector axes, tiles.

First the groups of nests that share their outer loops (`groups.py`). Then the vector: in each nest the axis
with the most contiguous accesses, or for the whole group its last common axis, where its rows are strided in memory.
Contractions get tiles (`products.py`). Everything else is decided nest by nest from the strides of its
accesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from xdsl.ir import Block, Operation

from igniter.analysis.structured.packing import packs_pairs
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import Axis, NestOp, element_bytes
from igniter.dialects.loop.panels import DOT_COLUMNS, DOT_STEPS, panel_lanes
from igniter.dialects.loop.schedule import Loop, ScheduleAttr
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, symbols_of
from igniter.schedules.author import Choice
from igniter.schedules.code_products import coded_schedule
from igniter.schedules.column_lanes import column_lanes, schedule_columns
from igniter.schedules.few_places import place_schedule
from igniter.schedules.groups import lone_group, reads_of
from igniter.schedules.products import (
    in_blocks,
    packing_schedule,
    pair_packing_schedule,
    product_schedules,
    row_block,
    row_epilogue_schedule,
    row_product_schedule,
)
from igniter.schedules.scheduling import AxisPlan, Group, Machine, in_order, vector_width
from igniter.schedules.short_windows import window_schedules
from igniter.schedules.tiles import SOME_ROWS, contiguous_last, is_whole, register_tile, tile_row, tile_schedules
from igniter.schedules.vector_axes import (
    is_short_window,
    is_unrolled_window,
    narrow_row,
    short_row,
    strides_along,
    transposed_axis,
    vector_axis,
)

MASKED_SHARE, MASKED_SHARE_WITHOUT_REGISTERS = 4, 2
"""A vector under a mask register is worth its time if a row fills at least one in so many of its lanes; and one under a
mask in another vector (AVX2)."""


NARROW_VECTORS = 16
"""The vectors of a stretch of narrow rows: its lines stay in the first-level cache for all elements of the rows."""


def choose(groups: Sequence[Group], machine: Machine) -> list[Choice]:
    """Returns a choice for each of the groups (`groups.py`), in order."""
    packed = {c.b.source.owner for g in groups for c in g.products.values()}
    return [_choose(group, f"g{k}", packed, machine) for k, group in enumerate(groups)]


def schedules_of(group: Group, label: str, machine: Machine) -> dict[str, ScheduleAttr]:
    """Returns the schedules of the nests of one group, by label."""
    return _choose(group, label, frozenset(), machine).schedules


def _choose(group: Group, label: str, packed: Set[Operation | Block], machine: Machine) -> Choice:
    if group.by_rows:
        height = row_block(group, machine)
        return Choice(_schedule_rows(group, label, machine), f"all nests share blocks of {height} rows")
    if group.products:
        streamed = place_schedule(group, machine)
        if streamed is not None:
            (first, *others) = group.members
            found = {nest.label: schedule_member(nest, lone_group(nest), label, machine) for nest in others}
            return Choice({first.label: streamed, **found}, "rows of its weight are read once for a block of places")
        windows = window_schedules(group, label, machine)
        if windows is not None:
            return Choice(windows, "tiles of its sums stay in registers: the columns of a group fill no panels")
        found = product_schedules(group, label, machine)
        return Choice(found, _product_text(group, found[group.members[0].label]))
    (first, *others) = group.members
    coded = None if others else coded_schedule(first, machine)
    if coded is not None:
        return Choice({first.label: coded}, "threads share panels of codes, and rows the unpacked codes of a vector")
    if not others and first in packed and packs_pairs(first):
        contiguous = all(stride == ONE for stride, writes in strides_along(first, first.axes[-2].name) if not writes)
        schedule = pair_packing_schedule(first, contiguous, label, machine)
        return Choice({first.label: schedule}, "pairs of steps are packed")
    if _is_dot_products(group):
        if not _is_short(group.levels[-1][0]):
            # The readers run along a row of the results if there is one: their vectors are not those of the sums.
            group.levels.pop()
        found = {nest.label: schedule_member(nest, group, label, machine) for nest in group.members}
        return Choice(found, _vector_text(found[group.members[0].label]))
    tiles = _in_tiles(group, label, machine)
    if tiles is not None:
        return Choice(tiles, "tiles of its sums stay in registers")
    if _has_rows_of_windows(group, machine):
        group.levels.pop()
        found = {nest.label: schedule_member(nest, group, label, machine) for nest in group.members}
        return Choice(found, _vector_text(found[group.members[0].label]))
    width = column_lanes(group, machine)
    if width is not None:
        found = {nest.label: schedule_columns(nest, group, label, width, machine) for nest in group.members}
        return Choice(
            found, (f"{width} rows form a vector: rows are contiguous in memory, the elements of a row are not")
        )
    if not others and first in packed and _packs_columns(first):
        return Choice({first.label: packing_schedule(first, label, machine)}, "contiguous parts of each row are packed")
    found = {nest.label: schedule_member(nest, group, label, machine) for nest in group.members}
    return Choice(found, _vector_text(found[first.label]))


def _product_text(group: Group, schedule: ScheduleAttr) -> str:
    assert schedule.product is not None
    anchor = group.members[0]
    rows, panels = schedule.product.tile
    lanes = panel_lanes(element_of(anchor.outputs[0].type))
    return f"tiles of {rows} rows and {panels * lanes} columns by the micro-kernel {group.products[anchor].kind}"


def _vector_text(schedule: ScheduleAttr) -> str:
    vector = next((loop for loop in schedule.loops if loop.vector), None)
    if vector is None:
        return "scalar: no axis is contiguous"
    sums = f", with {vector.accumulators} partial sums" if vector.accumulators > 1 else ""
    return f"vectors of {vector.vector} along '{vector.axis}'{sums}"


def _packs_columns(nest: NestOp) -> bool:
    """True if a nest copies a matrix to panels and the lanes of a panel are contiguous in the matrix as well."""
    axes = nest.axes
    return (
        len(nest.reads) == 1
        and len(axes) >= 3
        and [s.symbol for s in nest.yield_op.clauses[0].subscripts] == [a.name for a in axes]
        and all(stride == ONE for stride, _ in strides_along(nest, axes[-1].name))
    )


# -- rows of contractions ---------------------------------------------------------------------------------------------


def _schedule_rows(group: Group, label: str, machine: Machine) -> dict[str, ScheduleAttr]:
    """Schedules a group of rows: contractions in tiles, the other nests row by row inside a block of rows."""
    height = row_block(group, machine)
    found: dict[str, ScheduleAttr] = {}
    for nest in group.members:
        contraction = group.products.get(nest)
        if contraction is not None:
            found[nest.label] = row_product_schedule(nest, contraction, group, label, machine)
            continue
        ends = _ends_product(nest, group)
        if ends is not None:
            found[nest.label] = row_epilogue_schedule(nest, *ends, group, label, machine)
            continue
        plain = schedule_member(nest, group, label, machine)
        row = group.levels[-1][1][nest.label]
        found[nest.label] = in_blocks(plain, row, height)
    return found


def _ends_product(nest: NestOp, group: Group) -> tuple[NestOp, str] | None:
    """Returns the contraction of the group of rows whose sums a nest reads elementwise, and the nest's axis of
    columns."""
    common = {names[nest.label] for _, names in group.levels}
    own = [a for a in nest.axes if a.name not in common and a.extent != ONE]
    if len(own) != 1 or own[0].kind != "parallel":
        return None
    for read in reads_of(nest):
        producer = read.base.owner
        if not isinstance(producer, NestOp) or producer not in group.products or read.op.indices or read.op.guards:
            continue
        columns = group.products[producer].columns
        written = producer.yield_op.clauses[0].subscripts
        at = [r.symbol for w, r in zip(written, read.subscripts, strict=True) if w.symbol == columns]
        if at == [own[0].name] and own[0].extent == producer.axis(columns).extent:
            sizes = {element_bytes(element_of(n.outputs[0].type)) for n in (nest, producer)}
            return (producer, own[0].name) if len(sizes) == 1 else None
    return None


# -- sums in registers ------------------------------------------------------------------------------------------------


def _in_tiles(group: Group, label: str, machine: Machine) -> dict[str, ScheduleAttr] | None:
    """Returns schedules that keep tiles of the first nest's sums in registers, along its best parallel axis."""
    anchor = group.members[0]
    vector = _parallel_vector(anchor)
    return None if vector is None else tile_schedules(group, label, vector, machine)


def _parallel_vector(nest: NestOp) -> str | None:
    """Returns the best parallel axis for the vectors of a reduction; `None` without a reduction or such an axis."""
    parallel = {a.name: strides_along(nest, a.name) for a in nest.axes if a.kind == "parallel"}
    sums = [a.name for a in nest.axes if a.kind == "reduction"]
    return vector_axis(nest, sums, parallel, False) if sums else None


def _is_dot_products(group: Group) -> bool:
    """True if other nests read a group's sums, and dot products are the better loops for them. The summed elements are
    contiguous where those along the best parallel axis are not, or are too few to fill a vector. A linear layer of
    three columns takes a tenth of the time as dot products, because the vectors would be mostly empty. So does a
    convolution of three channels, whose places are a pixel apart. Readers with loops of their own, as in a
    normalisation, are no row of the sums."""
    if len(group.members) < 2 or len(group.levels) < 2 or not is_whole(group):
        return False
    nest = group.members[0]
    vector = _parallel_vector(nest)
    if vector is None:
        return False
    strides = {a.name: strides_along(nest, a.name) for a in nest.axes}
    beside = all(stride in (ZERO, ONE) for stride, write in strides[vector] if not write)
    if beside and not _is_short(nest.axis(vector).extent):
        return False
    best = vector_axis(nest, [], strides, False)
    if best is None or nest.axis(best).kind != "reduction":
        return False
    steps = nest.axis(best).extent.constant
    return steps is None or steps >= DOT_STEPS


def _is_short(extent: Expr) -> bool:
    return extent.constant is not None and extent.constant < DOT_COLUMNS


# -- one nest ---------------------------------------------------------------------------------------------------------


def schedule_member(nest: NestOp, group: Group, label: str, machine: Machine) -> ScheduleAttr:
    """Returns the schedule of a nest that is not a contraction, alone in its group or one of several."""
    common = [names[nest.label] for _, names in group.levels]
    axes = {a.name: a for a in nest.axes}
    strides = {name: strides_along(nest, name) for name in axes}
    flat = all(sum(a.extent != ONE for a in m.axes) == len(group.levels) for m in group.members)
    # A nest alone may vectorise any of its axes, the outer ones too.
    vector = vector_axis(nest, common if len(group.members) > 1 else [], strides, flat)
    outer = [n for n in common if n != vector or len(group.members) > 1]
    rest = [a.name for a in nest.axes if a.kind == "parallel" and a.name not in outer and a.name != vector]
    reductions = [a.name for a in nest.axes if a.kind == "reduction"]
    plans = {name: AxisPlan() for name in axes}
    inside: list[str] = []
    if vector is not None and vector not in outer:
        inside = [vector]
    if vector is not None and axes[vector].kind == "reduction":
        reductions = [n for n in reductions if n != vector] + [vector]
        inside = []
    free = rest if len(group.members) > 1 else [*outer, *rest]
    width = 1 if vector is None else vector_width(nest, machine, vector)
    short = None if vector is None or reductions else short_row(nest, axes, vector, free, width)
    narrow = None if short is not None or vector is None or reductions else narrow_row(nest, vector, free, width)
    if narrow is not None:
        # Squares would be mostly empty. Rows of any length below a vector's: one side is accessed with a stride.
        inside = [narrow.lanes, narrow.row]
        outer, rest = ([n for n in names if n not in narrow] for names in (outer, rest))
    elif short is not None:
        # Rows of a few elements fill a vector only side by side: transpose-accesses puts them there.
        inside = [short.lanes, short.row]
        outer, rest = ([n for n in names if n not in short] for names in (outer, rest))
    if len(group.members) > 1:
        for name in common:
            plans[name].words = replace(plans[name].words, fuse=label)
    first = next(iter([*outer, *rest, *inside]), None)
    if first is not None:
        plans[first].words = replace(plans[first].words, threads=0)
    if short is not None:
        lanes = plans[short.lanes]
        lanes.tile, lanes.tail, lanes.inner = width, "rest", Loop(short.lanes, vector=width)
        plans[short.row].words = replace(plans[short.row].words, unroll=0)
    elif narrow is not None:
        lanes = plans[narrow.lanes]
        lanes.tile, lanes.below, lanes.inner = width * NARROW_VECTORS, "loops", Loop(narrow.lanes, vector=width)
    elif vector is not None:
        reductions = _place_vector(nest, axes, vector, free, reductions, plans, width, machine)
    return in_order(nest, [*outer, *rest, *inside, *reductions], plans)


def _place_vector(
    nest: NestOp,
    axes: Mapping[str, Axis],
    vector: str,
    rest: list[str],
    reductions: list[str],
    plans: Mapping[str, AxisPlan],
    width: int,
    machine: Machine,
) -> list[str]:
    """Plans the vector and the axis that it forms a tile with; returns the reductions in their order."""
    extent = axes[vector].extent.constant
    lanes = Loop(vector, vector=width)
    plan = plans[vector]
    if axes[vector].kind == "reduction":
        chains = machine.sum_chains
        copies = chains if extent is None else max(1, min(chains, extent // width))
        plan.words = replace(plan.words, vector=width, accumulators=copies)
        return reductions
    if not reductions:
        across = transposed_axis(nest, vector, rest)
        if across is None or (axes[across].extent.constant or width) < width:
            plan.words = replace(plan.words, vector=width)
            return reductions
        # An operand is contiguous the other way: squares with as many rows as lanes, for transpose-accesses.
        rows = plans[across]
        rows.tile, rows.tail, rows.below, rows.inner = width, "rest", "loops", Loop(across, unroll=0)
        plan.tile, plan.tail, plan.inner = width, "rest", lanes
        return reductions
    across = _dilated_with(nest, vector, axes)
    if across is not None and extent is not None:
        plans[across].words = replace(plans[across].words, unroll=0)
        vectors = -(-extent // width)
        columns = -(-vectors // -(-vectors // (machine.registers - SPARE_REGISTERS)))
        plan.tile, plan.tail, plan.below = width * columns, "peel", "reductions"
        plan.inner = replace(lanes, unroll=0)
        return [*(n for n in reductions if n != across), across]
    if is_unrolled_window(nest, reductions) and tile_row(nest, rest, vector, machine) is None:
        # A vector of results takes all elements of its windows at once.
        for name in reductions:
            plans[name].words = replace(plans[name].words, unroll=0)
        plan.words = replace(plan.words, vector=width, interior=True)
        return reductions
    # Sums of columns, or a contraction: keep a tile of sums in registers while the reduction runs.
    few = typical_of(nest).known(axes[vector].extent) or width + 1
    if extent is None and few <= width:
        extent = few
    most = machine.registers // 2
    columns = most if extent is None else max(1, min(most, -(-extent // width)))
    found = tile_row(nest, rest, vector, machine)
    if found is not None and typical_of(nest).known(axes[found[0]].extent) == 1:
        # Most rows of such a tile would not exist.
        found = None
    if found is not None:
        row, window = found
        reductions = contiguous_last(nest, row, reductions)
        rows = axes[row].extent.constant
        height, columns = register_tile(rows or SOME_ROWS, extent, width, machine, window)
        if window.axis:
            plans[window.axis].words = replace(plans[window.axis].words, unroll=0)
            reductions = [*(n for n in reductions if n != window.axis), window.axis]
        tall = plans[row]
        tall.tile, tall.tail, tall.below = height, "peel" if rows else "rest", "reductions"
        tall.inner = Loop(row, unroll=0)
    elif len(reductions) == 1 and (extent is None or extent > width * most):
        # Rows too long for a register tile are streamed, as many at a time as prefetchers follow: each sum takes that
        # many loads, and waits in the first-level cache.
        plan.tile, plan.below, plan.inner = width * machine.stream_vectors, "loops", lanes
        stream = plans[reductions[0]]
        stream.tile, stream.tail, stream.inner = machine.read_streams, "rest", Loop(reductions[0], unroll=0)
        return reductions
    elif _is_panel_of_bytes(nest, vector, rest) and 2 * columns <= most:
        beside = plans[rest[0]]
        beside.tile, beside.tail, beside.below, beside.inner = 2, "peel", "reductions", Loop(rest[0], unroll=0)
    plan.tile, plan.tail, plan.below = width * columns, "peel" if found is None else "rest", "reductions"
    plan.inner = replace(lanes, unroll=0)
    return reductions


SPARE_REGISTERS, WIDEST_GUARDED = 4, 4
"""The registers left for operands and masks beside a row of sums, and the widest window to unroll for its guards."""


def _dilated_with(nest: NestOp, vector: str, axes: Mapping[str, Axis]) -> str | None:
    """Returns a reduction over a dilated window, short enough to unroll, that shares a guard with a vector axis of
    known size; None if there is none.

    The lanes inside the guard are then constants, instead of masks computed for every load, and most vectors of a row
    see padding. A depthwise 3 x 3 dilated by 18, rows of 33 and 65 places, takes 0.5 of the time with vectors of the
    interior apart, dilated by 6 0.75 and 0.9, not dilated 1.0 to 1.8 (one thread of a Zen 3)."""
    if axes[vector].extent.constant is None:
        return None
    for guard in (g for read in nest.reads for g in read.guards if vector in g.symbols):
        for axis in (a for a in nest.axes if a.kind == "reduction" and a.name in guard.symbols):
            step, size = guard.coefficient(axis.name), axis.extent.constant
            if step is not None and abs(step.constant or 0) > 1 and size is not None and size <= WIDEST_GUARDED:
                return axis.name
    return None


def _is_panel_of_bytes(nest: NestOp, vector: str, outer: Sequence[str]) -> bool:
    """True if the vectors are the columns of a panel of bytes and the outermost axis runs from panel to panel. Two
    panels then share the loads of the other factor, in 0.88 of the time (a row of 768 by 3072 and back, one thread
    of a Zen 3, in turns). Words of 4-bit numbers leave no registers for two."""
    along = [read for read in nest.reads if vector in symbols_of(read.subscripts)]
    shared = [read for read in nest.reads if not symbols_of(read.subscripts) & {vector, *outer[:1]}]
    narrow = [read for read in along if element_bytes(element_of(read.source.type)) == 1]
    return bool(
        len(outer) > 1 and shared and len(narrow) > 1 and all(outer[0] in symbols_of(r.subscripts) for r in along)
    )


def _has_rows_of_windows(group: Group, machine: Machine) -> bool:
    """True if other nests read the folds of short windows, and vectors of results are the better loops for the folds.

    With all axes in common only the window is left to be the vector: 2 of 16 lanes. An average over 2 x 2 of 56 x 56
    took twice the time of ONNX Runtime, and takes half of it with a row of sums between the two nests. Rows that fill a
    part of a vector are better too: 14 x 14 takes 0.8 of ONNX Runtime's time in the place of 1.35 with AVX2 (one thread
    of a Zen 3). With AVX-512 the window as the vector took 3.2 times ONNX Runtime's time for 28 x 28 and 3.9 for 14 x
    14 (one thread of an Emerald Rapids).
    """
    nest = group.members[0]
    if len(group.members) < 2 or len(group.levels) < 2 or not is_whole(group):
        return False
    if not any(is_short_window(nest, axis) for axis in nest.axes):
        return False
    row = group.levels[-1][1][nest.label]
    results, width = nest.axis(row).extent.constant, vector_width(nest, machine, row)
    share = {64: MASKED_SHARE, 32: MASKED_SHARE_WITHOUT_REGISTERS}.get(machine.vector_bytes, 1)
    fewest = max(2, width // share)
    if results is not None and results < fewest:
        return False
    return vector_axis(nest, [], {a.name: strides_along(nest, a.name) for a in nest.axes}, False) == row
