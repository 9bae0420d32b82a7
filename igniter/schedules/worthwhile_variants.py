"""Variants of kernels for some sizes, where one schedule does not suit all: which are worth their code, and their
sizes.

A product of two computed tensors has its right factor packed into panels for micro-kernels. Packing is profitable where
rows share the panels. A symbolic number of rows may be 1, as in each step of a decoder behind the first. The copy then
dominates, so a single row is multiplied with the unpacked matrix. Measured on one core of a server with AVX-512, in us,
with packing and without:

    scores of 12 heads of 64, 64 keys      1 row   7.6   5.0    2 rows   7.7   9.9
    scores of 12 heads of 64, 512 keys     1 row   120    40    2 rows   120    76    3 rows   124   116
    their attention, 128 keys              1 row    20    12    2 rows    24    16    3 rows    24    24
    their attention, 1024 keys             1 row   462   242    2 rows   469   291    3 rows   470   331
    256 to 1000 columns, row-major         1 row    53    12    2 rows    55    24    3 rows    52    47

Where the columns are strided, each row of a plain loop gathers them again, so more than one row is a loss at some
sizes. Where they are contiguous, the plain loop is faster below `pack_rows` of the machine, also if they would be
panels but for the caches (`crowded_factor`).

Few columns, contiguous in memory, fill a part of a panel, and the copy writes whole panels. Up to a panel's worth, a
plain loop over the matrix as it is takes less time for any number of rows. One thread of a Zen 3, time of the variant
by time with packing:

    8 x 100,000 x 8    0.2      32 x 1,000 x 8    0.5      128 x 1,000 x 4     0.6      4 x 1,000 x 16    0.4
    16 x 1,000 x 16    0.6      128 x 128 x 16    1.1      20,000 x 8 x 8      0.4

A transpose moves squares of vectors through registers. A matrix of few rows or few columns fills no square, and its
elements would move one by one. Vectors along its other axis take 0.2 to 0.3 of that time for 2 to 5 rows, and 0.5 to
0.8 for as many columns, with 100,000 elements and more.
"""

from __future__ import annotations

from igniter.analysis.machine import MachineModel
from igniter.analysis.structured.packing import UnpackedFactor, crowded_factor, fewest_rows, unpacked_factor
from igniter.analysis.typical_sizes import WORK, sizes_with, typical_of
from igniter.dialects.loop import KernelOp, NestOp
from igniter.dialects.loop.panels import panel_lanes
from igniter.dialects.sym import element_of
from igniter.schedules.products import deep_rows
from igniter.schedules.size_variants import USUAL_VARIANTS, SizeVariant
from igniter.schedules.vector_axes import narrow_axes

MOST_COMPUTATIONS, MOST_TWICE = 16, 24
"""The most computations of a kernel for each two variants, and for one, with which it is compiled twice: limits on code
size and compile time, on any machine. An attention with a quantised cache has 18."""


def worthwhile_variants(kernel: KernelOp, machine: MachineModel) -> tuple[SizeVariant, ...]:
    """Returns the profitable variants of a kernel, in the order of their tests. None if one schedule suits all sizes,
    or if the kernel has schedules or variants already."""
    count = len(kernel.computations)
    most = min(USUAL_VARIANTS, max(2 * MOST_COMPUTATIONS // max(1, count) - 1, int(count <= MOST_TWICE)))
    if kernel.variants or most < 1 or any(each.schedule is not None for each in kernel.computations):
        return ()
    rows = _of_rows(kernel, machine)
    found = [] if rows is None else [rows]
    for nest in kernel.nests:
        found += [*_of_columns(nest, machine), *_of_squares(nest, kernel, machine)]
    return tuple({this.what: this for this in reversed(found)}.values())[::-1][:most]


def _of_rows(kernel: KernelOp, machine: MachineModel) -> SizeVariant | None:
    """Returns the variant for few rows of the products of a kernel; `None` if they have different rows, or if packing
    takes less time than a call costs anyway."""
    found: SizeVariant | None = None
    for nest in kernel.nests:
        factor = crowded_factor(nest, machine) or unpacked_factor(nest)
        this = _of_depth(nest, machine) if isinstance(factor, str) else _of_packed(nest, factor, kernel, machine)
        if this is None or (found is not None and found.what != this.what):
            if isinstance(factor, str):
                continue
            return None
        found = this if found is None or this.most <= found.most else found
    return found


def _of_depth(nest: NestOp, machine: MachineModel) -> SizeVariant | None:
    """Returns the variant for one row of a product whose depth is blocked for many."""
    rows = deep_rows(nest, machine)
    if rows is None or not rows.symbols:
        return None
    why = f"one row reads each panel of '{nest.label}' contiguously, without blocks of the depth"
    return SizeVariant("one_row", rows, 1, dict.fromkeys(sorted(rows.symbols), 1), why)


def _of_packed(nest: NestOp, factor: UnpackedFactor, kernel: KernelOp, machine: MachineModel) -> SizeVariant | None:
    """Returns the variant for row counts too small for packing the right factor to pay."""
    rows = factor.all_rows
    if not rows.symbols or rows.symbols & factor.elements.symbols:
        return None  # The number of rows is constant, or few rows mean few columns, too.
    most = machine.pack_rows - 1 if factor.is_beside else 1
    ones = dict.fromkeys(sorted(rows.symbols), 1)
    typical = typical_of(kernel)
    # A matrix with two unknown sizes may be large, and a small one loses nothing by the variant.
    is_open = len(factor.elements.symbols - dict(typical.given).keys()) > 1
    is_small = not is_open and typical.value(factor.elements, WORK) < machine.launch_elements
    if rows.evaluate(ones) > most or is_small:
        return None
    return SizeVariant("few_rows", rows, most, ones, f"too few rows to repay packing a factor of '{nest.label}'")


def _of_columns(nest: NestOp, machine: MachineModel) -> list[SizeVariant]:
    """Returns the variant for columns that fill one panel at most. Its lines are adjacent in memory already, so a copy
    gains little."""
    factor = unpacked_factor(nest)
    if isinstance(factor, str) or not factor.is_beside:
        return []
    columns, given = nest.axis(factor.column).extent, dict(typical_of(nest).given)
    lanes = panel_lanes(element_of(nest.outputs[0].type))
    names = sorted(columns.symbols | factor.rows.symbols)
    if not columns.symbols or columns.symbols & (factor.all_rows.symbols | given.keys()):
        return []
    few = {**sizes_with(factor.rows, lanes // 2, {}, names), **sizes_with(columns, lanes // 2, {}, names)}
    count = columns.evaluate(few)
    if count > lanes or factor.rows.evaluate(few) >= fewest_rows(nest, factor, count, machine):
        return []
    return [SizeVariant("few_columns", columns, lanes, few, f"too few columns to pack a factor of '{nest.label}'")]


def _of_squares(nest: NestOp, kernel: KernelOp, machine: MachineModel) -> list[SizeVariant]:
    """Returns the variants for rows shorter than a vector, in a kernel that transposes squares of vectors. Such rows
    would fill no square, and vectors along the other axis move them. That axis has an unknown length, or is so long
    that the gain is more than the time of a call."""
    if len(kernel.computations) > 1:
        return []
    found: list[SizeVariant] = []
    (axes, width), given = narrow_axes(nest, machine), dict(typical_of(nest).given)
    for row, lanes in axes:
        narrow, long = nest.axis(row).extent, nest.axis(lanes).extent
        ones = dict.fromkeys(sorted(narrow.symbols), 1)
        is_long = long.constant is None or long.constant * (width - 1) >= machine.launch_elements
        if not is_long or narrow.symbols & (long.symbols | given.keys()) or narrow.evaluate(ones) >= width:
            continue
        why = f"the rows of '{nest.label}' along '{row}' are too short for squares of {width} by {width}"
        found.append(SizeVariant(f"narrow_{row}", narrow, width - 1, ones, why))
    return found
