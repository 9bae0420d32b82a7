"""Schedules of contractions: tiles for micro-kernels, and the nests that work on a tile while it is in the cache.

The loops are batch axes, groups of panels of columns, tiles of rows. A group of panels is read from memory once and
stays in the second-level cache during the loop over rows, as in Goto and van de Geijn (2008). Where the columns are no
weight, the loop over rows is the outer one. Together they are one loop of tasks for the thread pool. Elementwise
readers of the sums over the same axes (a bias, an activation, a residual) run on each tile as it is finished.

Where the panels of a weight exceed the first-level cache, the depth is blocked too. The panels of a block stay in that
cache during the loop over a block of rows. The sums are added to the result. Its readers find it in the second-level
cache.

A group of rows is attention: the scores of a block of queries against all keys, the normalisation of these rows, and
their product with the values. The loops are batch axes and blocks of rows. The intermediates are blocks of rows and
never leave the cache. It is profitable where the right factors are small enough to be read for every block.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float16Type
from xdsl.ir import BlockArgument, SSAValue

from igniter.analysis.structured.contractions import (
    BYTE_KINDS,
    WIDENED_STRIPE,
    Contraction,
    contraction_of,
    has_widened_tiles,
    offset_of,
    tile_size,
)
from igniter.analysis.structured.nest_bodies import tensor_behind
from igniter.analysis.typical_sizes import WORK, typical_of
from igniter.dialects.loop import KernelOp, NestOp, element_bytes, stored_bytes
from igniter.dialects.loop.panels import PANEL_BYTES, SMALLEST_COLUMNS, panel_lanes, turns_of
from igniter.dialects.loop.schedule import Loop, Product, ScheduleAttr
from igniter.dialects.loop.variants import has_variant
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, Expr, linearize, product, symbols_of
from igniter.schedules.best_tile import best_tile
from igniter.schedules.made_panels import grain_of, made_panels, maker_schedule, panels_of_a_task
from igniter.schedules.paired_blocks import has_pairs, paired_block
from igniter.schedules.primitives import on_threads, split
from igniter.schedules.scheduling import Group, Machine, vector_width
from igniter.schedules.templates import ProductTemplate

WHOLE_ROWS = frozenset(("f32", "f64", "f32f16", "f32bf16"))
"""Kinds of contraction whose tiles may have any number of rows."""

MOST_ROWS, MOST_PANELS = 14, 4
"""The limits of a tile: more rows leave no registers for their addresses."""

ONE_ROW_PANELS = 6
"""The most panels in a tile of one row. The time of such a tile is the latency of loading its panels, and more panels
at a time share it. A row by 768 x 3072 takes 0.8 of the time that it takes with three, one by 768 x 768 0.92, 4096 x
4096 from memory 0.86 to 1.0 (one thread of a Genoa, 25 rounds in turns); four are 0.85 to 1.05, eight no faster than
six. Two rows and four are slower with six, by a fifth. The shared latency is that of caches, and no figure of a
machine."""


DEEP_ROWS, DEEP_STEPS, DEEP_GRAIN = 16, 256, 16
"""The limits of a blocked depth: the fewest rows, the fewest steps that half of the first-level cache must hold, and
the granularity of blocks. Measured on one thread of a Zen 3, tiles of 6 rows and a panel, time with blocks by time
without, 3072 x 768: 0.87 of 16 rows, 0.85 of 128 and of 512; a row 1.21. 768 x 3072 gains nothing. Wider tiles, with
vectors of 64 bytes, would have blocks of 85 steps: not measured."""


TILE_STEPS = 32
"""The granularity of blocks for AMX: the steps of a tile of bf16."""

TILE_ROWS, LEAST_TILE_ROWS = 32, 16
"""The most and the fewest rows of a block of an attention for AMX: a micro-kernel has two tiles of rows, or one."""

DEEP_TASKS = 4
"""The fewest tasks per core, where the product has enough: then no core waits long for the last."""


def worthwhile_contraction(nest: NestOp) -> Contraction | None:
    """Returns the contraction of a nest, if micro-kernels are the way to compute it."""
    if nest.schedule is not None:
        return None
    found = contraction_of(nest)
    if isinstance(found, str):
        return None
    columns = nest.axis(found.columns).extent.constant
    return None if columns is not None and columns < SMALLEST_COLUMNS else found


def reads_weights(contraction: Contraction) -> bool:
    """True if the right factor is a packed weight, or made of one: large, and the same for all rows."""
    b = contraction.b
    packed = isinstance(tensor_behind(b.source), BlockArgument) and any(s.call is not None for s in b.subscripts)
    return packed or made_panels(contraction) is not None


def product_schedules(group: Group, label: str, machine: Machine) -> dict[str, ScheduleAttr]:
    """Returns the schedules of a contraction and of its epilogue, by the nests' labels."""
    anchor = group.members[0]
    contraction = group.products[anchor]
    lanes = panel_lanes(element_of(anchor.outputs[0].type))
    height, width = _tile(anchor, contraction, machine, machine.half_tiles and _has_parts(contraction))
    made = made_panels(contraction)
    steps = _depth_block(anchor, contraction, width, machine)
    if steps is not None and not _takes_any_rows(anchor, contraction):
        return _deep_schedules(group, label, machine, (height, width), steps)
    columns_first = made is not None or _weights_stay(anchor, contraction, width * lanes, machine)
    rows_first = not contraction.batch and weight_bytes(anchor, contraction) <= machine.l2_budget // 2
    fetches = _comes_from_afar(group, machine)
    blocks = _group(anchor, contraction, width * lanes, machine)
    down = _rows_of_block(anchor, contraction, height, machine)
    tiles = [(contraction.columns, width * lanes), *([(contraction.rows, down)] if contraction.rows else [])]
    # A right factor computed and packed at run time is small beside weights: a stack of those is then read once, row
    # by row, or the part of it that the cache holds. A weight that fits the cache is read for each tile of rows.
    shared = tiles if reads_weights(contraction) and not rows_first else tiles[::-1]
    grouped = [(contraction.columns, width * lanes * blocks)] if blocks > 1 else []
    batch = [(name, 1) for name in contraction.batch]
    if columns_first:
        shared = [*(grouped or tiles[:1]), *batch, *tiles[1:], *(tiles[:1] if grouped else [])]
    else:
        shared = [*batch, *grouped, *shared]
    fetches = fetches and not (shared[-1][0] == contraction.columns and _are_long(anchor, contraction.columns, machine))
    template = ProductTemplate(
        contraction.rows or "",
        contraction.columns,
        contraction.depth,
        (height, width),
        lanes,
        tuple(shared),
        sums=tuple(contraction.sums),
        fuse=label,
        grain=0 if made is None else grain_of(made, blocks * width),
    )
    found: dict[str, ScheduleAttr] = {}
    for nest in group.members:
        names = {of[anchor.label]: of[nest.label] for _, of in group.levels}
        columns = _vector(nest, names[contraction.columns], machine, width * lanes)
        rows = [names[contraction.rows]] if contraction.rows else []
        if nest is anchor:
            steps = template.contraction([*map(Loop, rows), columns])
        else:
            steps = [*template.outer(names), *(Loop(n, prefetch=fetches) for n in rows), columns]
        found[nest.label] = ScheduleAttr([*map(Loop, _ones(nest)), *steps])
    if made is not None:
        found[made.nest.label] = maker_schedule(made, blocks * width, label, machine)
    return found


def _rows_of_block(nest: NestOp, contraction: Contraction, height: int, machine: Machine) -> int:
    """Returns the rows of a block, at most the height of a tile. Those for AMX are equal where that takes no more
    tiles."""
    if has_pairs(contraction.kind, machine):
        return paired_block(nest, contraction, machine)
    rows = None if contraction.rows is None else nest.axis(contraction.rows).extent.constant
    on_tiles = machine.byte_tiles if contraction.kind in BYTE_KINDS else _has_direct_tiles(contraction, machine)
    return equal_blocks(rows, height) if on_tiles and rows is not None and height == TILE_ROWS else height


def equal_blocks(rows: int, height: int) -> int:
    """Returns the height of equal blocks of rows if they take no more tiles of half a block than full blocks and a
    rest; else `height`. 56 rows are 28 and 28, not 32 and 24: blocks of two heights would configure the tile registers
    for each."""
    blocks = -(-rows // height)
    if blocks < 2 or rows % blocks:
        return height
    half, even = height // 2, rows // blocks
    return even if blocks * -(-even // half) <= -(-rows // half) else height


def deep_rows(nest: NestOp, machine: Machine) -> Expr | None:
    """Returns the number of rows of a product with a weight whose depth is worth blocking; `None` for other nests."""
    contraction = worthwhile_contraction(nest)
    if contraction is None or contraction.rows is None:
        return None
    steps = _depth_block(nest, contraction, _tile(nest, contraction, machine)[1], machine)
    return None if steps is None else nest.axis(contraction.rows).extent


def _takes_any_rows(nest: NestOp, contraction: Contraction) -> bool:
    """True if a schedule must suit one row as well as many: the number of rows is unknown, and the kernel has no
    variant for one."""
    kernel = nest.parent_op()
    rows = nest.axis(contraction.rows).extent if contraction.rows is not None else ONE
    return rows.constant is None and not (isinstance(kernel, KernelOp) and has_variant(kernel, rows))


def _depth_block(nest: NestOp, contraction: Contraction, width: int, machine: Machine) -> int | None:
    """Returns the block size of a depth, in steps: the panels of a tile then fit half of the first-level cache. `None`
    if the depth is not much longer than a block, as blocks would only add traffic to the result; if a tile is so
    wide that its sums, moved once a block, have too few steps between moves; if the depth is only a part of the
    reduction; and for few rows, for batches, or without a weight."""
    on_tiles = _has_direct_tiles(contraction, machine)
    if contraction.rows is None or contraction.batch or contraction.sums:
        return None
    if contraction.kind not in WHOLE_ROWS and not on_tiles:
        return None
    depth = nest.axis(contraction.depth).extent.constant
    lanes = panel_lanes(element_of(nest.outputs[0].type))
    most = machine.l1d_bytes // 2 // (width * lanes * element_bytes(element_of(contraction.b.source.type)))
    if depth is None or depth <= (1 if on_tiles else 3) * most or most < DEEP_STEPS:
        return None
    if _known(nest, nest.axis(contraction.rows).extent) < DEEP_ROWS or not reads_weights(contraction):
        return None
    steps, grain = -(-depth // -(-depth // most)), TILE_STEPS if on_tiles else DEEP_GRAIN
    return min(most // grain * grain, -(-steps // grain) * grain)


def _has_direct_tiles(contraction: Contraction, machine: Machine) -> bool:
    """True if AMX multiplies the factors as they are. A tile of sums takes as long to multiply as to load its factors
    from the second-level cache, so one of them should come from the first."""
    return machine.half_tiles and contraction.kind == "bf16"


def _deep_schedules(
    group: Group, label: str, machine: Machine, tile: tuple[int, int], steps: int
) -> dict[str, ScheduleAttr]:
    """Returns the schedules of a contraction whose depth is in blocks of `steps`, and of its epilogue.

    A task is a block of rows and a group of panels. For each block of the depth, a tile of panels stays in the
    first-level cache during the loop over rows, which are in the second. Sums are added to the result. The epilogue
    reads it after the last block.
    """
    anchor = group.members[0]
    contraction = group.products[anchor]
    assert contraction.rows is not None
    (height, width), lanes = tile, panel_lanes(element_of(anchor.outputs[0].type))
    stays = machine.group_bytes // 2
    panels = stays // (steps * lanes * element_bytes(element_of(contraction.b.source.type)))
    tall = _tall(anchor, contraction, steps, machine)
    made = made_panels(contraction)
    if made is not None:
        panels = min(panels, panels_of_a_task(made))
    else:
        # Each core has several tasks, so a few panels more or less in one matter little.
        columns, rows = (_known(anchor, anchor.axis(n).extent) for n in (contraction.columns, contraction.rows))
        wanted = min(machine.most_tasks, DEEP_TASKS * machine.cores)
        panels = min(panels, -(-columns // lanes) * -(-rows // max(1, tall)) // wanted)
    tiles = _tiles_across(anchor, contraction, width * lanes) if made is None else None
    across = even_group(tiles, max(1, panels // width)) * width * lanes
    down = max(1, tall // height) * height
    found: dict[str, ScheduleAttr] = {}
    grain = 0
    if made is not None:
        grain = grain_of(made, across // lanes)
        found[made.nest.label] = maker_schedule(made, across // lanes, label, machine)
    size = width * lanes
    columns, rows = contraction.columns, contraction.rows
    template = ProductTemplate(
        rows,
        columns,
        contraction.depth,
        tile,
        lanes,
        ((columns, across), (rows, down)),
        (*([(columns, size)] if across > size else []), *([(rows, height)] if down > height else [])),
        steps,
        fuse=label,
        grain=grain,
    )
    for nest in group.members:
        names = {of[anchor.label]: of[nest.label] for _, of in group.levels}
        if nest is anchor:
            loops = template.contraction([Loop(rows), _vector(nest, columns, machine, size)])
        else:
            moved = Loop(names[columns], vector=vector_width(nest, machine, names[columns]))
            loops = [*template.outer(names), Loop(names[rows]), moved]
        found[nest.label] = ScheduleAttr([*map(Loop, _ones(nest)), *loops])
    return found


def _tall(nest: NestOp, contraction: Contraction, steps: int, machine: Machine) -> int:
    """Returns the rows of a block of depth."""
    row = element_bytes(element_of(contraction.a.source.type))
    if _has_direct_tiles(contraction, machine):
        # Whole rows of the block stay in the second-level cache: the panels of all their depth pass by.
        return machine.l2_budget // 2 // (row * _known(nest, nest.axis(contraction.depth).extent))
    return machine.group_bytes // 4 // (row * steps)


def even_group(tiles: int | None, most: int) -> int:
    """Returns the tiles of columns of a task, at most `most`. A known number is shared evenly between an even number of
    tasks: 10 tiles by 8 would be a task of 8 and one of 2, for two threads as long as one."""
    if tiles is None or tiles <= most:
        return most
    tasks = -(-tiles // most)
    return -(-tiles // (tasks + tasks % 2))


def _tiles_across(nest: NestOp, contraction: Contraction, columns: int) -> int | None:
    """Returns the number of tiles of `columns` columns; None if it is not constant."""
    extent = nest.axis(contraction.columns).extent.constant
    return None if extent is None else -(-extent // columns)


def _has_parts(contraction: Contraction) -> bool:
    """True if the left factor of an f16 product was f16, and so has the parts that AMX multiplies."""
    source = contraction.a.source
    if contraction.kind != "f32f16" or not isinstance(source.owner, NestOp):
        return False
    clause = source.owner.yield_op.clauses[source.owner.outputs.index(source)]  # pyright: ignore[reportArgumentType]
    wide = clause.value.owner
    return isinstance(wide, arith.ExtFOp) and isinstance(wide.input.type, Float16Type)


def _group(nest: NestOp, contraction: Contraction, width: int, machine: Machine) -> int:
    """Returns the number of column tiles processed together for all rows: as many as a part of the second-level cache
    holds. 1 where the columns are not packed at run time, or where all of them fit."""
    columns, depth = nest.axis(contraction.columns).extent.constant, nest.axis(contraction.depth).extent
    if contraction.rows is None or (reads_weights(contraction) and made_panels(contraction) is None):
        return 1
    # A depth known only at run time is assumed to be a typical one.
    deep = typical_of(nest).known(depth) or WORK
    for name in contraction.sums:
        deep *= typical_of(nest).known(nest.axis(name).extent) or 1
    tile = width * deep * element_bytes(element_of(contraction.b.source.type))
    # Panels made at run time are written as well, and their source is read: half of the room is left to these.
    room = machine.group_bytes if made_panels(contraction) is None else machine.group_bytes // 2
    blocks = max(1, room // max(1, tile))
    return 1 if columns is not None and columns <= blocks * width else blocks


def _weights_stay(nest: NestOp, contraction: Contraction, width: int, machine: Machine) -> bool:
    """True if a group of panels of a weight should stay in the cache for all rows of all batches, instead of a few rows
    for all panels. That is so where the weight exceeds the second-level cache, and reading the image again for each
    group costs less than reading the weight for each row of tiles."""
    if not contraction.batch or not reads_weights(contraction):
        return False
    batch = [nest.axis(n) for n in contraction.batch]
    # A weight for each batch, as in groups, is read once in either order.
    if {a.name for a in batch} & symbols_of(contraction.b.subscripts):
        return False
    weight = weight_bytes(nest, contraction)
    if weight <= machine.l2_budget // 2:
        return False
    image = bytes_of(nest, contraction.a.source)
    columns = _known(nest, nest.axis(contraction.columns).extent)
    rows = _known(nest, product(a.extent for a in batch))
    return image * -(-columns // width) < weight * rows


def weight_bytes(nest: NestOp, contraction: Contraction) -> int:
    """Returns the bytes of the right factor, at typical sizes."""
    return bytes_of(nest, contraction.b.source)


def bytes_of(nest: NestOp, value: SSAValue) -> int:
    """Returns the bytes of a tensor, at typical sizes."""
    return _known(nest, stored_bytes(value.type))


def _comes_from_afar(group: Group, machine: Machine) -> bool:
    """True if the other operands and results of a contraction's epilogue exceed the second-level cache, so that they
    should be prefetched before the tile of sums is done."""
    anchor, *rest = group.members
    made = {result for nest in group.members for result in nest.outputs}
    read = {tensor_behind(op.source) for nest in rest for op in nest.reads} - made
    written = {result for nest in rest for result in nest.outputs}
    return sum(bytes_of(anchor, value) for value in (*read, *written)) > machine.l2_budget


def _are_long(nest: NestOp, columns: str, machine: Machine) -> bool:
    """True if the rows of a result are contiguous pages. Where tiles follow one another along them, the processor
    prefetches by itself: rows of 8,000 and 64,000 bytes take half of the time without prefetches, rows of 2,000 the
    same, rows of 400 bytes 1.4 times as long (one thread of a Zen 3)."""
    result = nest.outputs[0]
    extent = nest.axis(columns).extent.constant
    step = linearize(nest.yield_op.clauses[0].subscripts, dims_of(result.type)).coefficient(columns)
    return extent is not None and step == ONE and extent * element_bytes(element_of(result.type)) >= machine.page_bytes


def _known(nest: NestOp, count: Expr) -> int:
    """Returns a number of elements, at typical sizes if it is symbolic."""
    return typical_of(nest).value(count, WORK)


def packing_schedule(nest: NestOp, label: str, machine: Machine) -> ScheduleAttr:
    """Returns the schedule of a packing nest of contiguous columns, with axes [.., panel, depth, lane]. It copies a
    stretch of each row of the matrix at a time, not one line of it (a panel has a line), because the prefetcher
    follows stretches."""
    panel, depth, lane = (a.name for a in nest.axes[-3:])
    outer = [a.name for a in nest.axes[:-3]]
    steps = [*map(Loop, outer), Loop(panel, by=machine.stretch_lines), Loop(depth), Loop(panel)]
    lanes = Loop(lane, vector=vector_width(nest, machine, lane))
    return ScheduleAttr(on_threads([*steps, lanes], {*outer, panel}))


def pair_packing_schedule(nest: NestOp, contiguous: bool, label: str, machine: Machine) -> ScheduleAttr:
    """Returns the schedule of a nest that packs pairs of steps, with axes [.., pair, lane, step]. Both steps of a pair
    form a short row for `transpose-accesses`. `contiguous`: the lanes are contiguous in memory. Otherwise the steps
    are, and as many as a vector has lanes are transposed in registers."""
    *outer, pair, lane, step = (a.name for a in nest.axes)
    lanes = nest.axis(lane).extent.constant
    assert lanes is not None
    pairs = [Loop(pair)] if contiguous else [Loop(pair, by=lanes // 2, tail="rest"), Loop(pair, unroll=0)]
    inner = [Loop(step, unroll=0), Loop(lane, vector=min(lanes, machine.vector_bytes // 2))]
    return ScheduleAttr(on_threads([*map(Loop, outer), *pairs, *inner], {*outer}))


def band_product_schedule(
    nest: NestOp, contraction: Contraction, bands: Sequence[str], label: str, machine: Machine
) -> ScheduleAttr:
    """Returns the schedule of a contraction with a weight, band by band. `bands` are outer batch axes, shared with
    other nests, along which the weight is the same. The other batch axes are products in sequence with a weight
    each, whose panels are read once for the rows of a band."""
    assert contraction.rows is not None
    height, width = _tile(nest, contraction, machine)
    lanes = panel_lanes(element_of(nest.outputs[0].type))
    columns, rows = contraction.columns, contraction.rows
    template = ProductTemplate(
        rows,
        columns,
        contraction.depth,
        (height, width),
        lanes,
        tuple((name, 1) for name in bands),
        (*((n, 1) for n in contraction.batch if n not in bands), (columns, width * lanes), (rows, height)),
        sums=tuple(contraction.sums),
        fuse=label,
    )
    copies = [Loop(rows), _vector(nest, columns, machine, width * lanes)]
    steps = [*map(Loop, _ones(nest)), *template.contraction(copies)]
    return ScheduleAttr(on_threads(steps, {*bands, *contraction.batch}))


def row_block(group: Group, machine: Machine) -> int:
    """Returns the rows of a block, which all contractions of a group of rows use as their tile height. AMX tiles are
    higher: they are filled as far as the block's rows of scores and weights, two numbers for each key, stay in half of
    the second-level cache."""
    if not all(_has_direct_tiles(c, machine) for c in group.products.values()):
        return min(8, *(_least_rows(_tile(nest, c, machine)[0], c, machine) for nest, c in group.products.items()))
    anchor = group.members[0]
    keys = typical_of(anchor).known(anchor.axis(group.products[anchor].columns).extent) or WORK
    height = TILE_ROWS
    while height > LEAST_TILE_ROWS and 2 * height * keys * 4 > machine.l2_budget // 2:
        height //= 2
    return height


def _least_rows(height: int, contraction: Contraction, machine: Machine) -> int:
    """Returns the rows that the registers hold, of a tile that converts its panel for more of them."""
    widens = has_widened_tiles(machine.vector_bytes, machine.registers, contraction.kind)
    return min(height, WIDENED_STRIPE) if widens or has_pairs(contraction.kind, machine) else height


def row_product_schedule(
    nest: NestOp, contraction: Contraction, group: Group, label: str, machine: Machine
) -> ScheduleAttr:
    """Returns the schedule of one contraction of a group of rows: all its columns for a block of rows."""
    height, (tall, width) = row_block(group, machine), _tile(nest, contraction, machine)
    # AMX has one micro-kernel, for blocks of up to its height.
    most = tall if _has_direct_tiles(contraction, machine) else height
    product = Product(contraction.rows or "", contraction.columns, contraction.depth, (most, width))
    return _row_tiles(nest, contraction.columns, group, label, machine, (height, width), product, contraction.sums)


def row_epilogue_schedule(
    nest: NestOp, product: NestOp, columns: str, group: Group, label: str, machine: Machine
) -> ScheduleAttr:
    """Returns the schedule of a nest that works on the tiles of a contraction of a group of rows; `columns` is its own
    axis."""
    size = row_block(group, machine), _tile(product, group.products[product], machine)[1]
    return _row_tiles(nest, columns, group, label, machine, size)


def _row_tiles(
    nest: NestOp,
    columns: str,
    group: Group,
    label: str,
    machine: Machine,
    size: tuple[int, int],
    product: Product | None = None,
    sums: tuple[str, ...] = (),
) -> ScheduleAttr:
    """Returns the schedule for tiles of the given rows and panels in a block of rows; `sums`: the reductions beside the
    depth."""
    lanes = panel_lanes(element_of(nest.outputs[0].type))
    *outer, row = (of[nest.label] for _, of in group.levels)
    width = size[1] * lanes
    template = ProductTemplate(
        row,
        columns,
        "" if product is None else product.depth,
        size,
        lanes,
        (*((name, 1) for name in outer), (row, size[0])),
        ((columns, width),),
        sums=sums,
        fuse=label,
    )
    copies = [Loop(row), _vector(nest, columns, machine, width)]
    around = [*template.outer(), *template.around_tile()]
    steps = [*around, *([] if product is None else [product]), *copies]
    return ScheduleAttr([*map(Loop, _ones(nest)), *steps])


def in_blocks(schedule: ScheduleAttr, row: str, height: int) -> ScheduleAttr:
    """Returns the schedule of a nest with its loop over rows blocked."""
    return ScheduleAttr(split(schedule.data, row, height))


def _ones(nest: NestOp) -> list[str]:
    """Returns the axes of extent 1, which no group shares; `canonicalize-loop` would have removed them."""
    return [a.name for a in nest.axes if a.kind == "parallel" and a.extent == ONE]


def _tile(nest: NestOp, contraction: Contraction, machine: Machine, halves: bool = False) -> tuple[int, int]:
    """Returns the rows and panels of a tile; `halves`: with AMX for f16, which favours more rows than a group of rows
    has."""
    columns = nest.axis(contraction.columns).extent.constant
    lanes = panel_lanes(element_of(nest.outputs[0].type))
    panels = None if columns is None else -(-columns // lanes)
    vectors = max(1, PANEL_BYTES // machine.vector_bytes)
    if panels != 1 and not halves and _is_one_row(nest, contraction):
        # Symbolic rows are an axis, whose tiles have at least two rows.
        height = 1 if contraction.rows is None else 2
        return height, _wide(height, panels, vectors, machine)
    rows = None if contraction.rows is None else _at_once(nest.axis(contraction.rows).extent)
    widens = has_widened_tiles(machine.vector_bytes, machine.registers, contraction.kind)
    if rows is not None and panels and contraction.kind in WHOLE_ROWS and not (widens and rows > WIDENED_STRIPE):
        most = min(rows, _apart(nest, contraction, machine) or rows)
        return even_tile(most, rows, panels, vectors, machine, _panel_bytes(nest, contraction))
    halves = halves or _has_direct_tiles(contraction, machine)
    figures = machine.vector_bytes, machine.registers
    pairs = has_pairs(contraction.kind, machine)
    return tile_size(*figures, panels, contraction.kind, machine.byte_tiles, halves, pairs)


def _is_one_row(nest: NestOp, contraction: Contraction) -> bool:
    """True if there is one row, or one is typical of a product with a weight."""
    if contraction.kind not in WHOLE_ROWS:
        return False
    if contraction.rows is None:
        return True
    if contraction.batch or not reads_weights(contraction):
        return False
    return typical_of(nest).known(nest.axis(contraction.rows).extent) == 1


def _wide(height: int, panels: int | None, vectors: int, machine: Machine) -> int:
    """Returns the panels of a tile of one or two rows: as many as fit the registers with their sums, distributed
    evenly."""
    most = max(1, min(ONE_ROW_PANELS, (machine.registers - 2) // ((height + 1) * vectors)))
    return most if panels is None else -(-panels // -(-panels // most))


def _at_once(rows: Expr) -> int | None:
    """Returns the least number of rows, where that is known to be more than one: the rows of one image."""
    counts = [c for _, c in rows.terms]
    return counts[0] if len(counts) == 1 and counts[0] > 1 else None


def _apart(nest: NestOp, contraction: Contraction, machine: Machine) -> int | None:
    """Returns the most rows that can be multiplied together, where rows are whole pages apart. One line of each row is
    live at a time. All of these lines map to one set of the first-level cache, which has as many ways as the cache
    has pages."""
    assert contraction.rows is not None
    step = offset_of(nest, contraction.a, {}, nest.axes_attr.ranges).coefficient(contraction.rows)
    size = element_bytes(element_of(contraction.a.source.type))
    if step is None or step.constant is None or step.constant * size % machine.page_bytes:
        return None
    return max(1, machine.l1d_bytes // machine.page_bytes)


def _panel_bytes(nest: NestOp, contraction: Contraction) -> int:
    """Returns the bytes of one panel of the right factor, over the whole depth."""
    deep = _known(nest, product(nest.axis(n).extent for n in (contraction.depth, *contraction.sums)))
    lanes = panel_lanes(element_of(nest.outputs[0].type))
    return deep * lanes * element_bytes(element_of(contraction.b.source.type))


def even_tile(
    most: int, rows: int, panels: int, vectors: int, machine: Machine, panel_bytes: int = 0
) -> tuple[int, int]:
    """Returns the rows, at most `most`, and panels of the fastest tile for a known number of both. The cost model
    counts multiplications and loads of a step of the depth, over all tiles. `vectors` are those of a panel. Panels
    larger than half of the first-level cache come from the second for every tile."""

    def cycles(height: int, width: int) -> float:
        across = width * vectors
        multiplied, loaded = height * across / machine.fma_ports, (height + across) / max(1, machine.load_ports)
        waited = machine.fma_latency / turns_of(height * across)
        streams = width * panel_bytes > machine.l1d_bytes // 2
        read = width * PANEL_BYTES / machine.l2_bytes_cycle if streams else 0.0
        return max(multiplied, loaded, waited, read) + machine.step_cycles

    def whole(tile: tuple[int, int]) -> float:
        height, width = tile
        tall, wide = divmod(rows, height), divmod(panels, width)
        return sum(
            count * number * cycles(h, w)
            for count, h in ((tall[0], height), (1, tall[1]))
            for number, w in ((wide[0], width), (1, wide[1]))
            if h and w
        )

    tiles = [
        (height, width)
        for width in range(1, min(panels, MOST_PANELS) + 1)
        for height in range(1, min(most, MOST_ROWS) + 1)
        if height * width * vectors + width * vectors + 1 < machine.registers
    ]
    # Among equals take the wider tile: its rows share more.
    return best_tile(tiles or [(1, 1)], whole, prefer=lambda tile: -tile[1])


def _vector(nest: NestOp, axis: str, machine: Machine, size: int) -> Loop:
    """Returns the loop over the columns of a tile: vectors, fully unrolled where every tile is full."""
    lanes = vector_width(nest, machine, axis)
    extent = nest.axis(axis).extent.constant
    whole = extent is not None and extent % size == 0 and size % lanes == 0
    return Loop(axis, vector=lanes, unroll=0 if whole else None)
