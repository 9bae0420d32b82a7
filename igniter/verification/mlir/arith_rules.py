"""The ops of `arith` and `index`, and their twins in `llvm`, on scalars and element by element."""

# Values of the interpreted program have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from xdsl.dialects import builtin
from xdsl.ir import Operation

from igniter.verification.mlir.machine import (
    Execute,
    Machine,
    attr_of,
    constant,
    int_of,
    name_of,
    require_attr,
    rule,
)
from igniter.verification.mlir.values import (
    POISON,
    Undefined,
    Unsupported,
    bits_of,
    element_of,
    elementwise,
    from_bits,
    is_array,
    rounding,
    signed,
    strict,
    to_bits,
    unsigned,
    wrapped,
)

IntegerFunction = Callable[[int, int, int], Any]
"""A function of two integers and their width."""


def division(function: Callable[[int, int], int], *, is_signed: bool) -> IntegerFunction:
    """Returns a division with the cases that MLIR leaves undefined."""

    def divide(a: int, b: int, bits: int) -> int:
        view = signed if is_signed else unsigned
        a, b = view(a, bits), view(b, bits)
        if b == 0:
            raise Undefined("a division by 0")
        if is_signed and b == -1 and a == -(1 << (bits - 1)):
            raise Undefined(f"the signed division of {a} by -1 overflows {bits} bits")
        return function(a, b)

    return divide


def _toward_zero(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def _shift(function: Callable[[int, int, int], int]) -> IntegerFunction:
    def run(a: int, b: int, bits: int) -> Any:
        by = unsigned(b, bits)
        return POISON if by >= bits else function(a, by, bits)

    return run


def _by_sign(function: Callable[[int, int], int], *, is_signed: bool) -> IntegerFunction:
    view = signed if is_signed else unsigned
    return lambda a, b, bits: function(view(a, bits), view(b, bits))


INTEGERS: dict[str, IntegerFunction] = {
    "add": lambda a, b, _: a + b,
    "sub": lambda a, b, _: a - b,
    "mul": lambda a, b, _: a * b,
    "and": lambda a, b, _: a & b,
    "or": lambda a, b, _: a | b,
    "xor": lambda a, b, _: a ^ b,
    "divs": division(_toward_zero, is_signed=True),
    "divu": division(lambda a, b: a // b, is_signed=False),
    "ceildivs": division(lambda a, b: -(-a // b), is_signed=True),
    "ceildivu": division(lambda a, b: -(-a // b), is_signed=False),
    "floordivs": division(lambda a, b: a // b, is_signed=True),
    "rems": division(lambda a, b: a - b * _toward_zero(a, b), is_signed=True),
    "remu": division(lambda a, b: a % b, is_signed=False),
    "maxs": _by_sign(max, is_signed=True),
    "mins": _by_sign(min, is_signed=True),
    "maxu": _by_sign(max, is_signed=False),
    "minu": _by_sign(min, is_signed=False),
    "shl": _shift(lambda a, by, _: a << by),
    "shrs": _shift(lambda a, by, bits: signed(a, bits) >> by),
    "shru": _shift(lambda a, by, bits: unsigned(a, bits) >> by),
}
"""Functions of two integers by the name of their `index` op."""

_ARITH_NAMES = {
    "arith.addi": "add",
    "arith.subi": "sub",
    "arith.muli": "mul",
    "arith.andi": "and",
    "arith.ori": "or",
    "arith.xori": "xor",
    "arith.divsi": "divs",
    "arith.divui": "divu",
    "arith.ceildivsi": "ceildivs",
    "arith.ceildivui": "ceildivu",
    "arith.floordivsi": "floordivs",
    "arith.remsi": "rems",
    "arith.remui": "remu",
    "arith.maxsi": "maxs",
    "arith.maxui": "maxu",
    "arith.minsi": "mins",
    "arith.minui": "minu",
    "arith.shli": "shl",
    "arith.shrsi": "shrs",
    "arith.shrui": "shru",
    "llvm.sdiv": "divs",
    "llvm.udiv": "divu",
    "llvm.srem": "rems",
    "llvm.urem": "remu",
    "llvm.lshr": "shru",
    "llvm.ashr": "shrs",
    "llvm.intr.smax": "maxs",
    "llvm.intr.smin": "mins",
    "llvm.intr.umax": "maxu",
    "llvm.intr.umin": "minu",
    **{f"llvm.{name}": name for name in ("add", "sub", "mul", "and", "or", "xor", "shl")},
    **{f"index.{name}": name for name in INTEGERS},
}


@rule(*_ARITH_NAMES)
def integer_binary(_: Machine, op: Operation) -> Execute:
    """Decodes a function of two integers, with its overflow flags."""
    kind = _ARITH_NAMES[name_of(op)]
    function, bits = INTEGERS[kind], bits_of(element_of(op.results[0].type))
    flags = str(attr_of(op, "overflowFlags") or "")
    nsw, nuw = "nsw" in flags, "nuw" in flags

    def scalar(a: Any, b: Any) -> Any:
        if b is POISON and ("div" in kind or "rem" in kind):
            raise Undefined("a division by poison")
        if a is POISON or b is POISON:
            return POISON
        exact = function(a, b, bits)
        if exact is POISON:
            return POISON
        if nsw and signed(exact, bits) != function(signed(a, bits), signed(b, bits), bits):
            return POISON
        if nuw and unsigned(exact, bits) != function(unsigned(a, bits), unsigned(b, bits), bits):
            return POISON
        return wrapped(exact, bits)

    return lambda a, b: elementwise(scalar, a, b)


@rule("arith.addui_extended", "arith.mulsi_extended", "arith.mului_extended")
def extended(_: Machine, op: Operation) -> Execute:
    """Decodes an addition with its carry, or a multiplication with its high half."""
    kind, bits = name_of(op), bits_of(element_of(op.results[0].type))
    view = signed if kind == "arith.mulsi_extended" else unsigned

    def low(a: int, b: int) -> int:
        return wrapped(a + b if kind == "arith.addui_extended" else a * b, bits)

    def high(a: int, b: int) -> int:
        a, b = view(a, bits), view(b, bits)
        return (a + b) >> bits if kind == "arith.addui_extended" else wrapped((a * b) >> bits, bits)

    return lambda a, b: (elementwise(strict(low), a, b), elementwise(strict(high), a, b))


# -- floats ------------------------------------------------------------------------------------------------------------


def divide(a: float, b: float) -> float:
    """Divides as IEEE 754 says."""
    if b != 0:
        try:
            return a / b
        except OverflowError:
            return math.copysign(math.inf, a) * math.copysign(1.0, b)
    if a == 0 or math.isnan(a):
        return math.nan
    return math.copysign(math.inf, a) * math.copysign(1.0, b)


def remainder(a: float, b: float) -> float:
    """Returns the remainder of a division that rounds toward zero."""
    if math.isnan(a) or math.isnan(b) or math.isinf(a) or b == 0:
        return math.nan
    return math.fmod(a, b)


def maximum(a: float, b: float) -> float:
    """Returns the maximum; NaN wins, and 0.0 is larger than -0.0."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    if a == b == 0:
        return a if math.copysign(1.0, a) > 0 else b
    return max(a, b)


def minimum(a: float, b: float) -> float:
    """Returns the minimum; NaN wins, and -0.0 is smaller than 0.0."""
    return -maximum(-a, -b)


def max_number(a: float, b: float) -> float:
    """Returns the maximum; a number wins over NaN."""
    return b if math.isnan(a) else a if math.isnan(b) else maximum(a, b)


def min_number(a: float, b: float) -> float:
    """Returns the minimum; a number wins over NaN."""
    return b if math.isnan(a) else a if math.isnan(b) else minimum(a, b)


FLOATS: dict[str, Callable[[float, float], float]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": divide,
    "rem": remainder,
    "maximum": maximum,
    "minimum": minimum,
    "maxnum": max_number,
    "minnum": min_number,
}

_FLOAT_NAMES = {
    **{f"arith.{name}f": name for name in FLOATS},
    **{f"llvm.f{name}": name for name in ("add", "sub", "mul", "div", "rem")},
    **{f"llvm.intr.{name}": name for name in ("maximum", "minimum", "maxnum", "minnum")},
}


def float_result(op: Operation) -> Callable[[float], Any]:
    """Returns the function from an exact result to the value: rounding, and poison that fast-math flags allow."""
    round_ = rounding(element_of(op.results[0].type))
    flags = str(attr_of(op, "fastmath") or attr_of(op, "fastmathFlags") or "")
    no_nan = "nnan" in flags or "fast>" in flags
    no_inf = "ninf" in flags or "fast>" in flags

    def result(exact: float) -> Any:
        value = round_(exact)
        if (no_nan and math.isnan(value)) or (no_inf and math.isinf(value)):
            return POISON
        return value

    return result


@rule(*_FLOAT_NAMES)
def float_binary(_: Machine, op: Operation) -> Execute:
    """Decodes a function of two floats."""
    function, result = FLOATS[_FLOAT_NAMES[name_of(op)]], float_result(op)
    scalar = strict(lambda a, b: result(function(a, b)))
    return lambda a, b: elementwise(scalar, a, b)


@rule("arith.negf", "llvm.fneg")
def negate(_: Machine, op: Operation) -> Execute:
    """Decodes a negation."""
    scalar = strict(lambda a: -a)
    return lambda a: elementwise(scalar, a)


# -- comparison and selection ------------------------------------------------------------------------------------------

_INTEGER_PREDICATES = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
_FLOAT_PREDICATES = [
    "false",
    "oeq",
    "ogt",
    "oge",
    "olt",
    "ole",
    "one",
    "ord",
    "ueq",
    "ugt",
    "uge",
    "ult",
    "ule",
    "une",
    "uno",
    "true",
]  # in the order of their numbers


@rule("arith.cmpi", "index.cmp", "llvm.icmp")
def compare_integers(_: Machine, op: Operation) -> Execute:
    """Decodes a comparison of integers."""
    attribute = require_attr(op, "predicate", "pred")
    if isinstance(attribute, builtin.IntegerAttr):
        name = _INTEGER_PREDICATES[int_of(attribute)]
    else:
        name = next((p for p in _INTEGER_PREDICATES if p in str(attribute).replace("cmp_predicate", "")), "")
    if not name:
        raise Unsupported(f"the comparison {attribute}")
    view = unsigned if name[0] == "u" else signed
    test, bits = _COMPARE[name[-2:]], bits_of(element_of(op.operands[0].type))
    scalar = strict(lambda a, b: int(test(view(a, bits), view(b, bits))))
    return lambda a, b: elementwise(scalar, a, b)


@rule("arith.cmpf", "llvm.fcmp")
def compare_floats(_: Machine, op: Operation) -> Execute:
    """Decodes a comparison of floats."""
    name = _FLOAT_PREDICATES[int_of(require_attr(op, "predicate"))]

    def scalar(a: Any, b: Any) -> Any:
        if a is POISON or b is POISON:
            return POISON
        unordered = math.isnan(a) or math.isnan(b)
        if name in ("true", "false"):
            return int(name == "true")
        if name in ("ord", "uno"):
            return int(unordered == (name == "uno"))
        return int(name[0] == "u") if unordered else int(_COMPARE[name[1:]](a, b))

    return lambda a, b: elementwise(scalar, a, b)


@rule("arith.select", "llvm.select")
def select(_: Machine, op: Operation) -> Execute:
    """Decodes a selection by one condition or by one per element."""

    def scalar(condition: Any, a: Any, b: Any) -> Any:
        return POISON if condition is POISON else a if condition else b

    def run(condition: Any, a: Any, b: Any) -> Any:
        if is_array(condition):
            return elementwise(scalar, condition, a, b)
        if condition is POISON and is_array(a):
            return elementwise(lambda _: POISON, a)
        return scalar(condition, a, b)

    return run


# -- constants and conversions -----------------------------------------------------------------------------------------


@rule("arith.constant", "index.constant", "index.bool.constant", "llvm.mlir.constant")
def constants(_: Machine, op: Operation) -> Execute:
    """Decodes a constant."""
    value = constant(require_attr(op, "value"), op.results[0].type)
    return lambda: value


@rule("index.sizeof")
def size_of_index(_: Machine, op: Operation) -> Execute:
    """Decodes the width of `index`."""
    return lambda: bits_of(op.results[0].type)


_SIGNED_CASTS = ("arith.extsi", "arith.index_cast", "index.casts", "llvm.sext")
_UNSIGNED_CASTS = ("arith.extui", "arith.index_castui", "index.castu", "llvm.zext")


@rule(*_SIGNED_CASTS, *_UNSIGNED_CASTS, "arith.trunci", "llvm.trunc")
def cast_integer(_: Machine, op: Operation) -> Execute:
    """Decodes a change of an integer's width."""
    source, target = bits_of(element_of(op.operands[0].type)), bits_of(element_of(op.results[0].type))
    view = unsigned if name_of(op) in _UNSIGNED_CASTS else signed
    flags = str(attr_of(op, "overflowFlags") or "")

    def convert(value: int) -> Any:
        made = wrapped(view(value, source), target)
        if "nsw" in flags and signed(made, target) != signed(value, source):
            return POISON
        if "nuw" in flags and unsigned(made, target) != unsigned(value, source):
            return POISON
        return made

    scalar = strict(convert)
    return lambda a: elementwise(scalar, a)


@rule("arith.sitofp", "arith.uitofp", "llvm.sitofp", "llvm.uitofp")
def integer_to_float(_: Machine, op: Operation) -> Execute:
    """Decodes a conversion of integers to floats."""
    bits, round_ = bits_of(element_of(op.operands[0].type)), rounding(element_of(op.results[0].type))
    view = signed if "sitofp" in name_of(op) else unsigned
    scalar = strict(lambda a: round_(view(a, bits)))
    return lambda a: elementwise(scalar, a)


@rule("arith.fptosi", "arith.fptoui", "llvm.fptosi", "llvm.fptoui")
def float_to_integer(_: Machine, op: Operation) -> Execute:
    """Decodes a conversion of floats to integers; a value out of range gives poison."""
    bits, is_signed = bits_of(element_of(op.results[0].type)), "fptosi" in name_of(op)
    least, most = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if is_signed else (0, (1 << bits) - 1)

    def convert(value: float) -> Any:
        if not math.isfinite(value) or not least <= math.trunc(value) <= most:
            return POISON
        return wrapped(math.trunc(value), bits)

    scalar = strict(convert)
    return lambda a: elementwise(scalar, a)


@rule("arith.extf", "arith.truncf", "llvm.fpext", "llvm.fptrunc")
def cast_float(_: Machine, op: Operation) -> Execute:
    """Decodes a change of a float's width."""
    if attr_of(op, "roundingmode") is not None:
        raise Unsupported("a rounding mode of 'arith.truncf'")
    scalar = strict(rounding(element_of(op.results[0].type)))
    return lambda a: elementwise(scalar, a)


@rule("arith.bitcast", "llvm.bitcast")
def bitcast(_: Machine, op: Operation) -> Execute:
    """Decodes a reinterpretation of bits."""
    source, target = element_of(op.operands[0].type), element_of(op.results[0].type)
    if bits_of(source) != bits_of(target):
        raise Unsupported("a bitcast between vectors of different lengths")
    scalar = strict(lambda a: from_bits(to_bits(a, source), target))
    return lambda a: elementwise(scalar, a)


@rule("llvm.freeze")
def freeze(_: Machine, op: Operation) -> Execute:
    """Decodes a freeze: poison becomes 0, one of the values that are allowed."""
    zero: Any = 0.0 if isinstance(element_of(op.results[0].type), builtin.AnyFloat) else 0
    return lambda a: elementwise(lambda x: zero if x is POISON else x, a)


@rule("builtin.unrealized_conversion_cast")
def conversion_cast(_: Machine, op: Operation) -> Execute:
    """Decodes a cast between dialects, for values that both represent alike."""
    kinds = [[str(v.type) for v in values] for values in (op.operands, op.results)]
    if len(kinds[0]) != 1 or len(kinds[1]) != 1:
        raise Unsupported("an unrealized conversion of several values")
    pair = [k[0].replace("index", "i64") for k in kinds]
    if pair[0] != pair[1]:
        raise Unsupported(f"an unrealized conversion of {kinds[0][0]} to {kinds[1][0]}")
    return lambda a: a
