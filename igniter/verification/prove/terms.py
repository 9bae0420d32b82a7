"""The normal form of scalar terms: the exact rewrites of bodies by passes, declared once.

| rewrite | of |
| --- | --- |
| an op on constants is its value, computed by the interpreter | all ops of bodies |
| `x*1`, `x/1`, `x - 0.0`, `x + -0.0`, `x + 0`, `x | 0`, `x & -1` are `x` | floats and integers, bit for bit |
| `x / c` is `x * (1/c)` for a power of two `c` with an exact reciprocal | f32 and f64 |
| `select(c, x, x)` is `x`; `select` by a constant is its operand | all types |
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation

from igniter.dialects.loop.attrs import as_integer, is_float
from igniter.verification.interp.arithmetic import InterpreterError, constant, evaluate
from igniter.verification.prove.values import Apply, Number, Space, Value

UNITS: dict[str, float] = {
    "arith.mulf": 1.0,
    "arith.divf": 1.0,
    "arith.subf": 0.0,
    "arith.addf": -0.0,
    "arith.addi": 0,
    "arith.subi": 0,
    "arith.muli": 1,
    "arith.ori": 0,
    "arith.xori": 0,
    "arith.andi": -1,
    "arith.divsi": 1,
    "arith.divui": 1,
}
"""The right operand of an op with its left operand as result."""


def applied(op: Operation, key: tuple[object, ...], args: Sequence[Value], space: Space) -> Value:
    """Returns an op on values, in normal form."""
    numbers = [a for a in args if isinstance(a, Number)]
    if numbers and len(numbers) == len(args):
        folded = _folded(op, numbers, space)
        if folded is not None:
            return folded
    if op.name == "arith.select":
        if args[1] is args[2]:
            return args[1]
        if isinstance(args[0], Number) and isinstance(args[0].attr, IntegerAttr):
            return args[1] if args[0].attr.value.data else args[2]
    right = args[1] if len(args) == 2 else None
    if isinstance(right, Number) and op.name in UNITS and _is(right.attr, UNITS[op.name]):
        return args[0]
    if op.name == "arith.divf" and isinstance(right, Number):
        inverse = _reciprocal(right.attr)
        if inverse is not None:
            return Apply(space, ("arith.mulf", *key[1:]), (args[0], Number(space, inverse)))
    return Apply(space, key, tuple(args))


def _is(attr: Attribute, unit: float) -> bool:
    if isinstance(attr, FloatAttr):
        return isinstance(unit, float) and repr(float(attr.value.data)) == repr(unit)
    return isinstance(attr, IntegerAttr) and isinstance(unit, int) and attr.value.data == unit


def _reciprocal(attr: Attribute) -> Attribute | None:
    """Returns `1/c` if it and `c` are normal powers of two."""
    if not isinstance(attr, FloatAttr) or not isinstance(attr.type, (Float32Type, Float64Type)):
        return None
    mantissa, exponent = math.frexp(attr.value.data)
    if abs(mantissa) != 0.5 or abs(exponent) > 120:
        return None
    return FloatAttr(1.0 / attr.value.data, attr.type)


def _folded(op: Operation, numbers: Sequence[Number], space: Space) -> Number | None:
    """Returns the value of an op on constants; None for ops that the interpreter does not compute."""
    kind = op.results[0].type
    try:
        operands = [constant(arith.ConstantOp(n.attr)) for n in numbers]  # pyright: ignore
        value = np.asarray(evaluate(op, operands))
    except (InterpreterError, TypeError, ValueError):
        return None
    if value.ndim:
        return None
    if is_float(kind):
        return Number(space, FloatAttr(float(value), kind))  # pyright: ignore[reportArgumentType, reportCallIssue]
    integer = as_integer(kind)
    if integer is None:
        return None
    return Number(space, IntegerAttr(int(value), integer, truncate_bits=True))
