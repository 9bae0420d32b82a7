"""The combiners of `loop.yield`, `loop.accumulate` and `loop.reduce_lanes`: one table, shared by all executors.

A fold starts from the identity and combines all values written to an element, in any order. An empty fold gives the
identity.

    combiner   floats      signed     unsigned   i1      identity
    add        addf        addi       addi       xori    0, +0.0
    mul        mulf        muli       muli       andi    1
    max        maximumf    maxsi      maxui      ori     the least value; -inf, false
    min        minimumf    minsi      minui      andi    the greatest value; inf, true
    and                    andi       andi       andi    all bits; true
    or                     ori        ori        ori     0; false
    xor                    xori       xori       xori    0; false
    none       one value for each element, no fold

Integers wrap: a sum of i1 is modulo 2, as in `arith.addi`. `max` and `min` propagate NaN; the sign of a zero result is
unspecified.

A sum of floats starts from +0.0, as in NumPy: an empty sum and a sum of negative zeros are +0.0. (The compiler may use
the value itself for a sum known to have one value.) Padding that must not change a sum, such as lanes past the end of a
row, holds the *neutral* value -0.0 instead: x + -0.0 is x for every x. For all other combiners the identity is also
neutral.

Floats of 16 bits are combined in f32 and rounded. Kernels treat 8-bit floats as raw bits and never combine them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import IRDLOperation

from igniter.dialects.loop.attrs import SMALL_FLOATS, Combiner, as_integer, is_float, is_unsigned, scalar_type
from igniter.errors import IgniterError

Combining = type[IRDLOperation]
Number = Literal["least", "greatest", "ones", "zero", "one"]
"""A value that every integer type has."""


@dataclass(frozen=True)
class Meaning:
    """The meaning of one combiner: the combining op by type, and the identity."""

    signed: Combining
    unsigned: Combining
    i1: Combining
    identity: Number
    floats: Combining | None = None
    float_identity: float = 0.0
    float_neutral: float | None = None
    """The neutral value, if it differs from the identity."""


TABLE: Mapping[Combiner, Meaning] = {
    "add": Meaning(arith.AddiOp, arith.AddiOp, arith.XOrIOp, "zero", arith.AddfOp, 0.0, -0.0),
    "mul": Meaning(arith.MuliOp, arith.MuliOp, arith.AndIOp, "one", arith.MulfOp, 1.0),
    "max": Meaning(arith.MaxSIOp, arith.MaxUIOp, arith.OrIOp, "least", arith.MaximumfOp, -math.inf),
    "min": Meaning(arith.MinSIOp, arith.MinUIOp, arith.AndIOp, "greatest", arith.MinimumfOp, math.inf),
    "and": Meaning(arith.AndIOp, arith.AndIOp, arith.AndIOp, "ones"),
    "or": Meaning(arith.OrIOp, arith.OrIOp, arith.OrIOp, "zero"),
    "xor": Meaning(arith.XOrIOp, arith.XOrIOp, arith.XOrIOp, "zero"),
}
"""The combiners except `none`."""


def refusal(combiner: str, element: Attribute) -> str | None:
    """Returns the reason why `combiner` does not combine elements of a type; `None` if it does."""
    if combiner == "none":
        return None
    meaning = TABLE.get(combiner)  # pyright: ignore[reportArgumentType, reportCallIssue]
    if meaning is None:
        return f"unknown combiner '{combiner}'; known: {', '.join((*TABLE, 'none'))}"
    if isinstance(element, SMALL_FLOATS) or (is_float(element) and meaning.floats is None):
        return f"'{combiner}' does not combine {element}"
    return None if is_float(element) or as_integer(element) is not None else f"'{combiner}' does not combine {element}"


def combining_op(combiner: Combiner, element: Attribute) -> Combining:
    """Returns the class of the `arith` op that combines two elements of a type; raises `IgniterError` if the combiner
    has none."""
    reason = refusal(combiner, element)
    if reason is not None or combiner == "none":
        raise IgniterError(reason or "'none' does not combine values")
    meaning = TABLE[combiner]
    if is_float(element):
        assert meaning.floats is not None
        return meaning.floats
    if element == IntegerType(1):
        return meaning.i1
    return meaning.unsigned if is_unsigned(element) else meaning.signed


def combined(combiner: Combiner, element: Attribute, a: SSAValue, b: SSAValue) -> IRDLOperation:
    """Returns the op that combines two values of the body's type for `element`."""
    return combining_op(combiner, element)(a, b)  # pyright: ignore[reportCallIssue]


def identity(combiner: Combiner, element: Attribute) -> arith.ConstantOp:
    """Returns the identity of a fold, as a constant of the body's type for `element`; zero for `none`."""
    return _constant(combiner, element, neutral=False)


def neutral(combiner: Combiner, element: Attribute) -> arith.ConstantOp:
    """Returns the neutral value of `combiner`, as a constant of the body's type for `element`."""
    return _constant(combiner, element, neutral=True)


def _constant(combiner: Combiner, element: Attribute, *, neutral: bool) -> arith.ConstantOp:
    reason = refusal(combiner, element)
    if reason is not None:
        raise IgniterError(reason)
    scalar = scalar_type(element)
    meaning = TABLE.get(combiner)
    if is_float(scalar):
        number = 0.0
        if meaning is not None:
            use = neutral and meaning.float_neutral is not None
            number = meaning.float_neutral if use else meaning.float_identity
        return arith.ConstantOp(FloatAttr(number, scalar))  # pyright: ignore[reportArgumentType, reportCallIssue]
    integer = as_integer(scalar)
    assert integer is not None
    value = 0 if meaning is None else _integer(meaning.identity, integer.width.data, is_unsigned(element))
    return arith.ConstantOp(IntegerAttr(value, IntegerType(integer.width.data), truncate_bits=True))


def _integer(number: Number, width: int, unsigned: bool) -> int:
    whole = unsigned or width == 1
    values: dict[Number, int] = {
        "zero": 0,
        "one": 1,
        "ones": 1 if width == 1 else -1,
        "least": 0 if whole else -(1 << (width - 1)),
        "greatest": (1 << width) - 1 if whole else (1 << (width - 1)) - 1,
    }
    return values[number]
