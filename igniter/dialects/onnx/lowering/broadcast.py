"""NumPy broadcasting of symbolic dims; undecidable cases return a reason."""

from __future__ import annotations

from collections.abc import Sequence

from igniter.dialects.onnx.registry import Dims
from igniter.dialects.sym.expr import ONE, ZERO, Expr, minimum


def aligned(dims: Dims, at: Sequence[Expr], target: Dims, capped: bool = False) -> list[Expr] | str:
    """Returns the subscripts of a tensor of `dims` at the point `at` of a domain of dims `target`; or the reason why
    they are unknown.

    With `capped`, a dim of which only a run knows whether it is 1 or the result's gets the subscript `min(i, dim - 1)`:
    0 if it is 1, and `i` if it is equal, as every run has to check. A skip connection of dynamic size beside features
    scaled up by two is such a pair, and so are a mask of `total` keys and one of `past + new`.
    """
    missing = len(target) - len(dims)
    if missing < 0:
        return f"dims [{_text(dims)}] do not broadcast to [{_text(target)}]"
    found: list[Expr] = []
    for dim, have, subscript in zip(dims, target[missing:], at[missing:], strict=True):
        if dim == have:
            found.append(subscript)
        elif dim == ONE:
            found.append(ZERO)
        elif capped and is_capped(dim, have):
            found.append(minimum(subscript, dim - 1))
        elif dim.constant is not None and have.constant is not None:
            return f"dims [{_text(dims)}] do not broadcast to [{_text(target)}]"
        else:
            return f"dim {dim} is not known to be 1 or equal to {have}"
    return found


def broadcast_dims(shapes: Sequence[Dims]) -> Dims | str:
    """Returns the dims of tensors broadcast against each other; or the reason why they are unknown."""
    rank = max((len(s) for s in shapes), default=0)
    found: list[Expr] = []
    for position in range(-rank, 0):
        others = {s[position] for s in shapes if len(s) >= -position} - {ONE}
        if len(others) > 1:
            names = " and ".join(sorted(map(str, others)))
            return f"dims {names} are not known to be equal"
        found.append(others.pop() if others else ONE)
    return tuple(found)


def is_capped(dim: Expr, have: Expr) -> bool:
    """True if `dim` is either 1 or the dim `have` of the result, and only a run knows which. The caller knows that the
    result has this dim: another operand has it."""
    return dim not in (ONE, have) and dim.constant is None and have.constant is None


def broadcast_reason(shapes: Sequence[Dims], target: Dims, capped: bool = False) -> str | None:
    """Returns the reason why tensors of these dims cannot be read over a domain of dims `target`; None if they can."""
    for dims in shapes:
        result = aligned(dims, target, target, capped)
        if isinstance(result, str):
            return result
    return None


def _text(dims: Dims) -> str:
    return ", ".join(map(str, dims))
