"""Bounds of subscripts over a whole iteration space, as expressions of sizes."""

from __future__ import annotations

from igniter.dialects.sym.expr import ZERO, Call, Expr, floordiv
from igniter.dialects.sym.proofs import upper_bound
from igniter.dialects.sym.ranges import Ranges


def greatest(e: Expr, ranges: Ranges) -> Expr | None:
    """Returns an upper bound of `e` without axes; None if it is unknown. The bound is exact for affine subscripts and
    for quotients by constants."""
    flat = ZERO
    for monomial, c in e.terms:
        atom = monomial[0] if len(monomial) == 1 else None
        if not isinstance(atom, Call) or Expr({monomial: 1}).symbols.isdisjoint(ranges.axes):
            flat = flat + Expr({monomial: c})
            continue
        bound = _greatest_call(atom, c > 0, ranges)
        if bound is None:
            return None
        flat = flat + bound * c
    found = upper_bound(flat, ranges)
    return None if found is None or not found.symbols.isdisjoint(ranges.axes) else found


def _greatest_call(call: Call, upper: bool, ranges: Ranges) -> Expr | None:
    """Returns an upper or a lower bound of a quotient or a remainder by a constant."""
    if call.fn not in ("floordiv", "mod") or not call.args[1].constant:
        return None
    a, b = call.args
    if call.fn == "mod":
        return b - 1 if upper else ZERO
    bound = greatest(a, ranges) if upper else least(a, ranges)
    return None if bound is None else floordiv(bound, b)


def least(e: Expr, ranges: Ranges) -> Expr | None:
    """Returns a lower bound of `e` without axes; None if it is unknown."""
    found = greatest(-e, ranges)
    return None if found is None else -found
