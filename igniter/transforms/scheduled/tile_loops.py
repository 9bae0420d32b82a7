"""`tile-loops`: splits a loop into a loop over tiles and a loop inside the tile.

    loop.for i = 0 to n schedule [by 8 inside [unroll]] { ..[i].. }
becomes, with `tail = "mask"` (the default)
    loop.for i = 0 to (n + 7) floordiv 8 {
      loop.for i_in = 0 to min(8, n - 8*i) schedule [unroll] { ..[8*i + i_in].. }
    }
and with `tail = "peel"`
    loop.for i = 0 to n floordiv 8 { loop.for i_in = 0 to 8 schedule [unroll] { ..[8*i + i_in].. } }
    loop.for i1 = ...                            what remains, in tiles of 4, then 2, then 1
(`tail rest`: the remainder is a plain loop with only the vector words of the inner loop).

The loop over tiles counts tiles, so that `(8*i + i_in) floordiv 8` is `i` again if a layout has the same tiles. The
words in `inside` move to the loop inside the tile; all others stay on the loop over tiles. If the extent is known to be
a multiple of the tile, there is no tail. Used alone: `tile-loops{axis=i size=8}`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeGuard

from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Block, Operation
from xdsl.passes import ModulePass

from igniter.analysis.scheduled.loop_accesses import ranges_at
from igniter.dialects.loop import ForOp, FuncOp
from igniter.dialects.loop.words import NO_WORDS, LoopWords
from igniter.dialects.sym import DimsAttr
from igniter.dialects.sym.expr import ZERO, Expr, minimum, mod, symbols_of
from igniter.errors import IgniterError
from igniter.rewrite_budget import budget
from igniter.transforms.scheduled.loop_rewrites import (
    AxisNames,
    clone_ops,
    consume,
    move_ops,
    substitute_axes,
)


@dataclass(frozen=True)
class TileLoops(ModulePass):
    """Tiles loops according to their `by` or the options."""

    name = "tile-loops"
    one_rewrite = "a loop tiled"

    axis: str | None = None
    """The loop to tile; by default every loop with `by`."""
    size: int = 0
    tail: str = "mask"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        rewrites = budget(ctx, self.name)
        for func in [f for f in op.walk() if isinstance(f, FuncOp)]:
            names, name = AxisNames(func), func.sym_name.data
            if self.axis is not None:
                for loop in [x for x in func.walk() if isinstance(x, ForOp) and x.axis == self.axis]:
                    if rewrites.take(f"{name}.{loop.axis}", f"it is tiled by {self.size}"):
                        tile(loop, self.size, self.tail, NO_WORDS, names)
                continue
            # Peeling copies loops with their words, so repeat until none is left.
            while (tiled := next((x for x in func.walk() if _asks(x)), None)) is not None:
                if rewrites.take(f"{name}.{tiled.axis}", "it is tiled as scheduled"):
                    apply_words(tiled, names)
                else:
                    consume(tiled, *TILE_WORDS)


def _asks(op: Operation) -> TypeGuard[ForOp]:
    return isinstance(op, ForOp) and op.words.by > 1


TILE_WORDS = ("by", "tail", "inside")


def apply_words(loop: ForOp, names: AxisNames) -> None:
    """Tiles one loop according to its words."""
    words = consume(loop, *TILE_WORDS)
    tile(loop, words.by, words.tail or "mask", words.inside or NO_WORDS, names)


def tile(loop: ForOp, size: int, tail: str, inner: LoopWords, names: AxisNames) -> None:
    """Tiles `loop` in place; `inner` are the words of the loop inside the tile."""
    if loop.step != 1:
        raise IgniterError(f"tile-loops: loop '{loop.axis}' already has step {loop.step}")
    if size < 1 or tail not in ("mask", "peel", "rest"):
        raise IgniterError(f"tile-loops: loop '{loop.axis}': cannot tile by {size} with tail '{tail}'")
    extent = loop.end - loop.first
    tiles = extent.ceildiv(size)
    rest = mod(extent, Expr.of(size))
    if tail != "mask" and rest != ZERO:
        remainder = _peel(loop, rest, names)
        smaller = rest.constant if rest.constant is not None else size // 2
        # Fewer than two vectors do not justify a tile: a plain vector loop masks a partial vector.
        enough = 2 * inner.vector or 1
        if tail == "peel" and (smaller >= enough or enough == 1):
            tile(remainder, max(1, smaller), "peel", inner, names)
        else:
            remainder.words = LoopWords(vector=inner.vector, accumulators=inner.accumulators)
        tiles = extent // size
        if tiles == ZERO:
            _erase_with_nest(loop)
            return
        rest = ZERO
    full = Expr.of(size)
    inside = full if rest == ZERO else minimum(full, extent - Expr.of(loop.axis) * size)
    _split(loop, size, tiles, inside, inner, names)


def _erase_with_nest(loop: ForOp) -> None:
    """Erases a loop, and enclosing loops that become empty."""
    around = loop.parent_op()
    loop.detach()
    loop.erase()
    if isinstance(around, ForOp) and around.block.first_op is None:
        _erase_with_nest(around)


def _split(loop: ForOp, size: int, tiles: Expr, inside: Expr, inner: LoopWords, names: AxisNames) -> None:
    """Makes `loop` run over `tiles`, with a loop of `inside` iterations in each."""
    axis = names.fresh(f"{loop.axis}_in")
    ops = list(loop.block.ops)
    body = Block()
    move_ops(ops, body)
    child = ForOp(axis, 0, inside, body, reduction=loop.is_reduction)
    child.words = inner
    element = loop.first + Expr.of(loop.axis) * size + axis
    loop.bounds = DimsAttr([ZERO, tiles])
    loop.block.add_op(child)
    substitute_axes(ops, {loop.axis: element}, ranges_at(child.block.first_op or child))


def _peel(loop: ForOp, rest: Expr, names: AxisNames) -> ForOp:
    """Adds a copy after `loop` for its last `rest` iterations, and returns it."""
    axis = names.fresh(loop.axis)
    body = Block(clone_ops(loop.block.ops, names, {loop.axis: Expr.of(axis)}))
    remainder = ForOp(axis, loop.end - rest, loop.end, body, reduction=loop.is_reduction, words=loop.words)
    nest, copy = _shared_out_nest(loop), remainder
    inner = loop
    while inner is not nest:
        inner = inner.parent_op()
        assert isinstance(inner, ForOp)
        outer = names.fresh(inner.axis)
        substitute_axes([copy], {inner.axis: Expr.of(outer)})
        copy = ForOp(outer, inner.first, inner.end, Block([copy]), step=inner.step, words=inner.words)
    block = nest.parent_block()
    assert block is not None
    block.insert_op_after(copy, nest)
    return remainder


def _shared_out_nest(loop: ForOp) -> ForOp:
    """Returns the parallel loop whose whole body is `loop`; otherwise `loop` itself.

    The remainder gets its own parallel loop. Two loops in one body could not be coalesced with the loop around them,
    and a batch of one would run on a single thread.
    """
    nest = loop
    while nest.words.threads is None:
        outer = nest.parent_op()
        if not isinstance(outer, ForOp) or outer.is_reduction or outer.words.sink:
            return loop
        if (
            outer.block.first_op is not nest
            or outer.block.last_op is not nest
            or outer.axis in symbols_of(nest.bounds.data)
        ):
            return loop
        nest = outer
    return nest
