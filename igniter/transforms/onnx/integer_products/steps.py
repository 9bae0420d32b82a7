"""Rules for ops between codes: DequantizeLinear, an op, QuantizeLinear.

A code is an integer for a number, in steps of a scale from a zero point. Four rules for a QuantizeLinear reduce the
arithmetic between codes:

* `of_codes`: an op for movement or comparison only, with the same quantisation before and after, runs on the codes.
* `saturated`: a Relu or a Clip is removed if the range of the codes implies it.
* `as_it_was`: a number dequantised and quantised with the same parameters is its code.
* `in_steps`: the scaling of integer products is computed in steps of the result, with the scales divided by the step.
  The product then has one factor, the quotient, rounded once by ONNX Runtime (MlasRequantizeOutput).

For other dequantised operands, the scale is applied first and the step of the result last, as ONNX specifies: a single
rounded quotient of the two gives another code if a number lies between two steps, as is common if one scale is a small
multiple of the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.onnx.lowering.scalar import int_limits
from igniter.dialects.onnx.ops.pointwise import ui8
from igniter.dialects.onnx.registry import VALUES_ATTRIBUTE
from igniter.dialects.sym import dims_of
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rule, defining, element, operand, splat

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

MOVES = frozenset(("Concat", "Flatten", "MaxPool", "Reshape", "Slice", "Squeeze", "Transpose", "Unsqueeze"))
"""Ops with results selected from their input numbers, whatever these encode."""

POOL_OPSET = 12
"""The first opset with a MaxPool of bytes."""

HOMOGENEOUS = frozenset(("GlobalAveragePool", "GlobalMaxPool", "LeakyRelu", "Relu", *(MOVES - {"Concat"})))
"""Ops commuting with a positive factor of their first operand."""

SUMS = frozenset(("Add", "Concat", "Sub"))
"""Ops commuting with a factor of all operands."""


# -- parameters of nodes ----------------------------------------------------------------------------------------------


def step_of(op: OnnxOp) -> Array | None:
    """Returns the scalar step of a QuantizeLinear or DequantizeLinear of f32, if it is a constant."""
    scale = constant_value(op.operands[1])
    if scale is None or scale.dtype.name != "float32" or scale.size != 1 or op.attr("block_size", 0):
        return None
    return scale.reshape(()) if scale.reshape(()) > 0 else None


def zero_of(op: OnnxOp) -> int | None:
    """Returns its scalar zero point, if it is a constant."""
    given = operand(op, 2)
    found = 0 if given is None else splat(given)
    return None if found is None else int(found)


def same_codes(a: OnnxOp, value: SSAValue, b: OnnxOp, other: SSAValue) -> bool:
    """True if two nodes encode the same numbers by the same codes of `value` and `other`."""
    steps = step_of(a), step_of(b)
    return (
        element(value) == element(other)
        and steps[0] is not None
        and steps[0] == steps[1]
        and zero_of(a) is not None
        and zero_of(a) == zero_of(b)
    )


# -- rules ------------------------------------------------------------------------------------------------------------


def as_it_was(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Replaces a requantised code by the code."""
    before = defining(op.operands[0], "DequantizeLinear")
    if before is None or not same_codes(op, op.results[0], before, before.operands[0]):
        return None
    return [before.operands[0]]


def of_codes(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Runs an op on the codes instead of the numbers."""
    inner = defining(op.operands[0], *MOVES)
    if inner is None or not inner.results[0].has_one_use() or len(inner.results) != 1:
        return None
    if inner.op_type == "MaxPool" and inner.opset < POOL_OPSET:
        return None
    moved = list(inner.operands) if inner.op_type == "Concat" else [inner.operands[0]]
    codes: list[SSAValue] = []
    for value in moved:
        before = defining(value, "DequantizeLinear")
        if before is None or not same_codes(op, op.results[0], before, before.operands[0]):
            return None
        codes.append(before.operands[0])
    rest: list[SSAValue | None] = [operand(inner, k) for k in range(len(moved), len(inner.operands))]
    return again(inner, [*codes, *rest], op.results[0].type, rw).results


def again(op: OnnxOp, inputs: Sequence[SSAValue | None], result: Attribute, rw: Rewriter) -> OnnxOp:
    """Returns a node like another with other operands and the same recorded integers."""
    attrs = {k: op.attr(k) for k in op.attributes if not k.startswith("igniter.")}
    made = rw.op(op.qualified_name, inputs, [result], attrs)
    if VALUES_ATTRIBUTE in op.attributes:
        made.attributes[VALUES_ATTRIBUTE] = op.attributes[VALUES_ATTRIBUTE]
    return made


def saturated(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops an activation implied by the range of the codes."""
    inner = defining(op.operands[0], "Clip", "Relu")
    step, zero, kind = step_of(op), zero_of(op), element(op.results[0])
    if inner is None or step is None or zero is None:
        return None
    limits = _limits(inner)
    if limits is None:
        return None
    if kind not in (i8, ui8):
        return None
    least, greatest = int_limits(kind)
    low, high = (None if n is None else _in_whole_steps(n, step) for n in limits)
    # A limit may be an infinity, and NaN is no safe limit.
    if (low is not None and not low <= least - zero) or (high is not None and not high >= greatest - zero):
        return None
    attrs = {k: op.attr(k) for k in op.attributes}
    return rw.op(op.qualified_name, [inner.operands[0], *op.operands[1:]], [op.results[0].type], attrs).results


def _in_whole_steps(limit: float, step: Array) -> float:
    """Returns a limit in steps, divided and rounded to even in f32 like the numbers it limits."""
    with np.errstate(all="ignore"):
        return float(np.rint(np.float32(limit) / step))


def _limits(op: OnnxOp) -> tuple[float | None, float | None] | None:
    """Returns the least and the greatest result of a Clip or a Relu; None if they are computed."""
    if op.op_type == "Relu":
        return 0.0, None
    given: list[float | None] = []
    for index, name in ((1, "min"), (2, "max")):
        value = operand(op, index)
        found = op.attr(name) if value is None else splat(value)
        if value is not None and found is None:
            return None
        given.append(None if found is None else float(found))
    return given[0], given[1]


def in_steps(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Merges the scales of numbers with the step of their codes."""
    step = step_of(op)
    if step is None or step == 1 or not _has_factors(op.operands[0], step):
        return None
    value = _divided(op.operands[0], step, rw)
    one = rw.constant(np.ones([d.constant or 1 for d in dims_of(op.operands[1].type)], np.float32))
    attrs = {k: op.attr(k) for k in ("axis", "saturate", "output_dtype", "precision") if k in op.attributes}
    return rw.op(op.qualified_name, [value, one, *op.operands[2:]], [op.results[0].type], attrs).results


def _has_factors(value: SSAValue, step: Array) -> bool:
    """True if a number is computed only from constants and integer products with constant scales, which stay finite
    when divided by the step."""
    op = value.owner
    if not isinstance(op, OnnxOp):
        return False
    name = op.qualified_name
    if name == "Constant":
        return element(value) == f32 and _is_finite(constant_value(value), step)
    if name == "Mul":
        return _is_scaled(op) and _is_finite(constant_value(op.operands[1]), step)
    if not value.has_one_use():
        return False
    if name in SUMS:
        inside = all(_has_factors(v, step) for v in op.operands)
        return inside and any(constant_value(v) is None for v in op.operands)
    return name in HOMOGENEOUS and len(op.results) == 1 and _has_factors(op.operands[0], step)


def _is_finite(known: Array | None, step: Array) -> bool:
    """True if division by a step, which may be tiny, keeps the finite elements of a constant finite."""
    if known is None:
        return False
    with np.errstate(all="ignore"):
        return bool(np.all(np.isfinite(known / step) | ~np.isfinite(known)))


def _is_scaled(op: OnnxOp) -> bool:
    """True if a node scales integers by constants."""
    wide = defining(op.operands[0], "Cast")
    scale = constant_value(op.operands[1])
    return wide is not None and element(wide.operands[0]) == i32 and scale is not None and scale.dtype.name == "float32"


def _divided(value: SSAValue, step: Array, rw: Rewriter) -> SSAValue:
    """Returns a number with factors, divided by the step."""
    op = value.owner
    assert isinstance(op, OnnxOp)
    if op.op_type in SUMS:
        inputs: list[SSAValue | None] = [_divided(v, step, rw) for v in op.operands]
    elif op.op_type in HOMOGENEOUS:
        inputs = [_divided(op.operands[0], step, rw), *(operand(op, k) for k in range(1, len(op.operands)))]
    else:
        known = constant_value(value if op.op_type == "Constant" else op.operands[1])
        assert known is not None
        with np.errstate(all="ignore"):
            factor = rw.constant(np.asarray(known / step, np.float32))
        if op.op_type == "Constant":
            return factor
        inputs = [op.operands[0], factor, *(operand(op, k) for k in range(2, len(op.operands)))]
    return again(op, inputs, value.type, rw).results[0]


RULES: Sequence[Rule] = (as_it_was, of_codes, saturated, in_steps)
"""The rules for a QuantizeLinear, in this order."""
