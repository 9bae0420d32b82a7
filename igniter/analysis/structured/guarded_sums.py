"""The terms of a sum that the guards of a factor do not make 0: bounds of loops.

    loop.nest "conv" [y: parallel 33, x: parallel 33, k: reduction 256, v: reduction 3, u: reduction 3] ...
      %a = loop.read %x[y + 12*v - 12, x + 12*u - 12, k] if [y + 12*v - 12, -y - 12*v + 44, ...] : f32

For a place `y`, the guards hold for `v` from `(12 - y) ceildiv 12` to `(44 - y) floordiv 12`. The other terms are 0
times an element of the weight, and loops with these bounds leave them out. In a tile of places `x`, an element `u` of
the window outside the bounds of every place is left out, and for the others the places are bounded.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from igniter.dialects.sym.expr import ZERO, Expr, floordiv, maximum, minimum

Spans = Mapping[str, tuple[Expr, Expr]]
"""The first and the last value of axes with inner loops."""


def are_bounds(guards: Sequence[Expr], loops: Collection[str], others: Collection[str]) -> bool:
    """True if each guard bounds one of the axes `loops`, has constant steps along all of them, and has none of the axes
    `others`."""
    for guard in guards:
        steps = [guard.coefficient(n) for n in loops if n in guard.symbols]
        if not steps or any(s is None or not s.constant for s in steps) or not guard.symbols.isdisjoint(others):
            return False
    return True


def bounds(guards: Sequence[Expr], axis: str, extent: Expr, spans: Spans) -> tuple[Expr, Expr]:
    """Returns the range `(first, end)` of an axis in which each guard can hold, within 0 and `extent`."""
    first, end = ZERO, extent
    for guard in guards:
        step = guard.coefficient(axis)
        if step is None or not step.constant:
            continue
        rest = _most(guard.without(axis), spans)
        if step.constant > 0:
            first = maximum(first, (-rest).ceildiv(step))
        else:
            end = minimum(end, floordiv(rest, -step) + 1)
    return first, end


def _most(e: Expr, spans: Spans) -> Expr:
    """Returns the largest value of an expression with constant steps along the axes of `spans`."""
    ends: dict[str, Expr] = {}
    for axis, (first, last) in spans.items():
        step = e.coefficient(axis)
        ends[axis] = last if step is not None and (step.constant or 0) > 0 else first
    return e.substitute(ends)
