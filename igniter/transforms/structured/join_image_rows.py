"""The rows of a small image as one axis, for AMX tiles of 16 rows (for `pack-operands`).

    %c = loop.nest "conv" [y: parallel 7, x: parallel 7, o: parallel 512, r: reduction 3, k: reduction 1536] -> .. {
      %a = loop.read %image[y + r, 512*x + k] : bf16          %image: tensor<9x4608xbf16>, 9 places of 512 channels
      ...                                                      loop.yield add %p at [y, x, o]
    }
    ... loop.read %c[y, x, o] ...
becomes
    %c = loop.nest "conv" [y_x: parallel 61, o: parallel 512, r: reduction 3, k: reduction 1536] -> .. {
      %a = loop.read %flat[4608*r + 512*y_x + k] : bf16
      ...                                                      loop.yield add %p at [y_x, o]
    }
    ... loop.read %c[9*y + x, o] ...

A row of 7 places fills less than half of a tile, and each call reads the whole weight. In memory the rows of an image
are a constant number of places apart, with the padding between them: as one axis they fill tiles, and a call has two of
them. The places between two rows are computed, too, from the image alone, and nothing reads them. The readers of the
sums then run after them, from the second-level cache, instead of tile by tile.
"""

from __future__ import annotations

from xdsl.rewriter import Rewriter

from igniter.analysis.machine import MachineModel
from igniter.analysis.structured.contractions import BYTE_KINDS, DIRECT_TILE, Contraction, contraction_of, offset_of
from igniter.dialects.loop import Axis, NestOp, ReadOp, ViewOp
from igniter.dialects.loop.attrs import AxesAttr
from igniter.dialects.sym import DimsAttr, dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import Expr, linearize, product, symbols_of
from igniter.dialects.sym.ranges import simplify
from igniter.transforms.structured.nest_rewriting import set_clauses

HIGH = DIRECT_TILE[0] // 2
"""The rows of a tile. Longer rows fill one or more, and their readers stay with the tiles."""


def join_image_rows(nest: NestOp, machine: MachineModel) -> bool:
    """Joins the rows of an image and the places of a row in a contraction for tiles; False if there is nothing to
    join."""
    found = contraction_of(nest)
    if nest.schedule is not None or isinstance(found, str) or found.rows is None or found.a.guards or found.a.indices:
        return False
    if not (machine.byte_tiles if found.kind in BYTE_KINDS else machine.half_tiles and found.kind == "bf16"):
        return False
    for outer in reversed(found.batch):
        apart = _places_apart(nest, found, outer)
        if apart is not None and _readers(nest, outer, found.rows) is not None:
            _join(nest, found, outer, apart)
            return True
    return False


def _places_apart(nest: NestOp, contraction: Contraction, outer: str) -> int | None:
    """Returns the distance of two rows of an image, in places of a row; None if `outer` are no such rows, or if they
    would take more tiles together than apart."""
    rows = contraction.rows
    assert rows is not None
    if outer in symbols_of(contraction.b.subscripts):
        return None
    offset = offset_of(nest, contraction.a, {}, nest.axes_attr.ranges)
    steps = [offset.coefficient(n) for n in (rows, outer)]
    place, line = (None if s is None else s.constant for s in steps)
    width, height = (nest.axis(n).extent.constant for n in (rows, outer))
    if not place or not line or width is None or not 1 < width <= HIGH or height == 1:
        return None
    apart, rest = divmod(line, place)
    if rest or apart < width:
        return None
    if height is None:
        # Rows of several images, without padding.
        return apart if apart == width else None
    tiles = -(-((height - 1) * apart + width) // HIGH)
    return apart if tiles <= height else None


def _readers(nest: NestOp, outer: str, inner: str) -> list[ReadOp] | None:
    """Returns the reads of a nest's result, if other nests read it directly and both axes are dims of it; else None."""
    clause = nest.yield_op.clauses[0]
    named = [s for s in clause.subscripts if {outer, inner} & s.symbols]
    if clause.otherwise is not None or sorted(s.symbol or "" for s in named) != sorted((outer, inner)):
        return None
    reads = [use.operation for use in nest.outputs[0].uses]
    found = [op for op in reads if isinstance(op, ReadOp) and not op.indices and isinstance(op.parent_op(), NestOp)]
    return found if found and len(found) == len(reads) else None


def _join(nest: NestOp, contraction: Contraction, outer: str, apart: int) -> None:
    """Joins the two axes: `outer`, whose steps are `apart` places, and the rows of the contraction."""
    inner = contraction.rows
    assert inner is not None
    width, height = nest.axis(inner).extent, nest.axis(outer).extent
    joined = Axis(f"{outer}_{inner}", (height - 1) * apart + width, "parallel")
    readers = _readers(nest, outer, inner)
    assert readers is not None
    _read_flat(nest, contraction.a, joined.name, (outer, inner))
    nest.axes_attr = AxesAttr(joined if a.name == outer else a for a in nest.axes if a.name != inner)
    (clause,) = nest.yield_op.clauses
    place = {s.symbol: k for k, s in enumerate(clause.subscripts)}
    line, column = place[outer], place[inner]
    tensor = nest.outputs[0]
    dims, at = list(dims_of(tensor.type)), list(clause.subscripts)
    dims[line], at[line] = joined.extent, Expr.of(joined.name)
    del dims[column], at[column]
    set_clauses(nest.yield_op, [clause.at(at)])
    Rewriter.replace_value_with_new_type(tensor, tensor_of(element_of(tensor.type), dims))
    for read in readers:
        subscripts = list(read.subscripts)
        subscripts[line] = subscripts[line] * apart + subscripts[column]
        del subscripts[column]
        read.subscripts_attr = DimsAttr(subscripts)


def _read_flat(nest: NestOp, read: ReadOp, joined: str, axes: tuple[str, str]) -> None:
    """Makes a read of an image take its places from one dim, indexed by the joined axis."""
    outer, inner = axes
    subscripts, dims, ranges = list(read.subscripts), list(dims_of(read.source.type)), nest.axes_attr.ranges
    first = next(k for k, s in enumerate(subscripts) if {outer, inner} & s.symbols)
    within = simplify(linearize(subscripts[first:], dims[first:]), ranges)
    step = within.coefficient(inner)
    assert step is not None
    flat = ViewOp(read.source, tensor_of(element_of(read.source.type), [*dims[:first], product(dims[first:])]))
    block = nest.parent
    assert block is not None
    block.insert_op_before(flat, nest)
    read.operands[0] = flat.result
    rest = within.without(outer).without(inner)
    read.subscripts_attr = DimsAttr([*subscripts[:first], step * Expr.of(joined) + rest])
