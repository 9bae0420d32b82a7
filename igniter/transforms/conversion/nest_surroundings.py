"""Fills the unwritten parts of a nest's result: a part of `lower-to-loops`.

    loop.nest "relu" [y: parallel 56, x: parallel 56, c: parallel 64] .. {
      loop.yield none %v at [y + 1, x + 1, c] else 0.0
    }
becomes, before the loops of the kernel,
    loop.for y = 0 to 1 { loop.for x = 0 to 58 { loop.for c = 0 to 64 { loop.store %z, %r[y, x, c] } } }      above
    loop.for y = 0 to 1 { .. loop.store %z, %r[y + 57, x, c] .. }                                            below
    loop.for y = 0 to 56 { loop.for x = 0 to 1 { .. loop.store %z, %r[y + 1, x, c] .. } }                    left
    loop.for y = 0 to 56 { loop.for x = 0 to 1 { .. loop.store %z, %r[y + 1, x + 57, c] .. } }               right

If the written part is no box, everything is filled first and then overwritten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from xdsl.dialects import arith
from xdsl.ir import Block, SSAValue

from igniter.dialects.loop import Clause, ForOp, NestOp, StoreOp
from igniter.dialects.loop.words import NO_WORDS, LoopWords
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr

Box = list[tuple[Expr, Expr]]
"""The start and the length of a box in each dim."""


def surround(nest: NestOp, buffers: Mapping[SSAValue, SSAValue], fresh: Callable[[str], str], block: Block) -> None:
    """Adds loops at the end of `block` that fill the unwritten parts of a nest's results."""
    for clause, result in zip(nest.yield_op.clauses, nest.outputs, strict=True):
        if clause.otherwise is None:
            continue
        number = arith.ConstantOp(clause.otherwise)
        block.add_op(number)
        for box in _boxes(clause, nest, dims_of(result.type)):
            _fill(box, number.result, buffers[result], _lanes(nest, clause), fresh, block)


def _boxes(clause: Clause, nest: NestOp, dims: Sequence[Expr]) -> Iterator[Box]:
    """Yields disjoint boxes that cover the unwritten part of a tensor of `dims`."""
    written = [_stretch(s, nest) for s in clause.subscripts]
    if None in written:
        yield [(ZERO, d) for d in dims]
        return
    inside: Box = [stretch for stretch in written if stretch is not None]
    for k, ((first, count), dim) in enumerate(zip(inside, dims, strict=True)):
        outer = [(ZERO, d) for d in dims[k + 1 :]]
        for start, length in ((ZERO, first), (first + count, dim - first - count)):
            if length != ZERO:
                yield [*inside[:k], (start, length), *outer]


def _stretch(subscript: Expr, nest: NestOp) -> tuple[Expr, Expr] | None:
    """Returns the range of a subscript in its dim; None if it has gaps or is not known."""
    axes = [a for a in nest.axes if a.name in subscript.symbols]
    if not axes:
        return subscript, ONE
    if len(axes) > 1 or subscript.coefficient(axes[0].name) != ONE:
        return None
    return subscript.without(axes[0].name), axes[0].extent


def _lanes(nest: NestOp, clause: Clause) -> int:
    """Returns the vector width of a nest along the last dim of a result; 0 if it has none."""
    last = clause.subscripts[-1].symbols if clause.subscripts else frozenset[str]()
    loops = nest.schedule.loops if nest.schedule is not None else ()
    return max((loop.vector for loop in loops if loop.axis in last), default=0)


def _fill(box: Box, number: SSAValue, buffer: SSAValue, lanes: int, fresh: Callable[[str], str], block: Block) -> None:
    at: list[Expr] = []
    for k, (first, count) in enumerate(box):
        if count == ONE:
            at.append(first)
            continue
        name, body = fresh("s"), Block()
        last = k == len(box) - 1
        words = LoopWords(vector=lanes) if last else NO_WORDS
        block.add_op(ForOp(name, 0, count, body, words=words))
        at.append(first + Expr.of(name))
        block = body
    block.add_op(StoreOp(number, buffer, at))
