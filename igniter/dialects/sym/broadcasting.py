"""Facts about two dims from broadcasting: weaker than they seem, because a symbol may be 1 at run time."""

from __future__ import annotations

from math import gcd

from igniter.dialects.sym.expr import Call, Expr
from igniter.dialects.sym.ranges import is_nonneg


def never_one(dim: Expr) -> bool:
    """True if a dim is proven to differ from 1: it is 0, at least 2, or a multiple of a number above 1."""
    if is_nonneg(dim - 2) or dim.constant == 0:
        return True
    return gcd(*(c for _, c in dim.terms)) > 1 if dim.terms else True


def must_agree(a: Expr, b: Expr) -> bool:
    """True if two dims of a broadcast are equal in every valid run: neither is ever 1, or one is 1 only if the other
    is, as with `s` and `min(s, 512)`."""
    return (never_one(a) and never_one(b)) or _caps(a, b) or _caps(b, a)


def _caps(dim: Expr, capped: Expr) -> bool:
    """True if `capped` is the minimum of `dim` and of bounds of at least 2."""
    if len(capped.terms) != 1:
        return False
    monomial, factor = capped.terms[0]
    atom = monomial[0] if len(monomial) == 1 and factor == 1 else None
    if not isinstance(atom, Call) or atom.fn != "min" or dim not in atom.args:
        return False
    return all(is_nonneg(bound - 2) for bound in atom.args if bound != dim)


def broadcast_pair(a: Expr, b: Expr) -> Expr | None:
    """Returns the broadcast of two dims; `None` if it depends on which of them is 1."""
    if a == b or b.constant == 1:
        return a
    if a.constant == 1:
        return b
    if must_agree(a, b):
        return min(a, b, key=lambda e: (e.constant is None, len(str(e)), str(e)))
    # A dim other than 1 decides: the other equals it, or is 1.
    return a if never_one(a) else b if never_one(b) else None


def broadcast_dims(dims: list[Expr]) -> Expr | None:
    """Returns the broadcast of several dims; `None` if it is undetermined."""
    result: Expr | None = Expr.of(1)
    for dim in dims:
        result = broadcast_pair(result, dim) if result is not None else None
    return result
