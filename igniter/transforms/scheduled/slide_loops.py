"""`slide-loops`: computes rows when a sliding window reaches them, and keeps only the rows of the window.

    %e = loop.alloc "e" : memref<58x64xf32, "scratch">
    loop.for s = 0 to 64 { loop.store %zero, %e[0, s] }                        and the same at [57, s]
    loop.for y = 0 to 56 schedule [slide "w"] { .. loop.store .., %e[y + 1, ..] }
    loop.for b = 0 to 4 {
      loop.for i = 0 to 14 schedule [slide "w"] { loop.for r = 0 to 3 reduction { .. loop.load %e[14*b + i + r, ..] } }
    }
becomes
    loop.for b = 0 to 4 {
      %e = loop.alloc "e" : memref<3x64xf32, "local">
      loop.for i = 0 to 14 sequential {
        loop.for q = max(i + 2*min(i, 1), -14*b) to .. { loop.store %zero, %e[q mod 3, s] }          above the image
        loop.for q = max(i + 2*min(i, 1), 1 - 14*b) to min(i + 3, 57 - 14*b) { .. loop.store .., %e[q mod 3, ..] }
        loop.for q = .. { loop.store %zero, %e[q mod 3, s] }                                         below it
        loop.for r = 0 to 3 reduction { .. loop.load %e[(i + r) mod 3, ..] }
      }
    }

So the buffer between the two loops has as many rows as a window: a ring. Halide calls this a sliding window with folded
storage (Ragan-Kelley et al., 2013). The first row of a band computes a whole window; each later one computes only the
new rows. A band starts anew, so bands can run in parallel; rows shared by two bands are computed twice.

Two loops with the same `slide` label are a producer of rows and, after it in the same body, the loop whose windows read
them, perhaps inside a loop over bands. Loops with a constant for the remaining rows (the rim of an image) move along.
If another statement reads the rows, or windows do not slide with constant steps, the loops stay, with a remark. The
pass runs after `promote-buffers`, and that pass need not know about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith
from xdsl.dialects.builtin import ModuleOp, StringAttr, UnitAttr
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.scheduled.loop_accesses import accesses_in, conflicts, enclosing_loops
from igniter.dialects.loop import AllocOp, ForOp, FuncOp, StoreOp, ViewOp
from igniter.dialects.loop.words import words_in
from igniter.dialects.sym import DimsAttr, dims_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, maximum, minimum, mod
from igniter.dialects.sym.ranges import is_nonneg
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.scheduled.loop_rewrites import (
    AxisNames,
    consume,
    move_ops,
    replace_alloc,
    substitute_axes,
)
from igniter.transforms.scheduled.promote_buffers import Place, places_of, promote


@dataclass(frozen=True)
class SlideLoops(ModulePass):
    """Moves producers of rows into the loops whose windows slide along them, and keeps only the rows of a window."""

    name = "slide-loops"
    one_rewrite = "a loop moved into the loop that slides along its rows"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in [f for f in op.walk() if isinstance(f, FuncOp)]:
            names = AxisNames(func)
            for maker in [x for x in func.walk() if isinstance(x, ForOp)]:
                label = maker.words.slide
                if not label:
                    continue
                where = f"{func.sym_name.data}.{maker.axis}"
                reader = _reader(maker, label)
                if reader is None:
                    continue  # It is the reader of a loop that could not be moved, or has no partner.
                found = _slide_of(maker, reader)
                if isinstance(found, str):
                    remark(ctx, self.name, where, "missed", f"it stays before '{reader.axis}': {found}")
                elif budget(ctx, self.name).take(where, f"it is moved into '{reader.axis}'"):
                    slide(found, names)
                    message = f"'{reader.axis}' computes rows as needed, and keeps {found.ring}"
                    remark(ctx, self.name, where, "applied", message)
            for loop in [x for x in func.walk() if isinstance(x, ForOp)]:
                consume(loop, "slide")


@dataclass(frozen=True)
class Rim:
    """A loop nest filling rows with a constant."""

    outermost: ForOp
    store: StoreOp
    first: Expr
    count: Expr
    """The number of rows, from `first`."""
    row: str
    """The axis of the rows; "" for a single row."""
    is_row: bool
    """True if the producer makes none of these rows; otherwise the rim is the rest of its rows."""


@dataclass(frozen=True)
class Slide:
    """A producer of rows, and the loop whose windows slide along them."""

    maker: ForOp
    reader: ForOp
    buffer: AllocOp
    dim: int
    """The dim of the rows."""
    shift: Expr
    """The row written by an iteration of the producer, minus the iteration's index."""
    origin: Expr
    """The first row read by a band."""
    step: int
    """The distance between consecutive windows, in rows."""
    ring: int
    """The number of rows of a window."""
    makes: tuple[Place, ...]
    reads: tuple[Place, ...]
    rims: tuple[Rim, ...]


def _reader(maker: ForOp, label: str) -> ForOp | None:
    """Returns the loop with the same label directly after `maker`, or inside a loop directly after it."""
    op = maker.next_op
    while isinstance(op, (AllocOp, ViewOp, arith.ConstantOp)):
        op = op.next_op
    if not isinstance(op, ForOp):
        return None
    return next((x for x in op.walk() if isinstance(x, ForOp) and x.words.slide == label), None)


# -- analysis ---------------------------------------------------------------------------------------------------------


def _slide_of(maker: ForOp, reader: ForOp) -> Slide | str:
    """Returns the slide of two loops, or the reason against one."""
    outermost = _beside(reader, maker)
    if maker.step != 1 or reader.step != 1 or reader.first != ZERO or maker.is_sequential or reader.is_sequential:
        return "only parallel loops with step 1 can slide"
    touched, behind = list(accesses_in([maker])), list(accesses_in([outermost]))
    others = [word.name for word in words_in(reader.words) if word.name != "slide"]
    if others:
        return f"'{reader.axis}' also has {', '.join(others)}"
    met = {x.base for x, _ in conflicts(touched, behind)}
    if len(met) != 1:
        return "the two loops share more than one buffer" if met else "its result is not read there"
    (base,) = met
    if not isinstance(base.owner, AllocOp):
        return "the rows are a result of the kernel, so all of them must be stored"
    if any(not x.writes and x.base is base for x in touched) or any(x.writes and x.base is base for x in behind):
        return "a row is read in the loop that writes it, or written in the loop that reads it"
    if any(x.writes and x.base is not base and not _is_within(x.base, maker) for x in touched):
        return "it also writes a buffer other than the rows"
    places = places_of(base)
    if places is None or any(place.is_indirect for place in places):
        return "another op takes the rows as a whole"
    return _match(maker, reader, outermost, base.owner, places)


def _is_within(buffer: SSAValue, loop: ForOp) -> bool:
    """True if all uses of a buffer are inside a loop."""
    return isinstance(buffer.owner, AllocOp) and all(_is_inside(use.operation, loop) for use in buffer.uses)


def _beside(reader: ForOp, maker: ForOp) -> ForOp:
    """Returns `reader` or the loop around it in the same body as `maker`."""
    found = reader
    while found.parent is not maker.parent:
        around = found.parent_op()
        assert isinstance(around, ForOp)
        found = around
    return found


def _match(maker: ForOp, reader: ForOp, outermost: ForOp, buffer: AllocOp, places: Sequence[Place]) -> Slide | str:
    makes = [p for p in places if _is_inside(p.op, maker)]
    reads = [p for p in places if _is_inside(p.op, reader)]
    others = [p for p in places if p not in makes and p not in reads]
    dims = [
        k for k in range(len(dims_of(buffer.result.type))) if any(maker.axis in p.subscripts[k].symbols for p in makes)
    ]
    if len(dims) != 1:
        return "rows are not one dim of its result"
    (dim,) = dims
    shifts = {p.subscripts[dim] - Expr.of(maker.axis) for p in makes}
    shift = shifts.pop()
    if shifts or shift.constant is None:
        return "an iteration does not write the row of its own index"
    window = _window(reads, reader, dim)
    if isinstance(window, str):
        return window
    origin, step, ring = window
    if origin.symbols & {x.axis for x in outermost.walk() if isinstance(x, ForOp)} & _axes_inside(reader):
        return "the start of a window depends on more than its row"
    rims: list[Rim] = []
    for place in others:
        rim = _rim(place, dim, maker, shift)
        if rim is None or not _goes_along(rim, makes[0], reader):
            return "its rows are used elsewhere"
        rims.append(rim)
    return Slide(maker, reader, buffer, dim, shift, origin, step, ring, tuple(makes), tuple(reads), tuple(rims))


def _is_inside(op: Operation, loop: ForOp) -> bool:
    return loop in enclosing_loops(op)


def _axes_inside(loop: ForOp) -> set[str]:
    return {x.axis for x in loop.walk() if isinstance(x, ForOp)}


def _window(reads: Sequence[Place], reader: ForOp, dim: int) -> tuple[Expr, int, int] | str:
    """Returns the first row read by the windows of a band, the step of the windows, and their height in rows."""
    inside = _axes_inside(reader)
    bases: set[Expr] = set()
    steps: set[int] = set()
    low: list[int] = []
    high: list[int] = []
    for place in reads:
        row = place.subscripts[dim]
        step = row.coefficient(reader.axis)
        rest = row.without(reader.axis)
        within = Expr({m: c for m, c in rest.terms if Expr({m: c}).symbols & inside})
        bounds = _bounds(within, place)
        if step is None or step.constant is None or step.constant < 1 or bounds is None:
            return "windows do not slide along its rows with a constant step"
        constant = next((c for monomial, c in rest.terms if not monomial), 0)
        bases.add(rest - within - constant)
        steps.add(step.constant)
        low.append(bounds[0] + constant)
        high.append(bounds[1] + constant)
    if len(bases) != 1 or len(steps) != 1:
        return "not all reads move in the same way"
    return bases.pop() + min(low), steps.pop(), max(high) - min(low) + 1


def _bounds(e: Expr, place: Place) -> tuple[int, int] | None:
    """Returns the least and the largest value of a sum of axes with constant bounds."""
    axes = place.ranges.axes
    low = high = 0
    for axis in sorted(e.symbols):
        factor = e.coefficient(axis)
        first, end = axes.get(axis, (None, None))
        if factor is None or factor.constant is None or first is None or end is None:
            return None
        if first.constant is None or end.constant is None or end.constant <= first.constant:
            return None
        ends = sorted((factor.constant * first.constant, factor.constant * (end.constant - 1)))
        low, high = low + ends[0], high + ends[1]
        e = e.without(axis)
    return (low, high) if e == ZERO else None


def _rim(place: Place, dim: int, maker: ForOp, shift: Expr) -> Rim | None:
    """Returns the loops that fill rows with a constant and do nothing else, or None. `dim` is the dim of the rows."""
    op = place.op
    loops = enclosing_loops(op)
    if (
        not isinstance(op, StoreOp)
        or op.guards
        or op.lane is not None
        or not isinstance(op.value.owner, arith.ConstantOp)
    ):
        return None
    own = [x for x in loops if _only(x) is op]
    if not own or not _stands_before(own[0], maker) or any(x.is_sequential or x.indices for x in own):
        return None
    row = place.subscripts[dim]
    axes = [x for x in own if x.axis in row.symbols]
    if len(axes) > 1 or (axes and row.coefficient(axes[0].axis) != ONE):
        return None
    first, count = (row.without(axes[0].axis) + axes[0].first, axes[0].end - axes[0].first) if axes else (row, ONE)
    made, end = maker.first + shift, maker.end + shift
    outside = is_nonneg(made - first - count) or is_nonneg(first - end)
    if not outside and not (first == made and count == end - made):
        return None
    return Rim(own[0], op, first, count, axes[0].axis if axes else "", outside)


def _stands_before(first: ForOp, maker: ForOp) -> bool:
    """True if a loop ends before a producer of rows, or a loop around it, starts."""
    around: Operation | None = maker
    while around is not None and around.parent is not first.parent:
        around = around.parent_op()
    return around is not None and first.is_before_in_block(around)


def _goes_along(rim: Rim, make: Place, reader: ForOp) -> bool:
    """True if a rim is filled over the whole range of the loops around the reader."""
    around = {x.axis: x for x in enclosing_loops(reader)}
    own = {x.axis: x for x in rim.outermost.walk() if isinstance(x, ForOp)}
    for mine, theirs in zip(rim.store.subscripts, make.subscripts, strict=True):
        if theirs.symbols & around.keys():
            loop, other = around.get(theirs.symbol or ""), own.get(mine.symbol or "")
            if loop is None or other is None or (loop.first, loop.end) != (other.first, other.end):
                return False
    return True


def _only(loop: ForOp) -> Operation | None:
    """Returns the only statement of a perfect loop nest, ignoring constants."""
    inner: Operation | None = loop
    while isinstance(inner, ForOp):
        inside = [op for op in inner.block.ops if op.name != "arith.constant"]
        inner = inside[0] if len(inside) == 1 else None
    return inner


# -- the rewrite ------------------------------------------------------------------------------------------------------


def slide(found: Slide, names: AxisNames) -> None:
    """Moves the producer into its reader, and shrinks the buffer to a ring."""
    maker, reader, band = found.maker, found.reader, found.reader.parent
    assert band is not None
    axis = Expr.of(reader.axis)
    # Rows are numbered from the first row read by the band. All rows of the first window are new.
    kept = max(0, found.ring - found.step)
    low = axis * found.step + minimum(axis, ONE) * kept if kept else axis * found.step
    high = axis * found.step + found.ring
    ring = Expr.of(found.ring)
    for place in found.reads:
        _at(place, found.dim, mod(place.subscripts[found.dim] - found.origin, ring))
    front = reader.block.first_op
    assert front is not None
    rows = [rim for rim in found.rims if rim.is_row]
    above = [rim for rim in rows if is_nonneg(maker.first + found.shift - rim.first - rim.count)]
    for rim in above:
        _fill_rows(found, rim, low, high, reader.block, front, names)
    _move(found, low, high, front, names)
    for rim in (rim for rim in rows if rim not in above):
        _fill_rows(found, rim, low, high, reader.block, front, names)
    for rim in (rim for rim in found.rims if not rim.is_row):
        _fill_rest(found, rim, band, reader, names)
    for rim in found.rims:
        rim.outermost.detach()
        rim.outermost.erase()
    consume(reader, "slide")
    reader.sequential = UnitAttr()
    dims = list(dims_of(found.buffer.result.type))
    dims[found.dim] = ring
    fresh = found.buffer.like(dims)
    replace_alloc(found.buffer, fresh)
    promote(fresh)


def _at(place: Place, dim: int, row: Expr) -> None:
    subscripts = list(place.subscripts)
    subscripts[dim] = row
    place.op.properties[place.key] = DimsAttr(subscripts)


def _move(found: Slide, low: Expr, high: Expr, front: Operation, names: AxisNames) -> None:
    """Moves the producer before `front`, over the new rows only."""
    maker, ring = found.maker, Expr.of(found.ring)
    row = names.fresh(f"{maker.axis}_row")
    first, end = maker.first + found.shift - found.origin, maker.end + found.shift - found.origin
    ops = list(maker.block.ops)
    for place in found.makes:
        _at(place, found.dim, mod(Expr.of(row), ring))
    substitute_axes(ops, {maker.axis: Expr.of(row) + found.origin - found.shift})
    body = Block()
    move_ops(ops, body)
    loop = ForOp(row, maximum(low, first), minimum(high, end), body)
    block = front.parent
    assert block is not None
    block.insert_op_before(loop, front)
    maker.detach()
    maker.erase()


def _fill_rows(found: Slide, rim: Rim, low: Expr, high: Expr, block: Block, front: Operation, names: AxisNames) -> None:
    """Inserts a loop before `front` to fill the new rows of a rim."""
    row = names.fresh("q")
    first = rim.first - found.origin
    inside = _filling(found, rim, mod(Expr.of(row), Expr.of(found.ring)), names)
    loop = ForOp(row, maximum(low, first), minimum(high, first + rim.count), Block(inside))
    block.insert_op_before(loop, front)


def _fill_rest(found: Slide, rim: Rim, band: Block, reader: ForOp, names: AxisNames) -> None:
    """Inserts a loop before the reader to fill the parts of a ring's rows not written by the producer."""
    row = names.fresh("q")
    inside = _filling(found, rim, Expr.of(row), names)
    band.insert_op_before(ForOp(row, 0, found.ring, Block(inside)), reader)


def _filling(found: Slide, rim: Rim, row: Expr, names: AxisNames) -> list[Operation]:
    """Returns the loops of a rim for one row of the ring, without the loops already around the producer."""
    outer = _common(found, rim)
    number = rim.store.value.owner
    assert isinstance(number, arith.ConstantOp)
    loops: list[ForOp] = []
    inner: ForOp | None = rim.outermost
    while inner is not None:
        loops.append(inner)
        inner = next((op for op in inner.block.ops if isinstance(op, ForOp)), None)
    subscripts = [s.substitute(outer) for s in rim.store.subscripts]
    subscripts[found.dim] = row
    constant = number.clone()
    statement: Operation = StoreOp(constant.result, rim.store.accessed, subscripts)
    for loop in reversed([x for x in loops if x.axis not in outer and x.axis != rim.row]):
        statement = ForOp(loop.axis, loop.first, loop.end, Block([statement]), step=loop.step, words=loop.words)
    return [constant, *_renamed(statement, names)]


def _renamed(statement: Operation, names: AxisNames) -> list[Operation]:
    """Returns a statement with fresh names for its loops."""
    values: dict[str, Expr] = {}
    for inner in statement.walk():
        if isinstance(inner, ForOp):
            fresh = names.fresh(inner.axis)
            values[inner.axis] = Expr.of(fresh)
            inner.axis_attr = StringAttr(fresh)
    substitute_axes([statement], values)
    return [statement]


def _common(found: Slide, rim: Rim) -> dict[str, Expr]:
    """Returns the axes of a rim that correspond to loops around the reader, with their values there."""
    around = {x.axis for x in enclosing_loops(found.reader)}
    values: dict[str, Expr] = {}
    for mine, theirs in zip(rim.store.subscripts, found.makes[0].subscripts, strict=True):
        if mine.symbol is not None and theirs.symbol in around:
            values[mine.symbol] = theirs
    return values
