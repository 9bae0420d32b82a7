"""Attentions in one GPU launch, one block of keys after another (online softmax).

    scores  [i, j, d: reduction]    q(i, d) * k(j, d)                     of a short depth
    ..      [i, j]                  scales and masks, element by element
    top     [i, j: reduction]       their maximum
    weights [i, j]                  exp(score - floor), the floor made from the maximum; divided by a sum, or not
    sums    [i, j: reduction]       of the exponentials
    values  [i, e, j: reduction]    weights(i, j) * v(j, e)

Both are products of blocks if there are rows i; a step of decoding may have none.

The weights of a row have a common factor: exp(top - floor), a sum, or any other that does not depend on keys. So the
sums can use exp(score - m), with m the maximum of the keys so far: a new maximum scales the sums by exp(m - m'), and
the row's factor is multiplied at the end. The method is that of Milakov and Gimelshein, "Online normalizer calculation
for softmax" (2018), in the form of FlashAttention (Dao et al., 2022).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation, SSAValue

from igniter.analysis.structured.dot_products import DotProduct, dot_product, hangs_on
from igniter.dialects.loop import KernelOp, NestOp, ReadOp
from igniter.dialects.sym import element_of

LONGEST_DEPTH = 256
"""The longest depth of a head: a block holds all of it."""


@dataclass(frozen=True)
class Factor:
    """A factor of a row's weights: a multiplier or divisor in the body of a nest."""

    nest: NestOp
    value: SSAValue
    divides: bool


@dataclass(frozen=True)
class Weights:
    """A value as exponentials times factors of a row."""

    nest: NestOp
    """The nest whose body has the exponential."""
    exponential: SSAValue
    score: SSAValue
    floor: SSAValue
    """The exponential's operand is `score` - `floor`; the floor is the same for all keys."""
    factors: tuple[Factor, ...]


@dataclass(frozen=True)
class Attention:
    """The nests of an attention; nothing outside reads their results, apart from those of `values`."""

    scores: NestOp
    top: NestOp
    sums: tuple[NestOp, ...]
    """The sums of weights alone."""
    values: NestOp
    rows: str
    keys: str
    features: str
    """The axes of `values`; `rows` is "" without rows."""
    weight: SSAValue
    weighed: SSAValue
    """The factors in `values`: one for each row and key, one for each key and feature."""
    weights: tuple[tuple[NestOp, Weights], ...]
    """The weights in each of `sums`, and in `values`."""
    members: tuple[NestOp, ...]
    """All nests, in the order of the kernel, with `values` last."""


def short_depth(nest: NestOp) -> str | None:
    """Returns the only reduction axis of a sum, if it is short enough for a block to hold all of it; else `None`."""
    sums = [axis for axis in nest.axes if axis.kind == "reduction"]
    clauses = nest.yield_op.clauses
    if len(sums) != 1 or len(clauses) != 1 or clauses[0].combiner != "add" or clauses[0].otherwise is not None:
        return None
    depth = sums[0].extent.constant
    return sums[0].name if depth is not None and 1 < depth <= LONGEST_DEPTH else None


def attentions(kernel: KernelOp) -> list[Attention]:
    """Returns the attentions of a kernel; none of them shares a nest with another."""
    found: list[Attention] = []
    taken: set[NestOp] = set()
    for nest in kernel.nests:
        attention = attention_of(nest, kernel.nests)
        if attention is not None and taken.isdisjoint(attention.members):
            found.append(attention)
            taken.update(attention.members)
    return found


def attention_of(values: NestOp, nests: Sequence[NestOp]) -> Attention | None:
    """Returns the attention with a nest as its last, made of the kernel's nests; `None` without one."""
    found = _weighed_sum(values)
    if found is None:
        return None
    product, weights = found
    for scores in (n for n in nests if n is not values and short_depth(n) is not None):
        if product.row and dot_product(scores) is None:
            continue
        between = [n for n in nests if n is not scores and _reaches(scores, n) and _reaches(n, values)]
        attention = _made_of(scores, between, values, product, weights) if between else None
        if attention is not None:
            return attention
    return None


def _weighed_sum(values: NestOp) -> tuple[DotProduct, Weights] | None:
    """Returns a nest as a product of weights (its rows) and weighed values (its columns): of blocks, or without
    rows."""
    sums = _sums(values)
    if len(sums) != 1 or not _is_plain(values):
        return None
    product = dot_product(values)
    candidates = [product, product.swapped()] if product is not None else _rowless(values, sums[0])
    for each in candidates:
        weights = weights_of(values, each.a, each.depth)
        if weights is not None:
            return each, weights
    return None


def _rowless(values: NestOp, keys: str) -> list[DotProduct]:
    """Returns the ways to read a sum as products whose first factor depends on the sum's axis and on no other axis that
    indexes the results alone."""
    clause = values.yield_op.clauses[0]
    multiplied = clause.value.owner
    if clause.combiner != "add" or not isinstance(multiplied, arith.MulfOp):
        return []
    wide = {axis.name for axis in values.axes if axis.kind == "parallel" and axis.extent.constant != 1}
    found: list[DotProduct] = []
    for a, b in ((multiplied.lhs, multiplied.rhs), (multiplied.rhs, multiplied.lhs)):
        in_a, in_b = hangs_on(a), hangs_on(b)
        own = [axis.name for axis in values.axes if axis.name in (in_b - in_a) & wide]
        if keys in in_a & in_b and own and not (in_a - in_b) & wide:
            found.append(DotProduct(a, b, "", own[-1], keys))
    return found


def _made_of(
    scores: NestOp, between: Sequence[NestOp], values: NestOp, product: DotProduct, weights: Weights
) -> Attention | None:
    members = [scores, *(n for n in between if n is not values), values]
    if not _is_plain(scores):
        return None
    reducing = [n for n in members[1:-1] if _sums(n)]
    tops = [n for n in reducing if n.yield_op.clauses[0].combiner == "max"]
    others = [n for n in reducing if n not in tops]
    if len(tops) != 1 or not all(_is_plain(n) for n in reducing):
        return None
    # A sum that depends on a value known only at the end of a row cannot be computed on the way. The maximum that keeps
    # exponentials small has to be that of their own scores.
    if any(_hangs_on_sums(value, reducing) for value in (weights.score, product.b)):
        return None
    if _origin(tops[0].yield_op.clauses[0].value) is not _origin(weights.score):
        return None
    # Sums are complete at the end of a row, and can be in memory; tensors over keys are never complete.
    inside = [v for n in members[:-1] if n not in reducing for v in n.outputs]
    if any(use.operation.parent_op() not in members for v in inside for use in v.uses):
        return None
    weighing: list[tuple[NestOp, Weights]] = []
    for nest in others:
        clause, sums = nest.yield_op.clauses[0], _sums(nest)
        found = weights_of(nest, clause.value, sums[0]) if clause.combiner == "add" and len(sums) == 1 else None
        if found is None or found.exponential is not weights.exponential:
            return None
        weighing.append((nest, found))
    weighing.append((values, weights))
    at = product.row, product.depth, product.column
    return Attention(scores, tops[0], tuple(others), values, *at, product.a, product.b, tuple(weighing), tuple(members))


def _hangs_on_sums(value: SSAValue, reducing: Sequence[NestOp]) -> bool:
    """True if a value in the body of a nest depends on the sums of others, directly or through nests between."""
    op = value.owner
    assert isinstance(op, Operation)
    if isinstance(op, ReadOp) and isinstance(op.source.owner, NestOp):
        source = op.source.owner
        if source in reducing or any(_reaches(each, source) for each in reducing):
            return True
    inside = [v for v in op.operands if not (isinstance(op, ReadOp) and v is op.source)]
    return any(_hangs_on_sums(v, reducing) for v in inside)


def _origin(value: SSAValue) -> SSAValue:
    """Returns the value behind reads of elementwise results of other nests, and behind widening."""
    op = value.owner
    if isinstance(op, arith.ExtFOp):
        return _origin(op.operands[0])
    if not isinstance(op, ReadOp) or op.guards or op.indices:
        return value
    source = op.source.owner
    if not isinstance(source, NestOp):
        return value
    if _sums(source):
        return op.source
    index = list(source.outputs).index(op.source)  # pyright: ignore[reportArgumentType]
    return _origin(source.yield_op.clauses[index].value)


def _is_plain(nest: NestOp) -> bool:
    """True if a nest makes one tensor of f32, all of it."""
    outputs, clauses = nest.outputs, nest.yield_op.clauses
    return len(outputs) == 1 and clauses[0].otherwise is None and isinstance(element_of(outputs[0].type), Float32Type)


def _sums(nest: NestOp) -> list[str]:
    """Returns the reduction axes of a nest."""
    return [axis.name for axis in nest.axes if axis.kind == "reduction"]


def _reaches(source: NestOp, nest: NestOp) -> bool:
    """True if a nest reads the results of another, directly or through others."""
    pending, seen = [nest], {nest}
    while pending:
        for read in pending.pop().reads:
            owner = read.source.owner
            if owner is source:
                return True
            if isinstance(owner, NestOp) and owner not in seen:
                seen.add(owner)
                pending.append(owner)
    return nest is source


def weights_of(nest: NestOp, value: SSAValue, keys: str) -> Weights | None:
    """Returns a value in the body of a nest as f32 exponentials, one for each element along `keys`, times factors
    common to all of these; `None` otherwise."""
    op = value.owner
    if isinstance(op, (arith.ExtFOp, arith.TruncFOp)):
        return weights_of(nest, op.operands[0], keys)
    if isinstance(op, ReadOp):
        return _read_weights(op, keys)
    if isinstance(op, (arith.MulfOp, arith.DivfOp)):
        a, b = op.operands
        if keys not in hangs_on(b):
            return _with(weights_of(nest, a, keys), [Factor(nest, b, isinstance(op, arith.DivfOp))])
        if isinstance(op, arith.MulfOp) and keys not in hangs_on(a):
            return _with(weights_of(nest, b, keys), [Factor(nest, a, divides=False)])
        return None
    difference = op.operand.owner if isinstance(op, math.ExpOp) else None
    if not isinstance(difference, arith.SubfOp) or not isinstance(value.type, Float32Type):
        return None
    if keys in hangs_on(difference.rhs) or keys not in hangs_on(difference.lhs):
        return None
    return Weights(nest, value, difference.lhs, difference.rhs, ())


def _read_weights(op: ReadOp, keys: str) -> Weights | None:
    """Returns a read of another nest's elementwise result as weights."""
    source = op.source.owner
    if not isinstance(source, NestOp) or _sums(source) or op.guards or op.indices:
        return None
    clause = source.yield_op.clauses[list(source.outputs).index(op.source)]  # pyright: ignore[reportArgumentType]
    pairs = zip(op.subscripts, clause.subscripts, strict=True)
    theirs = [written.symbol for mine, written in pairs if mine.symbol == keys]
    if len(theirs) != 1 or theirs[0] is None or clause.otherwise is not None:
        return None
    return weights_of(source, clause.value, theirs[0])


def _with(weights: Weights | None, factors: Iterable[Factor]) -> Weights | None:
    if weights is None:
        return None
    return Weights(weights.nest, weights.exponential, weights.score, weights.floor, (*weights.factors, *factors))
