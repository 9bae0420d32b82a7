"""Nests as products of blocks on a GPU: `tt.dot` of a block of rows and one of columns, along a depth.

    matmul [i, j, k: reduction]           sum of a(i, k) * b(k, j)          rows i, columns j, depth k
    conv [n, c, y, x, d, h, w: reductions]  sum of f(c, d, h, w) * p(n, y + h, x + w, d)   rows c, columns x, depth d

A factor can be any value with a dependence on the right axes: a read, widened or not, a converted one, a function of
several (the prologue). The sums over the other reductions are added to the same block in sequence.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import gcd

from xdsl.dialects import arith
from xdsl.dialects.builtin import BFloat16Type, Float16Type, Float32Type, i8, i32
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.loop import IndexOp, NestOp, ReadOp
from igniter.dialects.loop.attrs import scalar_type
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, Call, Expr, linearize, symbols_of

LEAST = 16
"""The fewest lanes in each dim of a product of blocks: the size of a tensor core's instruction."""


@dataclass(frozen=True)
class DotProduct:
    """A nest as a product of blocks. Each name is an axis."""

    a: SSAValue
    b: SSAValue
    """The factors before widening: a value of the body for each row and depth, and one for each depth and column."""
    row: str
    column: str
    depth: str

    @property
    def element(self) -> Attribute:
        """The type of the factors."""
        return self.a.type

    def renamed(self, names: Mapping[str, str]) -> DotProduct:
        """Returns the same with dims for axes."""
        return DotProduct(self.a, self.b, names[self.row], names[self.column], names[self.depth])

    def swapped(self) -> DotProduct:
        """Returns the same with rows and columns exchanged."""
        return DotProduct(self.b, self.a, self.column, self.row, self.depth)


def dot_product(nest: NestOp) -> DotProduct | None:
    """Returns a nest as a product of blocks; `None` for other nests."""
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
    """Returns the factors without a widening built into products of blocks; `None` for unsupported types."""
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
    """Returns the value before widening; the value itself if it is not widened."""
    op = value.owner
    return op.operands[0] if isinstance(op, Operation) and op.name in ("arith.extf", "arith.extsi") else value


def run_of(nest: NestOp, depth: str) -> int:
    """Returns a number of steps along the depth in which no quotient by a window changes: the channels of a place; 0
    for a depth without quotients."""
    exprs = [e for read in nest.reads for e in (*read.subscripts, *read.guards)]
    pending = [atom for e in exprs for monomial, _ in e.terms for atom in monomial]
    found = 0
    while pending:
        atom = pending.pop()
        if not isinstance(atom, Call) or all(depth not in a.symbols for a in atom.args):
            continue
        pending += [inner for a in atom.args for monomial, _ in a.terms for inner in monomial]
        first, *others = atom.args
        if atom.fn in ("floordiv", "mod") and first.coefficient(depth) is not None:
            found = gcd(found, others[0].constant or 1, *(c for _, c in first.without(depth).terms))
    return found


def hangs_on(value: SSAValue) -> frozenset[str]:
    """Returns the axes and symbols on which a value of a body depends."""
    op = value.owner
    assert isinstance(op, Operation)
    # The source tensor is no value of the body.
    inside = [v for v in op.operands if not (isinstance(op, ReadOp) and v is op.source)]
    found = frozenset[str]().union(*(hangs_on(v) for v in inside))
    if isinstance(op, ReadOp):
        return found | symbols_of((*op.subscripts, *op.guards))
    return found | op.value.symbols if isinstance(op, IndexOp) else found


def _size(extent: Expr) -> int:
    """Returns the extent of an axis; a symbolic axis counts as long."""
    return extent.constant if extent.constant is not None else 1 << 20


def _step(nest: NestOp, axis: str) -> int:
    """Returns the least distance in memory between elements read along an axis; 0 without one."""
    steps: list[int] = []
    for read in nest.reads:
        if axis in symbols_of(read.subscripts):
            step = linearize(read.subscripts, dims_of(read.source.type)).coefficient(axis)
            steps.append(step.constant or 0 if step is not None else 0)
    return min(steps, default=0)


def _widest(axes: list[str], extents: Mapping[str, Expr]) -> str:
    """Returns the axis of the blocks: the last axis that fills a block, else the longest."""
    filling = [n for n in axes if _size(extents[n]) >= LEAST]
    return filling[-1] if filling else max(axes, key=lambda n: _size(extents[n]))
