"""The axis of a nest that becomes the vector, from the strides of its accesses; and rows too short for one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from igniter.analysis.typical_sizes import WORK, typical_of
from igniter.dialects.loop import Axis, NestOp
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, linearize, product
from igniter.dialects.sym.ranges import simplify
from igniter.schedules.scheduling import Machine, vector_width

SHORT_WINDOW, SHORT_WINDOW_PENALTY = 8, 3
"""A sliding window of fewer elements fills no vector: it is the vector only where every other axis is worse by this
score. A reduction of few elements that does not slide stays the vector: its results are a row apart, and a maximum over
rows of 3 to 7 takes 1.4 to 2 times as long with vectors of results (one thread of a Zen 3). A maximum over windows of 3
x 3 with stride 2 takes a seventh of the time with vectors of results, whose reads have stride 2; windows of 2 x 2 take
a sixth (one thread of a Zen 3)."""

LONG_SUM = 16
"""The fewest elements of a sum whose time is that of its terms, and not of what is read or written once for a sum."""

NEAR = 8
"""Elements at most so far apart share cache lines: a vector of them is gathered at a stride, but not from memory."""

UNROLLED_WINDOW = 16
"""The largest window whose elements are unrolled below the vector of results."""


def vector_axis(
    nest: NestOp, common: list[str], strides: Mapping[str, list[tuple[Expr | None, bool]]], flat: bool
) -> str | None:
    """Returns the axis with the most contiguous accesses; `None` when a scalar loop is as good.

    A common axis is a candidate only if the group is `flat`: no member has loops inside the common ones.
    Along an axis that gathers the terms of long sums, only accesses for each term count: what is contiguous once for a
    sum makes up for nothing. The squares of 1,024 rows of 4,096 less a mean for each row took nine times as long with
    vectors of rows (one thread of a Zen 3).
    """
    terms = _terms_of_sums(nest, strides)
    candidates = [a for a in nest.axes if a.name not in common and a.extent != ONE]
    if not candidates:
        candidates = [a for a in nest.axes if flat and common and a.name == common[-1]]
    best: tuple[int, str] | None = None
    for axis in candidates:
        if axis.extent.constant is not None and axis.extent.constant < 2:
            continue
        score, gathers = 0, any(_is_far(strides[axis.name][k][0]) for k in terms.contiguous)
        for k, (stride, write) in enumerate(strides[axis.name]):
            if gathers and k not in terms.varying:
                continue
            weight = 3 if write else 2
            if stride == ONE:
                score += 2 * weight
            elif stride is not None and stride == ZERO:
                score += 1
            else:
                score -= weight
        if is_short_window(nest, axis):
            score -= SHORT_WINDOW_PENALTY
        if best is None or score >= best[0]:
            best = (score, axis.name)
    return best[1] if best is not None and best[0] > 0 else None


class _Terms(NamedTuple):
    """Accesses of a nest, by number: those that vary from term to term of a sum, those contiguous along a long sum."""

    varying: frozenset[int]
    contiguous: frozenset[int]


def _terms_of_sums(nest: NestOp, strides: Mapping[str, list[tuple[Expr | None, bool]]]) -> _Terms:
    varying: set[int] = set()
    contiguous: set[int] = set()
    for axis in nest.axes:
        if axis.kind != "reduction" or axis.name not in strides:
            continue
        along = [stride for stride, _ in strides[axis.name]]
        varying.update(k for k, stride in enumerate(along) if stride != ZERO)
        if not is_short_window(nest, axis) and (axis.extent.constant or LONG_SUM) >= LONG_SUM:
            contiguous.update(k for k, stride in enumerate(along) if stride == ONE)
    return _Terms(frozenset(varying), frozenset(contiguous))


def _is_far(stride: Expr | None) -> bool:
    return stride is None or stride.constant is None or abs(stride.constant) > NEAR


def strides_along(nest: NestOp, axis: str) -> list[tuple[Expr | None, bool]]:
    """Returns the stride of each access along `axis` (`None`: irregular), and True if it is a write."""
    found: list[tuple[Expr | None, bool]] = []
    for op in nest.reads:
        found.append((_stride(op.subscripts, dims_of(op.source.type), axis, nest), False))
    for clause, result in zip(nest.yield_op.clauses, nest.outputs, strict=True):
        found.append((_stride(clause.subscripts, dims_of(result.type), axis, nest), True))
    return found


def _stride(subscripts: tuple[Expr, ...], dims: tuple[Expr, ...], axis: str, nest: NestOp) -> Expr | None:
    offset = simplify(linearize(subscripts, dims), nest.axes_attr.ranges)
    return offset.coefficient(axis)


def is_short_window(nest: NestOp, axis: Axis) -> bool:
    """True if a reduction is over few elements of a window that slides along another axis."""
    if axis.kind != "reduction" or axis.extent.constant is None or axis.extent.constant >= SHORT_WINDOW:
        return False
    return any(axis.name in s.symbols and len(s.symbols) > 1 for op in nest.reads for s in op.subscripts)


def is_unrolled_window(nest: NestOp, reductions: Sequence[str]) -> bool:
    """True if the reductions are over the elements of a short window."""
    axes = [nest.axis(name) for name in reductions]
    elements = product(axis.extent for axis in axes).constant
    return elements is not None and elements <= UNROLLED_WINDOW and any(is_short_window(nest, a) for a in axes)


def transposed_axis(nest: NestOp, vector: str, rest: list[str]) -> str | None:
    """Returns the axis along which an operand is contiguous, if its accesses along `vector` are strided."""
    for op in nest.reads:
        if op.indices or not op.subscripts or vector in op.subscripts[-1].symbols:
            continue
        dims = dims_of(op.source.type)
        if _stride(op.subscripts, dims, vector, nest) in (None, ZERO):
            continue
        for axis in rest:
            if _stride(op.subscripts, dims, axis, nest) == ONE and op.subscripts[-1].coefficient(axis) == ONE:
                return axis
    return None


class ShortRow(NamedTuple):
    """The axis along a row shorter than a vector, and the axis from row to row, whose elements are the lanes."""

    row: str
    lanes: str


def short_row(nest: NestOp, axes: Mapping[str, Axis], vector: str, rest: list[str], width: int) -> ShortRow | None:
    """Returns the short rows of an operand that is contiguous in another direction than the result, along `vector` if
    possible."""
    across = transposed_axis(nest, vector, rest)
    if across is None:
        return None
    for row, lanes in ((vector, across), (across, vector)):
        length, count = axes[row].extent.constant, axes[lanes].extent.constant
        if length is not None and 1 < length < width and (count is None or count >= width):
            return ShortRow(row, lanes)
    return None


def narrow_row(nest: NestOp, vector: str, rest: list[str], width: int) -> ShortRow | None:
    """Returns the same for rows of an unknown length that is typically too short for a vector, if there are typically
    enough of them."""
    across, typical = transposed_axis(nest, vector, rest), typical_of(nest)
    if across is None:
        return None
    for row, lanes in ((vector, across), (across, vector)):
        length, count = nest.axis(row).extent, nest.axis(lanes).extent
        if length.constant is None and (typical.known(length) or width) < width <= typical.value(count, WORK):
            return ShortRow(row, lanes)
    return None


def narrow_axes(nest: NestOp, machine: Machine) -> tuple[list[ShortRow], int]:
    """Returns the axes of squares that a nest alone moves through registers, each of them as the narrow one, if it has
    an unknown length; and the lanes of a vector."""
    strides = {a.name: strides_along(nest, a.name) for a in nest.axes}
    vector = None if any(a.kind == "reduction" for a in nest.axes) else vector_axis(nest, [], strides, False)
    across = None
    if vector is not None:
        across = transposed_axis(nest, vector, [a.name for a in nest.axes if a.name != vector and a.extent != ONE])
    if vector is None or across is None:
        return [], 1
    both = [ShortRow(vector, across), ShortRow(across, vector)]
    return [this for this in both if nest.axis(this.row).extent.constant is None], vector_width(nest, machine, vector)
