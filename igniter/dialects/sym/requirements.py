"""What a node takes for granted of the dims of its operands: facts that a run has to check unless they are proven.

A Reshape to `[64, -1]` of `n` rows of 16 takes for granted that 64 divides `16*n`; a Split, that its sizes add up.
Where such a fact fails ONNX Runtime reports an error. A kernel computes sizes, bounds and accesses from it, so the op
around the kernel checks it first (`igniter.backends.ort.shapes`).

    requirement ::= expr (== | <=) expr "text" (node number | node "name")?
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Literal

from igniter.dialects.sym.expr import ONE, ZERO, Expr, ExprLike
from igniter.dialects.sym.ranges import NO_RANGES, is_nonneg, simplify

Relation = Literal["==", "<="]


@dataclass(frozen=True)
class Requirement:
    """`left == right`, or `left <= right`; a value that overflows, or a divisor that is not positive, breaks it too.

    `text` says what is wrong where it does not hold, as a clause about the node. `node` is the node that asks for it:
    its place among the nodes of a fusion region while kernels of equal regions may be one kernel, then its name.
    """

    left: Expr
    relation: Relation
    right: Expr
    text: str
    node: int | str | None = None

    @property
    def symbols(self) -> frozenset[str]:
        return self.left.symbols | self.right.symbols

    @property
    def fact(self) -> tuple[Expr, Relation, Expr]:
        """What it says, without who says it."""
        return (self.left, self.relation, self.right)

    @property
    def proven(self) -> bool:
        """Whether it holds whatever the symbols are."""
        if self.relation == "==" and self.left == self.right:
            return is_defined(self.left)
        difference = simplify(self.right - self.left, NO_RANGES)
        holds = difference == ZERO if self.relation == "==" else is_nonneg(difference)
        return holds and is_defined(self.left) and is_defined(self.right)

    def substitute(self, values: Mapping[str, Expr]) -> Requirement:
        """The requirement in terms of other symbols."""
        return self.mapped(lambda e: e.substitute(values))

    def mapped(self, rule: Callable[[Expr], Expr]) -> Requirement:
        """The requirement with its expressions replaced."""
        return replace(self, left=rule(self.left), right=rule(self.right))

    def at(self, node: int | str | None) -> Requirement:
        """The same of another node."""
        return replace(self, node=node)

    def holds(self, env: Mapping[str, int]) -> bool:
        """Whether it holds for these values of the symbols."""
        try:
            left, right = self.left.evaluate(env), self.right.evaluate(env)
        except ZeroDivisionError:
            return False
        return left == right if self.relation == "==" else left <= right

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"


def equal(left: ExprLike, right: ExprLike, text: str) -> Requirement:
    """`left == right`."""
    return Requirement(Expr.of(left), "==", Expr.of(right), text)


def at_most(left: ExprLike, right: ExprLike, text: str) -> Requirement:
    """`left <= right`."""
    return Requirement(Expr.of(left), "<=", Expr.of(right), text)


def one_or(dim: Expr, size: Expr, text: str) -> Requirement:
    """`dim` is `size`, or 1 and broadcast to it."""
    if dim in (ONE, size):
        return equal(dim, dim, text)
    return equal((dim - size) * (dim - 1), 0, text)


def unproven(requirements: Iterable[Requirement]) -> list[Requirement]:
    """Those that are left to a run, each fact once."""
    found: dict[object, Requirement] = {}
    for requirement in requirements:
        if requirement.fact not in found and not requirement.proven:
            found[requirement.fact] = requirement
    return list(found.values())


def is_defined(e: Expr) -> bool:
    """Whether all divisors in `e` are proven to be positive: a division by anything else has no value."""
    return all(is_nonneg(divisor - 1) for divisor in _divisors(e))


def _divisors(e: Expr) -> Iterable[Expr]:
    from igniter.dialects.sym.expr import Call

    for monomial, _ in e.terms:
        for atom in monomial:
            if isinstance(atom, Call):
                if atom.fn in ("floordiv", "mod"):
                    yield atom.args[1]
                for arg in atom.args:
                    yield from _divisors(arg)


FINE = -(1 << 63)
"""What a check on data gives where nothing is wrong; anything else is what is wrong, for the message."""


@dataclass(frozen=True)
class DataCheck:
    """What a kernel finds out about its data: an i64 that is `FINE`, or the value that breaks a rule of the node.

    It is computed like any other result of the kernel, and tested after the run by the op around it, whose error has
    `text`, the value, and the least and greatest one that is allowed. `node` is as in `Requirement`.
    """

    text: str
    bounds: tuple[Expr, Expr] | None = None
    node: int | str | None = None

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(s for bound in self.bounds or () for s in bound.symbols)

    def substitute(self, values: Mapping[str, Expr]) -> DataCheck:
        """The check in terms of other symbols."""
        return self.mapped(lambda e: e.substitute(values))

    def mapped(self, rule: Callable[[Expr], Expr]) -> DataCheck:
        """The check with its expressions replaced."""
        if self.bounds is None:
            return self
        low, high = self.bounds
        return replace(self, bounds=(rule(low), rule(high)))

    def at(self, node: int | str | None) -> DataCheck:
        """The same of another node."""
        return replace(self, node=node)
