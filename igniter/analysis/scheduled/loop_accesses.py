"""The accesses of a scheduled kernel's statements, and the conditions for merging two loops.

Every access is an offset into the buffer behind its views. Two accesses meet *in the same iteration only* if equal
offsets imply equal values of the loop's axis: fusion is then legal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property

from xdsl.dialects.builtin import MemRefType
from xdsl.ir import Block, BlockArgument, Operation, SSAValue

from igniter.dialects.loop import AccumulateOp, AllocOp, ForOp, FuncOp, LoadOp, MemoryOp, StoreOp, TileProductOp, ViewOp
from igniter.dialects.loop.attrs import INDIRECT_PREFIX
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import INDIRECT, ONE, ZERO, Expr, linearize
from igniter.dialects.sym.ranges import Ranges, is_nonneg, simplify


@dataclass(frozen=True)
class Access:
    """One access. Its subscripts may name axes, indirect operands and the lane."""

    base: SSAValue
    dims: tuple[Expr, ...]
    subscripts: tuple[Expr, ...]
    ranges: Ranges
    reads: bool
    writes: bool
    is_indirect: bool = False

    @cached_property
    def offset(self) -> Expr:
        """The offset in elements of `base`."""
        return linearize(self.subscripts, self.dims)


def base_of(buffer: SSAValue) -> SSAValue:
    """Returns the buffer behind the views."""
    while isinstance(buffer.owner, ViewOp):
        buffer = buffer.owner.source
    return buffer


def enclosing_loops(op: Operation) -> list[ForOp]:
    """Returns the loops around `op`, outermost first."""
    loops: list[ForOp] = []
    parent = op.parent_op()
    while parent is not None:
        if isinstance(parent, ForOp):
            loops.append(parent)
        parent = parent.parent_op()
    return loops[::-1]


def loop_range(loop: ForOp) -> tuple[Expr, Expr]:
    """Returns the first value and excluded end of an axis. With a step the last value is still below `end`. A value in
    a bound gets a name of its own, so no access confuses it with one of its own operands."""
    if not len(loop.operands) or not loop.indices:
        return loop.first, loop.end
    names = {f"{INDIRECT_PREFIX}{k}": Expr.of(f"${loop.axis}{k}") for k in range(len(loop.indices))}
    return loop.first.substitute(names), loop.end.substitute(names)


def ranges_at(op: Operation) -> Ranges:
    """Returns the ranges of all axes around `op`."""
    return Ranges({loop.axis: loop_range(loop) for loop in enclosing_loops(op)})


def access_of(op: MemoryOp, ranges: Ranges | None = None) -> Access:
    """Returns the access of `op`, with axes in `ranges` (default: those around it)."""
    dims = dims_of(op.accessed.type)
    if ranges is None:
        ranges = ranges_at(op)
    if op.lane is not None:
        ranges = Ranges({**ranges.axes, op.lane: (ZERO, Expr.of(vector_width(op)))})
    reads, writes = not isinstance(op, StoreOp), not isinstance(op, LoadOp)
    return Access(base_of(op.accessed), dims, op.subscripts, ranges, reads, writes, bool(op.indices))


def tile_accesses(op: TileProductOp) -> list[Access]:
    """Returns the three accesses of a micro-kernel, over all its rows, columns and depth."""
    ranges = tile_ranges(op)
    found: list[Access] = []
    for buffer, key, subscripts in op.accesses:
        dims, writes = dims_of(buffer.type), key == "c_at"
        found.append(Access(base_of(buffer), dims, subscripts, ranges, not writes or op.adds, writes))
    return found


def tile_ranges(op: TileProductOp) -> Ranges:
    """Returns the ranges of the names that a micro-kernel's subscripts use."""
    own = {name: (ZERO, extent) for name, extent in op.extents.items()}
    return Ranges({**ranges_at(op).axes, **own})


def vector_width(op: MemoryOp) -> int:
    """Returns the number of lanes; 1 for a scalar access."""
    value = op.result if isinstance(op, LoadOp) else op.value if isinstance(op, (StoreOp, AccumulateOp)) else None
    shape = getattr(value.type, "get_shape", None) if value is not None else None
    return shape()[0] if shape is not None else 1


def accesses_in(ops: Iterable[Operation]) -> Iterator[Access]:
    """Yields every access in `ops` and the regions below them."""
    ranges: dict[Block | None, Ranges] = {}
    for op in ops:
        for inner in op.walk():
            if isinstance(inner, MemoryOp):
                if inner.parent not in ranges:
                    ranges[inner.parent] = ranges_at(inner)
                yield access_of(inner, ranges[inner.parent])
            elif isinstance(inner, TileProductOp):
                yield from tile_accesses(inner)


def is_private(base: SSAValue) -> bool:
    """True if the kernel owns the buffer, so that nothing outside sees its contents."""
    return isinstance(base.owner, AllocOp)


def may_alias(a: SSAValue, b: SSAValue) -> bool:
    """True if two buffers may alias. Buffers are distinct: the caller never passes one buffer for two arguments without
    declaring the alias."""
    return a is b


def conflicts(first: Iterable[Access], second: Iterable[Access]) -> Iterator[tuple[Access, Access]]:
    """Yields pairs of accesses to one buffer, at least one of them a write."""
    known = by_base(first)
    for y in second:
        for x in known.get(y.base, ()):
            if x.writes or y.writes:
                yield x, y


def by_base(accesses: Iterable[Access]) -> dict[SSAValue, list[Access]]:
    """Groups accesses by their buffer."""
    found: dict[SSAValue, list[Access]] = {}
    for access in accesses:
        found.setdefault(access.base, []).append(access)
    return found


def same_iteration_only(x: Access, axis_x: str, y: Access, axis_y: str, step: int = 1) -> bool:
    """True if `x` in iteration `a` and `y` in iteration `b` access the same element only if `a == b`.

    The proof uses one subscript, `c*axis + r`. Distinct iterations are `c*step` apart, so it is enough that both rests
    stay within `[0, c*step)`, or are equal. Where the dims differ (views), the offset is treated alike.
    """
    is_indirect = x.is_indirect or y.is_indirect
    return any(
        _apart(ex, axis_x, x.ranges, ey, axis_y, y.ranges, step)
        for ex, ey in _compared(x, y)
        # The value of an indirect operand in one iteration tells nothing about another.
        if not is_indirect or not any(INDIRECT.fullmatch(n) for n in ex.symbols | ey.symbols)
    )


def _compared(x: Access, y: Access) -> Iterator[tuple[Expr, Expr]]:
    if x.dims == y.dims:
        yield from zip(x.subscripts, y.subscripts, strict=True)
    yield x.offset, y.offset


def all_in_same_iteration(
    xs: Sequence[Access], axis_x: str, ys: Sequence[Access], axis_y: str, around: Set[str]
) -> bool:
    """True if `same_iteration_only` obviously holds for every pair of accesses to one buffer: all of the first name
    their axis in one and the same subscript, changed only by the axes `around`, and the others have the equal
    subscript in their own axis. False proves nothing."""
    accesses = (*xs, *ys)
    if any(a.dims != xs[0].dims or a.is_indirect for a in accesses):
        return False
    inside = {name for a in accesses for name in a.ranges.axes} - around
    for k, (ex, ey) in enumerate(zip(xs[0].subscripts, ys[0].subscripts, strict=True)):
        coefficient, rest = ex.coefficient(axis_x), ex.without(axis_x)
        if coefficient is None or coefficient.constant in (None, 0) or rest.symbols & inside:
            continue
        if ey.coefficient(axis_y) != coefficient or ey.without(axis_y) != rest:
            continue
        if all(x.subscripts[k] == ex for x in xs) and all(y.subscripts[k] == ey for y in ys):
            return True
    return False


def shared_element(loop: ForOp) -> str | None:
    """Returns a possible dependence between two iterations of a loop, in words; `None` if proven absent.

    Buffers allocated in the body are private to an iteration.
    """
    accesses = [a for a in accesses_in(loop.block.ops) if not _is_made_in(a.base, loop)]
    around = {outer.axis for outer in enclosing_loops(loop)} | {loop.axis}
    for own in by_base(accesses).values():
        if not any(a.writes for a in own) or all_in_same_iteration(own, loop.axis, own, loop.axis, around):
            continue
        # The inner loops are at other iterations there.
        both = [(access, _with_own_axes(access, around)) for access in own]
        for k, (x, _) in enumerate(both):
            if not x.writes:
                continue
            # For two writes, one order is enough.
            for y, other in (pair for j, pair in enumerate(both) if j >= k or not pair[0].writes):
                if not same_iteration_only(x, loop.axis, other, loop.axis, loop.step):
                    shown = [f"[{', '.join(map(str, a.subscripts))}]" for a in (x, y)]
                    return f"two iterations may access the same element of {x.base.type}, at {' and '.join(shown)}"
    return None


def _with_own_axes(access: Access, shared: Set[str]) -> Access:
    """Returns the access with all axes renamed but the `shared` ones."""
    names = {name: Expr.of(f"{name}'") for name in access.ranges.axes.keys() - shared}
    if not names:
        return access
    return replace(
        access,
        subscripts=tuple(s.substitute(names) for s in access.subscripts),
        ranges=Ranges(
            {
                f"{name}'" if name in names else name: (first.substitute(names), end.substitute(names))
                for name, (first, end) in access.ranges.axes.items()
            }
        ),
    )


def _is_made_in(base: SSAValue, loop: ForOp) -> bool:
    parent = base.owner if isinstance(base.owner, Operation) else base.owner.parent_op()
    while parent is not None:
        if parent is loop:
            return True
        parent = parent.parent_op()
    return False


def _apart(ex: Expr, axis_x: str, rx: Ranges, ey: Expr, axis_y: str, ry: Ranges, step: int) -> bool:
    cx, cy = ex.coefficient(axis_x), ey.coefficient(axis_y)
    if cx is None or cy is None or cx != cy or cx == ZERO:
        return False
    rest_x, rest_y = ex.without(axis_x), ey.without(axis_y)
    outer = (rx.axes.keys() & ry.axes.keys()) - {axis_x, axis_y}
    if rest_x == rest_y and not (rest_x.symbols & (rx.axes.keys() | ry.axes.keys())) - outer:
        return cx.constant is not None or is_nonneg(cx - 1, rx)
    # Common terms invariant in both loops shift both offsets by the same amount.
    shared = {
        m: c
        for m, c in rest_x.terms
        if (m, c) in rest_y.terms and not (Expr({m: c}).symbols & (rx.axes.keys() | ry.axes.keys())) - outer
    }
    rest_x, rest_y = rest_x - Expr(shared), rest_y - Expr(shared)
    span = cx * step
    return all(_within(simplify(rest, ranges), span, ranges) for rest, ranges in ((rest_x, rx), (rest_y, ry)))


def _within(rest: Expr, span: Expr, ranges: Ranges) -> bool:
    """True if `0 <= rest < span`. A loop inside a block ends at the block's size, or sooner."""
    if not is_nonneg(rest, ranges):
        return False
    return is_nonneg(span - 1 - rest, ranges) or is_nonneg(span - 1 - rest, at_most_constants(ranges))


def at_most_constants(ranges: Ranges) -> Ranges:
    """Returns the ranges with an end `min(8, ..)` replaced by 8."""
    loose: dict[str, tuple[Expr, Expr]] = {}
    for name, (first, end) in ranges.axes.items():
        args = end.call.args if end.call is not None and end.call.fn == "min" else ()
        constants = [a.constant for a in args if a.constant is not None]
        loose[name] = (first, Expr.of(min(constants)) if constants else end)
    return Ranges(loose)


def trip_count(loop: ForOp) -> Expr:
    """Returns the number of iterations of a loop."""
    first, end = loop_range(loop)
    extent = end - first
    return extent if loop.step == 1 else extent.ceildiv(loop.step)


def buffer_elements(memref: MemRefType) -> Expr:
    """Returns the number of elements of a buffer."""
    total = ONE
    for dim in dims_of(memref):
        total = total * dim
    return total


def is_argument(base: SSAValue) -> bool:
    """True if the caller owns the buffer."""
    return isinstance(base, BlockArgument) and isinstance(base.owner.parent_op(), FuncOp)
