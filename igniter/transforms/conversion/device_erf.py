"""`1 + erf(x)` of f32 on blocks, as in a Gelu: about half of the instructions of the device library's `erf`.

    e = exp2(p(|x|))        p is a polynomial for log2(erfc), with p(0) = 0
    1 + erf(x) = e          for x < 0
               = 2 - e      otherwise

The polynomial is a weighted minimax fit over [0, 4.2], which changes the result by 1.5e-8 at most. With the roundings
its error is at most 1.5e-7, and a part in 100,000 of the result for negative x; an `erf` of two units in the last place
and an addition have 1.8e-7, and no correct digit below -4. There the exact result is below 3e-9; the polynomial falls
to minus infinity, so the result falls to 0.
"""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import Float32Type, FloatAttr
from xdsl.ir import Operation, SSAValue

from igniter.dialects import triton as tt
from igniter.dialects.arith import CmpfOp
from igniter.transforms.conversion.block_builder import BlockBuilder

COEFFICIENTS = (
    -1.6279083490371704,
    -0.9184234142303467,
    -0.14841727912425995,
    0.028002122417092323,
    -0.0002755484019871801,
    -0.0020316026639193296,
    0.000773764040786773,
    -0.00015186342352535576,
    1.6149926523212343e-05,
    -7.335059990509762e-07,
)
"""The coefficients of |x|, |x|^2 and so on; the last one is negative, so the polynomial falls to minus infinity."""


def erf_plus_one(op: Operation) -> SSAValue | None:
    """Returns x if an op is `erf(x) + 1` of f32 numbers; None for other ops."""
    if not isinstance(op, arith.AddfOp) or not isinstance(op.result.type, Float32Type):
        return None
    for erf, one in ((op.lhs.owner, op.rhs.owner), (op.rhs.owner, op.lhs.owner)):
        if isinstance(erf, math.ErfOp) and isinstance(one, arith.ConstantOp):
            value = one.value
            if isinstance(value, FloatAttr) and value.value.data == 1.0:
                return erf.operand
    return None


def one_plus_erf(builder: BlockBuilder, x: SSAValue) -> SSAValue:
    """Emits `1 + erf(x)` on a block."""
    shape, f32 = tt.shape_of(x.type), Float32Type()

    def constant(number: float) -> SSAValue:
        return builder.shaped(builder.const(number, f32), shape)

    size = builder.add(math.AbsFOp(x))
    total = constant(COEFFICIENTS[-1])
    for coefficient in reversed(COEFFICIENTS[:-1]):
        total = builder.add(math.FmaOp(total, size, constant(coefficient)))
    small = builder.add(math.Exp2Op(builder.add(arith.MulfOp(total, size))))
    negative = builder.add(CmpfOp(x, constant(0.0), "olt"))
    return builder.select(negative, small, builder.add(arith.SubfOp(constant(2.0), small)))
