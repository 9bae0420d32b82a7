"""Arithmetic without effect: x*1, x-0, Not(Not(x)), Relu(Relu(x)), an Expand with the effect of implicit broadcasting.

Every rule here is exact, including the sign of zeros: x + 0.0 is not x for x = -0.0, but x + -0.0 is, and so is x -
0.0.
"""

from __future__ import annotations

import math

from xdsl.dialects.builtin import AnyFloat
from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import OnnxOp
from igniter.transforms.onnx.onnx_rewriting import (
    Replacement,
    Rewriter,
    Rule,
    Rules,
    broadcast,
    defining,
    element,
    known_dims,
    operand,
    same_dims,
    splat,
)


def _kept(op: OnnxOp, value: SSAValue | None) -> Replacement | None:
    """Returns `value` as the node's only result, if dims and element type match."""
    result = op.results[0]
    if value is None or not same_dims(value, result) or element(value) != element(result):
        return None
    return [value]


def _is_float(value: SSAValue | None) -> bool:
    return isinstance(element(value), AnyFloat)


def _is_zero(value: SSAValue | None, negative: bool) -> bool:
    """True if a value is the zero of its type; for floats, the one with that sign."""
    number = splat(value)
    if number is None or number != 0:
        return False
    return not _is_float(value) or (math.copysign(1.0, number) < 0) == negative


def drop_add_zero(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops x + -0.0 and n + 0."""
    for i in (0, 1):
        if _is_zero(op.operands[i], negative=True):
            return _kept(op, op.operands[1 - i])
    return None


def drop_sub_zero(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops x - 0.0 and n - 0."""
    return _kept(op, op.operands[0]) if _is_zero(op.operands[1], negative=False) else None


def drop_mul_one(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops x * 1."""
    for i in (0, 1):
        if splat(op.operands[i]) == 1:
            return _kept(op, op.operands[1 - i])
    return None


def drop_div_one(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops x / 1."""
    return _kept(op, op.operands[0]) if splat(op.operands[1]) == 1 else None


def reduce_power(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites x ** 1 to x, and x ** 2 to x * x, as ONNX Runtime computes it."""
    base, exponent = op.operands
    number = splat(exponent)
    if number == 1:
        return _kept(op, base)
    if number == 2 and _is_float(base) and _kept(op, base) is not None:
        return rw.op("Mul", [base, base], [op.results[0].type]).results
    return None


def drop_involution(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops Not(Not(x)), Neg(Neg(x)), BitwiseNot(BitwiseNot(x))."""
    inner = defining(op.operands[0], op.qualified_name)
    return _kept(op, inner.operands[0]) if inner is not None else None


def drop_repeated(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops the repetition of an idempotent op, such as Relu(Relu(x))."""
    inner = defining(op.operands[0], op.qualified_name)
    if inner is None or inner.attributes != op.attributes or list(inner.operands)[1:] != list(op.operands)[1:]:
        return None
    return _kept(op, inner.results[0])


def drop_single_operand(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops Max, Min, Sum, Mean and Concat of one operand."""
    return _kept(op, op.operands[0]) if len(op.operands) == 1 else None


def drop_where(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops a Where with a constant condition, or with the same value on both sides."""
    condition, a, b = op.operands
    if a is b:
        return _kept(op, a)
    known = splat(condition)
    return None if known is None else _kept(op, a if known else b)


def drop_logical_constant(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops `x and true`, `x or false`."""
    neutral = op.op_type == "And"
    for i in (0, 1):
        if splat(op.operands[i]) is neutral:
            return _kept(op, op.operands[1 - i])
    return None


def drop_same_logical(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops `x and x`, `x or x`."""
    return _kept(op, op.operands[0]) if op.operands[0] is op.operands[1] else None


def is_idle_dropout(op: OnnxOp) -> bool:
    """True if a Dropout drops nothing, because it is not in training mode."""
    if op.opset < 7:
        return bool(op.attr("is_test", 0))
    return op.opset < 12 or operand(op, 2) is None or splat(operand(op, 2)) is False


def drop_dropout(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops a Dropout outside training whose mask is unused."""
    if any(r.first_use is not None for r in op.results[1:]) or not is_idle_dropout(op):
        return None
    return [op.operands[0], *[None] * (len(op.results) - 1)]


def read_through_expand(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Replaces an Expand operand by its source, if broadcasting gives the same result."""
    result = known_dims(op.results[0])
    if result is None:
        return None
    changed = False
    for i, value in enumerate(op.operands):
        expand = defining(value, "Expand")
        if expand is None:
            continue
        shapes = [known_dims(expand.operands[0] if j == i else v) for j, v in enumerate(op.operands)]
        known = [s for s in shapes if s is not None]
        if len(known) == len(shapes) and broadcast(known) == result:
            rw.set_operand(op, i, expand.operands[0])
            changed = True
    return list(op.results) if changed else None


BROADCASTING = (
    *("Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater", "GreaterOrEqual"),
    *("Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "Pow", "Sub", "Sum", "Where", "Xor"),
)
"""The broadcasting ops."""

_TABLE: dict[str, list[Rule]] = {
    "Add": [drop_add_zero],
    "Sub": [drop_sub_zero],
    "Mul": [drop_mul_one],
    "Div": [drop_div_one],
    "Pow": [reduce_power],
    **{name: [drop_involution] for name in ("Not", "BitwiseNot", "Neg")},
    **{name: [drop_repeated] for name in ("Relu", "Abs", "Ceil", "Floor", "Round", "Sign", "Clip")},
    **{name: [drop_single_operand] for name in ("Max", "Min", "Sum", "Mean", "Concat")},
    "Where": [drop_where],
    "And": [drop_logical_constant, drop_same_logical],
    "Or": [drop_logical_constant, drop_same_logical],
    "Dropout": [drop_dropout],
}
RULES: Rules = {
    name: [*_TABLE.get(name, ()), *([read_through_expand] if name in BROADCASTING else ())]
    for name in dict.fromkeys((*_TABLE, *BROADCASTING))
}
