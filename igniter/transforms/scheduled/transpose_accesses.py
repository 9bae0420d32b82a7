"""`transpose-accesses`: a square of strided accesses becomes a square of contiguous ones, transposed in registers.

    %a = loop.load %x[8*j + v, 8*i] lane v : vector<8xf32>          one element of each of 8 rows
    %b = loop.load %x[8*j + v, 8*i + 1] lane v : vector<8xf32>      .. and so on to 8*i + 7
becomes
    %r0 = loop.load %x[8*j, 8*i + v] lane v : vector<8xf32>         8 elements of one row, for each of the 8 rows
    ...
    %a, %b, .. = loop.transpose %r0, %r1, .. : ...

and a square of stores is transposed first and then stored row by row. `vectorize-loops` makes vectors along one axis;
an operand or a result that runs the other way is then accessed with a stride, one cache line an element. When the other
axis is unrolled by as many iterations as there are lanes, all elements of those lines are wanted. Guards that every
access of the square has become guards of the rows. It stands after `unroll-loops`, which puts the square into one body.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.dialects.loop import AccumulateOp, FuncOp, LoadOp, MemoryOp, StoreOp, TransposeOp
from igniter.dialects.sym.expr import Expr
from igniter.rewrites import Budget, budget
from igniter.transforms.scheduled.loop_rewrites import nested_blocks

A = TypeVar("A", LoadOp, StoreOp)
Key = tuple[SSAValue, tuple[Expr, ...], tuple[Expr, ...], int]


@dataclass(frozen=True)
class TransposeAccesses(ModulePass):
    """Replaces squares of strided vector loads or stores by contiguous ones and a transpose in registers."""

    name = "transpose-accesses"
    one_rewrite = "a square of loads or of stores transposed"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in [f for f in op.walk() if isinstance(f, FuncOp)]:
            for block in nested_blocks(func.block):
                transpose_in(block, budget(ctx, self.name), func.sym_name.data)


def transpose_in(block: Block, rewrites: Budget, func: str) -> None:
    """Transposes every square in one body. A write to a buffer ends the squares of loads from it; any other access
    ends a square of stores to it."""
    loads: dict[Key, dict[int, LoadOp]] = defaultdict(dict)
    stores: dict[Key, dict[int, StoreOp]] = defaultdict(dict)
    for op in list(block.ops):
        key, place = _strided(op) or (None, 0)
        accessed = {inner.accessed for inner in op.walk() if isinstance(inner, MemoryOp)}
        written = {inner.buffer for inner in op.walk() if isinstance(inner, (StoreOp, AccumulateOp))}
        for other in [k for k in loads if k[0] in written]:
            del loads[other]
        for other in [k for k in stores if k[0] in accessed and not (isinstance(op, StoreOp) and k == key)]:
            del stores[other]
        if key is None:
            continue
        if isinstance(op, LoadOp):
            loads[key][place] = op
            square = _complete(loads[key], key)
            if square is not None and rewrites.take(func, "a square of loads is transposed"):
                _replace_loads(square)
        elif isinstance(op, StoreOp):
            if place in stores[key]:  # Of two stores to one place the later must stay the later.
                del stores[key]
            stores[key][place] = op
            square = _complete(stores[key], key)
            if square is not None and rewrites.take(func, "a square of stores is transposed"):
                _replace_stores(square, op)


def _complete(found: dict[int, A], key: Key) -> list[A] | None:
    """Takes a square out of the accesses found so far: as many neighbours as there are lanes, in order."""
    width = key[-1]
    start = next((s for s in found if all(s + k in found for k in range(width))), None)
    return None if start is None else [found.pop(start + k) for k in range(width)]


def _strided(op: Operation) -> tuple[Key, int] | None:
    """What the accesses of one square have in common, and the place of this one in the last dim."""
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
    outer = tuple(e.substitute(common) for e in outer)
    guards = tuple(g.substitute(common) for g in op.guards)
    return (op.accessed, (*outer, last - constant), guards, width), constant


def _row(op: LoadOp | StoreOp, k: int) -> tuple[list[Expr], list[Expr]]:
    """The subscripts and guards of row `k` of the square whose first column `op` accesses."""
    assert op.lane is not None
    *outer, last = (e.substitute({op.lane: Expr.of(k)}) for e in op.subscripts)
    return [*outer, last + op.lane], [g.substitute({op.lane: Expr.of(k)}) for g in op.guards]


def _replace_loads(loads: Sequence[LoadOp]) -> None:
    """The loads of one square, in the order of their places, by contiguous loads before the first of them."""
    first, corner = min(loads, key=_position), loads[0]
    block = first.parent_block()
    assert block is not None
    rows: list[SSAValue] = []
    for k in range(len(loads)):
        subscripts, guards = _row(corner, k)
        row = LoadOp(corner.buffer, subscripts, corner.result.type, guards=guards, lane=corner.lane)
        block.insert_op_before(row, first)
        rows.append(row.result)
    square = TransposeOp(rows)
    block.insert_op_before(square, first)
    for load, column in zip(loads, square.columns, strict=True):
        load.result.replace_all_uses_with(column)
        load.detach()
        load.erase()


def _replace_stores(stores: Sequence[StoreOp], last: StoreOp) -> None:
    """The stores of one square, in the order of their places, by contiguous stores at the `last` of them."""
    corner = stores[0]
    block = last.parent_block()
    assert block is not None
    square = TransposeOp([s.value for s in stores])
    block.insert_op_before(square, last)
    for k, row in enumerate(square.columns):
        subscripts, guards = _row(corner, k)
        block.insert_op_before(StoreOp(row, corner.buffer, subscripts, guards=guards, lane=corner.lane), last)
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
