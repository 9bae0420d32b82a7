"""What combiners do: the element that leaves any value unchanged."""

from __future__ import annotations

import math

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
)
from xdsl.ir import Attribute

from igniter.dialects.loop.attrs import Combiner, as_integer, is_unsigned, scalar_type
from igniter.errors import IgniterError


def identity(combiner: Combiner, element: Attribute) -> arith.ConstantOp:
    """What leaves any value unchanged under `combiner`, as a constant of the body's type for `element`."""
    scalar = scalar_type(element)
    if isinstance(scalar, (Float16Type, BFloat16Type, Float32Type, Float64Type)):
        number = {"add": 0.0, "mul": 1.0, "max": -math.inf, "min": math.inf, "none": 0.0}.get(combiner)
        if number is None:
            raise IgniterError(f"'{combiner}' does not combine {element}")
        return arith.ConstantOp(FloatAttr(number, scalar))
    integer = as_integer(scalar)
    if integer is None:
        raise IgniterError(f"no reduction of elements of type {element}")
    width = integer.width.data
    low, high = -(1 << (width - 1)), (1 << (width - 1)) - 1
    if is_unsigned(element) or width == 1:
        low, high = 0, (1 << width) - 1
    ones = 1 if width == 1 else -1
    value = {"add": 0, "mul": 1, "max": low, "min": high, "and": ones, "or": 0, "xor": 0, "none": 0}[combiner]
    return arith.ConstantOp(IntegerAttr(value, IntegerType(width), truncate_bits=True))
