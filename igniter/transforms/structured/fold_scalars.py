"""Folding of single ops in a body: integer arithmetic by xDSL's folders; floats, comparisons, selects and casts here.

A float is folded in double precision and rounded to its type: for +, -, * and / of f32 the result is correctly rounded.
Identities that would change a value (`x + 0.0` for x = -0.0, `x * 0.0` for NaN) are not applied.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable
from typing import cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import AnyFloat, Float32Type, Float64Type, FloatAttr, IntegerAttr, IntegerType
from xdsl.interfaces import HasFolderInterface
from xdsl.ir import Attribute, Operation, SSAValue

KINDS = (FloatAttr, IntegerAttr)

FLOAT_OPS: dict[str, Callable[[float, float], float]] = {
    "arith.addf": lambda a, b: a + b,
    "arith.subf": lambda a, b: a - b,
    "arith.mulf": lambda a, b: a * b,
}

UNITS: dict[str, tuple[float, bool]] = {
    # The right operand that makes the op an identity, and if its zero must have the same sign.
    "arith.mulf": (1.0, False),
    "arith.divf": (1.0, False),
    "arith.subf": (0.0, True),
    "arith.addf": (-0.0, True),
}

COMPARISONS: list[Callable[[int, int], bool]] = [
    # In the order of arith.cmpi's predicates: eq ne slt sle sgt sge.
    lambda a, b: a == b,
    lambda a, b: a != b,
    lambda a, b: a < b,
    lambda a, b: a <= b,
    lambda a, b: a > b,
    lambda a, b: a >= b,
]


def constant_of(value: SSAValue) -> FloatAttr[AnyFloat] | IntegerAttr[IntegerType] | None:
    """Returns the attribute of a scalar constant; None for other values."""
    found = value.owner.value if isinstance(value.owner, arith.ConstantOp) else None
    # `isinstance` and a cast: xDSL's `isa` on a parametrised attribute takes as long as a whole pass.
    return cast("FloatAttr[AnyFloat] | IntegerAttr[IntegerType]", found) if isinstance(found, KINDS) else None


def float_constant(value: float, element: Attribute) -> arith.ConstantOp | None:
    """Returns `value` rounded to `element`; None for an unsupported type, or on overflow."""
    if isinstance(element, Float64Type):
        return arith.ConstantOp(FloatAttr(value, element))
    if not isinstance(element, Float32Type):
        return None
    if math.isfinite(value):
        try:
            value = struct.unpack("<f", struct.pack("<f", value))[0]
        except OverflowError:
            return None
    return arith.ConstantOp(FloatAttr(value, element))


def fold_scalar(op: Operation) -> SSAValue | arith.ConstantOp | None:
    """Folds an op of a body to an operand or a new constant; None if it must stay."""
    if isinstance(op, arith.ConstantOp) or len(op.results) != 1:
        return None
    if isinstance(op, HasFolderInterface):
        folded = op.fold()
        if folded is None:
            return None
        (result,) = folded
        if isinstance(result, SSAValue):
            return result
        if not isinstance(result, IntegerAttr):
            return None
        return arith.ConstantOp(cast("IntegerAttr[IntegerType]", result))
    if isinstance(op, arith.SelectOp):
        return _fold_select(op)
    if isinstance(op, arith.CmpiOp):
        return _fold_comparison(op)
    if op.name in UNITS:
        return _fold_float(op)
    if op.name in ("arith.extf", "arith.sitofp"):
        return _fold_cast(op)
    return None


def _fold_select(op: arith.SelectOp) -> SSAValue | None:
    if op.lhs is op.rhs:
        return op.lhs
    condition = constant_of(op.cond)
    if not isinstance(condition, IntegerAttr):
        return None
    return op.lhs if condition.value.data else op.rhs


def _fold_comparison(op: arith.CmpiOp) -> arith.ConstantOp | None:
    left, right = constant_of(op.lhs), constant_of(op.rhs)
    predicate = op.predicate.value.data
    if not isinstance(left, IntegerAttr) or not isinstance(right, IntegerAttr) or predicate >= len(COMPARISONS):
        return None
    holds = COMPARISONS[predicate](left.value.data, right.value.data)
    return arith.ConstantOp(IntegerAttr(int(holds), IntegerType(1)))


def _fold_float(op: Operation) -> SSAValue | arith.ConstantOp | None:
    left, right = (constant_of(o) for o in op.operands)
    if isinstance(right, FloatAttr):
        unit, signed = UNITS[op.name]
        value = right.value.data
        if value == unit and (not signed or math.copysign(1.0, value) == math.copysign(1.0, unit)):
            return op.operands[0]
        if isinstance(left, FloatAttr) and op.name in FLOAT_OPS:
            return float_constant(FLOAT_OPS[op.name](left.value.data, value), op.results[0].type)
    return None


def reciprocal(op: Operation) -> float | None:
    """Returns `1/c` if `op` divides by a power of two `c` with an exact reciprocal: then `x / c` equals `x * (1/c)`,
    bit for bit. Otherwise None."""
    if not isinstance(op, arith.DivfOp):
        return None
    divisor = constant_of(op.rhs)
    if not isinstance(divisor, FloatAttr) or not isinstance(op.result.type, (Float32Type, Float64Type)):
        return None
    mantissa, exponent = math.frexp(divisor.value.data)
    return 1.0 / divisor.value.data if abs(mantissa) == 0.5 and abs(exponent) <= 120 else None


def _fold_cast(op: Operation) -> arith.ConstantOp | None:
    value = constant_of(op.operands[0])
    if isinstance(value, FloatAttr):
        return float_constant(value.value.data, op.results[0].type)
    # A true bool may be stored as -1; beyond 53 bits a double is not exact.
    if isinstance(value, IntegerAttr) and op.operands[0].type != IntegerType(1) and abs(value.value.data) <= 1 << 53:
        return float_constant(float(value.value.data), op.results[0].type)
    return None
