"""Symbolic expressions as values of type `index`.

An affine expression is one `affine.apply`; products of symbols, minima and maxima are ops of `arith`:

    4*i + (n floordiv 2)    affine.apply affine_map<(d0, d1) -> (4*d0 + (d1 floordiv 2))>(%i, %n)
    n*m                     arith.muli %n, %m : index
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce

from igniter.backends.mlir.text import Writer
from igniter.dialects.sym.expr import Call, Expr, Sym
from igniter.dialects.sym.lowering import Lowering

Names = Mapping[str, str]
"""The values of axes and symbols, by name."""


def is_affine(e: Expr) -> bool:
    """True if `e` is affine in all its names: no products of names, constant divisors, no minima."""
    for monomial, _ in e.terms:
        if len(monomial) > 1:
            return False
        for atom in monomial:
            if isinstance(atom, Sym):
                continue
            if atom.fn not in ("floordiv", "mod") or atom.args[1].constant is None or not is_affine(atom.args[0]):
                return False
    return True


def map_text(names: Sequence[str], results: Sequence[Expr]) -> str:
    """Returns an affine map over `names` as its dims."""
    renamed = {name: Expr.of(f"d{k}") for k, name in enumerate(names)}
    dims = ", ".join(f"d{k}" for k in range(len(names)))
    values = ", ".join(str(e.substitute({n: renamed[n] for n in e.symbols})) for e in results)
    return f"affine_map<({dims}) -> ({values})>"


class Expressions(Lowering[str]):
    """Writes expressions over `names`, and returns the names of their values."""

    def __init__(self, writer: Writer, names: Names):
        self.writer = writer
        self.names = names

    def value(self, e: Expr) -> str:
        """Returns the value of `e`."""
        if e.constant is not None:
            return self.constant(e.constant)
        if e.symbol is not None:
            return self.symbol(e.symbol)
        if not is_affine(e):
            return self.lower(e)
        used = sorted(e.symbols)
        return self.writer.let("at", f"affine.apply {map_text(used, [e])}({', '.join(self.names[n] for n in used)})")

    def values(self, exprs: Sequence[Expr]) -> str:
        """Returns the values of several expressions, separated by commas."""
        return ", ".join([self.value(e) for e in exprs])

    def holds(self, guards: Sequence[Expr]) -> str:
        """Returns an `i1`, true if every guard is >= 0."""
        tests = [self._compare("sge", self.value(g), self.writer.index(0)) for g in guards]
        if not tests:
            return self.writer.let("in", "arith.constant true")
        while len(tests) > 1:
            tests[:2] = [self.writer.let("in", f"arith.andi {tests[0]}, {tests[1]} : i1")]
        return tests[0]

    def relation(self, left: Expr, relation: str, right: Expr) -> str:
        """Returns an `i1` for `left == right` or `left <= right`."""
        predicate = "eq" if relation == "==" else "sle"
        return self._compare(predicate, self.value(left), self.value(right))

    def _compare(self, predicate: str, a: str, b: str) -> str:
        return self.writer.let("in", f"arith.cmpi {predicate}, {a}, {b} : index")

    def _binary(self, op: str, a: str, b: str) -> str:
        return self.writer.let("at", f"arith.{op} {a}, {b} : index")

    # -- the operations of `Lowering` ---------------------------------------------------------------------------------

    def lower(self, e: Expr) -> str:
        """Writes the affine terms as one value, and adds the other ones."""
        if is_affine(e):
            return self.value(e)
        affine = Expr({m: c for m, c in e.terms if is_affine(Expr({m: c}))})
        rest = [self.term(m, c) for m, c in (e - affine).terms]
        return reduce(self.add, rest if not affine.terms else [self.value(affine), *rest])

    def ordered(self, values: Iterator[str]) -> list[str]:
        return list(values)

    def constant(self, value: int) -> str:
        return self.writer.index(value)

    def symbol(self, name: str) -> str:
        return self.names[name]

    def add(self, a: str, b: str) -> str:
        return self._binary("addi", a, b)

    def mul(self, a: str, b: str) -> str:
        return self._binary("muli", a, b)

    def floordiv(self, a: str, b: str, call: Call) -> str:
        return self._binary("divui" if self.is_exact(call) else "floordivsi", a, b)

    def mod(self, a: str, b: str, call: Call) -> str:
        if self.is_exact(call):
            return self._binary("remui", a, b)
        multiple = self._binary("muli", self._binary("floordivsi", a, b), b)
        return self._binary("subi", a, multiple)

    def minimum(self, a: str, b: str) -> str:
        return self._binary("minsi", a, b)

    def maximum(self, a: str, b: str) -> str:
        return self._binary("maxsi", a, b)
