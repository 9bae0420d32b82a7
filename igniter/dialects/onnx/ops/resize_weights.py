"""The elements that an interpolation along one axis reads, and their weights, as two small tensors.

Both have a row for every place of the result. Places outside of the axis are those of its ends, as ONNX Runtime has it;
with `excluded` they have no weight, and the others are scaled to make 1.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from igniter.analysis.expr import Expr
from igniter.transforms.lowering import Lowering, Nest, Scalar

if TYPE_CHECKING:
    import numpy as np

    from igniter.dialects.onnx.ops.resize import Axis


@dataclass(frozen=True)
class Taps:
    """`places` (i64) and `weights` (f32) are `[size of the result, count]`."""

    count: int | Expr
    places: SSAValue
    weights: SSAValue


def _clamped(nest: Nest, at: Scalar, size: Expr) -> Scalar:
    return at.minimum(nest.index(size - 1)).maximum(0)


def _table(ctx: Lowering, axis: Axis, count: int | Expr, rule: Any, part: str, element: Any) -> SSAValue:
    return ctx.generate([axis.factor.new, count], rule, element=element, part=f"{part}{axis.number}")


def linear_taps(ctx: Lowering, axis: Axis) -> Taps:
    """The elements on either side. At the end of the axis both are the last one, each with half the weight."""
    size = axis.factor.old

    def around(nest: Nest, place: Expr) -> tuple[Scalar, Scalar]:
        last = nest.index(size - 1).to(f32)
        x = axis.coordinate(nest, place)
        x = (x < last).select(x, last)
        return (x > 0).select(x, 0.0), last

    def place(nest: Nest, at: Sequence[Expr]) -> Scalar:
        x, _ = around(nest, at[0])
        return _clamped(nest, x.to(i64) + nest.index(at[1]), size)

    def weight(nest: Nest, at: Sequence[Expr]) -> Scalar:
        x, last = around(nest, at[0])
        below = x.floor()
        near = (nest.index(at[1]).eq(0)).select(1 - (x - below), x - below)
        return (below >= last).select(0.5, near)

    return Taps(2, _table(ctx, axis, 2, place, "index", i64), _table(ctx, axis, 2, weight, "weight", f32))


def cubic_taps(ctx: Lowering, axis: Axis, a: float, excluded: bool) -> Taps:
    """Two elements on either side, weighted by Keys' cubic convolution with parameter `a`."""

    def weight(nest: Nest, at: Sequence[Expr]) -> Scalar:
        x = axis.coordinate(nest, at[0])
        return cubic(x - x.floor() + 1 - nest.index(at[1]).to(f32), a)

    def place(nest: Nest, at: Sequence[Expr]) -> Scalar:
        return axis.coordinate(nest, at[0]).floor().to(i64) + nest.index(at[1]) - 1

    return _tabulated(ctx, axis, 4, place, weight, excluded, excluded)


def cubic(x: Scalar, a: float) -> Scalar:
    """Keys' kernel at distance `x`, 0 from 2 on."""
    d = x.abs()
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return (d <= 1).select(near, (d < 2).select(far, 0.0))


def taps_of(scale: np.float32, reach: float) -> int:
    """How many elements an antialiasing filter reads that reaches `reach` elements far where none are lost."""
    return math.ceil(2 * reach * max(1.0, 1.0 / float(scale))) + 1


def filtered_taps(ctx: Lowering, axis: Axis, count: int | Expr, reach: float, a: float | None, excluded: bool) -> Taps:
    """All elements in reach of a filter, a triangle or, with parameter `a`, a cubic. It reaches farther where elements
    are lost. `count` is enough elements."""
    known = axis.factor.scale

    def support(nest: Nest) -> Scalar:
        if known is not None:
            return nest.const(reach * max(1.0, 1.0 / float(known)), f32)
        return (nest.const(reach, f32) / axis.scale(nest)).maximum(reach)

    def narrowed(nest: Nest) -> Scalar:
        return axis.scale(nest).minimum(1.0) if known is None else nest.const(min(1.0, float(known)), f32)

    def first(nest: Nest, place: Expr) -> tuple[Scalar, Scalar]:
        centre = axis.coordinate(nest, place) + 0.5
        return (centre - support(nest) + 0.5).floor(), centre

    def place(nest: Nest, at: Sequence[Expr]) -> Scalar:
        return first(nest, at[0])[0].to(i64) + nest.index(at[1])

    def weight(nest: Nest, at: Sequence[Expr]) -> Scalar:
        start, centre = first(nest, at[0])
        element = start + nest.index(at[1]).to(f32)
        x = (element - centre + 0.5) * narrowed(nest)
        value = (1 - x.abs()).maximum(0.0) if a is None else cubic(x, a)
        return (element < (centre + support(nest) + 0.5).floor()).select(value, 0.0)

    return _tabulated(ctx, axis, count, place, weight, excluded, True)


def _tabulated(
    ctx: Lowering, axis: Axis, count: int | Expr, place: Any, weight: Any, excluded: bool, scaled: bool
) -> Taps:
    """Tables of places that may lie outside, and weights that may have to be scaled to make 1."""
    size = axis.factor.old

    def clamped(nest: Nest, at: Sequence[Expr]) -> Scalar:
        return _clamped(nest, place(nest, at), size)

    def kept(nest: Nest, at: Sequence[Expr]) -> Scalar:
        value = weight(nest, at)
        if not excluded:
            return value
        where = place(nest, at)
        return ((where >= 0) & (where < nest.index(size))).select(value, 0.0)

    places = _table(ctx, axis, count, clamped, "index", i64)
    weights = _table(ctx, axis, count, kept, "weight", f32)
    if scaled:
        total = ctx.reduce("add", weights, [1], element=f32, part=f"total{axis.number}")
        weights = ctx.map(
            lambda w, t: w / t, weights, total, element=f32, dims=(axis.factor.new, count), part=f"scaled{axis.number}"
        )
    return Taps(count, places, weights)
