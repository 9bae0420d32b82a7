"""Subscripts of one element under other dims: what a `loop.view` does to an access, and how a write is inverted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from igniter.dialects.sym.expr import ONE, ZERO, Call, Expr, Sym, delinearize, floordiv, linearize, mod, product
from igniter.dialects.sym.ranges import Ranges, simplify


def dim_groups(a: Sequence[Expr], b: Sequence[Expr]) -> list[tuple[range, range]]:
    """The finest way to cut two lists of dims, of one product, into runs that pair up with equal products.

    `[b, s, 768]` and `[b, s, 12, 64]` give `b|s|768` against `b|s|12,64`. A run may be empty where the other holds
    only ones.
    """
    left, right = prefix_products(a), prefix_products(b)
    groups: list[tuple[range, range]] = []
    i = j = 0
    for end, total in enumerate(left, start=1):
        until = next((e for e in range(j, len(b) + 1) if total == (right[e - 1] if e else ONE)), None)
        if until is not None:
            groups.append((range(i, end), range(j, until)))
            i, j = end, until
    if i < len(a) or j < len(b):
        groups.append((range(i, len(a)), range(j, len(b))))
    return groups


def prefix_products(dims: Sequence[Expr]) -> list[Expr]:
    """The product of the first dim, of the first two, and so on."""
    return [product(dims[: d + 1]) for d in range(len(dims))]


def reindex(subscripts: Sequence[Expr], dims: Sequence[Expr], to: Sequence[Expr], ranges: Ranges) -> list[Expr]:
    """The subscripts, in a tensor of dims `to`, of the element that `subscripts` name in the same tensor of `dims`.

    Runs of dims that match are treated apart, so that no division appears where the view only joins dims.
    """
    result: list[Expr] = []
    for here, there in dim_groups(dims, to):
        target = [to[d] for d in there]
        if not target:
            continue
        wide = [d for d in there if to[d] != ONE]
        own = [d for d in here if dims[d] != ONE]
        if [dims[d] for d in own] == [to[d] for d in wide]:
            known = dict(zip(wide, (subscripts[d] for d in own), strict=True))
            result += [known.get(d, ZERO) for d in there]
            continue
        offset = linearize([subscripts[d] for d in here], [dims[d] for d in here])
        result += [simplify(e, ranges) for e in delinearize(simplify(offset, ranges), target)]
    return result


def solve(written: Expr, at: Expr, extents: Mapping[str, Expr]) -> dict[str, Expr] | None:
    """The values of the axes for which the subscript `written` is `at`; None when it is not invertible.

    `written` is an axis, or a mixed-radix sum of axes such as `i*64 + j` with `j` running to 64.
    """
    used = sorted(written.symbols & extents.keys())
    if not used:
        return {}
    if written.symbol is not None:
        return {written.symbol: at}
    for name in used:
        if written.coefficient(name) != ONE:
            continue
        rest, extent = written.without(name), extents[name]
        quotient = floordiv(rest, extent)
        if quotient * extent != rest or name in quotient.symbols:
            continue
        outer = solve(quotient, floordiv(at, extent), extents)
        if outer is not None:
            return {name: mod(at, extent), **outer}
    return None


def invert(
    written: Sequence[Expr], at: Sequence[Expr], dims: Sequence[Expr], extents: Mapping[str, Expr]
) -> dict[str, Expr] | str:
    """The point of a nest that writes the element `at`, its clause being `written`; or why there is none to name.

    Every element must be written: a dim is covered when the extents of its axes multiply to it.
    """
    values: dict[str, Expr] = {}
    for subscript, element, dim in zip(written, at, dims, strict=True):
        axes = subscript.symbols & extents.keys()
        if product(extents[a] for a in sorted(axes)) != dim:
            return f"it does not write every element: {subscript} does not cover {dim}"
        if not axes:
            if subscript != ZERO:
                return f"it writes at {subscript}, which is no axis"
            continue
        found = solve(subscript, element, extents)
        if found is None or values.keys() & found.keys() or found.keys() != axes:
            return f"its subscript {subscript} cannot be inverted"
        values.update(found)
    for name, extent in extents.items():
        if name not in values:
            if extent != ONE:
                return f"axis {name} does not tell its elements apart"
            values[name] = ZERO
    return values


def tells_apart(subscripts: Sequence[Expr], extents: Mapping[str, Expr]) -> bool:
    """Whether different points of the axes give different subscripts: each axis can be computed back."""
    found: set[str] = {name for name, extent in extents.items() if extent == ONE}
    for subscript in _joined(subscripts):
        used = subscript.symbols & extents.keys()
        if len(used) == 1:
            (name,) = used
            coefficient = subscript.coefficient(name)
            if coefficient is not None and coefficient.constant:
                found.add(name)
        elif used:
            fixed = subscript - Expr({m: c for m, c in subscript.terms if not Expr({m: c}).symbols & extents.keys()})
            found |= (solve(fixed, Expr.of("at"), extents) or {}).keys()
    return extents.keys() <= found


def _joined(subscripts: Sequence[Expr]) -> list[Expr]:
    """The subscripts, and the `a` that an `a floordiv b` and an `a mod b` among them are together."""
    calls = [s.call for s in subscripts if s.call is not None]
    remainders = {c.args for c in calls if c.fn == "mod"}
    return [*subscripts, *(c.args[0] for c in calls if c.fn == "floordiv" and c.args in remainders)]


def count_divisions(e: Expr) -> int:
    """How many `floordiv` and `mod` an expression takes to evaluate."""
    total = 0
    for monomial, _ in e.terms:
        for atom in monomial:
            if isinstance(atom, Call):
                total += (atom.fn in ("floordiv", "mod")) + sum(count_divisions(a) for a in atom.args)
    return total


def rename(e: Expr, names: Mapping[str, str]) -> Expr:
    """`e` with symbols renamed, all at once."""
    return e.substitute({old: Expr.of(new) for old, new in names.items()})


def is_plain(e: Expr) -> bool:
    """Whether `e` is one symbol."""
    return len(e.terms) == 1 and len(e.terms[0][0]) == 1 and isinstance(e.terms[0][0][0], Sym) and e.terms[0][1] == 1
