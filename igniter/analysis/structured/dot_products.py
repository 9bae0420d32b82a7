"""Nests that a GPU computes as products of blocks: `tt.dot` of a block of rows and one of columns, along a depth.

    matmul [i, j, k: reduction]           sum of a(i, k) * b(k, j)          rows i, columns j, depth k
    conv [n, c, y, x, d, h, w: reductions]  sum of f(c, d, h, w) * p(n, y + h, x + w, d)   rows c, columns x, depth d

What is multiplied can be any value that hangs on the right axes: a read, widened or not, a converted one, a function of
several (the prologue). The sums over the other reductions go to the same block, one after the other.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, i8, i32
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.loop import IndexOp, NestOp, ReadOp
from igniter.dialects.loop.attrs import scalar_type
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, Expr, linearize, symbols_of

LEAST = 16
"""Lanes that each dim of a product of blocks has at least: what one instruction of a tensor core multiplies."""


@dataclass(frozen=True)
class DotProduct:
    """A nest as a product of blocks. Each name is an axis."""

    a: SSAValue
    b: SSAValue
    """What is multiplied, as narrow as it can be: a value of the body for each row and depth, and one for each depth
    and column."""
    row: str
    column: str
    depth: str

    @property
    def element(self) -> Attribute:
        """The type of what is multiplied."""
        return self.a.type

    def renamed(self, names: Mapping[str, str]) -> DotProduct:
        """The same with dims for axes."""
        return DotProduct(self.a, self.b, names[self.row], names[self.column], names[self.depth])

    def swapped(self) -> DotProduct:
        """The same with rows for columns."""
        return DotProduct(self.b, self.a, self.column, self.row, self.depth)


def dot_product(nest: NestOp) -> DotProduct | None:
    """A nest as a product of blocks; None where it is none."""
    clauses = nest.yield_op.clauses
    if len(clauses) != 1 or clauses[0].combiner != "add" or clauses[0].otherwise is not None:
        return None
    product = clauses[0].value.owner
    if not isinstance(product, (arith.MulfOp, arith.MuliOp)):
        return None
    factors = _factors(product.lhs, product.rhs, scalar_type(element_of(nest.outputs[0].type)))
    if factors is None:
        return None
    a, b = factors
    extents = {axis.name: axis.extent for axis in nest.axes if axis.extent != ONE}
    in_a, in_b = (hangs_on(value) & extents.keys() for value in factors)
    kinds = {axis.name: axis.kind for axis in nest.axes}
    rows = [n for n in extents if kinds[n] == "parallel" and n in in_a - in_b]
    columns = [n for n in extents if kinds[n] == "parallel" and n in in_b - in_a]
    depths = [n for n in extents if kinds[n] == "reduction" and n in in_a & in_b]
    if not rows or not columns or not depths:
        return None
    depth = max(depths, key=lambda n: (_size(extents[n]), -_step(nest, n)))
    return DotProduct(a, b, _widest(rows, extents), _widest(columns, extents), depth)


def _factors(x: SSAValue, y: SSAValue, sums: Attribute) -> tuple[SSAValue, SSAValue] | None:
    """What is multiplied, without the widening that a product of blocks does itself; None for types that it has not."""
    narrow = [narrowed(v) for v in (x, y)]
    kinds = {v.type for v in narrow}
    if len(kinds) == 1:
        (kind,) = kinds
        if isinstance(kind, (Float16Type, BFloat16Type)) and isinstance(sums, Float32Type):
            return narrow[0], narrow[1]
        if kind == i8 and sums == i32:
            return narrow[0], narrow[1]
    return (x, y) if isinstance(x.type, Float32Type) and isinstance(sums, Float32Type) else None


def narrowed(value: SSAValue) -> SSAValue:
    """What a value is widened from; itself where it is not."""
    op = value.owner
    return op.operands[0] if isinstance(op, Operation) and op.name in ("arith.extf", "arith.extsi") else value


def hangs_on(value: SSAValue) -> frozenset[str]:
    """The axes, and symbols, that a value of a body is another for."""
    op = value.owner
    assert isinstance(op, Operation)
    # The tensor that is read is no value of the body.
    inside = [v for v in op.operands if not (isinstance(op, ReadOp) and v is op.source)]
    found = frozenset[str]().union(*(hangs_on(v) for v in inside))
    if isinstance(op, ReadOp):
        return found | symbols_of((*op.subscripts, *op.guards))
    return found | op.value.symbols if isinstance(op, IndexOp) else found


def _size(extent: Expr) -> int:
    """How long an axis is; one that only a run knows is long."""
    return extent.constant if extent.constant is not None else 1 << 20


def _step(nest: NestOp, axis: str) -> int:
    """The least distance in memory of two elements along an axis that a nest reads; 0 where it has none."""
    steps: list[int] = []
    for read in nest.reads:
        if axis in symbols_of(read.subscripts):
            step = linearize(read.subscripts, dims_of(read.source.type)).coefficient(axis)
            steps.append(step.constant or 0 if step is not None else 0)
    return min(steps, default=0)


def _widest(axes: list[str], extents: Mapping[str, Expr]) -> str:
    """The axis that blocks go along: the last one that fills a block, else the longest."""
    filling = [n for n in axes if _size(extents[n]) >= LEAST]
    return filling[-1] if filling else max(axes, key=lambda n: _size(extents[n]))
