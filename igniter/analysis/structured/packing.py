"""Factors of contractions to pack at run time for micro-kernels.

If the columns of neither factor are in panels, one factor is copied into panels. The copy reads every element once, so
it needs many rows to share it (`MachineModel.pack_rows`). A factor in panels is copied as well if its steps of depth
are so far apart that the lines of a panel evict each other from the caches before the next rows read them.

`pack-operands` makes the copy; comparisons of schedules use its properties.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type

from igniter.analysis.machine import MachineModel
from igniter.analysis.structured.contractions import contraction_of, depths_of, factors_of, offset_of, window_of
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import NestOp, ReadOp
from igniter.dialects.loop.attrs import element_bytes
from igniter.dialects.loop.panels import is_half, kind_of
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import ONE, Expr, product, symbols_of


@dataclass(frozen=True)
class UnpackedFactor:
    """The right factor of a contraction, with the columns to pack."""

    read: ReadOp
    column: str
    depth: str
    rows: Expr
    """The rows of the left factor sharing it, along their last axis."""
    all_rows: Expr
    """The same, along all their axes."""
    elements: Expr
    """The number of its elements."""
    is_beside: bool
    """True if its columns are contiguous, in panels or not."""


def unpacked_factor(nest: NestOp) -> UnpackedFactor | str:
    """Returns the factor to pack; otherwise the reason, or "" if none needs reporting."""
    factors = factors_of(nest)
    if nest.schedule is not None or isinstance(factors, str):
        return ""
    if not isinstance(contraction_of(nest), str) or not isinstance(contraction_of(nest, moved=True), str):
        return ""
    result = element_of(nest.outputs[0].type)
    a, b = (element_of(r.source.type) for r in factors)
    halves = isinstance(result, Float32Type) and all(is_half(e) or e == result for e in (a, b))
    if not halves and kind_of(a, b, result) is None and kind_of(b, a, result) is None:
        return f"there is no micro-kernel for products of {a} and {b} in {result}"
    window = window_of(nest, factors)
    if window is not None:
        return f"along '{window}' it sums over a sliding window"
    found = next(((n, *c) for n in depths_of(nest) if (c := _columns(nest, factors, n)) is not None), None)
    if found is None:
        return "no axis of the result is in only one factor"
    depth, read, column, rows = found
    if not halves and element_of(read.source.type) != result:
        return f"elements of {element_of(read.source.type)} can be packed only at compile time"
    used = symbols_of(read.subscripts)
    stride = offset_of(nest, read, {}, nest.axes_attr.ranges).coefficient(column)
    elements = product(a.extent for a in nest.axes if a.name in used)
    return UnpackedFactor(read, column, depth, rows[-1], product(rows), elements, stride == ONE)


CROWDED = 16
"""The span of a panel, in first-level caches, at which its lines are too far apart. The ratio is for caches of about
eight ways: lines at a power-of-two stride then map to so few sets that the copy is profitable with 32 rows or fewer.
Measured on one core of a Zen 3, 128 rows, time in panels as stored by time with packing: 0.97 to 1.06 up to 8 times
(512 steps of 128 columns), 1.4 to 1.9 at 16 (64 of 2048, 2048 of 64, 256 of 512), 2.3 to 2.9 at 64 and more."""


def crowded_factor(nest: NestOp, machine: MachineModel) -> UnpackedFactor | None:
    """Returns the right factor of a contraction if its panels' lines map to a few sets of the caches, as in a row-major
    matrix of many rows; `None` otherwise."""
    found = contraction_of(nest)
    if nest.schedule is not None or isinstance(found, str):
        return None
    read = found.b
    if element_of(read.source.type) != element_of(nest.outputs[0].type) or is_packed(read):
        return None
    step = offset_of(nest, read, {}, nest.axes_attr.ranges).coefficient(found.depth)
    depth = nest.axis(found.depth).extent.constant
    if step is None or step.constant is None or depth is None:
        return None
    if step.constant * depth * element_bytes(element_of(read.source.type)) < CROWDED * machine.l1d_bytes:
        return None
    used, in_a = symbols_of(read.subscripts), symbols_of(found.a.subscripts)
    if used & set(found.sums):
        # With other sums than the depth the copy may be larger than its source.
        return None
    rows = product(a.extent for a in nest.axes if a.kind == "parallel" and a.name in in_a and a.name not in used)
    elements = product(a.extent for a in nest.axes if a.name in used)
    last = ONE if found.rows is None else nest.axis(found.rows).extent
    return UnpackedFactor(read, found.columns, found.depth, last, rows, elements, True)


def has_few_rows(nest: NestOp, machine: MachineModel) -> bool:
    """True if a contraction has a crowded factor, and fewer rows, known or typical, than packing needs."""
    factor = crowded_factor(nest, machine)
    count = None if factor is None else typical_of(nest).known(factor.all_rows)
    return count is not None and count < machine.pack_rows


def is_packed(read: ReadOp) -> bool:
    """True if the source of a read is in packed panels."""
    return any(s.call is not None for s in read.subscripts)


def _columns(nest: NestOp, factors: tuple[ReadOp, ReadOp], depth: str) -> tuple[ReadOp, str, list[Expr]] | None:
    """Returns the factor to pack, its columns, and the extents of the other's rows; the columns are the last suitable
    axis of the result."""
    written = nest.yield_op.clauses[0].subscripts
    order = [a.name for s in reversed(written) for a in nest.axes if a.name in s.symbols and a.extent != ONE]
    for column in dict.fromkeys(order):
        for b, a in (factors, factors[::-1]):
            in_a, in_b = symbols_of(a.subscripts), symbols_of(b.subscripts)
            if column in in_b and column not in in_a and depth in in_b and depth in in_a:
                rows = [x.extent for x in nest.axes if x.kind == "parallel" and x.name in in_a and x.name not in in_b]
                if rows:
                    return b, column, rows
    return None
