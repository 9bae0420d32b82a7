"""The ranges of loop axes, and their direct consequences: signs and simpler expressions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache

from igniter.dialects.sym.expr import INDIRECT, ZERO, Atom, Call, Expr, Sym, call, split_quotient


@dataclass(frozen=True)
class Ranges:
    """The known facts about names in an expression.

    `axes` maps a loop axis to `(first, end)`, `end` exclusive. If an axis takes any value, its extent is at least 1, so
    the symbols whose product is the extent are positive.
    """

    axes: Mapping[str, tuple[Expr, Expr]]

    @cached_property
    def key(self) -> frozenset[tuple[str, tuple[Expr, Expr]]]:
        """The facts as a key of caches: the axes must not change from here on."""
        return frozenset(self.axes.items())

    @cached_property
    def positive(self) -> frozenset[str]:
        found: set[str] = set()
        for first, end in self.axes.values():
            extent = end - first
            if len(extent.terms) == 1:
                found.update(a.name for a in extent.terms[0][0] if isinstance(a, Sym))
        return frozenset(found)


NO_RANGES = Ranges({})


def is_nonneg(e: Expr, ranges: Ranges = NO_RANGES) -> bool:
    """True if `e >= 0` is proven for every value of the axes in their ranges and every non-negative symbol.

    Sound and incomplete. Each axis is replaced by the minimising end of its range. The rest is non-negative if no
    coefficient is negative, with a symbol known to be positive written as `1 + something`.
    """
    if e.constant is not None:
        return e.constant >= 0
    return _known_nonneg(e, ranges.key)


@lru_cache(maxsize=1 << 15)
def _known_nonneg(e: Expr, key: frozenset[tuple[str, tuple[Expr, Expr]]]) -> bool:
    """Decides `is_nonneg`; cached, because passes ask the same of every copy of an access."""
    return _is_nonneg(e, Ranges(dict(key)), 4)


def _is_nonneg(e: Expr, ranges: Ranges, depth: int) -> bool:
    if e.constant is not None:
        return e.constant >= 0
    if depth == 0:
        return False
    for name in sorted(e.symbols & ranges.axes.keys()):
        coefficient = e.coefficient(name)
        if coefficient is None:
            continue
        first, end = ranges.axes[name]
        outer = Ranges({k: v for k, v in ranges.axes.items() if k != name})
        rest = e.without(name)
        known = Ranges(ranges.axes)
        if _is_nonneg(coefficient, known, depth - 1):
            return _bounded(rest + coefficient * first, outer, known, depth)
        if _is_nonneg(-coefficient, known, depth - 1):
            return _bounded(rest + coefficient * (end - 1), outer, known, depth)
        return False
    return _bounded(e, ranges, ranges, depth)


def _bounded(e: Expr, inner: Ranges, known: Ranges, depth: int) -> bool:
    if e.symbols & inner.axes.keys():
        merged = Ranges(inner.axes)
        if any(e.coefficient(name) is not None for name in e.symbols & inner.axes.keys()):
            return _is_nonneg_with(e, merged, known, depth)
    positive = known.positive & e.symbols
    # Names keep their meaning inside calls: queries about the arguments handle positive symbols on their own.
    shifted = e.map_atoms(
        lambda atom: Expr({(atom,): 1}) + (1 if isinstance(atom, Sym) and atom.name in positive else 0)
    )

    def nonneg(atom: Atom) -> bool:
        return (isinstance(atom, Sym) and atom.name in positive) or _atom_nonneg(atom, known, depth)

    return all(c >= 0 and all(nonneg(a) for a in m) for m, c in shifted.terms)


def _is_nonneg_with(e: Expr, ranges: Ranges, known: Ranges, depth: int) -> bool:
    for name in sorted(e.symbols & ranges.axes.keys()):
        coefficient = e.coefficient(name)
        if coefficient is None:
            continue
        first, end = ranges.axes[name]
        outer = Ranges({k: v for k, v in ranges.axes.items() if k != name})
        for sign, bound in ((1, first), (-1, end - 1)):
            if _is_nonneg(coefficient * sign, known, depth - 1):
                return _bounded(e.without(name) + coefficient * bound, outer, known, depth)
    return False


def _atom_nonneg(atom: Atom, ranges: Ranges, depth: int) -> bool:
    if isinstance(atom, Sym):
        if atom.name in ranges.axes:
            return _is_nonneg(ranges.axes[atom.name][0], ranges, depth - 1)
        # An indirect operand of an access (`_0`) is data and may have any value.
        return INDIRECT.fullmatch(atom.name) is None
    if atom.fn == "mod":
        return True
    if atom.fn == "floordiv":
        # Without axes the argument costs no depth: sizes of images are halved many times in succession.
        inside = atom.args[0].symbols & ranges.axes.keys()
        return _is_nonneg(atom.args[0], ranges, depth - 1 if inside else depth)
    some_or_all = all if atom.fn == "min" else any
    return some_or_all(_is_nonneg(a, ranges, depth - 1) for a in atom.args)


def simplify(e: Expr, ranges: Ranges) -> Expr:
    """Returns `e` without the divisions and extrema decided by `ranges`: `(i*64 + j) floordiv 64` is `i` if `0 <= j <
    64`."""
    if not any(isinstance(a, Call) for m, _ in e.terms for a in m):
        return e
    return _simplified(e, ranges.key)


@lru_cache(maxsize=1 << 15)
def _simplified(e: Expr, key: frozenset[tuple[str, tuple[Expr, Expr]]]) -> Expr:
    """Simplifies an expression with calls; cached, because passes ask the same of every copy of an access."""
    ranges = Ranges(dict(key))
    return e.map_atoms(lambda atom: _simplify_atom(atom, ranges))


def _simplify_atom(atom: Atom, ranges: Ranges) -> Expr:
    if isinstance(atom, Sym):
        return Expr({(atom,): 1})
    symbols = Expr({(atom,): 1}).symbols
    if symbols.isdisjoint(ranges.axes):
        return _simplify_size(atom, ranges.positive & symbols)
    return _simplify_call(atom, ranges)


@lru_cache(maxsize=1 << 14)
def _simplify_size(atom: Call, positive: frozenset[str]) -> Expr:
    """Simplifies a call without axes, given its positive symbols; cached, because the same sizes recur."""
    return _simplify_call(atom, Ranges({f"${n}": (ZERO, Expr.of(n)) for n in sorted(positive)}))


def _simplify_call(atom: Call, ranges: Ranges) -> Expr:
    args = [simplify(a, ranges) for a in atom.args]
    if atom.fn in ("floordiv", "mod"):
        a, b = args
        quotient, rest = split_quotient(a, b)
        if is_nonneg(rest, ranges) and is_nonneg(b - 1 - rest, ranges):
            return quotient if atom.fn == "floordiv" else rest
        return call(atom.fn, args)
    kept: list[Expr] = []
    for candidate in args:
        sign = 1 if atom.fn == "min" else -1
        if any(is_nonneg((candidate - other) * sign, ranges) for other in kept):
            continue
        kept = [k for k in kept if not is_nonneg((k - candidate) * sign, ranges)] + [candidate]
    return call(atom.fn, kept)
