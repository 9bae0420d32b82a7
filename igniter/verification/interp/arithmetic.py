"""The semantics of the ops of `arith` and `math`, on numpy scalars and arrays: `evaluate(op, operands)`.

Integers are signless here as in the IR: arrays of `int8`...`int64`, viewed as unsigned by unsigned ops; i1 is `bool`.
Undefined behaviour of the IR is an error or has x86's result: a division by zero raises, a float out of an integer's
range becomes the least integer.
"""

from __future__ import annotations

import math as libm
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

import numpy as np
from xdsl.dialects import arith
from xdsl.dialects.builtin import FloatAttr, IntegerAttr, VectorType
from xdsl.ir import Attribute, Operation

from igniter.dialects.loop.attrs import SMALL_FLOATS, Combiner
from igniter.dialects.loop.combiners import combining_op
from igniter.dialects.onnx.types import element_type
from igniter.errors import IgniterError

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Values: TypeAlias = Any
"""A numpy scalar or array; arrays of one nest broadcast against each other."""


FOLDS: dict[str, np.ufunc] = {
    "arith.addf": np.add,
    "arith.addi": np.add,
    "arith.andi": np.bitwise_and,
    "arith.maximumf": np.maximum,
    "arith.maxsi": np.maximum,
    "arith.maxui": np.maximum,
    "arith.minimumf": np.minimum,
    "arith.minsi": np.minimum,
    "arith.minui": np.minimum,
    "arith.mulf": np.multiply,
    "arith.muli": np.multiply,
    "arith.ori": np.bitwise_or,
    "arith.xori": np.bitwise_xor,
}
"""The folds by the op of the table of combiners, on arrays of the dtype of the elements, unsigned ones included."""


def fold_of(combiner: Combiner, element: Attribute) -> np.ufunc:
    """Returns the function for combining two elements of a type."""
    return FOLDS[combining_op(combiner, element).name]


class InterpreterError(IgniterError):
    """Raised for IR that cannot run: an op unknown to the interpreter, or undefined behaviour."""

    code = "IGN0601"


def stored_dtype(element: Attribute) -> np.dtype[Any]:
    """Returns the dtype of a tensor's elements in the interpreters: small floats are bits."""
    return np.dtype(np.int8) if isinstance(element, SMALL_FLOATS) else element_type(element).dtype


def scalar_dtype(scalar: Attribute) -> np.dtype[Any]:
    """Returns the dtype of a body's values of this type; of the elements, for a vector."""
    element = cast("VectorType[Attribute]", scalar).element_type if isinstance(scalar, VectorType) else scalar
    return element_type(element).dtype


def evaluate(op: Operation, operands: Sequence[Values]) -> Values:
    """Returns the value of an `arith` or `math` op with one result."""
    if isinstance(op, arith.ConstantOp):
        return constant(op)
    rule = _RULES.get(op.name)
    if rule is None:
        raise InterpreterError(f"the interpreter does not support '{op.name}'")
    with np.errstate(all="ignore"):
        return cast("Callable[..., Values]", rule)(op, *operands)


def constant(op: arith.ConstantOp) -> Values:
    """Returns the value of an `arith.constant` of a scalar type."""
    value = op.value
    dtype = scalar_dtype(op.result.type)
    if isinstance(value, FloatAttr):
        return dtype.type(value.value.data)
    if not isinstance(value, IntegerAttr):
        raise InterpreterError(f"the interpreter does not support constants like {value}")
    number = value.value.data
    if dtype == np.bool_:
        return np.bool_(number != 0)
    bits = dtype.itemsize * 8
    return np.array(number & ((1 << bits) - 1), dtype=f"u{dtype.itemsize}").view(dtype)[()]


Unary: TypeAlias = Callable[[Values], Values]
Binary: TypeAlias = Callable[[Values, Values], Values]
Function: TypeAlias = np.ufunc | Unary | Binary | Callable[[Values, Values, Values], Values]
Rule: TypeAlias = (
    Callable[[Operation, Values], Values]
    | Callable[[Operation, Values, Values], Values]
    | Callable[[Operation, Values, Values, Values], Values]
)


def unsigned(x: Values) -> Values:
    """Returns the same bits, as an unsigned integer."""
    array = np.asarray(x)
    return array if array.dtype == np.bool_ else array.view(f"u{array.dtype.itemsize}")


def signed(x: Values) -> Values:
    """Returns the same bits, as a signed integer."""
    array = np.asarray(x)
    return array if array.dtype.kind != "u" else array.view(f"i{array.dtype.itemsize}")


def _plain(function: Function) -> Rule:
    call = cast("Callable[..., Values]", function)

    def rule(op: Operation, *xs: Values) -> Values:
        return call(*xs)

    return rule


def _on_unsigned(function: np.ufunc) -> Rule:
    def rule(op: Operation, *xs: Values) -> Values:
        return signed(function(*map(unsigned, xs)))

    return rule


def _float(function: Function) -> Rule:
    """Returns the rule of a float function that keeps the dtype, computed in f32 for narrower ones."""
    call = cast("Callable[..., Values]", function)

    def rule(op: Operation, *xs: Values) -> Values:
        dtype = np.asarray(xs[0]).dtype
        if dtype.itemsize >= 4:
            return call(*xs)
        return call(*(np.asarray(x, np.float32) for x in xs)).astype(dtype)

    return rule


def _nonzero(divisor: Values) -> None:
    if (np.asarray(divisor) == 0).any():
        raise InterpreterError("integer division by zero")


def _truncated_quotient(a: Values, b: Values) -> Values:
    _nonzero(b)
    quotient = np.floor_divide(a, b)
    return quotient + ((np.remainder(a, b) != 0) & ((np.asarray(a) < 0) != (np.asarray(b) < 0))).astype(quotient.dtype)


def _divsi(op: Operation, a: Values, b: Values) -> Values:
    return np.asarray(_truncated_quotient(a, b)).astype(np.asarray(a).dtype)


def _remsi(op: Operation, a: Values, b: Values) -> Values:
    _nonzero(b)
    return np.fmod(a, b)


def _floordivsi(op: Operation, a: Values, b: Values) -> Values:
    _nonzero(b)
    return np.floor_divide(a, b)


def _divui(op: Operation, a: Values, b: Values) -> Values:
    _nonzero(b)
    return signed(np.floor_divide(unsigned(a), unsigned(b)))


def _remui(op: Operation, a: Values, b: Values) -> Values:
    _nonzero(b)
    return signed(np.remainder(unsigned(a), unsigned(b)))


def _shift(function: np.ufunc, view: Unary) -> Rule:
    def rule(op: Operation, a: Values, b: Values) -> Values:
        bits = np.asarray(a).dtype.itemsize * 8
        if (unsigned(b) >= bits).any():
            raise InterpreterError(f"'{op.name}' by {bits} or more")
        return signed(function(view(a), view(b)))

    return rule


_CMPI: dict[int, Binary] = {
    0: np.equal,
    1: np.not_equal,
    2: np.less,
    3: np.less_equal,
    4: np.greater,
    5: np.greater_equal,
    6: lambda a, b: np.less(unsigned(a), unsigned(b)),
    7: lambda a, b: np.less_equal(unsigned(a), unsigned(b)),
    8: lambda a, b: np.greater(unsigned(a), unsigned(b)),
    9: lambda a, b: np.greater_equal(unsigned(a), unsigned(b)),
}

_ORDERED: tuple[Binary, ...] = (
    lambda a, b: np.zeros(np.broadcast(a, b).shape, bool),
    np.equal,
    np.greater,
    np.greater_equal,
    np.less,
    np.less_equal,
    lambda a, b: (a < b) | (a > b),
    lambda a, b: np.ones(np.broadcast(a, b).shape, bool),
)


def _predicate(op: Operation) -> int:
    predicate = op.properties["predicate"]
    assert isinstance(predicate, IntegerAttr)
    return predicate.value.data


def _cmpi(op: Operation, a: Values, b: Values) -> Values:
    return _CMPI[_predicate(op)](a, b)


def _cmpf(op: Operation, a: Values, b: Values) -> Values:
    predicate = _predicate(op)
    unordered = np.isnan(a) | np.isnan(b)
    # 0-7 are false for a NaN operand, 8-15 are true: ueq (8) corresponds to oeq (1), ult (11) to olt (4) ...
    if predicate < 8:
        return _ORDERED[predicate](a, b) & ~unordered
    with_ordered = {8: 1, 9: 2, 10: 3, 11: 4, 12: 5, 13: 6, 14: 0, 15: 7}[predicate]
    return cast("Array", _ORDERED[with_ordered](a, b)) | unordered


def _select(op: Operation, condition: Values, a: Values, b: Values) -> Values:
    return cast("Values", np.where(condition, a, b))


def _result_dtype(op: Operation) -> np.dtype[Any]:
    return scalar_dtype(op.results[0].type)


def _convert(view: Unary) -> Rule:
    def rule(op: Operation, x: Values) -> Values:
        return signed(view(x).astype(_result_dtype(op)))

    return rule


def _dot_bytes(op: Operation, *args: Values) -> Values:
    """Returns the wrapping sum of products of four unsigned bytes and four signed ones."""
    result = np.asarray(args[-1], np.int64)
    for a, b in zip(args[:-1:2], args[1::2], strict=True):
        for place in range(0, 32, 8):
            unsigned_byte = (np.asarray(a, np.int64) >> place) & 0xFF
            signed_byte = (((np.asarray(b, np.int64) >> place) & 0xFF) ^ 0x80) - 0x80
            result = result + unsigned_byte * signed_byte
    return result.astype(np.int32)[()]


def _bitcast(op: Operation, x: Values) -> Values:
    return np.asarray(x).view(_result_dtype(op))


def _extend_signed(op: Operation, x: Values) -> Values:
    made = np.asarray(x).astype(_result_dtype(op))
    return -made if np.asarray(x).dtype == np.bool_ else made


def _truncate(op: Operation, x: Values) -> Values:
    dtype = _result_dtype(op)
    return (np.asarray(x) & 1).astype(bool) if dtype == np.bool_ else np.asarray(x).astype(dtype)


def _to_integer(least: Callable[[np.dtype[Any]], int], is_unsigned: bool) -> Rule:
    def rule(op: Operation, x: Values) -> Values:
        dtype = _result_dtype(op)
        bits = dtype.itemsize * 8
        first, end = (0.0, 2.0**bits) if is_unsigned else (-(2.0 ** (bits - 1)), 2.0 ** (bits - 1))
        whole = np.trunc(np.asarray(x, np.float64))
        fits = (whole >= first) & (whole < end)
        safe = np.where(fits, whole, 0.0).astype(f"u{dtype.itemsize}" if is_unsigned else dtype)
        return np.where(fits, signed(safe), np.array(least(dtype), dtype))

    return rule


_erf_elements = np.frompyfunc(libm.erf, 1, 1)


def _erf(x: Values) -> Values:
    array = np.asarray(x)
    return np.asarray(_erf_elements(array.astype(np.float64))).astype(array.dtype)


def _powi(op: Operation, a: Values, b: Values) -> Values:
    return np.power(a, np.maximum(b, 0)) if (np.asarray(b) >= 0).all() else _power_of_negative(a, b)


def _power_of_negative(a: Values, b: Values) -> Values:
    base = np.asarray(a)
    inverse = np.where(base == 1, 1, np.where(base == -1, np.where(np.asarray(b) % 2 == 0, 1, -1), 0))
    return np.where(np.asarray(b) >= 0, np.power(base, np.maximum(b, 0)), inverse).astype(base.dtype)


def _addi(a: Values, b: Values) -> Values:
    return np.logical_xor(a, b) if np.asarray(a).dtype == np.bool_ else np.add(a, b)


def _subi(a: Values, b: Values) -> Values:
    return np.logical_xor(a, b) if np.asarray(a).dtype == np.bool_ else np.subtract(a, b)


def _pow(a: Values, b: Values) -> Values:
    # For a scalar exponent of 0.5 numpy takes a square root: it differs from the power for -0 and -inf.
    base, exponent = np.broadcast_arrays(np.atleast_1d(a), b)
    return np.power(base, exponent.copy()).reshape(np.broadcast_shapes(np.shape(a), np.shape(b)))


def _rsqrt(x: Values) -> Values:
    return 1 / np.sqrt(x)


def _fma(a: Values, b: Values, c: Values) -> Values:
    return a * b + c


def _bit_count(op: Operation, x: Values) -> Values:
    return np.bitwise_count(unsigned(x)).astype(np.asarray(x).dtype)


_RULES: dict[str, Rule] = {
    "arith.addf": _plain(np.add),
    "arith.subf": _plain(np.subtract),
    "arith.mulf": _plain(np.multiply),
    "arith.divf": _plain(np.divide),
    "arith.negf": _plain(np.negative),
    "arith.maximumf": _plain(np.maximum),
    "arith.minimumf": _plain(np.minimum),
    "arith.maxnumf": _plain(np.fmax),
    "arith.minnumf": _plain(np.fmin),
    "arith.addi": _plain(_addi),
    "arith.subi": _plain(_subi),
    "arith.muli": _plain(np.multiply),
    "arith.divsi": _divsi,
    "arith.remsi": _remsi,
    "arith.divui": _divui,
    "arith.remui": _remui,
    "arith.floordivsi": _floordivsi,
    "arith.maxsi": _plain(np.maximum),
    "arith.minsi": _plain(np.minimum),
    "arith.maxui": _on_unsigned(np.maximum),
    "arith.minui": _on_unsigned(np.minimum),
    "arith.andi": _plain(np.bitwise_and),
    "arith.ori": _plain(np.bitwise_or),
    "arith.xori": _plain(np.bitwise_xor),
    "arith.shli": _shift(np.left_shift, signed),
    "arith.shrui": _shift(np.right_shift, unsigned),
    "arith.shrsi": _shift(np.right_shift, signed),
    "arith.cmpi": _cmpi,
    "arith.cmpf": _cmpf,
    "arith.select": _select,
    "arith.bitcast": _bitcast,
    "loop.dot_bytes": _dot_bytes,
    "arith.extf": _convert(np.asarray),
    "arith.truncf": _convert(np.asarray),
    "arith.sitofp": _convert(np.asarray),
    "arith.uitofp": _convert(unsigned),
    "arith.fptosi": _to_integer(lambda dtype: int(np.iinfo(dtype).min), is_unsigned=False),
    "arith.fptoui": _to_integer(lambda dtype: -1, is_unsigned=True),
    "arith.extsi": _extend_signed,
    "arith.extui": _convert(unsigned),
    "arith.trunci": _truncate,
    "math.absf": _plain(np.abs),
    "math.absi": _plain(np.abs),
    "math.acos": _float(np.arccos),
    "math.acosh": _float(np.arccosh),
    "math.asin": _float(np.arcsin),
    "math.asinh": _float(np.arcsinh),
    "math.atan": _float(np.arctan),
    "math.atan2": _float(np.arctan2),
    "math.atanh": _float(np.arctanh),
    "math.cbrt": _float(np.cbrt),
    "math.ceil": _float(np.ceil),
    "math.copysign": _float(np.copysign),
    "math.cos": _float(np.cos),
    "math.cosh": _float(np.cosh),
    "math.ctpop": _bit_count,
    "math.erf": _float(_erf),
    "math.exp": _float(np.exp),
    "math.exp2": _float(np.exp2),
    "math.expm1": _float(np.expm1),
    "math.floor": _float(np.floor),
    "math.fma": _float(_fma),
    "math.ipowi": _powi,
    "math.log": _float(np.log),
    "math.log10": _float(np.log10),
    "math.log1p": _float(np.log1p),
    "math.log2": _float(np.log2),
    "math.powf": _float(_pow),
    "math.roundeven": _float(np.rint),
    "math.rsqrt": _float(_rsqrt),
    "math.sin": _float(np.sin),
    "math.sinh": _float(np.sinh),
    "math.sqrt": _float(np.sqrt),
    "math.tan": _float(np.tan),
    "math.tanh": _float(np.tanh),
    "math.trunc": _float(np.trunc),
}
