"""The fold of an expression into values of a target: Python integers, arrays, SSA values, LLVM registers or text.

    4*n + (m floordiv 8)    ->    add(mul(constant(4), symbol("n")), floordiv(symbol("m"), constant(8)))

A target is a subclass of `Lowering` that defines the operations. The fold decides the rest in one place: the order of
terms and factors, the coefficient 1, the empty sum, minima of several arguments, and the dividends that are never
negative, for which truncating division is exact.

Every target computes what `Expr.evaluate` does: `floordiv` rounds towards minus infinity, and `mod` has the sign of its
positive divisor.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import reduce
from itertools import chain
from typing import Generic, TypeVar

from igniter.dialects.sym.expr import Atom, Call, Expr, Monomial, Sym
from igniter.dialects.sym.ranges import NO_RANGES, Ranges, is_nonneg

V = TypeVar("V")


class Lowering(ABC, Generic[V]):
    """The operations of a target, and the fold over expressions."""

    coefficient_first = True
    """The place of a term's coefficient among its factors."""

    # -- operations ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def constant(self, value: int) -> V:
        """Returns an integer."""

    @abstractmethod
    def symbol(self, name: str) -> V:
        """Returns the value of a symbol."""

    @abstractmethod
    def add(self, a: V, b: V) -> V:
        """Returns `a + b`."""

    @abstractmethod
    def mul(self, a: V, b: V) -> V:
        """Returns `a * b`."""

    @abstractmethod
    def floordiv(self, a: V, b: V, call: Call) -> V:
        """Returns `a` divided by the positive `b`, rounded towards minus infinity (see `is_exact`)."""

    @abstractmethod
    def mod(self, a: V, b: V, call: Call) -> V:
        """Returns `a - b*floordiv(a, b)` (see `is_exact`)."""

    @abstractmethod
    def minimum(self, a: V, b: V) -> V:
        """Returns the lesser value."""

    @abstractmethod
    def maximum(self, a: V, b: V) -> V:
        """Returns the greater value."""

    # -- choices of a target ------------------------------------------------------------------------------------------

    @property
    def ranges(self) -> Ranges:
        """The known ranges of symbols, to prove dividends nonnegative."""
        return NO_RANGES

    def ordered(self, values: Iterator[V]) -> Iterable[V]:
        """Returns the terms of a sum, or the symbolic factors of a term, in the order in which they are combined."""
        return values

    # -- the fold -----------------------------------------------------------------------------------------------------

    def is_exact(self, call: Call) -> bool:
        """True if the dividend is proved nonnegative: division towards zero has the same quotient and remainder."""
        return is_nonneg(call.args[0], self.ranges)

    def lower(self, e: Expr) -> V:
        """Returns the value of an expression."""
        if not e.terms:
            return self.constant(0)
        return reduce(self.add, self.ordered(self.term(monomial, c) for monomial, c in e.terms))

    def term(self, monomial: Monomial, coefficient: int) -> V:
        """Returns the value of one term."""
        return self.multiply(
            self.ordered(map(self.atom, monomial)), None if coefficient == 1 and monomial else coefficient
        )

    def multiply(self, factors: Iterable[V], coefficient: int | None) -> V:
        """Returns the product of factors, in order, and of a coefficient."""
        scale = map(self.constant, () if coefficient is None else (coefficient,))
        return reduce(self.mul, chain(scale, factors) if self.coefficient_first else chain(factors, scale))

    def atom(self, atom: Atom) -> V:
        """Returns the value of a symbol or of a call."""
        return self.symbol(atom.name) if isinstance(atom, Sym) else self.call(atom)

    def call(self, call: Call) -> V:
        """Returns the value of a call."""
        return self.apply(call, [self.lower(a) for a in call.args])

    def apply(self, call: Call, args: Sequence[V]) -> V:
        """Returns the value of a call with its arguments lowered."""
        if call.fn in ("floordiv", "mod"):
            divide = self.floordiv if call.fn == "floordiv" else self.mod
            return divide(args[0], args[1], call)
        if call.fn in ("min", "max"):
            combine: Callable[[V, V], V] = self.minimum if call.fn == "min" else self.maximum
            return reduce(combine, args)
        raise ValueError(f"no lowering of '{call.fn}' in the expression {call}")
