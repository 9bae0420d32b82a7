"""Values of a body that are codes of few bits: numbers of bytes, and scales for blocks of them.

codes[j, k // 2]    scale[j, k // 32]        along k: two numbers in a byte, 32 numbers with one scale
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import i8
from xdsl.ir import Operation, SSAValue

from igniter.analysis.structured.dot_products import DotProduct, dot_product, hangs_on
from igniter.dialects.loop import IndexOp, NestOp, ReadOp
from igniter.dialects.loop.attrs import scalar_type
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import Atom, Call, Expr, call, floordiv, split_quotient
from igniter.dialects.sym.ranges import Ranges, is_nonneg, simplify

MOST_PARTS = 8
"""The most numbers in a byte: numbers of one bit."""
SCALE_BYTES = 2.5
"""The bytes of a scale and a zero point."""


@dataclass(frozen=True)
class Codes:
    """The codes that a factor reads along the depth."""

    parts: int
    """The numbers of a byte."""
    group: int
    """The depths that share a scale; 0 without scales in groups."""

    @property
    def bytes(self) -> float:
        """The bytes that a number takes, with its share of a scale and a zero point."""
        return 1 / self.parts + (SCALE_BYTES / self.group if self.group else 0.0)


@dataclass(frozen=True)
class CodedProduct:
    """A product of blocks with codes for one factor."""

    dot: DotProduct
    codes: Codes

    @property
    def unit(self) -> int:
        """The depths that a part of the depth has a multiple of, to begin with a whole byte and its own scale."""
        return max(self.codes.parts, self.codes.group)


def coded_product(nest: NestOp) -> CodedProduct | None:
    """Returns a nest as a product whose columns are codes; `None` for other nests."""
    dot = dot_product(nest)
    if dot is None:
        return None
    for each in (dot, dot.swapped()):
        codes = codes_of(each.b, each.depth)
        if codes is not None and codes_of(each.a, each.depth) is None:
            return CodedProduct(each, codes)
    return None


@dataclass(frozen=True)
class CodedSum:
    """A sum of products with codes, along one axis."""

    x: SSAValue
    """The other factor."""
    weight: SSAValue
    """The value made from codes."""
    axis: str
    codes: Codes
    rows: tuple[str, ...]
    """The parallel axes on which the codes do not depend."""


def coded_sum(nest: NestOp) -> CodedSum | None:
    """Returns a nest as a sum of products with codes along its only reduction; `None` for other nests."""
    clauses, sums = nest.yield_op.clauses, [a for a in nest.axes if a.kind == "reduction"]
    if len(clauses) != 1 or clauses[0].combiner != "add" or clauses[0].otherwise is not None or len(sums) != 1:
        return None
    product = clauses[0].value.owner
    if not isinstance(product, arith.MulfOp) or sums[0].extent.constant is None:
        return None
    axis = sums[0].name
    for x, weight in ((product.lhs, product.rhs), (product.rhs, product.lhs)):
        codes = codes_of(weight, axis)
        if codes is not None and codes_of(x, axis) is None:
            used = hangs_on(weight)
            rows = tuple(a.name for a in nest.axes if a.kind == "parallel" and a.name not in used)
            return CodedSum(x, weight, axis, codes, rows)
    return None


def codes_of(value: SSAValue, depth: str) -> Codes | None:
    """Returns the codes of a factor whose bytes lie along the axis `depth`; `None` for another factor."""
    divisors: set[int] = set()
    has_bytes = False
    for op in _ops_of(value, set()):
        exprs: Sequence[Expr] = (op.value,) if isinstance(op, IndexOp) else ()
        if isinstance(op, ReadOp):
            exprs = op.subscripts
            along = any(depth in e.symbols for e in exprs)
            has_bytes |= along and scalar_type(element_of(op.source.type)) == i8
        divisors.update(d for e in exprs for d in _divisors(e, depth))
    if not has_bytes or not divisors:
        return None
    powers = {d for d in divisors if d & (d - 1) == 0}
    parts = min((d for d in powers if d <= MOST_PARTS), default=1)
    return Codes(parts, min((d for d in powers if d > MOST_PARTS), default=0))


def _ops_of(value: SSAValue, seen: set[Operation]) -> Iterator[Operation]:
    """Yields the ops that compute a value of a body."""
    op = value.owner
    if not isinstance(op, Operation) or isinstance(op, NestOp) or op in seen:
        return
    seen.add(op)
    yield op
    for operand in op.operands:
        yield from _ops_of(operand, seen)


def _divisors(e: Expr, depth: str) -> Iterator[int]:
    """Yields the constants by which an expression divides terms of the depth."""
    for monomial, _ in e.terms:
        for atom in monomial:
            if not isinstance(atom, Call):
                continue
            if atom.fn == "floordiv" and depth in atom.args[0].symbols and atom.args[1].constant is not None:
                yield atom.args[1].constant
            for arg in atom.args:
                yield from _divisors(arg, depth)


def simplified(e: Expr, ranges: Ranges) -> Expr:
    """Returns an expression without divisions whose rest decides nothing."""
    return simplify(_coarser(simplify(e, ranges), ranges), ranges)


def _coarser(e: Expr, ranges: Ranges) -> Expr:
    """Divides in larger units where the rest decides nothing: `(32*g + 2*h + 1) floordiv 64` is `g floordiv 2`, if
    `2*h + 1` is below 32."""

    def replaced(atom: Atom) -> Expr:
        if not isinstance(atom, Call):
            return Expr({(atom,): 1})
        a, *others = (_coarser(arg, ranges) for arg in atom.args)
        divisor = others[0].constant if atom.fn == "floordiv" else None
        unit = (divisor or 1) // 2
        while unit > 1:
            quotient, rest = split_quotient(a, Expr.of(unit))
            if (divisor or 1) % unit == 0 and is_nonneg(rest, ranges) and is_nonneg(Expr.of(unit - 1) - rest, ranges):
                return floordiv(quotient, Expr.of((divisor or 1) // unit))
            unit //= 2
        return call(atom.fn, [a, *others])

    return e.map_atoms(replaced)
