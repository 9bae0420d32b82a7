"""Subscripts of one element under other dims: the effect of a `loop.view` on an access, and the inversion of writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from igniter.dialects.sym.expr import ONE, ZERO, Call, Expr, Sym, delinearize, floordiv, linearize, mod, product
from igniter.dialects.sym.ranges import Ranges, simplify


def dim_groups(a: Sequence[Expr], b: Sequence[Expr]) -> list[tuple[range, range]]:
    """Returns the finest division of two lists of dims with the same product into pairs of runs with equal products.

    `[b, s, 768]` and `[b, s, 12, 64]` give `b|s|768` against `b|s|12,64`. A run may be empty if its counterpart holds
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
    """Returns the product of the first dim, of the first two, and so on."""
    return [product(dims[: d + 1]) for d in range(len(dims))]


def reindex(subscripts: Sequence[Expr], dims: Sequence[Expr], to: Sequence[Expr], ranges: Ranges) -> list[Expr]:
    """Returns the subscripts in a tensor of dims `to` of the element at `subscripts` in the same tensor of `dims`.

    Matching runs of dims are handled separately, so a view needs no division for joined dims.
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
    """Returns the values of the axes with the subscript `written` equal to `at`; None if it is not invertible.

    `written` is an axis, or a mixed-radix sum of axes such as `i*64 + j` with `j` below 64.
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
    """Returns the point of a nest that writes the element `at` through the access map `written`; or the reason why it
    is not invertible.

    Every element must be written: a dim is covered if the extents of its axes multiply to it.
    """
    values: dict[str, Expr] = {}
    for subscript, element, dim in zip(written, at, dims, strict=True):
        axes = subscript.symbols & extents.keys()
        if product(extents[a] for a in sorted(axes)) != dim:
            return f"it does not write every element: {subscript} does not cover {dim}"
        if not axes:
            if subscript != ZERO:
                return f"it writes at {subscript}, which is not an axis"
            continue
        found = solve(subscript, element, extents)
        if found is None or values.keys() & found.keys() or found.keys() != axes:
            return f"its subscript {subscript} cannot be inverted"
        values.update(found)
    for name, extent in extents.items():
        if name not in values:
            if extent != ONE:
                return f"axis {name} is not in its subscripts: its iterations write the same element"
            values[name] = ZERO
    return values


def is_injective(subscripts: Sequence[Expr], extents: Mapping[str, Expr]) -> bool:
    """True if the access map is injective: each axis can be computed from the subscripts."""
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
    """Returns the subscripts, and `a` for each pair of `a floordiv b` and `a mod b` among them."""
    calls = [s.call for s in subscripts if s.call is not None]
    remainders = {c.args for c in calls if c.fn == "mod"}
    return [*subscripts, *(c.args[0] for c in calls if c.fn == "floordiv" and c.args in remainders)]


def count_divisions(e: Expr) -> int:
    """Returns the number of `floordiv` and `mod` in an expression."""
    total = 0
    for monomial, _ in e.terms:
        for atom in monomial:
            if isinstance(atom, Call):
                total += (atom.fn in ("floordiv", "mod")) + sum(count_divisions(a) for a in atom.args)
    return total


def rename(e: Expr, names: Mapping[str, str]) -> Expr:
    """Returns `e` with symbols renamed simultaneously."""
    return e.substitute({old: Expr.of(new) for old, new in names.items()})


def is_plain(e: Expr) -> bool:
    """True if `e` is one symbol."""
    return len(e.terms) == 1 and len(e.terms[0][0]) == 1 and isinstance(e.terms[0][0][0], Sym) and e.terms[0][1] == 1
