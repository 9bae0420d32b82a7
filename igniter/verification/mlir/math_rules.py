"""The ops of `math`, and calls of the C library's functions of the same names."""

# Values of the interpreted program have no static type.
# pyright: reportUnknownLambdaType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from xdsl.ir import Operation

from igniter.verification.mlir.arith_rules import divide, float_result
from igniter.verification.mlir.machine import Execute, Machine, name_of, rule
from igniter.verification.mlir.values import POISON, bits_of, element_of, elementwise, signed, strict, unsigned, wrapped


def _ieee(function: Callable[..., Any]) -> Callable[..., float]:
    """Returns a function of NumPy without its warnings, on Python's floats."""

    def run(*values: float) -> float:
        with np.errstate(all="ignore"):
            return float(function(*map(np.float64, values)))

    return run


def _round_away(value: float) -> float:
    if not math.isfinite(value):
        return value
    return math.copysign(math.floor(abs(value) + 0.5) if abs(value) < 1 << 52 else abs(value), value)


def _cbrt(value: float) -> float:
    return float(np.cbrt(value))


def fused_multiply_add(a: float, b: float, c: float) -> float:
    """Returns `a * b + c`. Products of up to 26 bits each are exact in a double, so one rounding is left."""
    return a * b + c


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "absf": abs,
    "ceil": _ieee(np.ceil),
    "floor": _ieee(np.floor),
    "trunc": _ieee(np.trunc),
    "roundeven": _ieee(np.rint),
    "round": _round_away,
    "sqrt": _ieee(np.sqrt),
    "rsqrt": lambda a: divide(1.0, _ieee(np.sqrt)(a)),
    "cbrt": _cbrt,
    "exp": _ieee(np.exp),
    "exp2": _ieee(np.exp2),
    "expm1": _ieee(np.expm1),
    "log": _ieee(np.log),
    "log2": _ieee(np.log2),
    "log10": _ieee(np.log10),
    "log1p": _ieee(np.log1p),
    "sin": _ieee(np.sin),
    "cos": _ieee(np.cos),
    "tan": _ieee(np.tan),
    "asin": _ieee(np.arcsin),
    "acos": _ieee(np.arccos),
    "atan": _ieee(np.arctan),
    "sinh": _ieee(np.sinh),
    "cosh": _ieee(np.cosh),
    "tanh": _ieee(np.tanh),
    "asinh": _ieee(np.arcsinh),
    "acosh": _ieee(np.arccosh),
    "atanh": _ieee(np.arctanh),
    "erf": math.erf,
    "atan2": _ieee(np.arctan2),
    "powf": _ieee(np.power),
    "copysign": math.copysign,
    "fma": fused_multiply_add,
}

_LIBRARY = {"absf": "fabs", "powf": "pow"}
LIBRARY: dict[str, Callable[..., Any]] = {
    **{_LIBRARY.get(name, name): function for name, function in FUNCTIONS.items()},
    **{f"{_LIBRARY.get(name, name)}f": function for name, function in FUNCTIONS.items()},
}
"""The functions of the C library, which a lowering calls by name."""


@rule(*(f"math.{name}" for name in FUNCTIONS), "vector.fma", "llvm.intr.fmuladd", "llvm.intr.fma", "llvm.intr.exp")
def functions(_: Machine, op: Operation) -> Execute:
    """Decodes a function of floats."""
    name = name_of(op).rpartition(".")[2]
    function, result = FUNCTIONS["fma" if name == "fmuladd" else name], float_result(op)
    scalar = strict(lambda *a: result(function(*a)))
    return lambda *a: elementwise(scalar, *a)


@rule("math.fpowi")
def float_power(_: Machine, op: Operation) -> Execute:
    """Decodes a float to the power of an integer."""
    result, power = float_result(op), _ieee(np.power)
    bits = bits_of(element_of(op.operands[1].type))
    scalar = strict(lambda a, n: result(power(a, float(signed(n, bits)))))
    return lambda a, n: elementwise(scalar, a, n)


@rule("math.isnan", "math.isinf", "math.isfinite")
def classes(_: Machine, op: Operation) -> Execute:
    """Decodes a test of a float's class."""
    test = getattr(math, name_of(op).rpartition(".")[2])
    scalar = strict(lambda a: int(test(a)))
    return lambda a: elementwise(scalar, a)


def _leading_zeros(value: int, bits: int) -> int:
    return bits - unsigned(value, bits).bit_length()


def _trailing_zeros(value: int, bits: int) -> int:
    value = unsigned(value, bits)
    return bits if value == 0 else (value & -value).bit_length() - 1


_INTEGER: dict[str, Callable[[int, int], Any]] = {
    "absi": lambda a, bits: abs(signed(a, bits)),
    "ctlz": _leading_zeros,
    "cttz": _trailing_zeros,
    "ctpop": lambda a, bits: unsigned(a, bits).bit_count(),
}


@rule(*(f"math.{name}" for name in _INTEGER))
def integer_functions(_: Machine, op: Operation) -> Execute:
    """Decodes a function of one integer."""
    function, bits = _INTEGER[name_of(op).rpartition(".")[2]], bits_of(element_of(op.operands[0].type))
    scalar = strict(lambda a: wrapped(function(a, bits), bits))
    return lambda a: elementwise(scalar, a)


@rule("math.ipowi")
def integer_power(_: Machine, op: Operation) -> Execute:
    """Decodes an integer to the power of an integer; a negative power is 0 but for bases of 1 and -1."""
    bits = bits_of(element_of(op.operands[0].type))

    def power(a: Any, n: Any) -> Any:
        if a is POISON or n is POISON:
            return POISON
        base, times = signed(a, bits), signed(n, bits)
        if times < 0:
            if base == 0:
                return POISON
            return 1 if base == 1 else wrapped(base**-times, bits) if base == -1 else 0
        return wrapped(pow(base, times, 1 << bits), bits)

    return lambda a, n: elementwise(power, a, n)
