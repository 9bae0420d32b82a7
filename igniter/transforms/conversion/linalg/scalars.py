"""Ops of `arith` and `math` on the scalars of a body.

Floats of 16 bits are computed in f32 and rounded after every op, as LLVM does. Where MLIR has undefined behaviour (a
division by zero, a shift by the width, a float beyond an integer's range), the result is some value, and nothing traps.
Ops without code in every backend become others of the same values.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import IndexType, IntegerType, Signedness, i1, i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import IRDLOperation

from igniter.dialects.loop.attrs import is_float, is_storable
from igniter.dialects.onnx.lowering.builder import Nest
from igniter.dialects.onnx.lowering.scalar import Scalar, int_bits
from igniter.dialects.sym.expr import Call
from igniter.dialects.sym.lowering import Lowering
from igniter.transforms.conversion.linalg.errors import refused

Rule = Callable[[Operation, Sequence[Scalar], Attribute], Scalar]

SAME_FLOATS = frozenset(
    f"arith.{n}" for n in ("addf", "subf", "mulf", "divf", "negf", "maximumf", "minimumf", "maxnumf", "minnumf")
) | frozenset(
    f"math.{n}"
    for n in (
        *("absf", "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos"),
        *("cosh", "erf", "exp", "exp2", "expm1", "floor", "fma", "log", "log10", "log1p", "log2", "powf"),
        *("roundeven", "rsqrt", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
    )
)
"""The functions of floats that stay as they are."""
SAME_INTEGERS = frozenset(f"arith.{n}" for n in ("addi", "subi", "muli", "andi", "ori", "xori")) | frozenset(
    ("arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui", "math.absi", "math.ctpop", "math.ipowi")
)
_BITS = {
    **dict.fromkeys(("arith.addi", "arith.subi"), arith.XOrIOp),
    **dict.fromkeys(("arith.muli", "arith.maxsi", "arith.minui"), arith.AndIOp),
    **dict.fromkeys(("arith.minsi", "arith.maxui"), arith.OrIOp),
}
"""The integer functions of i1, whose signed values are 0 and -1."""


def body_type(op: Operation, kind: Attribute) -> Attribute:
    """Returns the type of a scalar in a body: an index is an i64. Raises `LinalgError` for a type without code."""
    if isinstance(kind, IndexType):
        return i64
    if not is_storable(kind) or (not is_float(kind) and not int_bits(kind)):
        raise refused(op, f"no code for elements of type {kind}; use f16, bf16, f32, f64, or integers of 1 to 64 bits")
    return kind


def compute(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    """Returns the result of an op, of the body type `kind`."""
    name = op.name
    if name in SAME_FLOATS:
        return _on_floats(op, args, kind)
    if name in SAME_INTEGERS:
        return _on_integers(op, args, kind)
    rule = _RULES.get(name)
    if rule is None:
        raise refused(op, "it has no lowering; rewrite it with ops of arith and math, or move it out of the function")
    return rule(op, args, kind)


@cache
def _defaults(cls: type[IRDLOperation]) -> Mapping[str, Attribute]:
    """Returns the properties with a default: flags that relax nothing."""
    found = cls.get_irdl_definition().properties.items()
    return {name: each.default_value for name, each in found if each.default_value is not None}


def _made(cls: type[IRDLOperation], *args: Scalar) -> Scalar:
    """Appends an op whose result has the type of its first operand."""
    first = args[0]
    made = cls.create(
        operands=[a.value for a in args], result_types=[first.value.type], properties=dict(_defaults(cls))
    )
    return first.nest.append(made, first.element)


def _on_floats(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    wide = [a.widened() for a in args]
    return _made(cast("type[IRDLOperation]", type(op)), *wide).to(kind)


def _on_integers(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    cls = _BITS.get(op.name) if kind == i1 else None
    return _made(cls or cast("type[IRDLOperation]", type(op)), *args)


def _unsigned(x: Scalar) -> Scalar:
    """Returns the same bits, taken as an unsigned integer."""
    return Scalar(x.nest, x.value, IntegerType(int_bits(x.element), Signedness.UNSIGNED))


def _signless(x: Scalar) -> Scalar:
    return Scalar(x.nest, x.value, IntegerType(int_bits(x.element)))


def _divide(unsigned: bool, rounding: str) -> Rule:
    def rule(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
        a, b = (_unsigned(x) if unsigned else x for x in args)
        if rounding == "rem":
            return _signless(a.rem(b))
        quotient = a / b
        if rounding == "trunc":
            return _signless(quotient)
        rest = a.rem(b)
        inexact = rest.ne(0)
        if unsigned:
            return _signless(inexact.select(quotient + 1, quotient))
        apart = (rest < 0) ^ (b < 0)
        if rounding == "floor":
            return (inexact & apart).select(quotient - 1, quotient)
        return (inexact & ~apart).select(quotient + 1, quotient)

    return rule


def _shift(name: str) -> Rule:
    def rule(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
        a, b = args
        if name == "shli":
            return a.shift_left(b)
        return _signless((_unsigned(a) if name == "shrui" else a).shift_right(_unsigned(b) if name == "shrui" else b))

    return rule


def _cmpf(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    assert isinstance(op, arith.CmpfOp)
    a, b = (x.widened() for x in args)
    return a.nest.append(arith.CmpfOp(a.value, b.value, op.predicate.value.data), i1)


def _cmpi(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    if isinstance(op, arith.CmpiOp):
        predicate: int | str = op.predicate.value.data
    else:
        predicate = str(getattr(op.properties["pred"], "data", ""))
    a, b = args
    return a.nest.append(arith.CmpiOp(a.value, b.value, predicate), i1)


def _select(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    condition, a, b = args
    return condition.select(a, b)


def _extend(signed: bool) -> Rule:
    def rule(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
        (x,) = args
        if int_bits(x.element) >= int_bits(kind):
            return _narrow(op, args, kind)
        if not signed:
            return _signless(_unsigned(x).to(kind))
        return x.nest.const(0, kind) - x.to(kind) if x.element == i1 else x.to(kind)

    return rule


def _narrow(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    (x,) = args
    if int_bits(x.element) == int_bits(kind):
        return x
    return x.nest.append(arith.TruncIOp(x.value, cast(IntegerType, kind)), kind)


def _from_integer(signed: bool) -> Rule:
    def rule(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
        (x,) = args
        if not signed:
            return _unsigned(x).to(kind)
        return (x.nest.const(0, i64) - x.to(i64)).to(kind) if x.element == i1 else x.to(kind)

    return rule


def _to_integer(signed: bool) -> Rule:
    def rule(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
        (x,) = args
        width = int_bits(kind)
        if width == 1:
            # Defined for 0 and for 1, or -1, only.
            return x.to(i64).ne(0)
        return _signless(x.to(kind if signed else IntegerType(width, Signedness.UNSIGNED)))

    return rule


def _cast_float(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    return args[0].to(kind)


def _bitcast(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    return args[0].bits(kind)


def _round(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    """Rounds half away from zero; the sign of a zero stays."""
    x = args[0].widened()
    whole = x.math("trunc")
    up = (x - whole).abs() >= 0.5
    away = up.select(x.nest.const(1.0, x.element), 0.0)
    return (whole.abs() + away).copysign(x).to(kind)


def _fpowi(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    base, power = args
    x = base.widened()
    return x.pow(power.to(x.element)).to(kind)


def _leading_zeros(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    x = _unsigned(args[0])
    shift = 1
    while shift < int_bits(kind):
        x = x | x.shift_right(shift)
        shift *= 2
    return _made(math.CtPopOp, _signless(~x))


def _trailing_zeros(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    (x,) = args
    return _made(math.CtPopOp, ~x & (x - 1))


def _is_nan(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    return args[0].is_nan()


def _is_infinite(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    return args[0].abs().eq(float("inf"))


def _is_finite(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    return args[0].abs() < float("inf")


def _clamp(op: Operation, args: Sequence[Scalar], kind: Attribute) -> Scalar:
    x, low, high = args
    return x.maximum(low).minimum(high).to(kind)


_ON_VALUES: dict[str, Rule] = {
    "arith.divsi": _divide(False, "trunc"),
    "arith.divui": _divide(True, "trunc"),
    "arith.remsi": _divide(False, "rem"),
    "arith.remui": _divide(True, "rem"),
    "arith.floordivsi": _divide(False, "floor"),
    "arith.ceildivsi": _divide(False, "ceil"),
    "arith.ceildivui": _divide(True, "ceil"),
    "arith.shli": _shift("shli"),
    "arith.shrsi": _shift("shrsi"),
    "arith.shrui": _shift("shrui"),
    "arith.cmpf": _cmpf,
    "arith.cmpi": _cmpi,
    "arith.select": _select,
    "arith.extf": _cast_float,
    "arith.truncf": _cast_float,
    "arith.extsi": _extend(True),
    "arith.extui": _extend(False),
    "arith.index_cast": _extend(True),
    "arith.index_castui": _extend(False),
    "arith.trunci": _narrow,
    "arith.sitofp": _from_integer(True),
    "arith.uitofp": _from_integer(False),
    "arith.fptosi": _to_integer(True),
    "arith.fptoui": _to_integer(False),
    "arith.bitcast": _bitcast,
    "math.round": _round,
    "math.fpowi": _fpowi,
    "math.ctlz": _leading_zeros,
    "math.cttz": _trailing_zeros,
    "math.isnan": _is_nan,
    "math.isinf": _is_infinite,
    "math.isfinite": _is_finite,
    "math.clampf": _clamp,
    "index.casts": _extend(True),
    "index.castu": _extend(False),
    "index.cmp": _cmpi,
}
_INDEX = {
    "add": arith.AddiOp,
    "sub": arith.SubiOp,
    "mul": arith.MuliOp,
    "maxs": arith.MaxSIOp,
    "maxu": arith.MaxUIOp,
    "mins": arith.MinSIOp,
    "minu": arith.MinUIOp,
    "and": arith.AndIOp,
    "or": arith.OrIOp,
    "xor": arith.XOrIOp,
}


def _on_index(cls: type[IRDLOperation]) -> Rule:
    return lambda op, args, kind: _made(cls, *args)


_RULES: dict[str, Rule] = {
    **_ON_VALUES,
    **{f"index.{name}": _on_index(cls) for name, cls in _INDEX.items()},
    "index.divs": _divide(False, "trunc"),
    "index.divu": _divide(True, "trunc"),
    "index.rems": _divide(False, "rem"),
    "index.remu": _divide(True, "rem"),
    "index.floordivs": _divide(False, "floor"),
    "index.ceildivs": _divide(False, "ceil"),
    "index.ceildivu": _divide(True, "ceil"),
    "index.shl": _shift("shli"),
    "index.shrs": _shift("shrsi"),
    "index.shru": _shift("shrui"),
}


class ScalarExpr(Lowering[Scalar]):
    """An expression over axes, sizes and scalars of a body, as ops."""

    def __init__(self, nest: Nest, scalars: Mapping[str, Scalar]):
        self.nest = nest
        self.scalars = scalars

    def constant(self, value: int) -> Scalar:
        return self.nest.const(value, i64)

    def symbol(self, name: str) -> Scalar:
        return self.scalars[name] if name in self.scalars else self.nest.index(name)

    def add(self, a: Scalar, b: Scalar) -> Scalar:
        return a + b

    def mul(self, a: Scalar, b: Scalar) -> Scalar:
        return a * b

    def floordiv(self, a: Scalar, b: Scalar, call: Call) -> Scalar:
        rest = a.rem(b)
        return ((rest.ne(0)) & ((rest < 0) ^ (b < 0))).select(a / b - 1, a / b)

    def mod(self, a: Scalar, b: Scalar, call: Call) -> Scalar:
        rest = a.rem(b)
        return (rest < 0).select(rest + b, rest)

    def minimum(self, a: Scalar, b: Scalar) -> Scalar:
        return a.minimum(b)

    def maximum(self, a: Scalar, b: Scalar) -> Scalar:
        return a.maximum(b)


SCALAR_OPS = SAME_FLOATS | SAME_INTEGERS | _RULES.keys()
"""The ops on scalars with a lowering."""

__all__ = ["SCALAR_OPS", "ScalarExpr", "body_type", "compute"]
