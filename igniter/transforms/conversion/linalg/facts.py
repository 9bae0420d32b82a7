"""`Facts`: the equalities between dims that the ops of a function state, and the requirements that a call checks.

An unknown dim of an argument is a symbol of its own. Where the meaning of an op needs two dims to be equal (the depth
of a product), a symbol is replaced by the other dim: the two arguments then share it, and the caller's sizes are
checked when the symbols are bound. The lowering begins again with the replacement, so no code exists under two names of
one dim. A fact that replaces no symbol is a requirement of the kernel. Nothing is assumed without one of the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.ir import Operation

from igniter.dialects.sym.expr import ZERO, Expr, product
from igniter.dialects.sym.proofs import proven
from igniter.dialects.sym.ranges import NO_RANGES
from igniter.dialects.sym.requirements import Requirement, at_most, equal
from igniter.transforms.conversion.linalg.errors import place_of, refused


class Unified(Exception):
    """Raised when a symbol was replaced: the lowering of the function begins again."""


class Facts:
    """What is known about the symbols of a function."""

    def __init__(self) -> None:
        self.values: dict[str, Expr] = {}
        """The symbols that are replaced, with their values."""
        self.order: dict[str, int] = {}
        """The symbols in the order of the arguments; of two equal ones, the first stays."""
        self.requires: list[Requirement] = []

    def symbol(self, name: str) -> Expr:
        """Returns the value of the symbol of an argument's dim."""
        self.order.setdefault(name, len(self.order))
        return self.values.get(name, Expr.of(name))

    def require(self, op: Operation, *requirements: Requirement) -> None:
        """Adds requirements, unless they always hold."""
        self.requires += [r.at(place_of(op)) for r in requirements if not r.proven]

    def equal(self, op: Operation, a: Expr, b: Expr, text: str) -> None:
        """States that two sizes are equal; raises `Unified` if a symbol is replaced, `LinalgError` if they differ."""
        if a == b:
            return
        difference = (a - b).constant
        if difference is not None:
            raise refused(op, f"{text}: {a} and {b} (correct the types of the operands)")
        for name, other in self._replaceable(a, b):
            self.values = {n: v.substitute({name: other}) for n, v in self.values.items()}
            self.values[name] = other
            self.requires.clear()
            raise Unified
        self.require(op, equal(a, b, text))

    def _replaceable(self, a: Expr, b: Expr) -> Iterable[tuple[str, Expr]]:
        """Returns a symbol with its value, if one of the two is a symbol that the other does not contain."""
        pairs = [(x.symbol, y) for x, y in ((a, b), (b, a)) if x.symbol in self.order and x.symbol not in y.symbols]
        # Of two symbols the later one is replaced.
        pairs.sort(key=lambda pair: -self.order[pair[0] or ""])
        for name, value in pairs[:1]:
            assert name is not None
            if all(s in self.order for s in value.symbols):
                yield name, value

    def nonnegative(self, op: Operation, sizes: Sequence[Expr], text: str) -> None:
        """Requires sizes to be at least 0."""
        self.require(op, *(at_most(0, s, text) for s in sizes if not proven(s, NO_RANGES)))

    def at_most(self, op: Operation, a: Expr, b: Expr, text: str, points: Sequence[Expr] = ()) -> None:
        """Requires `a <= b`, unless one of the extents `points` is 0."""
        if proven(b - a, NO_RANGES):
            return
        extents = product(p for p in points if p.constant is None)
        if any(p == ZERO for p in points):
            return
        plain = extents.constant == 1
        self.require(op, at_most(a, b, text) if plain else at_most(extents * (a - b), 0, text))
