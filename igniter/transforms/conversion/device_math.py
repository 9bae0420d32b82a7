"""Scalar ops of bodies, emitted on blocks: directly as Triton's `arith` and `math` ops, otherwise through these or
CUDA's device library.

Quotients and square roots of f32 are correctly rounded. Functions of 16-bit floats are computed in f32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, Float64Type, FloatAttr, IntegerAttr, IntegerType
from xdsl.ir import Operation, SSAValue

from igniter.dialects import triton as tt
from igniter.dialects.arith import CmpfOp, CmpiOp, SelectOp, replace_element, vector_class
from igniter.dialects.triton.libdevice import FUNCTIONS, symbol_of
from igniter.errors import IgniterError
from igniter.transforms.conversion.block_builder import BlockBuilder

f32, f64 = Float32Type(), Float64Type()

_PLAIN = frozenset(
    (
        "arith.addf",
        "arith.subf",
        "arith.mulf",
        "arith.maximumf",
        "arith.minimumf",
        "arith.maxnumf",
        "arith.minnumf",
        "arith.addi",
        "arith.subi",
        "arith.muli",
        "arith.divsi",
        "arith.divui",
        "arith.remsi",
        "arith.remui",
        "arith.maxsi",
        "arith.minsi",
        "arith.andi",
        "arith.ori",
        "arith.xori",
        "math.absi",
        "math.absf",
    )
)
"""Ops emitted unchanged on blocks."""

_FLOAT = frozenset(
    (
        "math.exp",
        "math.exp2",
        "math.log",
        "math.log2",
        "math.sin",
        "math.cos",
        "math.rsqrt",
        "math.erf",
        "math.floor",
        "math.ceil",
        "math.fma",
    )
)
"""Functions of f32 and f64."""

_CASTS = frozenset(
    (
        "arith.extf",
        "arith.truncf",
        "arith.extsi",
        "arith.extui",
        "arith.trunci",
        "arith.sitofp",
        "arith.uitofp",
        "arith.fptosi",
        "arith.fptoui",
        "arith.bitcast",
    )
)


def elementwise(builder: BlockBuilder, op: Operation, values: Sequence[SSAValue], where: str) -> SSAValue:
    """Emits an op of a body on blocks of its operands."""
    if isinstance(op, arith.ConstantOp):
        number = cast("FloatAttr[Float32Type] | IntegerAttr[IntegerType]", op.value).value.data
        return builder.const(number, op.result.type)
    if op.name in _CASTS:
        return _cast(builder, op, values[0])
    made = builder.together(values)
    rule = _RULES.get(op.name)
    if rule is not None:
        return rule(builder, op, made)
    if op.name in _PLAIN:
        return _same(builder, op, made)
    if op.name in _FLOAT:
        return _in_single(builder, op, made, lambda wide: _same(builder, op, wide))
    if op.name in FUNCTIONS:
        return _in_single(builder, op, made, lambda wide: _device(builder, FUNCTIONS[op.name], wide))
    raise IgniterError(f"lower-to-triton: nest '{where}': there is no code for '{op.name}' on a GPU")


def _same(builder: BlockBuilder, op: Operation, values: Sequence[SSAValue]) -> SSAValue:
    """Emits the same op on blocks."""
    kind = vector_class(op)
    result = replace_element(values[0].type, tt.element_type(values[0].type))
    return builder.add(kind.create(operands=list(values), result_types=[result], properties=dict(op.properties)))


def _in_single(
    builder: BlockBuilder, op: Operation, values: Sequence[SSAValue], compute: Callable[[list[SSAValue]], SSAValue]
) -> SSAValue:
    """Computes a function of floats, in f32 for narrower types."""
    element = tt.element_type(values[0].type)
    made = compute([builder.widened(v) for v in values])
    small = element.name in ("f16", "bf16")
    return builder.cast(arith.TruncFOp, made, element) if small else made


def _device(builder: BlockBuilder, function: str, values: Sequence[SSAValue]) -> SSAValue:
    symbol = symbol_of(function, tt.element_type(values[0].type))
    return builder.add(tt.ExternElementwiseOp(symbol, values, values[0].type))


def _cast(builder: BlockBuilder, op: Operation, value: SSAValue) -> SSAValue:
    target = replace_element(value.type, op.results[0].type)
    return builder.add(vector_class(op).create(operands=[value], result_types=[target], properties=dict(op.properties)))


def _negated(builder: BlockBuilder, op: Operation, values: Sequence[SSAValue]) -> SSAValue:
    # Triton negates as 0 - x, with the wrong sign for 0.
    zero = builder.const(-0.0, tt.element_type(values[0].type))
    return builder.binary(arith.SubfOp, zero, values[0])


def _divided(builder: BlockBuilder, op: Operation, values: Sequence[SSAValue]) -> SSAValue:
    def compute(wide: list[SSAValue]) -> SSAValue:
        if tt.element_type(wide[0].type) == f64:
            return builder.add(arith.DivfOp(wide[0], wide[1]))
        return builder.add(tt.PreciseDivOp(wide[0], wide[1]))

    return _in_single(builder, op, values, compute)


def _root(builder: BlockBuilder, op: Operation, values: Sequence[SSAValue]) -> SSAValue:
    def compute(wide: list[SSAValue]) -> SSAValue:
        if tt.element_type(wide[0].type) == f64:
            return builder.add(math.SqrtOp(wide[0]))
        return builder.add(tt.PreciseSqrtOp(wide[0]))

    return _in_single(builder, op, values, compute)


def _compared(builder: BlockBuilder, op: Operation, values: Sequence[SSAValue]) -> SSAValue:
    kind = CmpiOp if isinstance(op, arith.CmpiOp) else CmpfOp
    predicate = cast("Any", op).predicate.value.data
    return builder.add(kind(values[0], values[1], predicate))


def _selected(builder: BlockBuilder, op: Operation, values: Sequence[SSAValue]) -> SSAValue:
    return builder.add(SelectOp(*values))


def _unsigned_extreme(predicate: str) -> Callable[[BlockBuilder, Operation, Sequence[SSAValue]], SSAValue]:
    def made(builder: BlockBuilder, op: Operation, values: Sequence[SSAValue]) -> SSAValue:
        return builder.add(SelectOp(builder.add(CmpiOp(values[0], values[1], predicate)), values[0], values[1]))

    return made


def _floored(builder: BlockBuilder, op: Operation, values: Sequence[SSAValue]) -> SSAValue:
    """Divides towards minus infinity: one less if the signs differ and there is a remainder."""
    a, b = values
    element = cast("IntegerType", tt.element_type(a.type))
    zero, one = builder.const(0, element), builder.const(1, element)
    quotient, left = builder.add(arith.DivSIOp(a, b)), builder.add(arith.RemSIOp(a, b))
    differ = builder.below(builder.binary(arith.XOrIOp, left, b), zero)
    some = builder.binary(lambda x, y: CmpiOp(x, y, "ne"), left, zero)
    low = builder.binary(arith.SubiOp, quotient, one)
    return builder.select(builder.binary(arith.AndIOp, differ, some), low, quotient)


def _shifted(keeps_sign: bool) -> Callable[[BlockBuilder, Operation, Sequence[SSAValue]], SSAValue]:
    """Shifts by the bit width or more keep only the sign (or 0); LLVM leaves them undefined."""

    def made(builder: BlockBuilder, op: Operation, values: Sequence[SSAValue]) -> SSAValue:
        x, count = values
        known = _known(count)
        if known is not None and 0 <= known < tt.width_of(x.type):
            count = builder.shaped(builder.const(known, tt.element_type(x.type)), tt.shape_of(x.type))
            return _same(builder, op, [x, count]) if known else x
        most = builder.shaped(builder.const(tt.width_of(x.type) - 1, tt.element_type(x.type)), tt.shape_of(x.type))
        far = builder.add(CmpiOp(count, most, "ugt"))
        shifted = _same(builder, op, [x, builder.select(far, most, count)])
        return shifted if keeps_sign else builder.select(far, builder.const(0, tt.element_type(x.type)), shifted)

    return made


def _known(value: SSAValue) -> int | None:
    """Returns an integer that is a constant, converted and broadcast or not; None for other values."""
    op = value.owner
    while isinstance(op, (arith.TruncIOp, tt.SplatOp, tt.BroadcastOp)):
        op = op.operands[0].owner
    if not isinstance(op, arith.ConstantOp) or not isinstance(op.value, IntegerAttr):
        return None
    return cast("IntegerAttr[IntegerType]", op.value).value.data


Rule = Callable[[BlockBuilder, Operation, Sequence[SSAValue]], SSAValue]

_RULES: dict[str, Rule] = {
    "arith.negf": _negated,
    "arith.divf": _divided,
    "math.sqrt": _root,
    "arith.cmpi": _compared,
    "arith.cmpf": _compared,
    "arith.select": _selected,
    "arith.maxui": _unsigned_extreme("ugt"),
    "arith.minui": _unsigned_extreme("ult"),
    "arith.floordivsi": _floored,
    "arith.shli": _shifted(keeps_sign=False),
    "arith.shrui": _shifted(keeps_sign=False),
    "arith.shrsi": _shifted(keeps_sign=True),
}
