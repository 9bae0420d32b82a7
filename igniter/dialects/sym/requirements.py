"""Requirements of nodes on the dims of their operands: facts to be proven, or checked by a run.

A Reshape to `[64, -1]` of `n` rows of 16 requires 64 to divide `16*n`; a Split requires its sizes to add up. If such a
fact fails, ONNX Runtime reports an error. A kernel computes sizes, bounds and accesses from it, so the op around the
kernel checks it first (`igniter.backends.ort.shapes`).

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
    """A fact `left == right` or `left <= right`; overflow or a non-positive divisor breaks it too.

    `text` is the error message if it does not hold, as a clause about the node. `node` is the node with this
    requirement: its index among the nodes of a fusion region while kernels of equal regions may be shared, later its
    name.
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
        """The fact alone, without its node and text."""
        return (self.left, self.relation, self.right)

    @property
    def proven(self) -> bool:
        """True if it holds for all values of the symbols."""
        if self.relation == "==" and self.left == self.right:
            return is_defined(self.left)
        difference = simplify(self.right - self.left, NO_RANGES)
        holds = difference == ZERO if self.relation == "==" else is_nonneg(difference)
        return holds and is_defined(self.left) and is_defined(self.right)

    def substitute(self, values: Mapping[str, Expr]) -> Requirement:
        """Returns the requirement in terms of other symbols."""
        return self.mapped(lambda e: e.substitute(values))

    def mapped(self, rule: Callable[[Expr], Expr]) -> Requirement:
        """Returns the requirement with its expressions replaced."""
        return replace(self, left=rule(self.left), right=rule(self.right))

    def at(self, node: int | str | None) -> Requirement:
        """Returns the requirement for another node."""
        return replace(self, node=node)

    def holds(self, env: Mapping[str, int]) -> bool:
        """True if it holds for these values of the symbols."""
        try:
            left, right = self.left.evaluate(env), self.right.evaluate(env)
        except ZeroDivisionError:
            return False
        return left == right if self.relation == "==" else left <= right

    def __str__(self) -> str:
        return f"{self.left} {self.relation} {self.right}"


def equal(left: ExprLike, right: ExprLike, text: str) -> Requirement:
    """Returns the requirement `left == right`."""
    return Requirement(Expr.of(left), "==", Expr.of(right), text)


def at_most(left: ExprLike, right: ExprLike, text: str) -> Requirement:
    """Returns the requirement `left <= right`."""
    return Requirement(Expr.of(left), "<=", Expr.of(right), text)


def one_or(dim: Expr, size: Expr, text: str) -> Requirement:
    """Returns the requirement that `dim` is `size`, or 1 and broadcast to it."""
    if dim in (ONE, size):
        return equal(dim, dim, text)
    return equal((dim - size) * (dim - 1), 0, text)


def unproven(requirements: Iterable[Requirement]) -> list[Requirement]:
    """Returns the requirements to check at run time, each fact once."""
    found: dict[object, Requirement] = {}
    for requirement in requirements:
        if requirement.fact not in found and not requirement.proven:
            found[requirement.fact] = requirement
    return list(found.values())


def is_defined(e: Expr) -> bool:
    """True if all divisors in `e` are proven positive; other divisions have no value."""
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
"""The value of a data check without an error; any other value is the offending one, for the message."""


@dataclass(frozen=True)
class DataCheck:
    """A check by a kernel of its data: an i64 that is `FINE`, or the value that breaks a rule of the node.

    The kernel computes it like any other result, and the op around the kernel tests it after the run. The error
    contains `text`, the value, and the least and greatest allowed values. `node` is as in `Requirement`.
    """

    text: str
    bounds: tuple[Expr, Expr] | None = None
    node: int | str | None = None

    @property
    def symbols(self) -> frozenset[str]:
        return frozenset(s for bound in self.bounds or () for s in bound.symbols)

    def substitute(self, values: Mapping[str, Expr]) -> DataCheck:
        """Returns the check in terms of other symbols."""
        return self.mapped(lambda e: e.substitute(values))

    def mapped(self, rule: Callable[[Expr], Expr]) -> DataCheck:
        """Returns the check with its expressions replaced."""
        if self.bounds is None:
            return self
        low, high = self.bounds
        return replace(self, bounds=(rule(low), rule(high)))

    def at(self, node: int | str | None) -> DataCheck:
        """Returns the check for another node."""
        return replace(self, node=node)
