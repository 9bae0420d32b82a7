"""Dims and axes over products of sizes, such as `n*m`, as several dims: isl has no products of variables.

A subscript `m*i + j` of a dim `n*m` is the pair `[i, j]` of the dims `[n, m]`, if `0 <= j < m` at every instance. An
axis over `n*m` is a pair of axes, if some tensor of the kernels has the adjacent dims `[n, m]`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from igniter.dialects.sym.expr import ONE, ZERO, Expr, Sym, product, split_quotient
from igniter.verification.prove.integers import NotDecided, Points, Sizes
from igniter.verification.prove.joined_loops import replaced


@dataclass(frozen=True)
class Split:
    """An axis as `outer*divisor + inner`."""

    axis: str
    divisor: Expr
    outer: str
    inner: str

    def apply(self, e: Expr) -> Expr:
        """Returns an expression over the pair."""
        return replaced(e, self.axis, self.divisor, Expr.of(self.outer), Expr.of(self.inner))


def split_axis(axis: str, extent: Expr, sizes: Sizes) -> tuple[list[Split], list[tuple[str, Expr]]]:
    """Returns the splits of an axis, outermost first, and the axes with their extents in its place."""
    divisor = _divisor(extent, sizes)
    if divisor is None:
        return [], [(axis, extent)]
    split = Split(axis, divisor, f"{axis}'q", f"{axis}'r")
    rest, axes = split_axis(split.outer, split_quotient(extent, divisor)[0], sizes)
    return [split, *rest], [*axes, (split.inner, divisor)]


def _divisor(extent: Expr, sizes: Sizes) -> Expr | None:
    """Returns the least trailing factor with a size, by the adjacent dims of some tensor."""
    if not _is_product(extent):
        return None
    for dims in sizes.shapes:
        for end in range(2, len(dims) + 1):
            for first in range(end - 1):
                run = dims[first:end]
                if product(run) != extent:
                    continue
                inner = next(product(run[k:]) for k in reversed(range(len(run))) if product(run[k:]).constant is None)
                return inner if inner != extent else None
    return None


def _is_product(e: Expr) -> bool:
    return len(e.terms) == 1 and len(e.terms[0][0]) > 1 and all(isinstance(a, Sym) for a in e.terms[0][0])


def refined(
    sizes: Sizes, dims: Sequence[Expr], subscripts: Sequence[Expr], env: Mapping[str, str], domain: Points, left: str
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Returns the dims and the subscripts of an access with products of sizes as several dims, where that is exact.

    `left` is the tuple of the instances, `domain` those with an access.
    """
    pairs: list[tuple[Expr, Expr]] = []
    for dim, subscript in zip(dims, subscripts, strict=True):
        pairs += _refined(sizes, dim, subscript, env, domain, left)
    return tuple(d for d, _ in pairs), tuple(s for _, s in pairs)


def _refined(
    sizes: Sizes, dim: Expr, subscript: Expr, env: Mapping[str, str], domain: Points, left: str
) -> list[tuple[Expr, Expr]]:
    if not _is_product(dim):
        return [(dim, subscript)]
    for inner in _candidates(subscript, env):
        outer, over = split_quotient(dim, inner)
        if over != ZERO or outer in (ZERO, ONE):
            continue
        quotient, rest = split_quotient(subscript, inner)
        try:
            text = sizes.text(rest, env)
            inside = sizes.points(left, [f"0 <= {text} < {sizes.text(inner, {})}"])
        except NotDecided:
            continue
        if domain.intersect_params(sizes.context()).is_subset(inside):
            return [*_refined(sizes, outer, quotient, env, domain, left), (inner, rest)]
    return [(dim, subscript)]


def _candidates(subscript: Expr, env: Mapping[str, str]) -> Iterator[Expr]:
    """Yields the strides of axes that are sizes, the least first."""
    found: dict[Expr, int] = {}
    for monomial, c in subscript.terms:
        sizes = [a for a in monomial if isinstance(a, Sym) and a.name not in env]
        if sizes and len(sizes) < len(monomial) and c > 0:
            found[Expr({tuple(sizes): c})] = len(sizes)
    yield from sorted(found, key=lambda e: found[e])
