"""Symbolic amounts as cells of a table: simplified, and cut if still too long."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import count

from igniter.dialects.sym.expr import Atom, Call, Expr, Sym, call, floordiv

WIDEST = 64
"""The limit of a cell, in characters."""
LONG_NAME = 8
"""The length limit of a symbol in a long expression; longer ones become letters."""
MORE = "…"
"""The mark of a cut cell."""


def folded(e: Expr) -> Expr:
    """Returns the same amount with one division for nested halvings: `(((h + 1) floordiv 2) + 1) floordiv 2` is `(h +
    3) floordiv 4`."""
    return e.map_atoms(_folded_atom)


def _folded_atom(atom: Atom) -> Expr:
    if isinstance(atom, Sym):
        return Expr({(atom,): 1})
    args = [folded(a) for a in atom.args]
    inner = _quotient(args[0]) if atom.fn == "floordiv" else None
    if inner is None or (args[1].constant or 0) <= 0:
        return call(atom.fn, args)
    value, divisor, rest = inner
    return floordiv(value + rest * divisor, divisor * args[1])


def _quotient(e: Expr) -> tuple[Expr, Expr, int] | None:
    """Returns `value`, `divisor` and `rest` of an expression `(value floordiv divisor) + rest` with numbers for
    both."""
    rest = sum(c for monomial, c in e.terms if not monomial)
    quotient = (e - rest).call
    if not isinstance(quotient, Call) or quotient.fn != "floordiv" or (quotient.args[1].constant or 0) <= 0:
        return None
    return quotient.args[0], quotient.args[1], rest


class Amounts:
    """The amounts of one table. In an expression too long for a cell, letters replace divisions and long names, and
    `legend` explains them; `taken` are names unavailable as letters. If it is still too long, it is cut."""

    def __init__(self, taken: Iterable[str] = (), most: int = WIDEST):
        self.most = most
        self.cut = False
        """True if a cell was cut."""
        self._letters: dict[Atom, str] = {}
        self._free = (n for n in _letters() if n not in set(taken))

    @property
    def legend(self) -> dict[str, str]:
        """Returns the meaning of the letters."""
        return {letter: str(atom) for atom, letter in self._letters.items()}

    def text(self, e: Expr) -> str:
        """Returns an amount for a cell: a number with commas, or an expression, the largest powers first."""
        if e.constant is not None:
            return f"{e.constant:,}"
        found = folded(e)
        if len(str(found)) <= self.most:
            return str(found)
        return self._terms(found.map_atoms(self._lettered))

    def shape(self, dims: Iterable[Expr] | None) -> str:
        """Returns the dims of a tensor for a cell."""
        if dims is None:
            return "?"
        made = [folded(d) for d in dims]
        texts = [_factor(d) for d in made]
        if len(" x ".join(texts)) > self.most:
            texts = [_factor(d.map_atoms(self._lettered)) for d in made]
        return ("x" if all(d.constant is not None for d in made) else " x ").join(texts) or "scalar"

    def _lettered(self, atom: Atom) -> Expr:
        if isinstance(atom, Sym) and len(atom.name) <= LONG_NAME:
            return Expr.of(atom.name)
        if atom not in self._letters:
            self._letters[atom] = next(self._free)
        return Expr.of(self._letters[atom])

    def _terms(self, e: Expr) -> str:
        """Returns the first terms, up to the limit."""
        if len(str(e)) <= self.most:
            return str(e)
        self.cut = True
        terms = sorted(e.terms, key=lambda t: (-len(t[0]), -abs(t[1])))
        shown = terms[:1]
        while len(str(Expr(dict(terms[: len(shown) + 1])))) <= self.most - len(f" + {MORE} 99 terms"):
            shown = terms[: len(shown) + 1]
        return f"{Expr(dict(shown))} + {MORE} {len(terms) - len(shown)} terms"


def _letters() -> Iterator[str]:
    for number in count():
        yield from (f"{letter}{number or ''}" for letter in "abcdefghijklmnopqrstuvwxyz")


def _factor(dim: Expr) -> str:
    alone = dim.symbol is not None or dim.constant is not None or dim.call is not None
    return str(dim) if alone else f"({dim})"
