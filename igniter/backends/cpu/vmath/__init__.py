"""Elementary functions as LLVM IR: our own polynomials, no libm, so that objects need no external symbols.

`call` emits a function for a scalar or any vector: the short ones (exp, tanh, erf, log ...) inline, the long ones as an
internal function of the module. f32 has its own code where speed matters; the rest of f32 is computed in f64 and
rounded, which leaves 0.51 ulp. The 16-bit floats are computed in f32. Each function's docstring states its bound.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from igniter.backends.cpu.builder import Builder, Value, flatten
from igniter.backends.cpu.llvm_types import Type
from igniter.backends.cpu.vmath import conversion, exponential, logarithm, special, trigonometry
from igniter.backends.cpu.vmath.conversion import extend, truncate
from igniter.backends.cpu.vmath.num import Num

Formula = Callable[..., Num]

_NAMES = """
    acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh erf exp exp2 expm1 floor log log10 log1p log2 round
    roundeven rsqrt sin sinh sqrt tan tanh trunc
"""
FUNCTIONS: dict[str, str] = {f"math.{name}": name for name in _NAMES.split()} | {"math.powf": "pow"}
"""The functions of floats among the ops of `math`, with their names here."""


def _rsqrt(x: Num) -> Num:
    """Returns 1/sqrt(x), in two correctly rounded steps. 1.5 ulp."""
    return 1.0 / x.sqrt()


_INLINE: dict[str, Formula] = {
    "acos": trigonometry.acos32,
    "asin": trigonometry.asin32,
    "atan": trigonometry.atan32,
    "ceil": conversion.ceil,
    "erf": special.erf,
    "exp": exponential.exp,
    "exp2": exponential.exp2,
    "exp_nonpositive": exponential.exp_nonpositive,
    "exp_saturating": exponential.exp_saturating,
    "expm1": exponential.expm1,
    "floor": conversion.floor,
    "log": logarithm.log,
    "round": conversion.round_away,
    "roundeven": conversion.round_even,
    "rsqrt": _rsqrt,
    "sqrt": Num.sqrt,
    "tanh": exponential.tanh,
    "trunc": conversion.trunc,
}
"""The inline formulas, for f32; for f64 those of `_SHORT64`."""

_SHORT64 = frozenset(
    (
        "ceil",
        "exp",
        "exp2",
        "exp_nonpositive",
        "exp_saturating",
        "floor",
        "round",
        "roundeven",
        "rsqrt",
        "sqrt",
        "trunc",
    )
)

_DOUBLE: dict[str, Formula] = {
    "acos": trigonometry.acos,
    "acosh": logarithm.acosh,
    "asin": trigonometry.asin,
    "asinh": logarithm.asinh,
    "atan": trigonometry.atan,
    "atan2": trigonometry.atan2,
    "atanh": logarithm.atanh,
    "cbrt": special.cbrt,
    "cos": trigonometry.cos,
    "cosh": exponential.cosh,
    "log10": logarithm.log10,
    "log1p": logarithm.log1p,
    "log2": logarithm.log2,
    "pow": logarithm.pow64,
    "sin": trigonometry.sin,
    "sinh": exponential.sinh,
    "tan": trigonometry.tan,
}

_FOR32: dict[str, Formula] = {
    "atan2": partial(trigonometry.atan2, short=True),
    "cos": partial(trigonometry.cos, short=True),
    "pow": logarithm.pow_for32,
    "sin": partial(trigonometry.sin, short=True),
    "tan": partial(trigonometry.tan, short=True),
}
"""The shorter formulas in f64 for an argument converted from f32."""


def call(b: Builder, name: str, args: list[Value]) -> Value:
    """Emits the function `name` of `FUNCTIONS`; the result has the one type of the arguments."""
    t = args[0].type
    if t.bits == 16:
        wide = [extend(b, a, t.with_element("float")) for a in args]
        return truncate(b, call(b, name, wide), t)
    if name in _INLINE and (t.bits == 32 or name in _SHORT64):
        return _apply(b, _INLINE[name], args)
    helper = f"igniter.{name}.{t.mangled}"
    b.module.add_helper(helper, lambda: _function(b, helper, name, t, len(args)))
    arguments = ", ".join(a.typed for a in args)
    return b.emit(t, f"call {t} @{helper}({arguments})")


def _apply(b: Builder, formula: Formula, args: list[Value]) -> Value:
    return formula(*[Num(b, a) for a in args]).v


def _function(b: Builder, helper: str, name: str, t: Type, count: int) -> str:
    """Returns the text of an internal function."""
    inner = Builder(b.module)
    parameters = [Value(t, f"%a{i}") for i in range(count)]
    if t.bits == 32:
        wide = [extend(inner, p, t.with_element("double")) for p in parameters]
        formula = _FOR32.get(name) or _DOUBLE[name]
        result = truncate(inner, _apply(inner, formula, wide), t)
    else:
        result = _apply(inner, _DOUBLE.get(name) or _INLINE[name], parameters)
    header = f"define internal {t} @{helper}({', '.join(p.typed for p in parameters)}) noinline #0 {{"
    return "\n".join([header, "entry:", *flatten(inner.lines), f"  ret {result.typed}", "}", ""])


def max_number(b: Builder, x: Value, y: Value) -> Value:
    """Returns the larger operand, and the number if the other is NaN."""
    return b.binary_intrinsic("maxnum", x, y)


def min_number(b: Builder, x: Value, y: Value) -> Value:
    """Returns the smaller operand, and the number if the other is NaN."""
    return b.binary_intrinsic("minnum", x, y)


def fma(b: Builder, x: Value, y: Value, z: Value) -> Value:
    """Returns x*y + z, rounded once."""
    return conversion.fma(Num(b, x), Num(b, y), Num(b, z)).v


__all__ = ["FUNCTIONS", "call", "extend", "fma", "max_number", "min_number", "truncate"]
