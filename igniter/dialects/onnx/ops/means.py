"""The mean of elements as a function of sums.

A mean of floats is their sum over the count. A mean of integers is the exact sum over the count, rounded towards zero;
it always fits the type. Integers of up to 32 bits are summed in i64. The sum of 64-bit integers may overflow i64, so
they are summed in two halves: x = 2**32 h + l, with l in 0 .. 2**32 - 1, and both sums fit i64. Both ways are exact for
up to 2**31 elements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from xdsl.dialects.builtin import i64
from xdsl.ir import Attribute

from igniter.dialects.loop import is_float
from igniter.dialects.onnx.lowering.scalar import int_bits
from igniter.dialects.sym.expr import ONE, Expr, maximum, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.lowering import Nest, Scalar
    from igniter.dialects.onnx.lowering.context import ScalarFunction

HALF = 32
LOW = (1 << HALF) - 1


class Part(NamedTuple):
    """A sum needed for a mean: its name, and the function applied to each element."""

    name: str
    rule: Callable[[Scalar], Scalar]


def mean_parts(element: Attribute) -> list[Part]:
    """Returns the sums needed for a mean of elements of this type."""
    if is_float(element):
        return [Part("sum", _itself)]
    if int_bits(element) < 64:
        return [Part("sum", _wide)]
    return [Part("sum.high", _high), Part("sum.low", _low)]


def _itself(x: Scalar) -> Scalar:
    return x


def _wide(x: Scalar) -> Scalar:
    return x.to(i64)


def _high(x: Scalar) -> Scalar:
    return x.shift_right(HALF).to(i64)


def _low(x: Scalar) -> Scalar:
    return x.to(i64) & LOW


def mean_of_sums(extents: Sequence[Expr], element: Attribute) -> ScalarFunction:
    """Returns the mean over axes of these extents, as a function of the sums of `mean_parts`; the mean of no elements
    is 0."""

    def quotient(total: Scalar) -> Scalar:
        return (total / count_of(total.nest, extents, total)).to(element)

    def quotient_of_halves(high: Scalar, low: Scalar) -> Scalar:
        return _quotient(high, low, count_of(high.nest, extents, high)).to(element)

    def mean(total: Scalar) -> Scalar:
        return total / count_of(total.nest, extents, total)

    if is_float(element):
        return mean
    return quotient if int_bits(element) < 64 else quotient_of_halves


def count_of(nest: Nest, extents: Sequence[Expr], like: Scalar) -> Scalar:
    """Returns the number of elements in a reduction over axes of these extents, at least 1, in the type of `like`."""
    return nest.index(maximum(ONE, product(extents))).to(like.element)


def _quotient(high: Scalar, low: Scalar, count: Scalar) -> Scalar:
    """Returns (2**32 high + low) / count, rounded towards zero: a long division with 32-bit digits."""
    top = high + low.shift_right(HALF)
    digit, rest = _floored(top, count)
    below, left = _floored(rest.shift_left(HALF) + (low & LOW), count)
    floor = digit.shift_left(HALF) + below
    return ((top < 0) & left.ne(0)).select(floor + 1, floor)


def _floored(x: Scalar, count: Scalar) -> tuple[Scalar, Scalar]:
    """Returns the quotient rounded down, and the remainder in 0 .. count - 1."""
    quotient = x / count
    rest = x - quotient * count
    low = rest < 0
    return low.select(quotient - 1, quotient), low.select(rest + count, rest)
