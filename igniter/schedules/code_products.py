"""Schedules of products with codes in panels: few rows by numbers of few bits, and any rows rounded to bytes.

The codes of a few panels stay in the caches while all rows pass, so panels are the outermost loop, shared by
threads; a kernel for any number of rows then has tasks for all threads at a single row, too. Rows in a tile share the
unpacked codes of a vector:

    for each group of panels (threads), tile of rows, panel, vector of columns:
        for each block, stretch:
            unpack the codes of the vector once
            for each row of the tile (unrolled): sums[row] += (codes * factors[row] - zero * ..) * scale

A tile of several rows is one vector wide: its unpacked codes fill half of the registers of AVX2. A single row takes
the vectors of a panel together, because they share the broadcast factors.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.dialects.builtin import IntegerType
from xdsl.ir import BlockArgument

from igniter.analysis.structured.nest_bodies import is_contraction, tensor_behind
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import DotBytesOp, NestOp
from igniter.dialects.loop.panels import PANEL_BYTES
from igniter.dialects.loop.schedule import Loop, ScheduleAttr
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, symbols_of
from igniter.schedules.products import DEEP_TASKS
from igniter.schedules.scheduling import Machine

PANEL = PANEL_BYTES // 4
"""The columns of a panel of sums in 32 bits."""

ROWS, ROWS_OF_MANY_REGISTERS = 4, 8
"""The rows of a tile of bytes with 16 and with 32 registers. 128 rows, 512 deep, with 1376 columns: 80 billion products
a second on one thread of a Zen 3 with tiles of 4 rows, 79 with 5, and 76 with 6, the rounding of the rows included; f32
makes 41. With 32 registers the tile was not measured."""

AHEAD, AHEAD_OF_BYTES = 8, 4
"""The prefetch distance of a single row, in stretches of 16 bytes of 16 columns, with factors of floats and of bytes. A
panel of few stretches is a page, or less. Time with prefetches, weights of 26 MB, 512 x 1376 and 1376 x 512, on one
thread of a Zen 3: 0.76 to 0.83 with floats at a distance of 8 (4: 0.86 and 0.82; 16: 0.74 and 0.81), 0.90 with bytes at
4 (8: 0.99). From the second-level cache 1.0."""


PANELS = 4
"""The most panels of bytes in a task: the rows are read from memory or the third-level cache once for all of them. A
prompt of 512 tokens of a Llama of 512 features takes 0.97 of the time with one panel, one of 128 0.99 (one thread
of a Zen 3 whose third-level cache others use, 13 and 56 interleaved rounds)."""


@dataclass(frozen=True)
class CodedProduct:
    """The axes of a sum over codes in panels."""

    panel: str
    lane: str
    rows: str | None
    sums: tuple[str, ...]
    of_bytes: bool
    """True if the left factor is rounded to bytes."""


def coded_product(nest: NestOp) -> CodedProduct | None:
    """Returns the axes of a sum that reads codes in panels, [panel, .., lane]; `None` for other nests."""
    parallel = [a for a in nest.axes if a.kind == "parallel" and a.extent != ONE]
    sums = tuple(a.name for a in nest.axes if a.kind == "reduction")
    if nest.schedule is not None or not sums or len(nest.outputs) != 1 or is_contraction(nest):
        return None
    lanes = {a.name for a in parallel if a.extent.constant == PANEL}
    for read in nest.reads:
        element, at = element_of(read.source.type), read.subscripts
        if not isinstance(element, IntegerType) or not isinstance(tensor_behind(read.source), BlockArgument):
            continue
        if len(at) < 3 or at[-1].symbol not in lanes or dims_of(read.source.type)[-1].constant != PANEL:
            continue
        panel = at[0].symbol or ""
        others = [a.name for a in parallel if a.name not in (panel, at[-1].symbol)]
        if len(others) > 1 or symbols_of(at) & {*others} or not symbols_of(at) & {*sums}:
            continue
        if panel not in {a.name for a in parallel}:
            continue
        of_bytes = any(isinstance(op, DotBytesOp) for op in nest.block.ops)
        return CodedProduct(panel, at[-1].symbol or "", others[0] if others else None, sums, of_bytes)
    return None


def coded_schedule(nest: NestOp, machine: Machine) -> ScheduleAttr | None:
    """Returns the schedule of a product with codes in panels whose rows are rounded to bytes, or unknown; `None` for
    other nests."""
    found = coded_product(nest)
    if found is None:
        return None
    rows = None if found.rows is None else nest.axis(found.rows).extent
    if not found.of_bytes and (rows is None or rows.constant is not None):
        return None
    lanes = min(PANEL, machine.vector_bytes // 4)
    typical = 1 if rows is None else typical_of(nest).known(rows)
    most = ROWS if machine.registers < 32 else ROWS_OF_MANY_REGISTERS
    height = most if typical is None else min(most, max(1, typical))
    if not found.of_bytes:
        height = 1
    ones = [Loop(a.name) for a in nest.axes if a.kind == "parallel" and a.extent == ONE]
    sums = [Loop(name) for name in found.sums]
    panel = Loop(found.panel, threads=0)
    if found.rows is None or height == 1:
        deepest = next((name for name in reversed(found.sums) if nest.axis(name).extent != ONE), found.sums[0])
        distance = AHEAD_OF_BYTES if found.of_bytes else AHEAD
        sums = [Loop(name, ahead=distance if name == deepest else 0) for name in found.sums]
        row = [] if found.rows is None else [Loop(found.rows)]
        across = [Loop(found.lane, by=PANEL)] if lanes < PANEL else []
        inside = Loop(found.lane, vector=lanes, unroll=0 if lanes < PANEL else None)
        return ScheduleAttr([*ones, panel, *row, *across, *sums, inside])
    assert rows is not None
    tile = Loop(found.rows, by=height, tail="rest" if rows.constant is None else "peel")
    across = [Loop(found.lane, by=lanes)] if lanes < PANEL else []
    inside = [Loop(found.rows, unroll=0), Loop(found.lane, vector=lanes)]
    group = _panels_of_a_task(nest, found, machine)
    if group > 1:
        return ScheduleAttr([*ones, replace(panel, by=group), tile, Loop(found.panel), *across, *sums, *inside])
    return ScheduleAttr([*ones, panel, tile, *across, *sums, *inside])


def _panels_of_a_task(nest: NestOp, found: CodedProduct, machine: Machine) -> int:
    """Returns the panels that a tile of rows is multiplied with before the next tile, where each core has several such
    tasks; else 1."""
    panels = nest.axis(found.panel).extent.constant
    wanted = min(machine.most_tasks, DEEP_TASKS * machine.cores)
    return 1 if panels is None else max(1, min(PANELS, panels // wanted))
