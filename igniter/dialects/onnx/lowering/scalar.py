"""Scalars of a nest's body, with operators: `x / (x.abs() + 1)` appends the corresponding `arith` and `math` ops.

A `Scalar` knows its tensor element type, so `+`, `<` and `/` select the float, signed or unsigned op. A Python number
takes the type of the scalar it is combined with. Arithmetic on 16-bit floats is in f32: operators widen their operands,
and the nest narrows yielded values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, cast

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float64Type,
    FloatAttr,
    IntegerAttr,
    IntegerType,
    Signedness,
    UnitAttr,
    f32,
    i1,
    i32,
    i64,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.irdl import IRDLOperation

from igniter.dialects.arith import CONTRACT, NONPOSITIVE, SATURATING
from igniter.dialects.loop import DotBytesOp, is_float, is_unsigned, scalar_type
from igniter.dialects.loop.attrs import SMALL_FLOATS
from igniter.dialects.onnx.lowering.small_floats import decode, encode

if TYPE_CHECKING:
    from igniter.dialects.onnx.lowering.builder import Nest

Number: TypeAlias = bool | int | float
Operand: TypeAlias = "Scalar | Number"

_FLOAT_CLASSES = (Float16Type, BFloat16Type)


def compute_type(element: Attribute) -> Attribute:
    """Returns the type used for arithmetic on elements of type `element`."""
    return f32 if isinstance(element, (*_FLOAT_CLASSES, *SMALL_FLOATS)) else element


def float_bits(element: Attribute) -> int:
    """Returns the width of a float type in bits; 0 for any other type."""
    if isinstance(element, _FLOAT_CLASSES):
        return 16
    return 64 if isinstance(element, Float64Type) else 32 if is_float(element) else 0


def int_bits(element: Attribute) -> int:
    """Returns the width of an integer type in bits; 0 for any other type."""
    return cast("IntegerType", element).width.data if isinstance(element, IntegerType) else 0


def signless(element: Attribute) -> IntegerType:
    """Returns the type of an integer element in a body."""
    return IntegerType(int_bits(element))


def int_limits(element: Attribute) -> tuple[int, int]:
    """Returns the least and the greatest value of an integer type."""
    bits = int_bits(element)
    if is_unsigned(element) or bits == 1:
        return 0, (1 << bits) - 1
    return -(1 << (bits - 1)), (1 << (bits - 1)) - 1


class Scalar:
    """One value in the body of `nest`; `element` is its tensor element type, including signedness."""

    __slots__ = ("element", "nest", "value")

    def __init__(self, nest: Nest, value: SSAValue, element: Attribute):
        self.nest = nest
        self.value = value
        self.element = element

    # -- inspection ----------------------------------------------------------------------------------------------------

    @property
    def is_float(self) -> bool:
        return is_float(self.element)

    @property
    def is_bool(self) -> bool:
        return self.element == i1

    @property
    def is_unsigned(self) -> bool:
        return is_unsigned(self.element) or self.is_bool

    @property
    def number(self) -> int | float | None:
        """The value of a constant; None for a computed value."""
        owner = self.value.owner
        if not isinstance(owner, arith.ConstantOp):
            return None
        value = owner.value
        if isinstance(value, FloatAttr):
            return value.value.data
        if not isinstance(value, IntegerAttr):
            return None
        found = value.value.data
        bits = int_bits(self.element)
        return found & ((1 << bits) - 1) if self.is_unsigned else found

    # -- arithmetic ----------------------------------------------------------------------------------------------------

    def __add__(self, other: Operand) -> Scalar:
        return self._binary(other, arith.AddfOp, arith.AddiOp)

    def __sub__(self, other: Operand) -> Scalar:
        return self._binary(other, arith.SubfOp, arith.SubiOp)

    def __mul__(self, other: Operand) -> Scalar:
        return self._binary(other, arith.MulfOp, arith.MuliOp)

    def contracted(self, other: Operand) -> Scalar:
        """Returns the product of two floats, which may fuse with a sum even if one is a converted integer: it is not
        a dequantised code."""
        a, b = self._pair(other)
        return a._append(arith.MulfOp(a.value, b.value, CONTRACT))

    def __truediv__(self, other: Operand) -> Scalar:
        """Returns the quotient; integers round towards zero and never trap: `x/0` is 0 and `min/-1` is `min`."""
        a, b = self._pair(other)
        if a.is_float:
            return a._apply(arith.DivfOp, b)
        return a._divide(b, arith.DivSIOp, arith.DivUIOp, lambda: -a)

    def __radd__(self, other: Number) -> Scalar:
        return self._like(other) + self

    def __rsub__(self, other: Number) -> Scalar:
        return self._like(other) - self

    def __rmul__(self, other: Number) -> Scalar:
        return self._like(other) * self

    def __rtruediv__(self, other: Number) -> Scalar:
        return self._like(other) / self

    def __neg__(self) -> Scalar:
        a = self.widened()
        return a._apply(arith.NegfOp) if a.is_float else a._like(0) - a

    def rem(self, other: Operand) -> Scalar:
        """Returns the remainder of integer division, with the dividend's sign; `x.rem(0)` is 0."""
        a, b = self._pair(other)
        if a.is_float:
            raise ValueError("rem needs integers; arith has no exact remainder of floats")
        return a._divide(b, arith.RemSIOp, arith.RemUIOp, lambda: a._like(0))

    def maximum(self, other: Operand) -> Scalar:
        """Returns the greater value; NaN if either is NaN."""
        return self._binary(other, arith.MaximumfOp, arith.MaxSIOp, arith.MaxUIOp)

    def minimum(self, other: Operand) -> Scalar:
        """Returns the lesser value; NaN if either is NaN."""
        return self._binary(other, arith.MinimumfOp, arith.MinSIOp, arith.MinUIOp)

    def pow(self, other: Operand) -> Scalar:
        a, b = self._pair(other)
        return a._apply(math.PowFOp, b)

    def copysign(self, sign: Operand) -> Scalar:
        a, b = self._pair(sign)
        return a._apply(math.CopySignOp, b)

    def abs(self) -> Scalar:
        a = self.widened()
        if a.is_unsigned:
            return a
        return a._apply(math.AbsFOp if a.is_float else math.AbsIOp)

    # -- float functions -----------------------------------------------------------------------------------------------

    def math(self, name: str) -> Scalar:
        """Returns the unary float `math` op called `name`: `x.math("tanh")`."""
        a = self.widened()
        if not a.is_float:
            raise ValueError(f"math.{name} takes a float, not {self.element}")
        return a._apply(_UNARY[name])

    def exp(self, *, nonpositive: bool = False, saturating: bool = False) -> Scalar:
        """Returns e^x. The flags allow shorter formulas, with 0 in the place of subnormal results: `nonpositive` for an
        argument that is never above 0 but for rounding, `saturating` where results near the largest number may be
        infinite."""
        result = self.math("exp")
        for name, given in ((NONPOSITIVE, nonpositive), (SATURATING, saturating)):
            if given and isinstance(result.value.owner, Operation):
                result.value.owner.attributes[name] = UnitAttr()
        return result

    def log(self) -> Scalar:
        return self.math("log")

    def sqrt(self) -> Scalar:
        return self.math("sqrt")

    def tanh(self) -> Scalar:
        return self.math("tanh")

    def erf(self) -> Scalar:
        return self.math("erf")

    def floor(self) -> Scalar:
        return self.math("floor")

    # -- logic and bits ------------------------------------------------------------------------------------------------

    def __and__(self, other: Operand) -> Scalar:
        return self._bits(other, arith.AndIOp)

    def __or__(self, other: Operand) -> Scalar:
        return self._bits(other, arith.OrIOp)

    def __xor__(self, other: Operand) -> Scalar:
        return self._bits(other, arith.XOrIOp)

    def __invert__(self) -> Scalar:
        return self ^ (1 if self.is_bool else -1)

    def shift_left(self, other: Operand) -> Scalar:
        """Returns `self << other`; 0 if `other` is at least the width."""
        return self._shift(other, arith.ShLIOp)

    def shift_right(self, other: Operand) -> Scalar:
        """Returns `self >> other`, arithmetic for signed integers; a shift by the width or more
        shifts out every bit."""
        if self.is_unsigned:
            return self._shift(other, arith.ShRUIOp)
        a, b = self._pair(other)
        bits = int_bits(a.element)
        whole = Scalar(self.nest, b.value, IntegerType(bits, Signedness.UNSIGNED))
        return a._apply(arith.ShRSIOp, whole.minimum(bits - 1))

    # -- comparisons ---------------------------------------------------------------------------------------------------

    def eq(self, other: Operand) -> Scalar:
        return self._compare(other, "oeq", "eq", "eq")

    def ne(self, other: Operand) -> Scalar:
        return self._compare(other, "une", "ne", "ne")

    def __lt__(self, other: Operand) -> Scalar:
        return self._compare(other, "olt", "slt", "ult")

    def __le__(self, other: Operand) -> Scalar:
        return self._compare(other, "ole", "sle", "ule")

    def __gt__(self, other: Operand) -> Scalar:
        return self._compare(other, "ogt", "sgt", "ugt")

    def __ge__(self, other: Operand) -> Scalar:
        return self._compare(other, "oge", "sge", "uge")

    def plus_dot_bytes(self, pairs: Sequence[tuple[Scalar, Scalar]], most: int) -> Scalar:
        """Returns this i32 plus the dot products of pairs of four unsigned bytes, at most `most`, and four signed
        ones."""
        return self._append(DotBytesOp([(a.value, b.value) for a, b in pairs], self.value, most))

    def is_nan(self) -> Scalar:
        a = self.widened()
        return a._append(arith.CmpfOp(a.value, a.value, "uno"), i1)

    def select(self, if_true: Operand, if_false: Operand) -> Scalar:
        """Returns `if_true` if this bool is true, else `if_false`; at least one of them is a `Scalar`."""
        like = if_true if isinstance(if_true, Scalar) else if_false
        if not isinstance(like, Scalar):
            raise TypeError("select between two Python numbers has no element type; make one a Scalar")
        a = if_true if isinstance(if_true, Scalar) else like._like(if_true)
        b = if_false if isinstance(if_false, Scalar) else like._like(if_false)
        if a.value.type != b.value.type:
            a, b = a.widened(), b.widened()
        return a._append(arith.SelectOp(self.value, a.value, b.value))

    # -- conversions ---------------------------------------------------------------------------------------------------

    def widened(self) -> Scalar:
        """Returns this value in its arithmetic type: 16-bit and 8-bit floats as f32."""
        if isinstance(self.element, SMALL_FLOATS):
            return decode(self)
        target = compute_type(self.element)
        return self if target == self.element else self._append(arith.ExtFOp(self.value, target), target)

    def to(self, element: Attribute) -> Scalar:
        """Returns this value converted to another element type, as ONNX Runtime's Cast does on x86-64 (see
        `_float_to_int`)."""
        if element == self.element:
            return self
        if isinstance(self.element, SMALL_FLOATS):
            return decode(self).to(element)
        if isinstance(element, SMALL_FLOATS):
            return encode(self.to(f32), element)
        known = self.number
        if known is not None and not self.is_float:
            least, greatest = (-(2**53), 2**53) if is_float(element) else int_limits(element)
            if least <= known <= greatest:
                return self.nest.const(known, element)
        if element == i1:
            return self.ne(0)
        if is_float(element):
            return self._float_to_float(element) if self.is_float else self._int_to_float(element)
        return self.widened()._float_to_int(element) if self.is_float else self._int_to_int(element)

    def bits(self, element: Attribute) -> Scalar:
        """Returns the same bits as another element type of the same width."""
        target = scalar_type(element)
        same = target == self.value.type
        return (
            Scalar(self.nest, self.value, element)
            if same
            else self._append(arith.BitcastOp(self.value, target), element)
        )

    def _float_to_float(self, element: Attribute) -> Scalar:
        have, want = float_bits(self.element), float_bits(element)
        if have == want:  # f16 and bf16
            return self.widened()._float_to_float(element)
        made = arith.ExtFOp(self.value, element) if want > have else arith.TruncFOp(self.value, element)
        return self._append(made, element)

    def _int_to_float(self, element: Attribute) -> Scalar:
        target = compute_type(element)
        op = arith.UIToFPOp if self.is_unsigned else arith.SIToFPOp
        made = self._append(op(self.value, target), target)  # pyright: ignore[reportArgumentType]
        return made if target == element else made._float_to_float(element)

    def _int_to_int(self, element: Attribute) -> Scalar:
        have, want = int_bits(self.element), int_bits(element)
        target = signless(element)
        if have == want:
            return Scalar(self.nest, self.value, element)
        if want < have:
            return self._append(arith.TruncIOp(self.value, target), element)
        return self._append((arith.ExtUIOp if self.is_unsigned else arith.ExtSIOp)(self.value, target), element)

    def _float_to_int(self, element: Attribute) -> Scalar:
        """Rounds towards zero. Values beyond i32 (i64 for wide types), and NaN, give its least value; narrower types
        keep its low bits. This is the behaviour of `cvttss2si`, and thus of ONNX Runtime."""
        wide = int_bits(element) == 64 or (int_bits(element) == 32 and is_unsigned(element))
        through = i64 if wide else i32
        if is_unsigned(element) and int_bits(element) == 64:
            high = self >= 2.0**63
            low = high.select(self - 2.0**63, self)._float_to_int(i64)
            return Scalar(self.nest, (high.select(low ^ -(2**63), low)).value, element)
        least = int_limits(through)[0]
        fits = (self >= float(least)) & (self < -float(least))
        made = self._append(arith.FPToSIOp(fits.select(self, 0.0).value, through), through)
        return fits.select(made, least)._int_to_int(element)

    # -- internals -----------------------------------------------------------------------------------------------------

    def _append(self, op: Operation, element: Attribute | None = None) -> Scalar:
        return self.nest.append(op, self.element if element is None else element)

    def _apply(self, op: type[IRDLOperation], *others: Scalar) -> Scalar:
        """Appends `op(self, *others)`, whose result has the type of `self`."""
        # xDSL's own constructors take several times as long, and a model has tens of thousands of these ops.
        operands = [self.value, *(o.value for o in others)]
        return self._append(op.create(operands=operands, result_types=[self.value.type], properties=_defaults(op)))

    def _like(self, number: Number) -> Scalar:
        return self.nest.const(number, compute_type(self.element))

    def _pair(self, other: Operand) -> tuple[Scalar, Scalar]:
        if not isinstance(other, Scalar):
            return self.widened(), self._like(other)
        a, b = self.widened(), other.widened()
        if a.element != b.element:
            raise TypeError(f"operands of types {self.element} and {other.element}; convert one with `.to`")
        return a, b

    def _binary(
        self,
        other: Operand,
        on_floats: type[IRDLOperation],
        on_signed: type[IRDLOperation],
        on_unsigned: type[IRDLOperation] | None = None,
    ) -> Scalar:
        a, b = self._pair(other)
        if a.is_float:
            op = on_floats
        else:
            op = on_unsigned if a.is_unsigned and on_unsigned is not None else on_signed
        return a._apply(op, b)

    def _bits(self, other: Operand, op: type[IRDLOperation]) -> Scalar:
        a, b = self._pair(other)
        return a._apply(op, b)

    def _compare(self, other: Operand, on_floats: str, on_signed: str, on_unsigned: str) -> Scalar:
        a, b = self._pair(other)
        if a.is_float:
            return a._append(arith.CmpfOp(a.value, b.value, on_floats), i1)
        return a._append(arith.CmpiOp(a.value, b.value, on_unsigned if a.is_unsigned else on_signed), i1)

    def _divide(
        self,
        b: Scalar,
        on_signed: type[IRDLOperation],
        on_unsigned: type[IRDLOperation],
        by_minus_one: Callable[[], Scalar],
    ) -> Scalar:
        known = b.number
        if self.is_unsigned:
            if known:
                return self._apply(on_unsigned, b)
            zero = b.eq(0)
            return zero.select(0, self._apply(on_unsigned, zero.select(1, b)))
        if known is not None and known not in (0, -1):
            return self._apply(on_signed, b)
        # min / -1 overflows, and traps on x86 like a division by zero.
        zero, minus = b.eq(0), b.eq(-1)
        quotient = self._apply(on_signed, (zero | minus).select(1, b))
        return zero.select(0, minus.select(by_minus_one(), quotient))

    def _shift(self, other: Operand, op: type[IRDLOperation]) -> Scalar:
        a, b = self._pair(other)
        inside = Scalar(self.nest, b.value, IntegerType(int_bits(b.element), Signedness.UNSIGNED)) < int_bits(b.element)
        made = a._apply(op, inside.select(b, 0))
        return inside.select(made, 0)


@cache
def _default_properties(op: type[IRDLOperation]) -> dict[str, Attribute]:
    found = op.get_irdl_definition().properties.items()
    return {name: each.default_value for name, each in found if each.default_value is not None}


def _defaults(op: type[IRDLOperation]) -> dict[str, Attribute]:
    return dict(_default_properties(op))


_UNARY: dict[str, type[IRDLOperation]] = {
    "acos": math.AcosOp,
    "acosh": math.AcoshOp,
    "asin": math.AsinOp,
    "asinh": math.AsinhOp,
    "atan": math.AtanOp,
    "atanh": math.AtanhOp,
    "ceil": math.CeilOp,
    "cos": math.CosOp,
    "cosh": math.CoshOp,
    "erf": math.ErfOp,
    "exp": math.ExpOp,
    "expm1": math.ExpM1Op,
    "floor": math.FloorOp,
    "log": math.LogOp,
    "log1p": math.Log1pOp,
    "roundeven": math.RoundEvenOp,
    "rsqrt": math.RsqrtOp,
    "sin": math.SinOp,
    "sinh": math.SinhOp,
    "sqrt": math.SqrtOp,
    "tan": math.TanOp,
    "tanh": math.TanhOp,
    "trunc": math.TruncOp,
}

__all__ = ["Number", "Operand", "Scalar", "compute_type", "float_bits", "int_bits", "int_limits", "signless"]
