"""The ops of `arith`, `math` and `vector` as LLVM instructions, scalar or vector alike.

Semantics where LLVM and the dialects leave room:

* A product and the addition of a reduction carry `contract`: they may fuse into FMA, except the product of a code and
  its scale (`is_dequantized`). Nothing else is relaxed; other fused ops are a `math.fma` (`form-fma`).
* `divsi`, `remsi` and their kin never trap: a zero divisor gives 0 (of `rem`: the dividend), and the minimum divided by
  -1 wraps to itself with remainder 0.
* `fptosi` of NaN or of a value out of range is the least integer, `fptoui` all ones, as on x86.
* A shift by the width or more gives 0 (`shrsi`: the sign).
* `maximumf`, `minimumf` propagate NaN; `maxnumf`, `minnumf` prefer the number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from xdsl.dialects import arith
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    bf16,
    f16,
    f32,
    f64,
)
from xdsl.ir import Attribute, Operation

from igniter.backends.cpu import dot_bytes, vmath
from igniter.backends.cpu.builder import Builder, Value
from igniter.backends.cpu.errors import EmitError
from igniter.backends.cpu.function import Function
from igniter.backends.cpu.llvm_types import I1, Type, UnsupportedType, float_literal, int_literal, literal, llvm_type
from igniter.dialects.arith import NONPOSITIVE, SATURATING, is_dequantized
from igniter.dialects.loop import Combiner, DotBytesOp, combiners
from igniter.dialects.loop.combiners import combining_op

Binary = Callable[[Builder, Value, Value], Value]
Special = Callable[[Function, Operation, list[Value]], Value]
Unary = Callable[[Builder, Value], Value]


def emit(f: Function, op: Operation, func: str) -> None:
    """Emits one op of arith, math or vector; raises `EmitError` for an unknown one."""
    try:
        f.values[op.results[0]] = _value_of(f, op, func)
    except UnsupportedType as error:
        raise EmitError(func, op, str(error))


def _value_of(f: Function, op: Operation, func: str) -> Value:
    name = op.name
    if name == "arith.constant":
        return _constant(op, func)
    args = [f.find_value(v) for v in op.operands]
    if is_dequantized(op):
        return _in_single(f, args, lambda a: f.binary("fmul", a[0], a[1]))
    if name in BINARY:
        return _in_single(f, args, lambda a: BINARY[name](f, a[0], a[1]))
    if name in UNARY:
        return _in_single(f, args, lambda a: UNARY[name](f, a[0]))
    if name == "math.exp" and (NONPOSITIVE in op.attributes or SATURATING in op.attributes):
        return vmath.call(f, "exp_nonpositive" if NONPOSITIVE in op.attributes else "exp_saturating", args)
    if name in vmath.FUNCTIONS:
        return vmath.call(f, vmath.FUNCTIONS[name], args)
    special = _SPECIAL.get(name)
    if special is None:
        raise EmitError(func, op, "the CPU backend has no code for this op")
    return special(f, op, args)


def widened(b: Builder, value: Value) -> Value:
    """Returns a 16-bit float as f32, any other value unchanged."""
    if value.type.is_float and value.type.bits == 16:
        return vmath.extend(b, value, value.type.with_element("float"))
    return value


def _in_single(b: Builder, args: list[Value], compute: Callable[[list[Value]], Value]) -> Value:
    """Computes 16-bit floats in f32 and rounds: LLVM would call a library for some ops."""
    t = args[0].type
    if not t.is_float or t.bits != 16:
        return compute(args)
    return vmath.truncate(b, compute([widened(b, a) for a in args]), t)


# -- constants --------------------------------------------------------------------------------------------------------


def _constant(op: Operation, func: str) -> Value:
    assert isinstance(op, arith.ConstantOp)
    t = llvm_type(op.result.type)
    value = op.value
    if isinstance(value, (IntegerAttr, FloatAttr)):
        return Value(t, literal(t, value.value.data))
    if isinstance(value, DenseIntOrFPElementsAttr):
        values = cast("list[Any]", list(value.get_values()))
        if value.is_splat() or len(set(values)) == 1:
            return Value(t, literal(t, values[0]))
        write: Callable[[str, Any], str] = float_literal if t.is_float else int_literal
        return Value(t, "<" + ", ".join(f"{t.spelled} {write(t.element, v)}" for v in values) + ">")
    raise EmitError(func, op, "a constant whose value is not in the IR")


# -- arithmetic -------------------------------------------------------------------------------------------------------


def _instruction(op: str) -> Binary:
    return lambda b, x, y: b.binary(op, x, y)


def _intrinsic(name: str) -> Binary:
    return lambda b, x, y: b.binary_intrinsic(name, x, y)


def _safe_divisor(b: Builder, x: Value, y: Value, signed: bool) -> tuple[Value, Value]:
    """Returns `y` made safe to divide `x` by, and the condition under which it was changed."""
    bad = b.icmp("eq", y, b.zero(y.type))
    if signed:
        overflow = b.binary(
            "and",
            b.icmp("eq", y, b.const(y.type, -1)),
            b.icmp("eq", x, b.const(x.type, 1 << (x.type.bits - 1))),
        )
        bad = b.binary("or", bad, overflow)
    return b.select(bad, b.const(y.type, 1), y), bad


def _known_divisor(y: Value) -> bool:
    """True for a constant other than 0 and -1."""
    number = y.text.removeprefix("splat (").removesuffix(")").split(" ")[-1]
    return number.lstrip("-").isdigit() and number not in ("0", "-1")


def _divide(op: str) -> Binary:
    signed = op.startswith("s")

    def emit_divide(b: Builder, x: Value, y: Value) -> Value:
        if _known_divisor(y):
            return b.binary(op, x, y)
        safe, _ = _safe_divisor(b, x, y, signed)
        result = b.binary(op, x, safe)
        zero = b.icmp("eq", y, b.zero(y.type))
        # x / 1 is correct for the minimum divided by -1, and so is x % 1 = 0.
        return b.select(zero, b.zero(x.type) if op.endswith("div") else x, result)

    return emit_divide


def _round_divide(up: bool) -> Binary:
    """Returns signed division rounded towards minus (`up`: plus) infinity."""

    def emit_divide(b: Builder, x: Value, y: Value) -> Value:
        quotient, remainder = _divide("sdiv")(b, x, y), _divide("srem")(b, x, y)
        inexact = b.icmp("ne", remainder, b.zero(x.type))
        signs = b.icmp("sge" if up else "slt", b.binary("xor", x, y), b.zero(x.type))
        # With a zero divisor the remainder is x; the quotient stays 0.
        nonzero = b.icmp("ne", y, b.zero(y.type))
        adjust = b.binary("and", nonzero, b.binary("and", inexact, signs))
        return b.binary("add", quotient, b.cast("zext" if up else "sext", adjust, x.type))

    return emit_divide


def _ceil_divide_unsigned(b: Builder, x: Value, y: Value) -> Value:
    quotient, remainder = _divide("udiv")(b, x, y), _divide("urem")(b, x, y)
    inexact = b.icmp("ne", remainder, b.zero(x.type))
    adjust = b.binary("and", inexact, b.icmp("ne", y, b.zero(y.type)))
    return b.binary("add", quotient, b.cast("zext", adjust, x.type))


def _shift(op: str) -> Binary:
    def emit_shift(b: Builder, x: Value, y: Value) -> Value:
        limit = b.const(y.type, x.type.bits - 1)
        if op == "ashr":
            return b.binary(op, x, b.binary_intrinsic("umin", y, limit))
        shifted = b.binary(op, x, b.binary_intrinsic("umin", y, limit))
        return b.select(b.icmp("ugt", y, limit), b.zero(x.type), shifted)

    return emit_shift


def _copysign(b: Builder, x: Value, y: Value) -> Value:
    return b.binary_intrinsic("copysign", x, y)


def _abs_int(b: Builder, x: Value) -> Value:
    return b.call(f"llvm.abs.{x.type.mangled}", x.type, [x, Value(I1, "false")])


def _count_zeros(name: str) -> Unary:
    return lambda b, x: b.call(f"llvm.{name}.{x.type.mangled}", x.type, [x, Value(I1, "false")])


BINARY: dict[str, Binary] = {
    "arith.addf": _instruction("fadd"),
    "arith.subf": _instruction("fsub"),
    "arith.mulf": _instruction("fmul contract"),
    "arith.divf": _instruction("fdiv"),
    "arith.maximumf": _intrinsic("maximum"),
    "arith.minimumf": _intrinsic("minimum"),
    "arith.maxnumf": vmath.max_number,
    "arith.minnumf": vmath.min_number,
    "arith.addi": _instruction("add"),
    "arith.subi": _instruction("sub"),
    "arith.muli": _instruction("mul"),
    "arith.divsi": _divide("sdiv"),
    "arith.divui": _divide("udiv"),
    "arith.remsi": _divide("srem"),
    "arith.remui": _divide("urem"),
    "arith.floordivsi": _round_divide(up=False),
    "arith.ceildivsi": _round_divide(up=True),
    "arith.ceildivui": _ceil_divide_unsigned,
    "arith.minsi": _intrinsic("smin"),
    "arith.maxsi": _intrinsic("smax"),
    "arith.minui": _intrinsic("umin"),
    "arith.maxui": _intrinsic("umax"),
    "arith.andi": _instruction("and"),
    "arith.ori": _instruction("or"),
    "arith.xori": _instruction("xor"),
    "arith.shli": _shift("shl"),
    "arith.shrui": _shift("lshr"),
    "arith.shrsi": _shift("ashr"),
    "math.copysign": _copysign,
}

UNARY: dict[str, Unary] = {
    "arith.negf": lambda b, x: b.fneg(x),
    "math.absf": lambda b, x: b.unary_intrinsic("fabs", x),
    "math.absi": _abs_int,
    "math.ctlz": _count_zeros("ctlz"),
    "math.cttz": _count_zeros("cttz"),
    "math.ctpop": lambda b, x: b.unary_intrinsic("ctpop", x),
}


# -- ops with more to them than operands ------------------------------------------------------------------------------


def _result(op: Operation) -> Type:
    return llvm_type(op.results[0].type)


def _compare_int(f: Function, op: Operation, args: list[Value]) -> Value:
    assert isinstance(op, arith.CmpiOp)
    return f.icmp(arith.CMPI_COMPARISON_OPERATIONS[op.predicate.value.data], args[0], args[1])


def _compare_float(f: Function, op: Operation, args: list[Value]) -> Value:
    assert isinstance(op, arith.CmpfOp)
    x, y = (widened(f, a) for a in args)
    return f.fcmp(arith.CMPF_COMPARISON_OPERATIONS[op.predicate.value.data], x, y)


def _select(f: Function, op: Operation, args: list[Value]) -> Value:
    return f.select(args[0], args[1], args[2])


def _cast(name: str) -> Special:
    return lambda f, op, args: f.cast(name, args[0], _result(op))


def _extend_float(f: Function, op: Operation, args: list[Value]) -> Value:
    return vmath.extend(f, args[0], _result(op))


def _truncate_float(f: Function, op: Operation, args: list[Value]) -> Value:
    return vmath.truncate(f, args[0], _result(op))


def _float_to_int(name: str) -> Special:
    """Out of range and NaN: the least integer (`fptoui`: all ones), as on x86 and so in ONNX Runtime."""
    signed = name == "fptosi"

    def convert(f: Function, op: Operation, args: list[Value]) -> Value:
        t, x = _result(op), widened(f, args[0])
        bits = t.bits - 1 if signed else t.bits
        if signed:
            # Values between -2^bits - 1 and -2^bits give the same result as values out of range.
            above = f.fcmp("oge", x, f.const(x.type, -(2.0**bits)))
        else:
            above = f.fcmp("ogt", x, f.const(x.type, -1.0))
        fits = f.binary("and", above, f.fcmp("olt", x, f.const(x.type, 2.0**bits)))
        failed = f.const(t, 1 << bits if signed else -1)
        return f.select(fits, f.cast(name, x, t), failed)

    return convert


def _int_to_float(name: str) -> Special:
    def convert(f: Function, op: Operation, args: list[Value]) -> Value:
        t = _result(op)
        if t.bits == 16:
            return vmath.truncate(f, f.cast(name, args[0], t.with_element("float")), t)
        return f.cast(name, args[0], t)

    return convert


def _index_cast(f: Function, op: Operation, args: list[Value]) -> Value:
    t = _result(op)
    return f.cast("trunc" if t.bits < args[0].type.bits else "sext", args[0], t)


def _broadcast(f: Function, op: Operation, args: list[Value]) -> Value:
    t = _result(op)
    return args[0] if args[0].type == t else f.splat(args[0], t.lanes)


def _fma(f: Function, op: Operation, args: list[Value]) -> Value:
    return _in_single(f, args, lambda a: vmath.fma(f, a[0], a[1], a[2]))


def _dot_bytes(f: Function, op: Operation, args: list[Value]) -> Value:
    assert isinstance(op, DotBytesOp)
    return dot_bytes.dot(f, list(zip(args[:-1:2], args[1::2], strict=True)), args[-1], op.most)


_SPECIAL: dict[str, Special] = {
    "arith.cmpi": _compare_int,
    "arith.cmpf": _compare_float,
    "arith.select": _select,
    "arith.bitcast": _cast("bitcast"),
    "loop.dot_bytes": _dot_bytes,
    "arith.index_cast": _index_cast,
    "arith.extf": _extend_float,
    "arith.truncf": _truncate_float,
    "arith.extsi": _cast("sext"),
    "arith.extui": _cast("zext"),
    "arith.trunci": _cast("trunc"),
    "arith.fptosi": _float_to_int("fptosi"),
    "arith.fptoui": _float_to_int("fptoui"),
    "arith.sitofp": _int_to_float("sitofp"),
    "arith.uitofp": _int_to_float("uitofp"),
    "math.fma": _fma,
    "vector.fma": _fma,
    "vector.bitcast": _cast("bitcast"),
    "vector.broadcast": _broadcast,
}


# -- combiners --------------------------------------------------------------------------------------------------------


_COMBINING: dict[str, Binary] = {
    **{f"arith.{name}": BINARY[f"arith.{name}"] for name in ("addi", "muli", "andi", "ori", "xori")},
    **{f"arith.{name}": BINARY[f"arith.{name}"] for name in ("maxsi", "minsi", "maxui", "minui")},
    "arith.addf": _instruction("fadd contract"),
    "arith.mulf": _instruction("fmul contract"),
    "arith.maximumf": lambda b, x, y: b.call(f"llvm.maximum.{x.type.mangled}", x.type, [x, y], flags="nsz"),
    "arith.minimumf": lambda b, x, y: b.call(f"llvm.minimum.{x.type.mangled}", x.type, [x, y], flags="nsz"),
}
"""The emitters of combiners, by the op of the table of combiners. Sums and products may fuse into FMA, and the sign of
a zero extreme is not specified."""


def combine(b: Builder, combiner: Combiner, x: Value, y: Value, unsigned: bool = False) -> Value:
    """Combines two values for the same element."""
    function = _COMBINING[combining_op(combiner, _element(x.type, unsigned)).name]
    return _in_single(b, [x, y], lambda a: function(b, a[0], a[1]))


def neutral(b: Builder, combiner: Combiner, t: Type, unsigned: bool = False) -> Value:
    """Returns the neutral element of a combiner."""
    value = combiners.neutral(combiner, _element(t, unsigned)).value
    assert isinstance(value, (IntegerAttr, FloatAttr))
    return b.const(t, value.value.data)


_FLOATS: dict[str, Attribute] = {"half": f16, "bfloat": bf16, "float": f32, "double": f64, "native half": f16}


def _element(t: Type, unsigned: bool) -> Attribute:
    """Returns the element type of the tensor for an LLVM type."""
    if t.is_float:
        return _FLOATS[t.element]
    return IntegerType(t.bits, Signedness.UNSIGNED if unsigned and t.bits > 1 else Signedness.SIGNLESS)


def reduce_lanes(b: Builder, combiner: Combiner, value: Value, unsigned: bool = False) -> Value:
    """Combines all lanes: folds the halves onto each other, in log2(lanes) steps."""
    lanes = value.type.lanes
    while lanes > 1:
        if lanes % 2:
            # An odd last lane is folded alone.
            last = b.extract(value, lanes - 1)
            rest = reduce_lanes(b, combiner, _lanes(b, value, 0, lanes - 1), unsigned)
            return combine(b, combiner, rest, last, unsigned)
        half = lanes // 2
        value = combine(b, combiner, _lanes(b, value, 0, half), _lanes(b, value, half, lanes), unsigned)
        lanes = half
    return b.extract(value, 0)


def _lanes(b: Builder, value: Value, first: int, last: int) -> Value:
    t = value.type.with_lanes(last - first)
    mask = ", ".join(f"i32 {k}" for k in range(first, last))
    return b.emit(t, f"shufflevector {value.typed}, {value.type} poison, <{last - first} x i32> <{mask}>")


def as_bit(b: Builder, condition: Value | bool) -> Value:
    return b.const(I1, int(condition)) if isinstance(condition, bool) else condition
