"""Symbolic expressions as LLVM IR: 64-bit arithmetic with detection of overflow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from igniter.dialects.sym.expr import Call, Expr
from igniter.dialects.sym.lowering import Lowering
from igniter.errors import IgniterError

OVERFLOW = {"add": "sadd", "sub": "ssub", "mul": "smul"}

INTRINSICS = """
declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.ssub.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)
declare i64 @llvm.umax.i64(i64, i64)
declare i64 @llvm.umin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
declare i64 @llvm.smin.i64(i64, i64)
declare ptr @llvm.stacksave()
declare void @llvm.stackrestore(ptr)
"""


def fits(value: int) -> bool:
    """True if the value fits in a signed 64-bit integer."""
    return -(1 << 63) <= value < (1 << 63)


def int64(value: int) -> str:
    """Returns a constant operand; raises `IgniterError` if it does not fit."""
    if not fits(value):
        raise IgniterError(f"the size {value} does not fit in a signed 64-bit integer")
    return str(value)


class FunctionBuilder:
    """The text of one LLVM function, line by line."""

    def __init__(self, header: str):
        self._lines = [header + " {", "entry:"]
        self._count = 0

    def unique(self) -> int:
        self._count += 1
        return self._count

    def fresh(self, hint: str = "v") -> str:
        return f"%{hint}.n{self.unique()}"

    def fresh_label(self, hint: str) -> str:
        return f"{hint}.n{self.unique()}"

    def line(self, text: str) -> None:
        self._lines.append("  " + text)

    def label(self, name: str) -> None:
        self._lines.append(f"{name}:")

    def text(self) -> str:
        return "\n".join((*self._lines, "}", ""))

    # -- values ------------------------------------------------------------------------------------------------------

    def load(self, kind: str, pointer: str) -> str:
        result = self.fresh("load")
        self.line(f"{result} = load {kind}, ptr {pointer}")
        return result

    def element(self, kind: str, base: str, index: int | str) -> str:
        """Returns the address of an element of an array."""
        result = self.fresh("at")
        self.line(f"{result} = getelementptr {kind}, ptr {base}, i64 {index}")
        return result

    def compare(self, predicate: str, a: str, b: str, kind: str = "i64") -> str:
        result = self.fresh("is")
        self.line(f"{result} = icmp {predicate} {kind} {a}, {b}")
        return result

    def negate(self, flag: str) -> str:
        result = self.fresh("not")
        self.line(f"{result} = xor i1 {flag}, true")
        return result

    def all_of(self, conditions: Sequence[str]) -> str:
        """Returns one i1, true when every condition is."""
        if not conditions:
            return "true"
        result = conditions[0]
        for condition in conditions[1:]:
            both = self.fresh("and")
            self.line(f"{both} = and i1 {result}, {condition}")
            result = both
        return result

    # -- expressions -------------------------------------------------------------------------------------------------

    def expression(self, expr: Expr, values: Mapping[str, str]) -> tuple[str, list[str]]:
        """Returns the value of `expr`, and flags (i1); the value is invalid if any flag is set."""
        sizes = _Sizes(self, values)
        return sizes.lower(expr), sizes.flags

    def solve(self, dim: str, rest: str, coefficient: int) -> tuple[str, str]:
        """Returns `(dim - rest) / coefficient`, and an i1: true if it is a natural number."""
        flags: list[str] = []
        difference = self.checked("sub", dim, rest, flags)
        quotient, remainder = self.fresh("quotient"), self.fresh("remainder")
        # Division of the least number by -1 overflows, so srem must not get it.
        if coefficient == -1:
            negative = self.checked("sub", "0", difference, flags)
            self.line(f"{quotient} = add i64 {negative}, 0")
            self.line(f"{remainder} = add i64 0, 0")
        else:
            self.line(f"{quotient} = sdiv i64 {difference}, {int64(coefficient)}")
            self.line(f"{remainder} = srem i64 {difference}, {int64(coefficient)}")
        exact = [self.compare("eq", remainder, "0"), self.compare("sge", quotient, "0")]
        return quotient, self.all_of([*exact, *(self.negate(flag) for flag in flags)])

    def checked(self, op: str, a: str, b: str, flags: list[str]) -> str:
        """Returns a sum, difference or product; appends a flag that is set on overflow."""
        pair, value, flag = self.fresh("pair"), self.fresh(op), self.fresh("over")
        self.line(f"{pair} = call {{ i64, i1 }} @llvm.{OVERFLOW[op]}.with.overflow.i64(i64 {a}, i64 {b})")
        self.line(f"{value} = extractvalue {{ i64, i1 }} {pair}, 0")
        self.line(f"{flag} = extractvalue {{ i64, i1 }} {pair}, 1")
        flags.append(flag)
        return value


class _Sizes(Lowering[str]):
    """Expressions as i64 registers; every operation that can fail adds a flag."""

    def __init__(self, builder: FunctionBuilder, values: Mapping[str, str]):
        self._f = builder
        self._values = values
        self.flags: list[str] = []

    def constant(self, value: int) -> str:
        return int64(value)

    def symbol(self, name: str) -> str:
        return self._values[name]

    def add(self, a: str, b: str) -> str:
        return self._f.checked("add", a, b, self.flags)

    def mul(self, a: str, b: str) -> str:
        return self._f.checked("mul", a, b, self.flags)

    def floordiv(self, a: str, b: str, call: Call) -> str:
        return self._divide(a, b, "floordiv")

    def mod(self, a: str, b: str, call: Call) -> str:
        return self._divide(a, b, "mod")

    def _divide(self, a: str, b: str, fn: str) -> str:
        """Emits division rounding towards minus infinity; a divisor <= 0 sets a flag."""
        f = self._f
        bad = f.compare("sle", b, "0")
        self.flags.append(bad)
        safe, quotient, rest = f.fresh("divisor"), f.fresh("quotient"), f.fresh("rest")
        f.line(f"{safe} = select i1 {bad}, i64 1, i64 {b}")
        f.line(f"{quotient} = sdiv i64 {a}, {safe}")
        f.line(f"{rest} = srem i64 {a}, {safe}")
        below = f.compare("slt", rest, "0")
        result = f.fresh(fn)
        if fn == "mod":
            lifted = f.fresh("lifted")
            f.line(f"{lifted} = add i64 {rest}, {safe}")
            f.line(f"{result} = select i1 {below}, i64 {lifted}, i64 {rest}")
        else:
            one = f.fresh("one")
            f.line(f"{one} = zext i1 {below} to i64")
            f.line(f"{result} = sub i64 {quotient}, {one}")
        return result

    def minimum(self, a: str, b: str) -> str:
        return self._extremum("min", a, b)

    def maximum(self, a: str, b: str) -> str:
        return self._extremum("max", a, b)

    def _extremum(self, fn: str, a: str, b: str) -> str:
        result = self._f.fresh(fn)
        self._f.line(f"{result} = call i64 @llvm.s{fn}.i64(i64 {a}, i64 {b})")
        return result
