"""Functions of CUDA's device library for kernels: its symbols, and Triton's names for them.

Each maps floats to floats of the same width; `igniter.backends.triton.interpreter` computes them with NumPy.
"""

from __future__ import annotations

from xdsl.dialects.builtin import Float64Type
from xdsl.ir import Attribute

from igniter.errors import IgniterError

FUNCTIONS: dict[str, str] = {
    "math.acos": "acos",
    "math.acosh": "acosh",
    "math.asin": "asin",
    "math.asinh": "asinh",
    "math.atan": "atan",
    "math.atan2": "atan2",
    "math.atanh": "atanh",
    "math.cbrt": "cbrt",
    "math.copysign": "copysign",
    "math.cosh": "cosh",
    "math.expm1": "expm1",
    "math.log10": "log10",
    "math.log1p": "log1p",
    "math.powf": "pow",
    "math.round": "round",
    "math.roundeven": "rint",
    "math.sinh": "sinh",
    "math.tan": "tan",
    "math.tanh": "tanh",
    "math.trunc": "trunc",
    "arith.remf": "fmod",
}
"""The functions for ops, by the name of the op."""

PREFIX = "__nv_"


def symbol_of(function: str, element: Attribute) -> str:
    """Returns the symbol of a function for f32 or f64."""
    return f"{PREFIX}{function}{'' if isinstance(element, Float64Type) else 'f'}"


def python_name(symbol: str) -> str:
    """Returns Triton's name of a function by its symbol; raises `IgniterError` for an unknown symbol."""
    name = symbol.removeprefix(PREFIX)
    known = set(FUNCTIONS.values())
    found = name if name in known else name.removesuffix("f")
    if found not in known or not symbol.startswith(PREFIX):
        raise IgniterError(f"the device library has no function '{symbol}' that Igniter calls")
    return found
