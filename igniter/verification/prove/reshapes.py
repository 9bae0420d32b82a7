"""Reshapes as relations: the elements of one shape and the same elements of another."""

from __future__ import annotations

from collections.abc import Sequence

from igniter.dialects.sym.expr import ONE, Expr, product
from igniter.verification.prove.integers import NotDecided, Relation, Sizes


class NoReshape(NotDecided):
    """Raised if the relation of two shapes is not quasi-affine."""


Group = tuple[list[int], list[int]]
"""Dims of one shape and of the other with the same number of elements, as indices."""


def reshape(sizes: Sizes, source: Sequence[Expr], target: Sequence[Expr], left: str, right: str) -> Relation:
    """Returns the relation `left[i...] -> right[j...]` of the elements with equal row-major offsets.

    Raises `NotDecided` if a stride inside a group of dims is a size.
    """
    names = [f"i{k}" for k in range(len(source))], [f"j{k}" for k in range(len(target))]
    kept = [k for k, d in enumerate(source) if d != ONE], [k for k, d in enumerate(target) if d != ONE]
    constraints = [f"i{k} = 0" for k in range(len(source)) if k not in kept[0]]
    constraints += [f"j{k} = 0" for k in range(len(target)) if k not in kept[1]]
    for places in _groups([source[k] for k in kept[0]], [target[k] for k in kept[1]]):
        group = [kept[0][k] for k in places[0]], [kept[1][k] for k in places[1]]
        if len(group[0]) == 1 and len(group[1]) == 1:
            constraints.append(f"i{group[0][0]} = j{group[1][0]}")
            continue
        offsets: list[str] = []
        for dims, axes, prefix in ((source, group[0], "i"), (target, group[1], "j")):
            offsets.append(_offset(dims, axes, prefix, constraints, sizes))
        constraints.append(f"{offsets[0]} = {offsets[1]}")
    return sizes.relation(f"{left}[{', '.join(names[0])}]", f"{right}[{', '.join(names[1])}]", constraints)


def _offset(dims: Sequence[Expr], axes: Sequence[int], prefix: str, constraints: list[str], sizes: Sizes) -> str:
    """Returns the offset inside of a group, and adds the ranges of its dims to `constraints`."""
    parts: list[str] = []
    stride = ONE
    for k in reversed(axes):
        constraints.append(f"0 <= {prefix}{k} < {sizes.text(dims[k], {})}")
        step = stride.constant
        if step is None:
            raise NoReshape(f"a view of {_shown(dims)} has the stride {stride}, a size")
        parts.append(f"{step}*{prefix}{k}")
        stride = stride * dims[k]
    return " + ".join(parts) if parts else "0"


def _groups(source: Sequence[Expr], target: Sequence[Expr]) -> list[Group]:
    """Returns the least groups of adjacent dims with equal numbers of elements, in order."""
    found: list[Group] = []
    a, b = 0, 0
    group: Group = ([], [])
    while a < len(source) or b < len(target):
        left, right = (product(d[k] for k in g) for d, g in zip((source, target), group, strict=True))
        if group[0] and group[1] and left == right:
            found.append(group)
            group = ([], [])
            continue
        ahead = _is_longer(left, right, len(source) - a, len(target) - b, group)
        if ahead:
            group[0].append(a)
            a += 1
        else:
            group[1].append(b)
            b += 1
    if group[0] or group[1]:
        left, right = (product(d[k] for k in g) for d, g in zip((source, target), group, strict=True))
        if left != right:
            raise NoReshape(f"{_shown(source)} and {_shown(target)} are not known to have as many elements")
        found.append(group)
    return found


def _is_longer(left: Expr, right: Expr, left_over: int, right_over: int, group: Group) -> bool:
    """True if the next dim of a group comes from the source."""
    if not left_over or not right_over:
        return bool(left_over)
    if not group[0]:
        return True
    if not group[1]:
        return False
    # The side with fewer elements continues.
    quotient = _divides(left, right)
    return quotient if quotient is not None else len(group[0]) <= len(group[1])


def _divides(left: Expr, right: Expr) -> bool | None:
    """True if `left` is a proper divisor of `right`; False for the reverse; None if neither is known."""
    if left.constant is not None and right.constant is not None:
        return left.constant < right.constant
    if (right % left).constant == 0:
        return True
    return False if (left % right).constant == 0 else None


def _shown(dims: Sequence[Expr]) -> str:
    return f"[{', '.join(map(str, dims))}]"
