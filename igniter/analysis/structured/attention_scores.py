"""The scores of an attention as scaled and masked values.

    score = mask(factor * base)

    %s = loop.read %scores[i, j]            base
    %x = arith.mulf %s, %scale              factor
    %c = arith.cmpi sle, %ahead, %zero      the condition of a mask
    %b = arith.select %c, %zero, %low       %low is added: the key is hidden where %c is false
    %y = arith.addf %x, %b

An exponential of such a score needs one multiply-add of its base: exp(factor * base - m) is
exp2(factor * log2(e) * base - m * log2(e)).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import Float16Type, Float32Type, FloatAttr
from xdsl.ir import SSAValue

from igniter.analysis.structured.attention import Attention
from igniter.analysis.structured.dot_products import dot_product
from igniter.dialects.loop import NestOp, ReadOp
from igniter.dialects.loop.panels import is_half

FAR_BELOW = -1e30
"""A finite score of hidden keys is at most this: no product of a query and a key comes near it."""

SMALLEST_FACTOR, LARGEST_FACTOR = 2.0**-60, 2.0**60


@dataclass(frozen=True)
class Condition:
    """A condition on a row and a key, in the body of a nest."""

    nest: NestOp
    value: SSAValue
    shown: bool
    """The value of the condition where the row sees the key."""


@dataclass(frozen=True)
class Mask:
    """Hides the keys for which not all of its conditions hold."""

    conditions: tuple[Condition, ...]
    low: float
    """The score of a hidden key: -inf, or a number `FAR_BELOW` others."""
    added: bool
    """True if `low` is added to the score, false if it replaces the score."""


@dataclass(frozen=True)
class Score:
    """The scores of an attention: `factor` times a base, then masks."""

    nest: NestOp
    base: SSAValue
    """An f32 value in the body of `nest`."""
    factor: float = 1.0
    masks: tuple[Mask, ...] = ()
    """The masks, innermost first."""

    @property
    def low(self) -> float | None:
        """The finite score of hidden keys; None if there is none."""
        return next((mask.low for mask in self.masks if mask.low != float("-inf")), None)


def score_of(attention: Attention) -> Score:
    """Returns the scores in the exponentials of an attention."""
    found = attention.weights[-1][1]
    return _score(found.nest, found.score, attention)


def is_product(score: Score, attention: Attention) -> bool:
    """True if the base of scores is the product of queries and keys itself."""
    op = score.base.owner
    return isinstance(op, ReadOp) and op.source is attention.scores.outputs[0]


def is_small(score: Score, attention: Attention) -> bool:
    """True if a base is known to be so small that the rounding of its scaled maximum is harmless: a product of 16-bit
    floats, or an f16."""
    op = score.base.owner
    if isinstance(op, arith.ExtFOp) and isinstance(op.operands[0].type, Float16Type):
        return True
    product = dot_product(attention.scores)
    return product is not None and is_half(product.element) and is_product(score, attention)


def _score(nest: NestOp, value: SSAValue, attention: Attention) -> Score:
    op, whole = value.owner, Score(nest, value)
    if not isinstance(value.type, Float32Type):
        return whole
    if isinstance(op, ReadOp):
        return _read_score(op, attention) or whole
    if isinstance(op, (arith.MulfOp, arith.DivfOp)):
        return _scaled(nest, op, attention) or whole
    if isinstance(op, arith.SelectOp):
        return _selected(nest, op, attention) or whole
    if isinstance(op, arith.AddfOp):
        return _added(nest, op, attention) or whole
    return whole


def _read_score(op: ReadOp, attention: Attention) -> Score | None:
    """Returns a read of another nest's elementwise result as scores."""
    source = op.source.owner
    if op.guards or op.indices or not isinstance(source, NestOp) or source not in attention.members:
        return None
    if any(axis.kind == "reduction" for axis in source.axes):
        return None
    clause = source.yield_op.clauses[list(source.outputs).index(op.source)]  # pyright: ignore[reportArgumentType]
    return _score(source, clause.value, attention)


def _scaled(nest: NestOp, op: arith.MulfOp | arith.DivfOp, attention: Attention) -> Score | None:
    """Returns a score times a positive constant."""
    left, right = (constant_of(v) for v in op.operands)
    if isinstance(op, arith.DivfOp):
        known, other = right, op.lhs
    else:
        known, other = (right, op.lhs) if right is not None else (left, op.rhs)
    if known is None or not SMALLEST_FACTOR < known < LARGEST_FACTOR:
        return None
    inner = _score(nest, other, attention)
    factor = inner.factor / known if isinstance(op, arith.DivfOp) else inner.factor * known
    if inner.low is not None or not SMALLEST_FACTOR < factor < LARGEST_FACTOR:
        return None
    return replace(inner, factor=factor)


def _selected(nest: NestOp, op: arith.SelectOp, attention: Attention) -> Score | None:
    """Returns a score replaced by a low number where a condition does not hold."""
    for shown, other, hidden in ((True, op.lhs, op.rhs), (False, op.rhs, op.lhs)):
        low = constant_of(hidden)
        if low is not None and low <= FAR_BELOW:
            inner = _score(nest, other, attention)
            mask = Mask((Condition(nest, op.cond, shown),), low, added=False)
            # Both masks of a key that two hide have to give the same score.
            return _masked(inner, mask) if inner.low in (None, low) else None
    return None


def _added(nest: NestOp, op: arith.AddfOp, attention: Attention) -> Score | None:
    """Returns a score to which a low number is added where conditions do not hold."""
    for other, bias in (op.operands, reversed(op.operands)):
        found = _bias(nest, bias)
        if found is not None and found[0]:
            inner = _score(nest, other, attention)
            conditions, low = found
            # Two finite numbers would add up.
            return _masked(inner, Mask(tuple(conditions), low, added=True)) if inner.low is None else None
    return None


def _bias(nest: NestOp, value: SSAValue) -> tuple[list[Condition], float] | None:
    """Returns a value that is 0 where conditions hold, else a low number."""
    op = value.owner
    if constant_of(value) == 0:
        return [], 0.0
    if not isinstance(op, arith.SelectOp):
        return None
    for shown, other, hidden in ((True, op.lhs, op.rhs), (False, op.rhs, op.lhs)):
        low = constant_of(hidden)
        inner = _bias(nest, other) if low is not None and low <= FAR_BELOW else None
        if low is not None and inner is not None and (not inner[0] or inner[1] == low):
            return [*inner[0], Condition(nest, op.cond, shown)], low
    return None


def _masked(inner: Score, mask: Mask) -> Score:
    return replace(inner, masks=(*inner.masks, mask))


def constant_of(value: SSAValue) -> float | None:
    """Returns the number of a float constant; None for other values."""
    op = value.owner
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, FloatAttr):
        return None
    return cast("FloatAttr[Float32Type]", op.value).value.data


def conditions_of(masks: Sequence[Mask]) -> list[Condition]:
    """Returns the conditions of all masks."""
    return [condition for mask in masks for condition in mask.conditions]
