"""The keys that a row of an attention sees, as limits derived from its masks.

    %ahead = loop.index j - i - p
    %c = arith.cmpi sle, %ahead, %zero         j <= i + p: a causal mask behind p keys of the past
    %d = arith.cmpi sge, %ahead, %left         j >= i + p + left: a window

A limit is linear in the row; the rest of it is the same for all rows and keys of a program, and may be data, such as a
length. Blocks of keys outside the limits of all rows can be left out, and blocks inside them need no mask.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from igniter.analysis.structured.attention import Attention
from igniter.analysis.structured.attention_scores import Condition, Score, conditions_of, is_product
from igniter.analysis.structured.dot_products import hangs_on
from igniter.dialects.loop import IndexOp, NestOp, ReadOp
from igniter.dialects.sym.expr import ZERO, Expr

Names = Mapping[NestOp, Mapping[str, str]]
"""The dim of each axis, for each nest."""

SLT, SLE, SGT, SGE = 2, 3, 4, 5
"""The predicates of `arith.cmpi` for signed numbers."""
OPPOSITE = {SLT: SGE, SGE: SLT, SLE: SGT, SGT: SLE}


@dataclass(frozen=True)
class Term:
    """A multiple of an integer that is the same for all rows and keys of a program."""

    factor: int
    nest: NestOp
    value: Expr | SSAValue
    """An expression over the axes of the nest, or a value of its body."""


@dataclass(frozen=True)
class Limit:
    """A row sees only keys up to (`upper`), or from, `slope * row + offset + terms` on."""

    upper: bool
    slope: int
    offset: int
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class KeyLimits:
    """The limits of an attention."""

    limits: tuple[Limit, ...] = ()
    rest: Mapping[Condition, tuple[Condition, ...]] | None = None
    """For each condition, the parts of it that no limit expresses."""

    def is_limit(self, condition: Condition) -> bool:
        """True if limits express the whole condition."""
        return self.rest is not None and self.rest.get(condition) == ()


@dataclass(frozen=True)
class _Linear:
    row: int
    key: int
    offset: int
    terms: tuple[Term, ...] = ()

    def plus(self, other: _Linear, factor: int = 1) -> _Linear:
        terms = tuple(Term(factor * t.factor, t.nest, t.value) for t in other.terms)
        row, key = self.row + factor * other.row, self.key + factor * other.key
        return _Linear(row, key, self.offset + factor * other.offset, (*self.terms, *terms))


def key_limits(score: Score, attention: Attention, names: Names, rows: str, keys: str) -> KeyLimits:
    """Returns the limits of the visible keys, given the dims of rows ("" without rows) and keys.

    A key outside of them has no weight: its score is -inf, or far below that of every visible key. The latter needs a
    row to see a key, and no other reason for a low score: without that there are no limits.
    """
    conditions = conditions_of(score.masks)
    limits: list[Limit] = []
    rest: dict[Condition, tuple[Condition, ...]] = {}
    for condition in conditions:
        left: list[Condition] = []
        for part in _parts(condition, attention):
            found = _limits(part, names, rows, keys)
            limits += found
            left += [] if found else [part]
        rest[condition] = tuple(left)
    alone = is_product(score, attention) and not any(rest.values())
    if not limits or (score.low is not None and not alone):
        return KeyLimits()
    return KeyLimits(tuple(dict.fromkeys(limits)), rest)


def _parts(condition: Condition, attention: Attention) -> list[Condition]:
    """Returns the conditions that all have to hold for a condition to hold."""
    nest, op, shown = condition.nest, condition.value.owner, condition.shown
    if isinstance(op, arith.AndIOp if shown else arith.OrIOp):
        return [p for v in op.operands for p in _parts(Condition(nest, v, shown), attention)]
    if isinstance(op, arith.XOrIOp) and _integer(op.rhs) in (1, -1):
        return _parts(Condition(nest, op.lhs, not shown), attention)
    if isinstance(op, ReadOp) and not op.guards and not op.indices:
        source = op.source.owner
        if isinstance(source, NestOp) and source in attention.members and source is not attention.scores:
            index = list(source.outputs).index(op.source)  # pyright: ignore[reportArgumentType]
            return _parts(Condition(source, source.yield_op.clauses[index].value, shown), attention)
    return [condition]


def _limits(condition: Condition, names: Names, rows: str, keys: str) -> list[Limit]:
    """Returns a comparison as limits; nothing for other conditions."""
    op = condition.value.owner
    if not isinstance(op, arith.CmpiOp):
        return []
    predicate = op.predicate.value.data
    if not condition.shown:
        predicate = OPPOSITE.get(predicate, -1)
    if predicate not in OPPOSITE:
        return []
    small, large = (op.lhs, op.rhs) if predicate in (SLE, SLT) else (op.rhs, op.lhs)
    found: list[Limit] = []
    for least in _operands_of(small, arith.MaxSIOp):
        for most in _operands_of(large, arith.MinSIOp):
            a, b = (_linear(condition.nest, v, names, rows, keys) for v in (least, most))
            difference = a.plus(b, -1) if a is not None and b is not None else None
            if difference is None or abs(difference.key) != 1:
                return []
            # The difference, and 1 if the comparison is strict, is at most 0.
            upper = difference.key == 1
            sign = -1 if upper else 1
            offset = difference.offset + (predicate in (SLT, SGT))
            terms = tuple(Term(sign * t.factor, t.nest, t.value) for t in difference.terms)
            found.append(Limit(upper, sign * difference.row, sign * offset, terms))
    return found


def _operands_of(value: SSAValue, kind: type[Operation]) -> list[SSAValue]:
    """Returns the operands of nested maxima or minima; the value alone if it is none."""
    op = value.owner
    if isinstance(op, kind):
        return [v for operand in op.operands for v in _operands_of(operand, kind)]
    return [value]


def _linear(nest: NestOp, value: SSAValue, names: Names, rows: str, keys: str) -> _Linear | None:
    """Returns an integer as a linear function of the row and the key; None for other values."""
    op = value.owner
    known = _integer(value)
    if known is not None:
        return _Linear(0, 0, known)
    if isinstance(op, IndexOp):
        return _linear_expr(nest, op.value, names[nest], rows, keys)
    if isinstance(op, (arith.AddiOp, arith.SubiOp)):
        a, b = (_linear(nest, v, names, rows, keys) for v in op.operands)
        return a.plus(b, 1 if isinstance(op, arith.AddiOp) else -1) if a is not None and b is not None else None
    if isinstance(op, arith.ExtSIOp):
        return _linear(nest, op.input, names, rows, keys)
    used = {names[nest].get(axis, axis) for axis in hangs_on(value)}
    if not isinstance(value.type, IntegerType) or value.type.width.data < 32 or used & {rows, keys}:
        return None
    return _Linear(0, 0, 0, (Term(1, nest, value),))


def _linear_expr(nest: NestOp, e: Expr, names: Mapping[str, str], rows: str, keys: str) -> _Linear | None:
    slopes = {rows: 0, keys: 0}
    for axis, dim in names.items():
        if dim in slopes and axis in e.symbols:
            slope = e.coefficient(axis)
            if slope is None or slope.constant is None:
                return None
            slopes[dim] += slope.constant
            e = e.without(axis)
    terms = (Term(1, nest, e),) if e != ZERO else ()
    return _Linear(slopes[rows] if rows else 0, slopes[keys], 0, terms)


def _integer(value: SSAValue) -> int | None:
    op = value.owner
    if isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr):
        return op.value.value.data
    return None
