"""`transpose-accesses`: replaces strided accesses to neighbours by contiguous ones and a transpose in registers.

    %a = loop.load %x[8*j + v, 8*i] lane v : vector<8xf32>          one element of each of 8 rows
    %b = loop.load %x[8*j + v, 8*i + 1] lane v : vector<8xf32>      .. and so on to 8*i + 7
becomes
    %r0 = loop.load %x[8*j, 8*i + v] lane v : vector<8xf32>         8 elements of one row, for each of the 8 rows
    ...
    %a, %b, .. = loop.transpose %r0, %r1, .. : ...

A square of stores is transposed first and then stored row by row. Rows with fewer elements than a vector has lanes are
adjacent in memory: 8 of them are one range of as many vectors as a row has elements:

    loop.store %r, %y[8*j + v, 0] lane v                            colours of 8 pixels, in planes
    loop.store %g, %y[8*j + v, 1] lane v
    loop.store %b, %y[8*j + v, 2] lane v
becomes
    %p, %q, %s = loop.transpose %r, %g, %b : ...
    %all = loop.view %y : memref<64x3xf32> to memref<192xf32>
    loop.store %p, %all[24*j + v] lane v                            and %q, %s to the 16 elements after it

`vectorize-loops` makes vectors along one axis. An operand or a result along the other axis is then accessed with a
stride, one cache line per element. If the other axis is unrolled by the number of lanes, or by its own extent, all
elements of those lines are needed. Guards shared by every access of a square become guards of the rows. The pass runs
after `unroll-loops`, which puts the square into one body.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.scheduled.loop_accesses import base_of
from igniter.dialects.loop import AccumulateOp, FuncOp, LoadOp, MemoryOp, StoreOp, TransposeOp, ViewOp
from igniter.dialects.sym import dims_of, element_of, memref_of, space_of
from igniter.dialects.sym.expr import ZERO, Expr
from igniter.rewrite_budget import Budget, budget
from igniter.transforms.scheduled.loop_rewrites import nested_blocks

A = TypeVar("A", LoadOp, StoreOp)


class Key(NamedTuple):
    """The common part of the accesses of one matrix: the buffer, the subscripts except the constant in the last dim,
    the guards, the lanes of a vector, and the elements of a row: as many as lanes, or all of a short row."""

    buffer: SSAValue
    subscripts: tuple[Expr, ...]
    guards: tuple[Expr, ...]
    lanes: int
    row: int


@dataclass(frozen=True)
class TransposeAccesses(ModulePass):
    """Replaces adjacent strided vector loads or stores by contiguous ones and a transpose in registers."""

    name = "transpose-accesses"
    one_rewrite = "a matrix of loads or of stores transposed"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in [f for f in op.walk() if isinstance(f, FuncOp)]:
            for block in nested_blocks(func.block):
                transpose_in(block, budget(ctx, self.name), func.sym_name.data)


def transpose_in(block: Block, rewrites: Budget, func: str) -> None:
    """Transposes every matrix in one body. A write to a buffer ends the matrices of loads from it; any other access
    ends a matrix of stores to it."""
    loads: dict[Key, dict[int, LoadOp]] = defaultdict(dict)
    stores: dict[Key, dict[int, StoreOp]] = defaultdict(dict)
    for op in list(block.ops):
        key, place = _strided(op) or (None, 0)
        inside = [inner for inner in op.walk() if isinstance(inner, MemoryOp)] if loads or stores else []
        accessed = {base_of(inner.accessed) for inner in inside}
        written = {base_of(inner.accessed) for inner in inside if isinstance(inner, (StoreOp, AccumulateOp))}
        for other in [k for k in loads if base_of(k.buffer) in written]:
            del loads[other]
        going_on = key if isinstance(op, StoreOp) else None
        for other in [k for k in stores if base_of(k.buffer) in accessed and k != going_on]:
            del stores[other]
        if key is None:
            continue
        if isinstance(op, LoadOp):
            loads[key][place] = op
            found = _complete(loads[key], key)
            if found is not None and rewrites.take(func, "a matrix of loads is transposed"):
                _replace_loads(found, key)
        elif isinstance(op, StoreOp):
            if place in stores[key]:  # Of two stores to one place the later one must stay last.
                del stores[key]
            stores[key][place] = op
            written_to = _complete(stores[key], key)
            if written_to is not None and rewrites.take(func, "a matrix of stores is transposed"):
                _replace_stores(written_to, key, op)


def _complete(found: dict[int, A], key: Key) -> list[A] | None:
    """Removes a complete matrix from the accesses found so far: as many neighbours as a row has, in order."""
    starts = found if key.row == key.lanes else [0]
    start = next((s for s in starts if all(s + k in found for k in range(key.row))), None)
    return None if start is None else [found.pop(start + k) for k in range(key.row)]


def _strided(op: Operation) -> tuple[Key, int] | None:
    """Returns the key of an access's matrix and its place in the last dim; None for other accesses."""
    if not isinstance(op, (LoadOp, StoreOp)) or (isinstance(op, LoadOp) and op.otherwise is not None):
        return None
    kind = op.result.type if isinstance(op, LoadOp) else op.value.type
    if op.lane is None or not isinstance(kind, VectorType) or op.indices or len(op.subscripts) < 2:
        return None
    width: int = kind.get_shape()[0]
    if width & (width - 1):
        return None
    *outer, last = op.subscripts
    if op.lane in last.symbols or sum(op.lane in e.symbols for e in outer) != 1:
        return None
    if next(e for e in outer if op.lane in e.symbols).coefficient(op.lane) != 1:
        return None
    constant = dict(last.terms).get((), 0)
    common = {op.lane: Expr.of("$lane")}
    subscripts = (*(e.substitute(common) for e in outer), last - constant)
    guards = tuple(g.substitute(common) for g in op.guards)
    row = dims_of(op.accessed.type)[-1].constant
    if row is None or not 1 < row < width:
        return Key(op.accessed, subscripts, guards, width, width), constant
    side_by_side = op.lane in outer[-1].symbols and last.constant is not None
    has_address = space_of(op.accessed.type) != "register"
    if not side_by_side or not has_address or any(op.lane in g.symbols for g in op.guards):
        return None
    return Key(op.accessed, subscripts, guards, width, row), constant


@dataclass(frozen=True)
class _Stretches:
    """The contiguous accesses that replace those of a matrix, and their buffer."""

    buffer: SSAValue
    places: list[tuple[list[Expr], list[Expr]]]


def _stretches(corner: LoadOp | StoreOp, key: Key, before: Operation) -> _Stretches:
    """Returns the contiguous accesses of a matrix, derived from its first access; a flat view is inserted `before` an
    op."""
    block = before.parent_block()
    assert corner.lane is not None and block is not None
    if key.row == key.lanes:
        places: list[tuple[list[Expr], list[Expr]]] = []
        for k in range(key.lanes):
            *outer, last = (e.substitute({corner.lane: Expr.of(k)}) for e in corner.subscripts)
            guards = [g.substitute({corner.lane: Expr.of(k)}) for g in corner.guards]
            places.append(([*outer, last + corner.lane], guards))
        return _Stretches(corner.accessed, places)
    *dims, rows, _ = dims_of(corner.accessed.type)
    kind = corner.accessed.type
    flat = ViewOp(corner.accessed, memref_of(element_of(kind), (*dims, rows * key.row), space_of(kind) or None))
    block.insert_op_before(flat, before)
    *outer, at, _ = (e.substitute({corner.lane: ZERO}) for e in corner.subscripts)
    first = at * key.row + corner.lane
    return _Stretches(flat.result, [([*outer, first + k * key.lanes], list(corner.guards)) for k in range(key.row)])


def _replace_loads(loads: Sequence[LoadOp], key: Key) -> None:
    """Replaces the loads of one matrix, in the order of their places, by contiguous loads before the first of them."""
    first, corner = min(loads, key=_position), loads[0]
    block = first.parent_block()
    assert block is not None
    vectors: list[SSAValue] = []
    stretches = _stretches(corner, key, first)
    for subscripts, guards in stretches.places:
        load = LoadOp(stretches.buffer, subscripts, corner.result.type, guards=guards, lane=corner.lane)
        block.insert_op_before(load, first)
        vectors.append(load.result)
    matrix = TransposeOp(vectors, rows=key.lanes)
    block.insert_op_before(matrix, first)
    for load, column in zip(loads, matrix.columns, strict=True):
        load.result.replace_all_uses_with(column)
        load.detach()
        load.erase()


def _replace_stores(stores: Sequence[StoreOp], key: Key, last: StoreOp) -> None:
    """Replaces the stores of one matrix, in the order of their places, by contiguous stores at the `last` of them."""
    corner = stores[0]
    block = last.parent_block()
    assert block is not None
    matrix = TransposeOp([s.value for s in stores])
    block.insert_op_before(matrix, last)
    stretches = _stretches(corner, key, last)
    for value, (subscripts, guards) in zip(matrix.columns, stretches.places, strict=True):
        store = StoreOp(value, stretches.buffer, subscripts, guards=guards, lane=corner.lane)
        block.insert_op_before(store, last)
    for store in stores:
        store.detach()
        store.erase()


def _position(op: LoadOp) -> int:
    count = 0
    before = op.prev_op
    while before is not None:
        count += 1
        before = before.prev_op
    return count
