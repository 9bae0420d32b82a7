"""Numbers with operators, so that the code of an elementary function is its formula and emits LLVM IR.

A `Num` is a scalar or a vector. Operators on floats carry no fast-math flags: the error-free transformations below rely
on exact IEEE semantics. `fma` fuses if the target has FMA and is two operations otherwise, so a formula must be
accurate either way; code that needs the exact product uses `two_product`.
"""

from __future__ import annotations

from collections.abc import Sequence

from igniter.backends.cpu.builder import Builder, Value
from igniter.backends.cpu.llvm_types import Type, bits_literal, literal


class Num:
    """A value and the builder of its operations."""

    __slots__ = ("b", "v")

    def __init__(self, b: Builder, v: Value):
        self.b = b
        self.v = v

    @property
    def type(self) -> Type:
        return self.v.type

    def of(self, other: Num | float) -> Num:
        """Returns a number as a constant of this type."""
        return other if isinstance(other, Num) else Num(self.b, Value(self.type, literal(self.type, other)))

    def from_bits(self, bits: int) -> Num:
        """Returns the float constant with these bits."""
        return Num(self.b, Value(self.type, bits_literal(self.type, bits)))

    def _binary(self, on_float: str, on_int: str, other: Num | float) -> Num:
        op = on_float if self.type.is_float else on_int
        return Num(self.b, self.b.binary(op, self.v, self.of(other).v))

    def __add__(self, other: Num | float) -> Num:
        return self._binary("fadd", "add", other)

    def __radd__(self, other: float) -> Num:
        return self.of(other) + self

    def __sub__(self, other: Num | float) -> Num:
        return self._binary("fsub", "sub", other)

    def __rsub__(self, other: float) -> Num:
        return self.of(other) - self

    def __mul__(self, other: Num | float) -> Num:
        return self._binary("fmul", "mul", other)

    def __rmul__(self, other: float) -> Num:
        return self.of(other) * self

    def __truediv__(self, other: Num | float) -> Num:
        return self._binary("fdiv", "", other)

    def __rtruediv__(self, other: float) -> Num:
        return self.of(other) / self

    def __neg__(self) -> Num:
        return Num(self.b, self.b.fneg(self.v)) if self.type.is_float else self.of(0) - self

    # -- integers and conditions --------------------------------------------------------------------------------------

    def __and__(self, other: Num | int) -> Num:
        return self._binary("", "and", other)

    def __or__(self, other: Num | int) -> Num:
        return self._binary("", "or", other)

    def __xor__(self, other: Num | int) -> Num:
        return self._binary("", "xor", other)

    def __lshift__(self, other: int) -> Num:
        return self._binary("", "shl", other)

    def __rshift__(self, other: int) -> Num:
        """Returns the logical shift: AVX2 has no arithmetic one of 64 bits."""
        return self._binary("", "lshr", other)

    def __invert__(self) -> Num:
        return self ^ -1

    def _compare(self, on_float: str, on_int: str, other: Num | float) -> Num:
        y = self.of(other).v
        if self.type.is_float:
            return Num(self.b, self.b.fcmp(on_float, self.v, y))
        return Num(self.b, self.b.icmp(on_int, self.v, y))

    def lt(self, other: Num | float) -> Num:
        return self._compare("olt", "slt", other)

    def le(self, other: Num | float) -> Num:
        return self._compare("ole", "sle", other)

    def gt(self, other: Num | float) -> Num:
        return self._compare("ogt", "sgt", other)

    def ge(self, other: Num | float) -> Num:
        return self._compare("oge", "sge", other)

    def eq(self, other: Num | float) -> Num:
        return self._compare("oeq", "eq", other)

    def ne(self, other: Num | float) -> Num:
        return self._compare("une", "ne", other)

    def is_nan(self) -> Num:
        return self._compare("uno", "", self)

    def where(self, yes: Num | float, no: Num | float) -> Num:
        """Returns `yes` if this condition holds, else `no`; at least one of the two is a `Num`."""
        like = yes if isinstance(yes, Num) else no
        assert isinstance(like, Num)
        return Num(self.b, self.b.select(self.v, like.of(yes).v, like.of(no).v))

    # -- representation -----------------------------------------------------------------------------------------------

    def bits(self) -> Num:
        """Returns the float as an integer of the same width."""
        return Num(self.b, self.b.bitcast(self.v, self.type.with_element(f"i{self.type.bits}")))

    def as_float(self) -> Num:
        """Returns the integer's bits as a float."""
        element = {16: "half", 32: "float", 64: "double"}[self.type.bits]
        return Num(self.b, self.b.bitcast(self.v, self.type.with_element(element)))

    def cast(self, op: str, element: str) -> Num:
        return Num(self.b, self.b.cast(op, self.v, self.type.with_element(element)))

    # -- functions ----------------------------------------------------------------------------------------------------

    def abs(self) -> Num:
        return Num(self.b, self.b.unary_intrinsic("fabs", self.v))

    def sqrt(self) -> Num:
        return Num(self.b, self.b.unary_intrinsic("sqrt", self.v))

    def with_sign_of(self, other: Num) -> Num:
        return Num(self.b, self.b.binary_intrinsic("copysign", self.v, other.v))

    def fma(self, y: Num | float, z: Num | float) -> Num:
        """Returns `self*y + z`."""
        return Num(self.b, self.b.muladd(self.v, self.of(y).v, self.of(z).v))

    def at_most(self, bound: float) -> Num:
        """Returns the smaller; NaN stays. This form needs one `min` on x86."""
        limit = self.of(bound)
        return limit.lt(self).where(limit, self)

    def at_least(self, bound: float) -> Num:
        """Returns the larger; NaN stays."""
        limit = self.of(bound)
        return limit.gt(self).where(limit, self)

    def polynomial(self, coefficients: Sequence[float]) -> Num:
        """Evaluates a polynomial by Horner's scheme; the constant comes first."""
        result = self.of(coefficients[-1])
        for c in reversed(coefficients[:-1]):
            result = result.fma(self, c)
        return result

    def any(self) -> Num:
        """Returns one bit: true if the condition holds in any lane."""
        if not self.type.is_vector:
            return self
        name = f"llvm.vector.reduce.or.{self.type.mangled}"
        return Num(self.b, self.b.call(name, Type("i1"), [self.v]))


# -- pairs: an unevaluated sum of two floats, |low| <= ulp(high)/2 -----------------------------------------------------

Pair = tuple[Num, Num]


def fast_two_sum(x: Num, y: Num) -> Pair:
    """Returns x + y exactly, for |x| >= |y| (Dekker 1971)."""
    total = x + y
    return total, y - (total - x)


def two_sum(x: Num, y: Num) -> Pair:
    """Returns x + y exactly (Knuth)."""
    total = x + y
    of_y = total - x
    return total, (x - (total - of_y)) + (y - of_y)


def two_product(x: Num, y: Num) -> Pair:
    """Returns x * y exactly: by FMA, or by Dekker's splitting, which overflows near the top of the range."""
    product = x * y
    if x.b.target.has_fma:
        return product, x.fma(y, -product)
    xh, xl = _split(x)
    yh, yl = _split(y)
    return product, ((xh * yh - product) + xh * yl + xl * yh) + xl * yl


def _split(x: Num) -> Pair:
    t = x * (134217729.0 if x.type.bits == 64 else 4097.0)
    high = t - (t - x)
    return high, x - high


def pair_add(x: Pair, y: Pair) -> Pair:
    """Returns the sum of two pairs."""
    s, e = two_sum(x[0], y[0])
    return fast_two_sum(s, e + (x[1] + y[1]))


def pair_mul(x: Pair, y: Pair) -> Pair:
    """Returns the product of two pairs."""
    p, e = two_product(x[0], y[0])
    return fast_two_sum(p, x[0].fma(y[1], x[1].fma(y[0], e)))
