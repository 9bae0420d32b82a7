"""Symbolic integer expressions: the dims of tensors, the extents of loops and the subscripts of accesses.

    expr  ::= integer | name | expr + expr | expr - expr | expr * expr
            | expr floordiv expr | expr mod expr | min(expr, ...) | max(expr, ...)
    name  ::= bare identifier, or a quoted string when the model's own name is no identifier

An `Expr` is an immutable polynomial over *atoms* in a canonical order, so that expressions equal as polynomials compare
equal. An atom is a symbol or a call (`floordiv`, `mod`, `min`, `max`) with canonical arguments.

Symbols of dims are never negative. Loop axes have a range, given to `simplify` and `is_nonneg` as `Ranges`. Nothing is
known about indirect operands (`_0`, `_1`, ...). Divisors are positive wherever an expression is evaluated.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

Monomial: TypeAlias = "tuple[Atom, ...]"
"""Atoms in canonical order, repeated for powers; `()` is the constant monomial."""

BARE = re.compile(r"[A-Za-z_][A-Za-z0-9_$.]*")
KEYWORDS = frozenset(("floordiv", "mod", "min", "max"))
"""The names that need no quotes, except the keywords."""
INDIRECT = re.compile(r"_\d+|\$.*")
"""The names of indirect operands in subscripts, and of values in the bounds of loops (`loop_range`)."""


@dataclass(frozen=True)
class Sym:
    """A named integer: a dim of the model or an axis of a loop nest."""

    name: str

    @cached_property
    def order(self) -> tuple[int, str]:
        """The sort key of the atom."""
        return (0, str(self))

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name if BARE.fullmatch(self.name) and self.name not in KEYWORDS else f'"{self.name}"'


@dataclass(frozen=True)
class Call:
    """A call of `floordiv`, `mod` (two arguments), `min` or `max` (two or more)."""

    fn: str
    args: tuple[Expr, ...]

    @cached_property
    def order(self) -> tuple[int, str]:
        """The sort key of the atom: calls come after symbols."""
        return (1, str(self))

    @property
    def depth(self) -> int:
        """The nesting depth of calls, including this one."""
        return 1 + max((a.depth for a in self.args), default=0)

    def __str__(self) -> str:
        if self.fn in ("floordiv", "mod"):
            return f"{_operand(self.args[0])} {self.fn} {_operand(self.args[1])}"
        return f"{self.fn}({', '.join(map(str, self.args))})"


Atom: TypeAlias = Sym | Call
ExprLike: TypeAlias = "Expr | int | str"

MAX_TERMS, MAX_TEXT = 32, 4000
MAX_DEGREE, MAX_DEPTH, MAX_BITS = 32, 32, 128
"""The limits of a manageable expression: factors of a term, nested calls, and bits of a coefficient."""


class Expr:
    """An immutable symbolic integer; build with `Expr.of`, operators, `floordiv`, `mod`, `minimum`, `maximum`."""

    __slots__ = ("_depth", "_hash", "_symbols", "_text", "terms")
    terms: tuple[tuple[Monomial, int], ...]

    def __init__(self, terms: Mapping[Monomial, int]):
        kept = [(m, c) for m, c in terms.items() if c != 0]
        if len(kept) > 1:
            kept.sort(key=_term_key)
        self._set(tuple(kept))

    def _set(self, terms: tuple[tuple[Monomial, int], ...]) -> None:
        self.terms = terms
        self._hash: int | None = None
        self._text: str | None = None
        self._depth: int | None = None
        self._symbols: frozenset[str] | None = None

    # -- construction ------------------------------------------------------------------------------------------------

    @staticmethod
    def of(value: ExprLike) -> Expr:
        """Returns `value` as an expression; a string is the name of one symbol, not a formula (see `Expr.parse`)."""
        if isinstance(value, Expr):
            return value
        if isinstance(value, str):
            return _symbol(value)
        return _const(int(value))

    @staticmethod
    def parse(text: str) -> Expr:
        """Parses an expression; raises `ValueError` if `text` is not one."""
        from igniter.dialects.sym.expr_text import TextTokens, parse_expr

        tokens = TextTokens(text)
        result = parse_expr(tokens)
        if tokens.peek():
            raise ValueError(f"unexpected {tokens.peek()!r} in expression {text!r}")
        return result

    # -- inspection --------------------------------------------------------------------------------------------------

    @property
    def constant(self) -> int | None:
        """The value if the expression has no symbols; else None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and not self.terms[0][0]:
            return self.terms[0][1]
        return None

    @property
    def symbol(self) -> str | None:
        """The name if the expression is exactly one symbol; else None."""
        if len(self.terms) == 1:
            monomial, coefficient = self.terms[0]
            if coefficient == 1 and len(monomial) == 1 and isinstance(monomial[0], Sym):
                return monomial[0].name
        return None

    @property
    def call(self) -> Call | None:
        """The call if the expression is exactly one call; else None."""
        if len(self.terms) == 1 and self.terms[0][1] == 1 and len(self.terms[0][0]) == 1:
            atom = self.terms[0][0][0]
            return atom if isinstance(atom, Call) else None
        return None

    @property
    def is_small(self) -> bool:
        """True if the expression is within the size limits for further arithmetic. Products of sums are expanded, and
        every factor of two terms doubles the terms; squares double the degree; quotients of quotients nest. Code that
        creates dims must stop at these limits (`MAX_TERMS`, `MAX_TEXT`, `MAX_DEGREE`, `MAX_DEPTH`, `MAX_BITS`)."""
        if len(self.terms) > MAX_TERMS or self.depth > MAX_DEPTH:
            return False
        if any(len(m) > MAX_DEGREE or c.bit_length() > MAX_BITS for m, c in self.terms):
            return False
        return len(self.terms) < 2 or len(str(self)) <= MAX_TEXT

    @property
    def depth(self) -> int:
        """The nesting depth of calls: 0 for a polynomial of symbols."""
        if self._depth is None:
            inner = (a.depth for m, _ in self.terms for a in m if isinstance(a, Call))
            self._depth = max(inner, default=0)
        return self._depth

    @property
    def symbols(self) -> frozenset[str]:
        """The symbols of the expression, including those inside calls."""
        if self._symbols is None:
            self._symbols = frozenset[str]().union(*(_atom_symbols(a) for m, _ in self.terms for a in m))
        return self._symbols

    def coefficient(self, name: str) -> Expr | None:
        """Returns `c` if the expression is `c*name + rest` and neither `c` nor `rest` contains `name`; else `None`."""
        found: dict[Monomial, int] = {}
        for monomial, c in self.terms:
            hits = [a for a in monomial if name in _atom_symbols(a)]
            if not hits:
                continue
            if len(hits) > 1 or not isinstance(hits[0], Sym):
                return None
            rest = tuple(a for a in monomial if a is not hits[0])
            found[rest] = found.get(rest, 0) + c
        return Expr(found)

    def without(self, name: str) -> Expr:
        """Returns the terms in which `name` does not occur."""
        return Expr({m: c for m, c in self.terms if all(name not in _atom_symbols(a) for a in m)})

    # -- arithmetic --------------------------------------------------------------------------------------------------

    def __add__(self, other: ExprLike) -> Expr:
        right = Expr.of(other)
        if not self.terms or not right.terms:
            return self if self.terms else right
        terms = dict(self.terms)
        for monomial, c in right.terms:
            terms[monomial] = terms.get(monomial, 0) + c
        return Expr(terms)

    def __mul__(self, other: ExprLike) -> Expr:
        right = Expr.of(other)
        for a, b in ((self, right), (right, self)):
            if (factor := b.constant) is not None:
                return a._scaled(factor)
        terms: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in right.terms:
                monomial = tuple(sorted(m1 + m2, key=_atom_key))
                terms[monomial] = terms.get(monomial, 0) + c1 * c2
        return Expr(terms)

    def __neg__(self) -> Expr:
        return self._scaled(-1)

    def _scaled(self, factor: int) -> Expr:
        """Returns the expression times `factor`, with its terms in the same order."""
        if factor == 1 or not self.terms:
            return self
        if factor == 0:
            return ZERO
        made = object.__new__(Expr)
        made._set(tuple((m, c * factor) for m, c in self.terms))
        return made

    def __sub__(self, other: ExprLike) -> Expr:
        right = Expr.of(other)
        if not self.terms or not right.terms:
            return self if self.terms else -right
        terms = dict(self.terms)
        for monomial, c in right.terms:
            terms[monomial] = terms.get(monomial, 0) - c
        return Expr(terms)

    def __radd__(self, other: ExprLike) -> Expr:
        return self + other

    def __rmul__(self, other: ExprLike) -> Expr:
        return self * other

    def __rsub__(self, other: ExprLike) -> Expr:
        return Expr.of(other) - self

    def __floordiv__(self, other: ExprLike) -> Expr:
        return floordiv(self, Expr.of(other))

    def __mod__(self, other: ExprLike) -> Expr:
        return mod(self, Expr.of(other))

    def ceildiv(self, other: ExprLike) -> Expr:
        """Returns the quotient rounded up, for a positive divisor."""
        divisor = Expr.of(other)
        return floordiv(self + divisor - 1, divisor)

    # -- rewriting and evaluation ------------------------------------------------------------------------------------

    def substitute(self, values: Mapping[str, Expr]) -> Expr:
        """Returns the expression with symbols replaced simultaneously, in canonical form."""
        if not values or self.symbols.isdisjoint(values):
            return self

        def replaced(atom: Atom) -> Expr:
            if isinstance(atom, Sym):
                return values[atom.name] if atom.name in values else Expr({(atom,): 1})
            return call(atom.fn, [a.substitute(values) for a in atom.args])

        return self.map_atoms(replaced)

    def map_atoms(self, fn: Callable[[Atom], Expr]) -> Expr:
        """Returns the expression with every top-level atom replaced by `fn(atom)`."""
        terms: dict[Monomial, int] = {}
        for monomial, c in self.terms:
            product = _const(c)
            for atom in monomial:
                product = product * fn(atom)
            for m, factor in product.terms:
                terms[m] = terms.get(m, 0) + factor
        return Expr(terms)

    def capped(self, guard: Expr) -> Expr:
        """Returns an expression with the same value if `guard` is >= 0, and no larger one otherwise, if all its factors
        are >= 0. For a guard `most - n*m`, this is the expression with `min(n*m, most)` for each factor `n*m`; for any
        other guard it is the expression itself."""
        bounded = [(monomial, -c) for monomial, c in guard.terms if monomial]
        if len(bounded) != 1 or bounded[0][1] <= 0:
            return self
        (factor, count), most = bounded[0], dict(guard.terms).get((), 0)
        cap = minimum(Expr({factor: 1}), _const(most // count))
        found = _const(0)
        for monomial, c in self.terms:
            rest = list(monomial)
            if all(atom in rest and rest.remove(atom) is None for atom in factor):
                found = found + Expr({tuple(rest): c}) * cap
            else:
                found = found + Expr({monomial: c})
        return found

    def evaluate(self, env: Mapping[str, int]) -> int:
        """Returns the value with every symbol bound; raises `KeyError` with a missing symbol."""
        total = 0
        for monomial, c in self.terms:
            for atom in monomial:
                c *= env[atom.name] if isinstance(atom, Sym) else _apply(atom.fn, [a.evaluate(env) for a in atom.args])
            total += c
        return total

    # -- identity ----------------------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return self.constant == other
        if self is other:
            return True
        if not isinstance(other, Expr) or hash(self) != hash(other):
            return False
        if self.terms is other.terms:
            return True
        if self.terms != other.terms:
            return False
        # Equal expressions share their terms from here on, so that later comparisons of nested parts are fast.
        other.terms = self.terms
        return True

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.terms)
        return self._hash

    def __str__(self) -> str:
        if self._text is None:
            self._text = _render(self)
        return self._text

    def __repr__(self) -> str:
        return f"Expr({self})"


# -- calls ------------------------------------------------------------------------------------------------------------


def call(fn: str, args: Sequence[Expr]) -> Expr:
    """Returns the canonical form of a call."""
    if fn == "floordiv":
        return floordiv(args[0], args[1])
    if fn == "mod":
        return mod(args[0], args[1])
    if fn == "min":
        return minimum(*args)
    if fn == "max":
        return maximum(*args)
    raise ValueError(f"unknown function {fn!r} in an expression")


def floordiv(a: Expr, b: Expr) -> Expr:
    """Returns `a` divided by the positive `b`, rounded towards minus infinity."""
    if b == ONE:
        return a
    if a.constant is not None and b.constant:
        return _const(a.constant // b.constant)
    quotient, rest = split_quotient(a, b)
    if rest.constant is not None and b.constant is not None:
        return quotient + rest.constant // b.constant if b.constant else quotient + _atom("floordiv", rest, b)
    if not rest.terms:
        return quotient
    inner = rest.terms[0]
    if len(rest.terms) == 1 and inner[1] == 1 and len(inner[0]) == 1:
        atom = inner[0][0]
        if isinstance(atom, Call) and atom.fn == "floordiv":
            return quotient + floordiv(atom.args[0], atom.args[1] * b)
    return quotient + _atom("floordiv", rest, b)


def mod(a: Expr, b: Expr) -> Expr:
    """Returns `a - b*floordiv(a, b)`: never negative for a positive `b`."""
    if b == ONE:
        return ZERO
    if a.constant is not None and b.constant:
        return _const(a.constant % b.constant)
    _, rest = split_quotient(a, b)
    if not rest.terms:
        return ZERO
    if rest.constant is not None and b.constant:
        return _const(rest.constant % b.constant)
    inner = rest.terms[0]
    if len(rest.terms) == 1 and inner[1] == 1 and len(inner[0]) == 1:
        atom = inner[0][0]
        if isinstance(atom, Call) and atom.fn == "mod" and split_quotient(atom.args[1], b)[1] == ZERO:
            return mod(atom.args[0], b)
    return _atom("mod", rest, b)


def minimum(*args: Expr) -> Expr:
    """Returns the least of the arguments."""
    return _extremum("min", args)


def maximum(*args: Expr) -> Expr:
    """Returns the greatest of the arguments."""
    return _extremum("max", args)


def symbols_of(exprs: Iterable[Expr]) -> frozenset[str]:
    """Returns the union of the symbols of `exprs`."""
    found: frozenset[str] = frozenset()
    for e in exprs:
        found |= e.symbols
    return found


def product(factors: Iterable[Expr]) -> Expr:
    """Returns the product; 1 for no factors."""
    result = ONE
    for factor in factors:
        result = result * factor
    return result


def linearize(subscripts: Sequence[Expr], dims: Sequence[Expr]) -> Expr:
    """Returns the row-major offset of `subscripts` in a tensor of `dims`."""
    offset = ZERO
    for subscript, dim in zip(subscripts, dims, strict=True):
        offset = offset * dim + subscript
    return offset


def delinearize(offset: Expr, dims: Sequence[Expr]) -> list[Expr]:
    """Returns the row-major subscripts of `offset` in a tensor of `dims` (the inverse of `linearize`)."""
    subscripts: list[Expr] = []
    for dim in reversed(dims[1:]):
        subscripts.append(mod(offset, dim))
        offset = floordiv(offset, dim)
    if dims:
        subscripts.append(offset)
    return subscripts[::-1]


def _extremum(fn: str, args: Sequence[Expr]) -> Expr:
    flat: list[Expr] = []
    for arg in args:
        inner = arg.terms[0][0] if len(arg.terms) == 1 and arg.terms[0][1] == 1 else ()
        nested = inner[0] if len(inner) == 1 else None
        flat.extend(nested.args if isinstance(nested, Call) and nested.fn == fn else (arg,))
    pick = min if fn == "min" else max
    constants = [a.constant for a in flat if a.constant is not None]
    rest = sorted({a for a in flat if a.constant is None}, key=str)
    # Two arguments whose difference is constant, that is with the same other terms, are ordered without knowing the
    # symbols.
    alike: dict[tuple[tuple[Monomial, int], ...], Expr] = {}
    for candidate in rest:
        key = tuple(term for term in candidate.terms if term[0])
        other = alike.get(key)
        alike[key] = candidate if other is None else pick(candidate, other, key=_constant_term)
    kept = list(alike.values())
    if constants:
        bound = pick(constants)
        # Dims are never negative: max(dim, 0) is the dim.
        if not (fn == "max" and bound <= 0 and kept and _any_nonneg(kept)):
            kept.append(_const(bound))
    return kept[0] if len(kept) == 1 else Expr({(Call(fn, tuple(sorted(kept, key=str))),): 1})


def _constant_term(e: Expr) -> int:
    return next((c for monomial, c in e.terms if not monomial), 0)


def _any_nonneg(exprs: Iterable[Expr]) -> bool:
    from igniter.dialects.sym.ranges import is_nonneg

    return any(is_nonneg(e) for e in exprs)


def split_quotient(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Returns `(q, r)` with `a = q*b + r`; `q` holds the terms divisible by `b`."""
    if len(b.terms) != 1:
        return _split_by_sum(a, b) if b.terms else (ZERO, a)
    (divisor, scale), *_ = b.terms
    quotient: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, c in a.terms:
        left = list(monomial)
        for atom in divisor:
            if atom in left:
                left.remove(atom)
            else:
                break
        else:
            if c % scale == 0:
                quotient[tuple(left)] = c // scale
                continue
        rest[monomial] = c
    # A constant remainder is normalised to [0, b), so (i + 9) floordiv 8 equals (i + 1) floordiv 8 + 1.
    if not divisor and () in rest and scale > 0:
        whole, rest[()] = divmod(rest[()], scale)
        quotient[()] = quotient.get((), 0) + whole
    return Expr(quotient), Expr(rest)


def _split_by_sum(a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Splits by a divisor of several terms, as `split_quotient`: `i*(m + 4) + j` by `m + 4`.

    Either `b` divides `a`, or the remainder consists of unchanged terms of `a`: any other result would grow, not
    simplify.
    """
    quotient, rest = ZERO, a
    while rest.terms and (factor := _term_quotient(rest.terms[0], b)) is not None and len(quotient.terms) < 8:
        quotient, rest = quotient + factor, rest - factor * b
    if not rest.terms:
        return quotient, rest
    quotient, rest = ZERO, a
    for term in a.terms:
        factor = _term_quotient(term, b)
        if factor is not None:
            candidate = rest - factor * b
            if set(candidate.terms) <= set(rest.terms):
                quotient, rest = quotient + factor, candidate
    return quotient, rest


def _term_quotient(term: tuple[Monomial, int], b: Expr) -> Expr | None:
    """Returns `term` divided by the first term of `b`; None if it does not divide."""
    (monomial, c), (lead, scale) = term, b.terms[0]
    left = list(monomial)
    for atom in lead:
        if atom not in left:
            return None
        left.remove(atom)
    return Expr({tuple(left): c // scale}) if c % scale == 0 else None


def _apply(fn: str, args: Sequence[int]) -> int:
    if fn == "floordiv":
        return args[0] // args[1]
    if fn == "mod":
        return args[0] % args[1]
    return min(args) if fn == "min" else max(args)


# -- internals --------------------------------------------------------------------------------------------------------


def _render(e: Expr) -> str:
    if not e.terms:
        return "0"
    parts: list[str] = []
    for monomial, c in e.terms:
        factors = [_operand_atom(a) for a in monomial]
        if abs(c) != 1 or not factors:
            factors.insert(0, str(abs(c)))
        sign = "-" if c < 0 else "+"
        parts.append(f"{sign} {'*'.join(factors)}" if parts else ("-" if c < 0 else "") + "*".join(factors))
    return " ".join(parts)


def _operand(e: Expr) -> str:
    simple = e.symbol is not None or (e.constant is not None and e.constant >= 0)
    return str(e) if simple else f"({e})"


def _operand_atom(atom: Atom) -> str:
    return f"({atom})" if isinstance(atom, Call) and atom.fn in ("floordiv", "mod") else str(atom)


def _atom_key(atom: Atom) -> tuple[int, str]:
    return atom.order


def _term_key(term: tuple[Monomial, int]) -> tuple[int, list[tuple[int, str]]]:
    # Longer monomials come first and the constant last, the usual order of a polynomial.
    return (-len(term[0]), [a.order for a in term[0]])


def _atom(fn: str, *args: Expr) -> Expr:
    return Expr({(Call(fn, args),): 1})


def _atom_symbols(atom: Atom) -> frozenset[str]:
    if isinstance(atom, Sym):
        return frozenset((atom.name,))
    return frozenset[str]().union(*(a.symbols for a in atom.args))


@lru_cache(maxsize=4096)
def _symbol(name: str) -> Expr:
    return Expr({(Sym(name),): 1})


@lru_cache(maxsize=4096)
def _const(value: int) -> Expr:
    return Expr({(): value})


ZERO = _const(0)
ONE = _const(1)
