"""Affine maps and integer sets, evaluated. Products of symbols are allowed, which xDSL's own maps do not have."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

from xdsl.ir import Attribute

from igniter.verification.mlir.values import Undefined, Unsupported

Eval = Callable[[Sequence[int]], int]
"""A function from the dims and symbols to an integer."""

_TOKEN = re.compile(r"\s*(->|==|>=|<=|floordiv|ceildiv|mod|[A-Za-z_]\w*|\d+|[-+*():,\[\]])")
_SPELLED = re.compile(r"(?:affine_map|affine_set|semi_affine)\s*<(.*)>\s*$", re.DOTALL)


@dataclass(frozen=True)
class AffineFunction:
    """A map: one integer per result. For a set, `equal` tells which results must be 0; the others must be >= 0."""

    dims: int
    symbols: int
    results: tuple[Eval, ...]
    equal: tuple[bool, ...] = ()

    def __call__(self, operands: Sequence[int]) -> tuple[int, ...]:
        """Evaluates the map."""
        return tuple(result(operands) for result in self.results)

    def contains(self, operands: Sequence[int]) -> bool:
        """True if a point is in the set."""
        values = self(operands)
        return all(v == 0 if eq else v >= 0 for v, eq in zip(values, self.equal, strict=True))


@cache
def affine_function(attribute: Attribute) -> AffineFunction:
    """Returns the function of an attribute that is an affine map or set."""
    found = _SPELLED.search(str(attribute))
    if found is None:
        raise Unsupported(f"{attribute} is no affine map")
    text = found.group(1).strip()
    if text.startswith('"'):
        text = text[1:-1]
    return _Reader(text).function()


def _floordiv(a: int, b: int) -> int:
    if b <= 0:
        raise Undefined(f"an affine floordiv by {b}")
    return a // b


def _ceildiv(a: int, b: int) -> int:
    if b <= 0:
        raise Undefined(f"an affine ceildiv by {b}")
    return -(-a // b)


def _mod(a: int, b: int) -> int:
    if b <= 0:
        raise Undefined(f"an affine mod by {b}")
    return a % b


_FACTORS: dict[str, Callable[[int, int], int]] = {
    "*": lambda a, b: a * b,
    "floordiv": _floordiv,
    "ceildiv": _ceildiv,
    "mod": _mod,
}


class _Reader:
    """A parser of `(d0, d1)[s0] -> (d0 + s0, d1)` and of `(d0) : (d0 >= 0, d0 == 3)`."""

    def __init__(self, text: str):
        self.tokens = _TOKEN.findall(text)
        self.at = 0
        self.places: dict[str, int] = {}

    def function(self) -> AffineFunction:
        dims = self._names("(", ")")
        symbols = self._names("[", "]") if self._peek() == "[" else 0
        is_set = self._next() == ":"
        self._expect("(")
        results: list[Eval] = []
        equal: list[bool] = []
        while self._peek() != ")":
            results.append(self._constraint(equal) if is_set else self._sum())
            if self._peek() == ",":
                self.at += 1
        return AffineFunction(dims, symbols, tuple(results), tuple(equal))

    def _constraint(self, equal: list[bool]) -> Eval:
        left, how, right = self._sum(), self._next(), self._sum()
        equal.append(how == "==")
        if how == "<=":
            left, right = right, left
        return lambda v: left(v) - right(v)

    def _names(self, start: str, end: str) -> int:
        self._expect(start)
        count = 0
        while self._peek() != end:
            name = self._next()
            if name != ",":
                self.places[name] = len(self.places)
                count += 1
        self.at += 1
        return count

    def _sum(self) -> Eval:
        left = self._product()
        while self._peek() in ("+", "-"):
            sign = 1 if self._next() == "+" else -1
            left = _combined(lambda a, b, sign=sign: a + sign * b, left, self._product())
        return left

    def _product(self) -> Eval:
        left = self._factor()
        while self._peek() in _FACTORS:
            left = _combined(_FACTORS[self._next()], left, self._factor())
        return left

    def _factor(self) -> Eval:
        token = self._next()
        if token == "(":
            inner = self._sum()
            self._expect(")")
            return inner
        if token == "-":
            negated = self._factor()
            return lambda v: -negated(v)
        if token.isdecimal():
            number = int(token)
            return lambda v: number
        place = self.places[token]
        return lambda v: v[place]

    def _peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def _next(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def _expect(self, token: str) -> None:
        if self._next() != token:
            raise Unsupported(f"an affine map with '{self.tokens[self.at - 1]}' where '{token}' belongs")


def _combined(operation: Callable[[int, int], int], left: Eval, right: Eval) -> Eval:
    return lambda v: operation(left(v), right(v))
