"""Factors of contractions to pack at run time for micro-kernels.

If the columns of neither factor are in panels, one factor is copied into panels. The copy reads every element once, so
it needs many rows to share it (`MachineModel.pack_rows`). A factor in panels is copied as well if its steps of depth
are so far apart that the lines of a panel evict each other from the caches before the next rows read them.

`pack-operands` makes the copy; comparisons of schedules use its properties.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import Float32Type, bf16, f32

from igniter.analysis.machine import MachineModel
from igniter.analysis.structured.contractions import (
    Contraction,
    contraction_of,
    depths_of,
    factors_of,
    offset_of,
    window_of,
)
from igniter.analysis.typical_sizes import typical_of
from igniter.dialects.loop import NestOp, ReadOp
from igniter.dialects.loop.attrs import element_bytes
from igniter.dialects.loop.panels import (
    SMALLEST_COLUMNS,
    are_dot_products,
    group_of,
    is_half,
    kind_of,
    panel_lanes,
)
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, Expr, linearize, product, symbols_of


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
    halves = _are_halves(nest, factors)
    reason = _no_kernel(nest, factors)
    if reason is not None:
        return reason
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


def fewest_rows(nest: NestOp, factor: UnpackedFactor, columns: int | None, machine: MachineModel) -> int:
    """Returns the fewest rows that repay packing a factor. Half of a panel of few columns is written in vain, and such
    columns are one vector or two for a plain loop: it multiplies 8 x 100000 by 100000 x 8 in 0.27 of the time that
    packing and multiplying take (one thread of a Zen 3)."""
    lanes = panel_lanes(element_of(nest.outputs[0].type))
    if not factor.is_beside or columns is None or 2 * columns > lanes:
        return machine.pack_rows
    return machine.pack_rows * lanes // max(columns, 1) + 1


def paired_factor(nest: NestOp, machine: MachineModel) -> UnpackedFactor | None:
    """Returns the right factor of a product of computed bf16, to pack in pairs of steps for tiles of bf16; `None` for
    other nests, for machines without such tiles, and where the factor already is in pairs."""
    factors = factors_of(nest)
    if nest.schedule is not None or not machine.half_tiles or isinstance(factors, str):
        return None
    elements = [element_of(v.type) for v in (factors[0].source, factors[1].source, nest.outputs[0])]
    if kind_of(*elements) != "bf16" or any(is_packed(f) for f in factors) or window_of(nest, factors) is not None:
        return None
    depths = [n for n in depths_of(nest) if all(n in symbols_of(f.subscripts) for f in factors)]
    found = next(((n, *c) for n in depths if (c := _columns(nest, factors, n)) is not None), None)
    if found is None or len(depths_of(nest)) > 1:
        return None
    depth, read, column, rows = found
    elements_of = product(a.extent for a in nest.axes if a.name in symbols_of(read.subscripts))
    stride = offset_of(nest, read, {}, nest.axes_attr.ranges).coefficient(column)
    return UnpackedFactor(read, column, depth, rows[-1], product(rows), elements_of, stride == ONE)


def packs_pairs(nest: NestOp) -> bool:
    """True if a nest copies a matrix to panels of bf16 with pairs of steps of depth."""
    written = nest.yield_op.clauses[0].subscripts
    tensor = nest.outputs[0].type
    return (
        len(nest.reads) == 1
        and len(nest.axes) >= 4
        and element_of(tensor) == bf16
        and [s.symbol for s in written] == [a.name for a in nest.axes]
        and [d.constant for d in dims_of(tensor)[-2:]] == [panel_lanes(f32), group_of("bf16")]
    )


@dataclass(frozen=True)
class Convolution:
    """A sum over windows that move with the result: an image and the weight of all its places."""

    image: ReadOp
    weight: ReadOp
    channels: tuple[str, ...]
    """The reductions that do not move with the result, in the order of the nest."""
    window: tuple[str, ...]
    """The other reductions."""


def convolution_of(nest: NestOp, guarded: bool = False) -> Convolution | None:
    """Returns the factors of a nest as a convolution; `None` for other nests. `guarded`: a read may be 0 outside its
    tensor."""
    factors = factors_of(nest, guarded)
    if isinstance(factors, str):
        return None
    kinds = {a.name: a.kind for a in nest.axes if a.extent != ONE}
    for image, weight in (factors, factors[::-1]):
        shared = symbols_of(weight.subscripts)
        moving: set[str] = set()
        for subscript in image.subscripts:
            named = [n for n in subscript.symbols if n in kinds]
            if any(kinds[n] == "parallel" and n not in shared for n in named):
                moving |= {n for n in named if kinds[n] == "reduction"}
        if moving and moving <= shared:
            rest = (n for n, kind in kinds.items() if kind == "reduction" and n not in moving)
            return Convolution(image, weight, tuple(rest), tuple(n for n in kinds if n in moving))
    return None


def computed_weight(nest: NestOp) -> UnpackedFactor | str:
    """Returns the weight of a convolution, if it is computed at run time and its image has contiguous channels;
    otherwise the reason, or "" if the nest is no such convolution. The output channels are the columns to pack."""
    found = convolution_of(nest)
    if nest.schedule is not None or found is None or is_packed(found.weight) or line_of(nest) is not None:
        return ""
    image, weight, result = found.image, found.weight, element_of(nest.outputs[0].type)
    reason = _no_kernel(nest, (image, weight))
    if reason is not None:
        return reason
    if not _are_halves(nest, (image, weight)) and element_of(weight.source.type) != result:
        return f"elements of {element_of(weight.source.type)} can be packed only at compile time"
    offset = offset_of(nest, image, {}, nest.axes_attr.ranges)
    depth = next((n for n in found.channels or depths_of(nest) if offset.coefficient(n) == ONE), None)
    if depth is None:
        return "the channels of its image are not contiguous"
    in_image, in_weight = symbols_of(image.subscripts), symbols_of(weight.subscripts)
    parallel = [a for a in nest.axes if a.kind == "parallel" and a.extent != ONE]
    columns = [a.name for a in parallel if a.name in in_weight and a.name not in in_image]
    rows = [a.extent for a in parallel if a.name in in_image and a.name not in in_weight]
    if len(columns) != 1:
        return "its output channels are not one axis"
    count, steps = (nest.axis(n).extent.constant for n in (columns[0], depth))
    kind = kind_of(element_of(image.source.type), element_of(weight.source.type), result)
    if (count is not None and count < SMALLEST_COLUMNS) or are_dot_products(count, steps, kind):
        return f"{count} columns fill too small a part of a panel"
    elements = product(a.extent for a in nest.axes if a.name in in_weight)
    return UnpackedFactor(weight, columns[0], depth, product(rows), product(rows), elements, False)


def line_of(nest: NestOp) -> UnpackedFactor | None:
    """Returns the image of a convolution along one axis, if its windows together are fewer elements than its results
    and the results are contiguous along the places. The windows are then copied to panels whose columns are the places,
    so that the results come in the order of the model. `None` for other nests."""
    found = convolution_of(nest, guarded=True)
    if nest.schedule is not None or found is None or len(found.window) != 1 or is_packed(found.weight):
        return None
    image, weight, ranges = found.image, found.weight, nest.axes_attr.ranges
    if weight.guards or _no_kernel(nest, (image, weight)) is not None:
        return None
    result = nest.outputs[0]
    if not _are_halves(nest, (image, weight)) and element_of(image.source.type) != element_of(result.type):
        return None
    (depth,) = found.window
    in_image, in_weight = symbols_of(image.subscripts), symbols_of(weight.subscripts)
    parallel = [a for a in nest.axes if a.kind == "parallel" and a.extent != ONE]
    rows = [a for a in parallel if a.name in in_weight and a.name not in in_image]
    beside = [s for s in image.subscripts if depth in s.symbols]
    columns = [a.name for a in parallel if a.name not in in_weight and any(a.name in s.symbols for s in beside)]
    if len(rows) != 1 or len(columns) != 1 or offset_of(nest, weight, {}, ranges).coefficient(depth) != ONE:
        return None
    written = linearize(nest.yield_op.clauses[0].subscripts, dims_of(result.type))
    moved = product(a.extent for a in nest.axes if a.kind == "reduction").constant
    made = rows[0].extent.constant
    if written.coefficient(columns[0]) != ONE or moved is None or made is None or moved > made:
        return None
    elements = product(a.extent for a in nest.axes if a.name in in_image)
    return UnpackedFactor(image, columns[0], depth, rows[0].extent, rows[0].extent, elements, False)


def _are_halves(nest: NestOp, factors: Sequence[ReadOp]) -> bool:
    """True if the factors are f32 or 16-bit floats and the sums f32."""
    result = element_of(nest.outputs[0].type)
    elements = [element_of(r.source.type) for r in factors]
    return isinstance(result, Float32Type) and all(is_half(e) or e == result for e in elements)


def _no_kernel(nest: NestOp, factors: Sequence[ReadOp]) -> str | None:
    """Returns the reason why no micro-kernel multiplies the elements of the factors in either order; None if one
    does."""
    result = element_of(nest.outputs[0].type)
    a, b = (element_of(r.source.type) for r in factors)
    if _are_halves(nest, factors) or kind_of(a, b, result) is not None or kind_of(b, a, result) is not None:
        return None
    return f"there is no micro-kernel for products of {a} and {b} in {result}"


CROWDED = 16
"""The span of a panel, in first-level caches, at which its lines are too far apart. The ratio is for caches of about
eight ways: lines at a power-of-two stride then map to so few sets that the copy is profitable with 32 rows or fewer.
Measured on one core of a Zen 3, 128 rows, time in panels as stored by time with packing: 0.97 to 1.06 up to 8 times
(512 steps of 128 columns), 1.4 to 1.9 at 16 (64 of 2048, 2048 of 64, 256 of 512), 2.3 to 2.9 at 64 and more."""

CROWDED_ALIGNED = 4
"""The same span for lines at a power-of-two stride; of another stride, the largest power of two that divides it counts.
Time with packing by time in panels as stored: 256 steps of 256 columns 0.71, of 128 0.98, and if the left factor is
transposed, whose lines are as far apart, 0.75; 512 of 64 0.85 to 1.04; but 250 of 250 1.04, 197 of 192 1.02 (256 to 512
rows, one thread of a Zen 3, interleaved)."""


def crowded_factor(nest: NestOp, machine: MachineModel, aligned: int = CROWDED_ALIGNED) -> UnpackedFactor | None:
    """Returns the right factor of a contraction if its panels' lines map to a few sets of the caches, as in a row-major
    matrix of many rows; `None` otherwise. `aligned`: the span for lines at a power-of-two stride."""
    found = contraction_of(nest)
    if nest.schedule is not None or isinstance(found, str):
        return None
    read = found.b
    if element_of(read.source.type) != element_of(nest.outputs[0].type) or is_packed(read):
        return None
    if not are_crowded(nest, found, machine, aligned):
        return None
    used, in_a = symbols_of(read.subscripts), symbols_of(found.a.subscripts)
    if used & set(found.sums):
        # With other sums than the depth the copy may be larger than its source.
        return None
    rows = product(a.extent for a in nest.axes if a.kind == "parallel" and a.name in in_a and a.name not in used)
    elements = product(a.extent for a in nest.axes if a.name in used)
    last = ONE if found.rows is None else nest.axis(found.rows).extent
    return UnpackedFactor(read, found.columns, found.depth, last, rows, elements, True)


def are_crowded(nest: NestOp, contraction: Contraction, machine: MachineModel, aligned: int = CROWDED) -> bool:
    """True if the steps of depth of the right factor span so much memory that the lines of a panel map to a few sets of
    the caches. `aligned`: the span for lines at a power-of-two stride."""
    read = contraction.b
    step = offset_of(nest, read, {}, nest.axes_attr.ranges).coefficient(contraction.depth)
    depth = nest.axis(contraction.depth).extent.constant
    if step is None or step.constant is None or depth is None:
        return False
    apart = step.constant * element_bytes(element_of(read.source.type))
    spans, aligned_spans = apart * depth, (apart & -apart) * depth
    return spans >= CROWDED * machine.l1d_bytes or aligned_spans >= aligned * machine.l1d_bytes


def has_few_rows(nest: NestOp, machine: MachineModel) -> bool:
    """True if a contraction has a crowded factor, and fewer rows, known or typical, than packing needs; or one row, and
    a factor with contiguous columns that is not in panels."""
    if _is_row_by_matrix(nest):
        return True
    factor = crowded_factor(nest, machine, CROWDED)
    count = None if factor is None else typical_of(nest).known(factor.all_rows)
    return count is not None and count < machine.pack_rows


def _is_row_by_matrix(nest: NestOp) -> bool:
    """True for one row by a matrix of contiguous columns. Whole rows of the matrix are then read one after the other,
    faster than panels, whose lines are a row apart: 32 products of 64 and 64 x 512 take 0.6 of the time, of 512 and
    512 x 64 0.75 (one thread of a Zen 3)."""
    found = contraction_of(nest)
    if nest.schedule is not None or isinstance(found, str) or found.rows is not None or found.sums:
        return False
    read = found.b
    if element_of(read.source.type) != element_of(nest.outputs[0].type) or is_packed(read):
        return False
    return offset_of(nest, read, {}, nest.axes_attr.ranges).coefficient(found.columns) == ONE


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
