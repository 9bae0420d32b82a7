"""Integers in a body that are clamped to constants, such as the places that a resize reads."""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import IntegerAttr
from xdsl.ir import SSAValue


def is_clamped(value: SSAValue) -> bool:
    """True if a value is known to lie between two constants of 32 bits, by a minimum and a maximum."""
    sides: set[type[object]] = set()
    while isinstance(op := value.owner, (arith.MaxSIOp, arith.MinSIOp)):
        known = [v for v in op.operands if _fits(v)]
        if not known:
            return False
        sides.add(type(op))
        value = next((v for v in op.operands if v not in known), known[0])
    return len(sides) == 2


def _fits(value: SSAValue) -> bool:
    op = value.owner
    return isinstance(op, arith.ConstantOp) and isinstance(op.value, IntegerAttr) and abs(op.value.value.data) < 1 << 31
