"""The elements and weights of an interpolation along one axis, as two small tensors.

Both have a row for every place of the result. Places outside the axis are clamped to its ends, as in ONNX Runtime; with
`excluded` they have weight 0, and the other weights are scaled to sum to 1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.sym.expr import ZERO, Expr

if TYPE_CHECKING:
    import numpy as np

    from igniter.dialects.onnx.ops.resize import Axis


@dataclass(frozen=True)
class Taps:
    """The tables `places` (i64) and `weights` (f32), of dims `[size of the result, count]`."""

    count: int | Expr
    places: SSAValue
    weights: SSAValue


def _clamped(nest: Nest, at: Scalar, size: Expr) -> Scalar:
    return at.minimum(nest.index(size - 1)).maximum(0)


def _table(ctx: Lowering, axis: Axis, count: int | Expr, rule: Any, part: str, element: Any) -> SSAValue:
    return ctx.generate([axis.factor.new, count], rule, element=element, part=f"{part}{axis.number}")


def linear_taps(ctx: Lowering, axis: Axis) -> Taps:
    """Returns the elements on both sides. At the end of the axis both are the last one, each with half the weight."""
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
    """Returns two elements on each side, weighted by Keys' cubic convolution with parameter `a`."""

    def weight(nest: Nest, at: Sequence[Expr]) -> Scalar:
        x = axis.coordinate(nest, at[0])
        return cubic(x - x.floor() + 1 - nest.index(at[1]).to(f32), a)

    def place(nest: Nest, at: Sequence[Expr]) -> Scalar:
        return axis.coordinate(nest, at[0]).floor().to(i64) + nest.index(at[1]) - 1

    return _tabulated(ctx, axis, 4, place, weight, excluded, excluded)


def cubic(x: Scalar, a: float) -> Scalar:
    """Returns Keys' kernel at distance `x`, 0 from 2 on."""
    d = x.abs()
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return (d <= 1).select(near, (d < 2).select(far, 0.0))


def taps_of(scale: np.float32, reach: float) -> int:
    """Returns the number of elements read by an antialiasing filter, given its reach on an upscaled axis."""
    return math.ceil(2 * reach * max(1.0, 1.0 / float(scale))) + 1


def filtered_taps(ctx: Lowering, axis: Axis, count: int | Expr, reach: float, a: float | None, excluded: bool) -> Taps:
    """Returns all elements in reach of a filter, a triangle or, with parameter `a`, a cubic. It reaches farther on a
    downscaled axis. `count` is a sufficient number of elements."""
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
        return reached(nest, at).select(value, 0.0)

    def reached(nest: Nest, at: Sequence[Expr]) -> Scalar:
        start, centre = first(nest, at[0])
        return start + nest.index(at[1]).to(f32) < (centre + support(nest) + 0.5).floor()

    return _windowed(ctx, axis, count, place, weight, reached, excluded)


def _windowed(
    ctx: Lowering, axis: Axis, count: int | Expr, place: Any, weight: Any, reached: Any, excluded: bool
) -> Taps:
    """Returns tables of the reached taps inside the axis. The others have place -1, where nothing is read, because 0
    times NaN is NaN.

    With `excluded`, taps outside have no effect. Otherwise their weight is added to that of the first or the last
    element, multiplied once: products with weights of both signs would turn an infinity into NaN.
    """
    last, new = axis.factor.old - 1, axis.factor.new

    def taken(nest: Nest, at: Sequence[Expr]) -> Scalar:
        where = place(nest, at)
        return (where >= 0) & (where <= nest.index(last)) & reached(nest, at)

    def beyond(part: str, outside: Callable[[Nest, Scalar], Scalar]) -> SSAValue:
        def rule(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
            at = [*i, *r]
            return outside(nest, place(nest, at)).select(weight(nest, at), 0.0)

        name = f"{part}{axis.number}"
        return ctx.generate([new], rule, over=[count], combiner="add", element=f32, part=name)

    ends: list[tuple[SSAValue, Expr]] = []
    if not excluded:
        ends.append((beyond("before", lambda nest, where: where < 0), ZERO))
        ends.append((beyond("behind", lambda nest, where: where > nest.index(last)), last))

    def kept(nest: Nest, at: Sequence[Expr]) -> Scalar:
        value = weight(nest, at)
        for extra, end in ends:
            value = value + place(nest, at).eq(nest.index(end)).select(nest.read(extra, [at[0]]), 0.0)
        return taken(nest, at).select(value, 0.0)

    def index(nest: Nest, at: Sequence[Expr]) -> Scalar:
        return taken(nest, at).select(place(nest, at), nest.const(-1, i64))

    places = _table(ctx, axis, count, index, "index", i64)
    return Taps(count, places, _scaled(ctx, axis, count, _table(ctx, axis, count, kept, "weight", f32)))


def _tabulated(
    ctx: Lowering, axis: Axis, count: int | Expr, place: Any, weight: Any, excluded: bool, scaled: bool
) -> Taps:
    """Returns tables of places, clamped to the axis, and of weights, scaled to sum to 1 if `scaled`."""
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
    return Taps(count, places, _scaled(ctx, axis, count, weights) if scaled else weights)


def _scaled(ctx: Lowering, axis: Axis, count: int | Expr, weights: SSAValue) -> SSAValue:
    """Returns weights scaled to sum to 1 for each place, unless all are 0."""
    total = ctx.reduce("add", weights, [1], element=f32, part=f"total{axis.number}")
    dims = (axis.factor.new, count)

    def part(w: Scalar, t: Scalar) -> Scalar:
        return w / t.eq(0).select(1.0, t)

    return ctx.map(part, weights, total, element=f32, dims=dims, part=f"scaled{axis.number}")
