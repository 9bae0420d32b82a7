"""`transpose-loads`: a square of strided loads becomes a square of contiguous loads, transposed in registers.

    %a = loop.load %x[8*j + v, 8*i] lane v : vector<8xf32>          one element of each of 8 rows
    %b = loop.load %x[8*j + v, 8*i + 1] lane v : vector<8xf32>      .. and so on to 8*i + 7
becomes
    %r0 = loop.load %x[8*j, 8*i + v] lane v : vector<8xf32>         8 elements of one row, for each of the 8 rows
    ...
    %a, %b, .. = loop.transpose %r0, %r1, .. : ...

`vectorize-loops` makes vectors along the axis that the result is stored by; an operand that runs the other way is then
read with a stride, one cache line an element. When the other axis is unrolled by as many iterations as there are
lanes, all elements of those lines are wanted. It stands after `unroll-loops`, which puts the square into one body.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, VectorType
from xdsl.ir import Block, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.expr import Expr
from igniter.dialects.loop import FuncOp, LoadOp, StoreOp, TransposeOp
from igniter.dialects.loop.scheduled import AccumulateOp

Key = tuple[SSAValue, tuple[Expr, ...], int]


@dataclass(frozen=True)
class TransposeLoads(ModulePass):
    """Replaces squares of strided vector loads by contiguous loads and a transpose in registers."""

    name = "transpose-loads"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        for func in [f for f in op.walk() if isinstance(f, FuncOp)]:
            for block in _blocks(func.block):
                transpose_in(block)


def transpose_in(block: Block) -> None:
    """Transposes every square of loads in one body; a write in between to the same buffer ends a square."""
    squares: dict[Key, dict[int, LoadOp]] = defaultdict(dict)
    for op in list(block.ops):
        written = {inner.buffer for inner in op.walk() if isinstance(inner, (StoreOp, AccumulateOp))}
        if written:
            for key in [k for k in squares if k[0] in written]:
                del squares[key]
        found = _strided(op) if isinstance(op, LoadOp) else None
        if found is None:
            continue
        assert isinstance(op, LoadOp)
        key, place = found
        square = squares[key]
        square[place] = op
        width = key[2]
        start = next((s for s in square if all(s + k in square for k in range(width))), None)
        if start is not None:
            _replace([square.pop(start + k) for k in range(width)])


def _strided(op: LoadOp) -> tuple[Key, int] | None:
    """What loads of one square have in common, and the place of this one in the last dim."""
    kind = op.result.type
    if op.lane is None or not isinstance(kind, VectorType) or op.guards or op.indices or len(op.subscripts) < 2:
        return None
    *outer, last = op.subscripts
    if op.lane in last.symbols or sum(op.lane in e.symbols for e in outer) != 1:
        return None
    if next(e for e in outer if op.lane in e.symbols).coefficient(op.lane) != 1:
        return None
    constant = dict(last.terms).get((), 0)
    same = tuple(e.substitute({op.lane: Expr.of("$lane")}) for e in outer)
    return (op.buffer, (*same, last - constant), kind.get_shape()[0]), constant


def _replace(loads: list[LoadOp]) -> None:
    """The loads of one square, in the order of their places, by contiguous loads before the first of them."""
    first = min(loads, key=_position)
    block = first.parent_block()
    assert block is not None and first.lane is not None
    lane, corner = first.lane, loads[0]
    assert corner.lane is not None
    rows: list[SSAValue] = []
    for k in range(len(loads)):
        *outer, last = (e.substitute({corner.lane: Expr.of(k)}) for e in corner.subscripts)
        row = LoadOp(corner.buffer, [*outer, last + lane], corner.result.type, lane=lane)
        block.insert_op_before(row, first)
        rows.append(row.result)
    square = TransposeOp(rows)
    block.insert_op_before(square, first)
    for load, column in zip(loads, square.columns, strict=True):
        load.result.replace_all_uses_with(column)
        load.detach()
        load.erase()


def _position(op: LoadOp) -> int:
    count = 0
    before = op.prev_op
    while before is not None:
        count += 1
        before = before.prev_op
    return count


def _blocks(block: Block) -> list[Block]:
    found = [block]
    for op in block.ops:
        for region in op.regions:
            for inner in region.blocks:
                found.extend(_blocks(inner))
    return found
