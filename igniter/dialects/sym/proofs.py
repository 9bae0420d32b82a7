"""Proofs of non-negativity of expressions, from the ranges of axes and from facts.

Sound and incomplete: a proven expression is never negative; an unproven one may still be non-negative.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import count

from igniter.dialects.sym.expr import INDIRECT, ONE, ZERO, Atom, Call, Expr, floordiv
from igniter.dialects.sym.expr import call as rebuild
from igniter.dialects.sym.ranges import NO_RANGES, Ranges, is_nonneg

MAX_FACTS = 2
"""The maximum number of facts (guards) combined in one proof."""
MAX_CALLS = 6
"""The maximum number of divisions and extrema examined in one expression."""


def proven(e: Expr, ranges: Ranges, facts: Sequence[Expr] = ()) -> bool:
    """True if `e >= 0` follows from the ranges of the axes and from all `facts` being >= 0."""
    axes = tuple((name, first, end) for name, (first, end) in ranges.axes.items())
    return _proven(e, axes, tuple(facts))


@lru_cache(maxsize=1 << 14)
def _proven(e: Expr, axes_of: tuple[tuple[str, Expr, Expr], ...], facts: Sequence[Expr]) -> bool:
    ranges = Ranges({name: (first, end) for name, first, end in axes_of})
    if _follows(e, _with_indirect(ranges, facts), facts, MAX_FACTS):
        return True
    # `n - n mod 8` is a multiple of 8; the quotient form shows this, the remainder form hides it.
    axes = {name: (without_mod(first), without_mod(end)) for name, (first, end) in ranges.axes.items()}
    facts = [without_mod(f) for f in facts]
    if _follows(without_mod(e), _with_indirect(Ranges(axes), facts), facts, MAX_FACTS):
        return True
    return _holds_for_any(e, ranges)


def _holds_for_any(e: Expr, ranges: Ranges) -> bool:
    """Proves `e >= 0` with calls of other symbols replaced by fresh symbols: a statement about all non-negative numbers
    holds for them too. A window over an image whose height is halved repeatedly then needs one halving only."""
    calls = {atom for monomial, _ in e.terms for atom in monomial if isinstance(atom, Call)}
    opaque = [
        c
        for c in calls
        if not Expr({(c,): 1}).symbols & ranges.axes.keys() and _holds(Expr({(c,): 1}), NO_RANGES, MAX_CALLS)
    ]
    if not opaque:
        return False
    names = {c: Expr.of(f"%{k}") for k, c in enumerate(sorted(opaque, key=str))}

    def swap(atom: Atom) -> Expr:
        if not isinstance(atom, Call):
            return Expr({(atom,): 1})
        return names[atom] if atom in names else rebuild(atom.fn, [a.map_atoms(swap) for a in atom.args])

    axes = {name: (first.map_atoms(swap), end.map_atoms(swap)) for name, (first, end) in ranges.axes.items()}
    return _holds(e.map_atoms(swap), Ranges(axes), MAX_CALLS)


def without_mod(e: Expr) -> Expr:
    """Returns `e` with `a mod b` written as `a - b*(a floordiv b)`."""

    def expand(atom: Atom) -> Expr:
        if not isinstance(atom, Call):
            return Expr({(atom,): 1})
        args = [without_mod(a) for a in atom.args]
        return args[0] - args[1] * floordiv(args[0], args[1]) if atom.fn == "mod" else rebuild(atom.fn, args)

    return e.map_atoms(expand) if any(isinstance(a, Call) for m, _ in e.terms for a in m) else e


def _follows(e: Expr, ranges: Ranges, facts: Sequence[Expr], depth: int) -> bool:
    """Proves `e >= 0` by proving `e - k*fact >= 0` for a factor `k >= 0`."""
    if _holds(e, ranges, MAX_CALLS):
        return True
    if depth == 0:
        return False
    for number, fact in enumerate(facts):
        others = facts[number + 1 :]
        if any(_follows(e - k * fact, ranges, others, depth - 1) for k in _factors(e, fact, ranges)):
            return True
    return False


def _factors(e: Expr, fact: Expr, ranges: Ranges) -> list[Expr]:
    """Returns the factors with which a fact cancels a name in `e`, and 1."""
    found = [ONE] if fact.symbols & e.symbols else []
    for name in sorted(fact.symbols & e.symbols):
        inner, outer = fact.coefficient(name), e.coefficient(name)
        if inner is not None and outer is not None and inner.constant in (1, -1):
            factor = outer * inner
            if factor not in found and is_nonneg(factor, ranges):
                found.append(factor)
    return found


def _with_indirect(ranges: Ranges, facts: Sequence[Expr]) -> Ranges:
    """Returns `ranges` extended by ranges of indirect operands, derived from guards: `_0 >= 0` and `9 - _0 >= 0` give 0
    to 10."""
    names = {n for f in facts for n in f.symbols if INDIRECT.fullmatch(n)}
    axes = dict(ranges.axes)
    for name in sorted(names):
        lows = [-f.without(name) for f in facts if f.coefficient(name) == ONE]
        ends = [f.without(name) + 1 for f in facts if f.coefficient(name) == -1]
        if lows and ends:
            axes[name] = lows[0], ends[0]
    return Ranges(axes)


def _holds(e: Expr, ranges: Ranges, depth: int) -> bool:
    if is_nonneg(e, ranges):
        return True
    if depth == 0:
        return False
    found = _first_call(e)
    if found is None:
        return _holds_at_end(e, ranges, depth)
    call, coefficient = found
    if call.fn in ("min", "max"):
        # For a subtracted minimum, any argument gives a lower bound of the expression: one sufficient argument is
        # enough.
        choices = (_holds(_replaced(e, call, a), ranges, depth - 1) for a in call.args)
        if (coefficient > 0) == (call.fn == "min"):
            return all(choices)
        return any(choices) or _holds_on_average(e, call, ranges, depth) or _holds_in_fractions(e, ranges, depth)
    between = _difference(e, call)
    if between is not None and _holds(between, ranges, depth - 1):
        return True
    if any(_holds(_without_quotient(e, call, c), ranges, depth - 1) for c in _multiples(e, call)):
        return True
    if _holds_in_fractions(e, ranges, depth):
        return True
    inner = _range_of(call, ranges, depth)
    if inner is None:
        return False
    # A name unused so far: axes have been removed on the way here, so their number is no safe suffix.
    name = next(n for k in count() if (n := f"%{k}") not in ranges.axes and n not in e.symbols)
    wider = Ranges({**ranges.axes, name: inner})
    return _holds(_replaced(e, call, Expr.of(name)), wider, depth - 1)


def _holds_on_average(e: Expr, call: Call, ranges: Ranges, depth: int) -> bool:
    """Proves `e >= 0` with the mean as a bound: a maximum of two arguments is at least their mean, a minimum at most:
    |i - 2| is `max(i - 2, 2 - i)`."""
    if len(call.args) != 2 or any(call in monomial and monomial != (call,) for monomial, _ in e.terms):
        return False
    (coefficient,) = (c for monomial, c in e.terms if monomial == (call,))
    rest = e - Expr({(call,): coefficient})
    return _holds(rest * 2 + (call.args[0] + call.args[1]) * coefficient, ranges, depth - 1)


def _holds_in_fractions(e: Expr, ranges: Ranges, depth: int) -> bool:
    """Proves non-negativity by integrality: `e - c*(a floordiv n)` is an integer and at least `e - c*a/n`. It is not
    negative if n times this bound exceeds -n. Thus `x - (x + 1) floordiv 2` is not negative if x is not."""
    for monomial, c in e.terms:
        quotient = monomial[0] if len(monomial) == 1 else None
        if c >= 0 or not isinstance(quotient, Call) or quotient.fn != "floordiv":
            continue
        divisor = quotient.args[1].constant
        if divisor and divisor > 0 and c % divisor:
            least = (e - Expr({(quotient,): c})) * divisor + quotient.args[0] * c + divisor - 1
            if _holds(least, ranges, depth - 1):
                return True
    return False


def _difference(e: Expr, call: Call) -> Expr | None:
    """Returns a sufficient expression (if it is >= 0, so is `e`) for `e` of the form `c*(a floordiv n) - c*(b floordiv
    n) + constant`: the difference of the quotients is at least `(a - b) floordiv n`, and this is at least `k` if `a - b
    >= k*n`. None for other forms."""
    divisor = call.args[1].constant if call.fn == "floordiv" else None
    quotients: dict[int, Expr] = {}
    constant = 0
    for monomial, c in e.terms:
        atom = monomial[0] if len(monomial) == 1 else None
        if not monomial:
            constant = c
        elif divisor and isinstance(atom, Call) and atom.fn == "floordiv" and atom.args[1] == call.args[1]:
            if c in quotients:
                return None
            quotients[c] = atom.args[0]
        else:
            return None
    c = max(quotients, default=0)
    if divisor is None or quotients.keys() != {c, -c}:
        return None
    least = -(constant // c)  # the least k for which c*k + constant >= 0
    return quotients[c] - quotients[-c] - least * divisor


def _holds_at_end(e: Expr, ranges: Ranges, depth: int) -> bool:
    """Proves `e >= 0` with the innermost axis whose range is bounded by a call (an edge tile) at the end of its range
    where `e` is smallest."""
    for name, (first, end) in list(ranges.axes.items())[::-1]:
        coefficient = e.coefficient(name)
        if name not in e.symbols or coefficient is None or (_first_call(end) is None and _first_call(first) is None):
            continue
        inner = Ranges({k: v for k, v in ranges.axes.items() if k != name})
        for sign, bound in ((1, first), (-1, end - 1)):
            if is_nonneg(coefficient * sign, ranges):
                return _holds(e.without(name) + coefficient * bound, inner, depth - 1)
    return False


def _first_call(e: Expr) -> tuple[Call, int] | None:
    """Returns a call in a term of `e`, with its coefficient; extrema only if they are a whole term, because their
    coefficient must be a number."""
    for monomial, c in e.terms:
        for atom in monomial:
            if isinstance(atom, Call) and (atom.fn in ("floordiv", "mod") or len(monomial) == 1):
                return atom, c
    return None


def _multiples(e: Expr, call: Call) -> list[int]:
    """Returns the coefficient of a quotient in a term of its own, if the (constant) divisor divides it."""
    divisor = call.args[1].constant
    if call.fn != "floordiv" or not divisor:
        return []
    return [c for monomial, c in e.terms if monomial == (call,) and c % divisor == 0]


def _without_quotient(e: Expr, call: Call, c: int) -> Expr:
    """Returns a lower bound of `e`, since `b*(a floordiv b)` is at most `a` and at least `a - b + 1`."""
    a, b = call.args
    divisor = b.constant or 1
    return e - Expr({(call,): c}) + (a if c < 0 else a - b + 1) * (c // divisor)


def _replaced(e: Expr, call: Call, by: Expr) -> Expr:
    def swap(atom: Atom) -> Expr:
        return by if atom == call else Expr({(atom,): 1})

    return e.map_atoms(swap)


def _range_of(call: Call, ranges: Ranges, depth: int) -> tuple[Expr, Expr] | None:
    """Returns the range of a quotient or a remainder, as `(first, end)`."""
    a, b = call.args
    if call.fn == "mod":
        return ZERO, b
    if not _holds(a, ranges, depth - 1):
        return None
    greatest = upper_bound(a, ranges)
    if greatest is None:
        return None
    whole = floordiv(greatest + 1, b)
    # Below a whole multiple of the divisor, for every divisor.
    return ZERO, whole if whole * b == greatest + 1 else floordiv(greatest, b) + 1


def upper_bound(e: Expr, ranges: Ranges) -> Expr | None:
    """Returns an upper bound of `e`, with every axis of `e` at an end of its range; None if the sign of a coefficient
    is unknown. The bound may name axes outside those of `e`."""
    for name in sorted(e.symbols & ranges.axes.keys()):
        coefficient = e.coefficient(name)
        if coefficient is None:
            return None
        first, end = ranges.axes[name]
        if is_nonneg(coefficient, ranges):
            e = e.without(name) + coefficient * (end - 1)
        elif is_nonneg(-coefficient, ranges):
            e = e.without(name) + coefficient * first
        else:
            return None
    return e
