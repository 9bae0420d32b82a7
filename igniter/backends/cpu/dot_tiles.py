"""The `loop.dot_bytes` of a tile, side by side: one pair of each, then the next pair of each.

Unrolled rows stand one after the other, and so would their sums in 16 bits:

    u0, s00; d0 = dot_bytes u0, s00, u1, s01, ..    becomes      u0, s00, s10   w0 = u0 * s00; w1 = u0 * s10;    order
    u0, s10; d1 = dot_bytes u0, s10, u1, s11, ..                 u1, s01, s11   w0 += u1 * s01; w1 += u1 * s11;  order
                                                                 ..             d0 = widened w0; d1 = widened w1

A vector of unpacked bytes is then used by all rows at once, so that its register is free for the next one. LLVM would
load and unpack everything first, and spill: an empty inline assembly takes and returns the sums after each pair, and
LLVM moves no load across it. It is no instruction, and needs no parser for the target's assembly. On one thread of a
Zen 3, 128 rows by 512 by 1376 columns, a tile of 4 rows and 8 columns multiplies 94 billion pairs a second this way,
and 44 to 80 in the order of LLVM.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import VectorType
from xdsl.ir import Block, Operation
from xdsl.traits import Pure

from igniter.backends.cpu import dot_bytes
from igniter.backends.cpu.dot_bytes import WordSum
from igniter.backends.cpu.function import Function
from igniter.backends.cpu.target import Target
from igniter.dialects.loop import AccumulateOp, DotBytesOp, LoadOp, StoreOp


@dataclass(frozen=True)
class Tile:
    """Dot products without a dependence between them, of the same number of pairs."""

    dots: tuple[DotBytesOp, ...]

    @property
    def pairs(self) -> int:
        """The number of pairs of each."""
        return len(self.dots[0].operands) // 2


@dataclass(frozen=True)
class Step:
    """The products of pair number `pair` of all dot products of a tile."""

    tile: Tile
    pair: int


def steps_of(block: Block, target: Target) -> Sequence[Operation | Step]:
    """Returns the ops of a block in the order of their emission: its dot products as the steps of a tile, if the target
    adds their products in 16 bits and the block has several."""
    ops = list(block.ops)
    dots = tuple(op for op in ops if isinstance(op, DotBytesOp) and _in_words(op, target))
    alike = {(str(op.result.type), op.most, len(op.operands)) for op in dots}
    if len(dots) < 2 or len(alike) != 1:
        return ops
    factors = _factors(block, dots)
    return ops if factors is None else list(_ordered(ops, Tile(dots), factors))


def _in_words(op: DotBytesOp, target: Target) -> bool:
    lanes = op.result.type.get_shape()[0] if isinstance(op.result.type, VectorType) else 0
    return len(op.operands) > 3 and dot_bytes.words_at_once(target, lanes, op.most) > 1


def _factors(block: Block, dots: Sequence[DotBytesOp]) -> set[Operation] | None:
    """Returns the ops of the block that make the operands of the dot products; `None` if these cannot be moved to their
    use."""
    written = {op.buffer for op in block.ops if isinstance(op, (StoreOp, AccumulateOp))}
    others = [op for op in block.ops if not isinstance(op, (StoreOp, AccumulateOp, LoadOp)) and not op.has_trait(Pure)]
    found: set[Operation] = set()
    waiting = [v.owner for dot in dots for v in dot.operands]
    while waiting:
        op = waiting.pop()
        if not isinstance(op, Operation) or op.parent is not block or op in found:
            continue
        if op in dots or (isinstance(op, LoadOp) and (others or op.buffer in written)):
            return None
        if not isinstance(op, LoadOp) and not op.has_trait(Pure):
            return None
        found.add(op)
        waiting += [v.owner for v in op.operands]
    return found


def _ordered(ops: Sequence[Operation], tile: Tile, factors: set[Operation]) -> Iterator[Operation | Step]:
    """Yields factors before their first use, the steps in place of the first dot product, and the rest in order."""
    left = set(factors)

    def before(op: Operation) -> Iterator[Operation]:
        for value in op.operands:
            yield from made(value.owner)

    def made(owner: Operation | Block) -> Iterator[Operation]:
        if isinstance(owner, Operation) and owner in left:
            left.discard(owner)
            yield from before(owner)
            yield owner

    for op in ops:
        if op is tile.dots[0]:
            for dot in tile.dots:
                yield from made(dot.operands[-1].owner)
            for pair in range(tile.pairs):
                for dot in tile.dots:
                    for value in dot.operands[2 * pair : 2 * pair + 2]:
                        yield from made(value.owner)
                yield Step(tile, pair)
        elif op not in factors and op not in tile.dots:
            yield from before(op)
            yield op


class TileSums:
    """The sums of a tile while its steps are emitted."""

    def __init__(self, f: Function, tile: Tile):
        self.f = f
        self.tile = tile
        self.sums = [WordSum(f, f.find_value(dot.operands[-1]), dot.most) for dot in tile.dots]

    def emit(self, pair: int) -> None:
        """Emits the products of a pair; after the last one the results are known."""
        f = self.f
        for dot, total in zip(self.tile.dots, self.sums, strict=True):
            unsigned, signed = dot.operands[2 * pair : 2 * pair + 2]
            total.add((f.find_value(unsigned), f.find_value(signed)))
        if pair + 1 < self.tile.pairs:
            self._keep_order()
            return
        for dot, total in zip(self.tile.dots, self.sums, strict=True):
            f.values[dot.result] = total.whole()

    def _keep_order(self) -> None:
        """Emits the empty assembly: later instructions depend on all sums so far."""
        found = self.f.in_order([total.latest for total in self.sums])
        for total, value in zip(self.sums, found, strict=True):
            total.latest = value
