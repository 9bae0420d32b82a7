"""Resize and Upsample: the element, or the weighted sum of elements, for each place of the result.

Every axis is resized separately. If the old place of a new one is an expression (whole factors, nearest mode), the nest
reads there. Otherwise one small nest computes the elements to read for every place along the axis, another their
weights, and the nest over the result reads both tables. Coordinates are computed in f32 in ONNX Runtime's order of
operations, because rounding determines the nearest element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import SSAValue

from igniter.dialects.loop import is_float
from igniter.dialects.onnx.base import constant_value
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.lowering.context import operand_values
from igniter.dialects.onnx.ops.pointwise import computed_reason, elementwise_flops, float_attr
from igniter.dialects.onnx.ops.resize_weights import Taps, cubic_taps, filtered_taps, linear_taps, taps_of
from igniter.dialects.onnx.ops.rules import (
    element_type,
    equate_length,
    infos,
    input_dims,
    legal,
    normal_axis,
    operand,
    operand_dims,
    tidy,
    unknown_rank,
)
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ZERO, Expr, floordiv, maximum, minimum
from igniter.dialects.sym.requirements import Requirement, at_most, equal

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

MOST_TERMS = 8
"""The most elements of a sum along all axes at once, on GPUs: linear interpolation along three axes. For cubic
interpolation of two axes one sum for each axis is expected to take half of the time."""

COARSE = 64
"""The maximum denominator of a factor with an exact product of a symbolic dim."""


# -- the node ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Factor:
    """The change of one axis: from `old` elements to `new`, by `scale` if it is known at compile time."""

    old: Expr
    new: Expr
    scale: np.float32 | None

    @property
    def is_identity(self) -> bool:
        return self.new == self.old and (self.scale is None or self.scale == 1)


def resize_axes(op: OnnxOp, rank: int) -> list[int]:
    """Returns the axes with scales or sizes."""
    axes = op.attr("axes") if op.opset >= 18 else None
    return [normal_axis(int(a), rank) for a in axes] if axes else list(range(rank))


def factors(
    op: OnnxOp, dims: Dims, scales: Any, sizes: Dims | None, fresh: Callable[[int], Expr] | None
) -> list[Factor] | str:
    """Returns the change of every axis; or the reason why it is unknown. `fresh` gives dims for those without an
    expression."""
    axes = resize_axes(op, len(dims))
    found = [Factor(d, d, np.float32(1)) for d in dims]
    if scales is not None and len(scales):
        if len(scales) != len(axes):
            return f"it has {len(scales)} scales for {len(axes)} axes"
        for axis, scale in zip(axes, np.asarray(scales, np.float32), strict=True):
            new = scaled(dims[axis], scale)
            if new is None and fresh is None:
                return f"{dims[axis]} times {scale}, rounded, has no symbolic form"
            found[axis] = Factor(dims[axis], new or (fresh(axis) if fresh else ZERO), scale)
        return found
    if sizes is None or len(sizes) != len(axes):
        return "its scales and sizes are known only at run time"
    for axis, new in zip(axes, sizes, strict=True):
        found[axis] = Factor(dims[axis], new, quotient(new, dims[axis]))
    policy = str(op.attr("keep_aspect_ratio_policy", "stretch"))
    return found if policy == "stretch" else _kept_aspect(found, axes, policy)


def scaled(dim: Expr, scale: np.float32) -> Expr | None:
    """Returns `dim` times `scale`, rounded down, as computed in f32 by ONNX Runtime; None if no expression is exact."""
    if dim.constant is not None:
        return Expr.of(int(np.float32(dim.constant) * scale))
    ratio = Fraction(float(scale))
    return tidy(floordiv(dim * ratio.numerator, Expr.of(ratio.denominator))) if ratio.denominator <= COARSE else None


def quotient(new: Expr, old: Expr) -> np.float32 | None:
    if new == old:
        return np.float32(1)
    if new.constant is None or not old.constant:
        return None
    return np.float32(new.constant) / np.float32(old.constant)


def _kept_aspect(found: list[Factor], axes: Sequence[int], policy: str) -> list[Factor] | str:
    known = [found[a].scale for a in axes]
    scales = [s for s in known if s is not None]
    if len(scales) < len(known):
        return "its smallest factor depends on the dims"
    scale = min(scales) if policy == "not_larger" else max(scales)
    made = list(found)
    for a in axes:
        size = np.float32(found[a].old.constant or 0) * scale
        made[a] = Factor(found[a].old, Expr.of(int(np.floor(size + np.float32(0.5)))), scale)
    return made


def _given(op: OnnxOp, constant: Callable[[int], Any], values: Callable[[int], Dims | None]) -> tuple[Any, Dims | None]:
    """Returns the scales and the sizes, as far as they are known."""
    if op.op_type == "Upsample" and op.opset < 9:
        return op.attr("scales"), None
    if op.opset < 11:
        return constant(1), None
    return constant(2), values(3)


def _infer(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return unknown_rank(ctx)
    _equate_lists(ctx, len(dims))
    scales, sizes = _given(ctx.op, ctx.constant, ctx.values)
    found = factors(ctx.op, dims, scales, sizes, lambda axis: ctx.fresh(f"resized_{axis}"))
    if isinstance(found, str):
        return infos(element_type(ctx), [ctx.fresh(f"resized_{k}") for k in range(len(dims))])
    return infos(element_type(ctx), [f.new for f in found])


def _equate_lists(ctx: InferContext, rank: int) -> None:
    """Equates the numbers of scales or sizes with the axes; with sizes, scales may be present and empty."""
    if ctx.op.opset < 11:
        return
    count = len(resize_axes(ctx.op, rank))
    given = input_dims(ctx, 2)
    if ctx.input(3) is None:
        equate_length(ctx, 2, count)
    elif given is None or given == (ZERO,):
        equate_length(ctx, 3, count)
    if _transformation(ctx.op) == "tf_crop_and_resize":
        equate_length(ctx, 1, 2 * count)


def _known_factors(op: OnnxOp) -> list[Factor] | str:
    dims = operand_dims(op, 0)
    scales, sizes = _given(op, lambda k: constant_value(operand(op, k)), lambda k: operand_values(op, k))
    return factors(op, dims, scales, sizes, None)


def _mode(op: OnnxOp) -> str:
    mode = str(op.attr("mode", "nearest"))
    return "linear" if mode in ("linear", "bilinear", "trilinear") else mode


def _transformation(op: OnnxOp) -> str:
    return str(op.attr("coordinate_transformation_mode", "half_pixel")) if op.opset >= 11 else "asymmetric"


def _reason(op: OnnxOp) -> str | None:
    found = _known_factors(op)
    if isinstance(found, str):
        return found
    if dims_of(op.results[0].type) != tuple(f.new for f in found):
        return "its result is not known to have the dims given by its factors"
    if antialias(op) and any(f.scale is None for f in found):
        return "its number of filtered elements depends on the dims"
    return mode_reason(op)


def mode_reason(op: OnnxOp) -> str | None:
    """Returns the reason why a node's modes have no kernel; None if they have one."""
    if _mode(op) not in ("nearest", "linear", "cubic"):
        return f"unknown mode '{_mode(op)}'"
    if _mode(op) != "nearest" and not is_float(element_of(op.operands[0].type)):
        return f"ONNX Runtime interpolates {element_of(op.operands[0].type)} with a rounding of its own"
    if _transformation(op) not in (*TRANSFORMATIONS, "align_corners", "tf_crop_and_resize", "half_pixel_symmetric"):
        return f"unknown coordinate_transformation_mode '{_transformation(op)}'"
    return None


def filter_reach(op: OnnxOp) -> float:
    """Returns the reach of an antialiasing filter for an upscaled axis, in elements."""
    return 2.0 if _mode(op) == "cubic" else 1.0


def antialias(op: OnnxOp) -> bool:
    """True if interpolation filters a downscaled axis."""
    return bool(op.opset >= 18 and op.attr("antialias", 0)) and _mode(op) != "nearest"


# -- coordinates ------------------------------------------------------------------------------------------------------


TRANSFORMATIONS: dict[str, Callable[[Scalar, Scalar, Expr], Scalar]] = {
    "asymmetric": lambda x, scale, new: x / scale,
    "half_pixel": lambda x, scale, new: (x + 0.5) / scale - 0.5,
    "pytorch_half_pixel": lambda x, scale, new: (x.nest.index(new) > 1).select((x + 0.5) / scale - 0.5, 0.0),
    "tf_half_pixel_for_nn": lambda x, scale, new: (x + 0.5) / scale,
}
"""The old coordinate of a new one, for transformations that depend only on the factor."""


@dataclass(frozen=True)
class Axis:
    """One resized axis of a node."""

    ctx: Lowering
    number: int
    factor: Factor

    def scale(self, nest: Nest) -> Scalar:
        """Returns the factor, in f32."""
        known = self.factor.scale
        if known is not None:
            return nest.const(float(known), f32)
        return nest.index(self.factor.new).to(f32) / nest.index(self.factor.old).to(f32)

    def taps(self) -> int | Expr:
        """Returns the number of elements read by an antialiasing filter."""
        assert self.factor.scale is not None  # `_reason` has checked it
        return taps_of(self.factor.scale, filter_reach(self.ctx.op))

    def coordinate(self, nest: Nest, place: Expr) -> Scalar:
        """Returns the coordinate of the new place `place` among the old elements, in f32. An axis of unchanged size
        keeps its places."""
        x = nest.index(place).to(f32)
        made = self._transformed(nest, x)
        if self.factor.scale is not None:
            return x if self.factor.scale == 1 else made
        return self.scale(nest).eq(1).select(x, made)

    def _transformed(self, nest: Nest, x: Scalar) -> Scalar:
        mode, (old, new) = _transformation(self.ctx.op), (self.factor.old, self.factor.new)
        if mode in TRANSFORMATIONS:
            return TRANSFORMATIONS[mode](x, self.scale(nest), new)
        before, after = nest.index(old).to(f32), nest.index(new).to(f32)
        if mode == "align_corners":
            return after.eq(1).select(0.0, x * (before - 1) / (after - 1))
        if mode == "half_pixel_symmetric":
            scale = self.scale(nest)
            offset = before / 2 * (1 - after / (scale * before))
            return (offset.to(f64) + (x.to(f64) + 0.5) / scale.to(f64) - 0.5).to(f32)
        start, end = self._corners(nest)
        many = start * (before - 1) + x * (end - start) * (before - 1) / (after - 1)
        one = 0.5 * (start + end).to(f64) * (before - 1).to(f64)
        return (after > 1).select(many, one.to(f32))

    def _corners(self, nest: Nest) -> tuple[Scalar, Scalar]:
        """Returns the region of interest of the axis: the start and the end, as fractions of it."""
        roi, axes = self.ctx.required(1), resize_axes(self.ctx.op, len(self.ctx.dims(0)))
        if self.number not in axes:
            return nest.const(0.0, f32), nest.const(1.0, f32)
        at = axes.index(self.number)
        return tuple(nest.read(roi, [at + k * len(axes)]).to(f32) for k in (0, 1))  # pyright: ignore[reportReturnType]

    def weighted(self, nest: Nest, value: Scalar, weight: Scalar) -> Scalar:
        """Returns a term of an interpolation. An axis whose size turns out unchanged must ignore its neighbours, even
        a NaN times 0."""
        if self.factor.scale is not None:
            return value * weight
        return (weight.eq(0) & self.scale(nest).eq(1)).select(0.0, value * weight)

    def outside(self, nest: Nest, place: Expr) -> Scalar:
        """Returns true if the old coordinate lies outside the axis."""
        x = self.coordinate(nest, place)
        return (x < 0) | (x > nest.index(self.factor.old - 1).to(f32))


# -- nearest ----------------------------------------------------------------------------------------------------------

HALFWAY = 1e-6
"""The tolerance within which ONNX Runtime treats a place as halfway between two: f32 quotients have a smaller error."""


def _rounded(axis: Axis, nest: Nest, x: Scalar) -> Scalar:
    op = axis.ctx.op
    mode = str(op.attr("nearest_mode", "round_prefer_floor")) if op.opset >= 11 else ""
    below = x.floor()
    if not mode:
        return (axis.scale(nest) < 1).select(x.math("ceil"), x.math("trunc"))
    if mode in ("floor", "ceil"):
        return below if mode == "floor" else x.math("ceil")
    up = x - below >= 0.5 + HALFWAY if mode == "round_prefer_floor" else x - below > 0.5 - HALFWAY
    return up.select(below + 1, below)


def _whole_step(axis: Axis, place: Expr) -> Expr | None:
    """Returns the nearest old place as an expression if a factor or its inverse is a whole number and no rounding is
    ambiguous; else None."""
    op, scale = axis.ctx.op, axis.factor.scale
    mode = (_transformation(op), str(op.attr("nearest_mode", "round_prefer_floor")) if op.opset >= 11 else "floor")
    centred = mode[0] in ("half_pixel", "pytorch_half_pixel") and mode[1].startswith("round")
    if scale is None or not (mode == ("asymmetric", "floor") or (centred and scale >= 1)):
        return None
    if axis.factor.new.constant == 1 and scale != 1:
        return None
    if scale >= 1 and float(scale).is_integer():
        old, within = axis.factor.old, floordiv(place, Expr.of(int(scale)))
        return within if axis.factor.new == old * int(scale) else minimum(within, old - 1)
    inverse = Fraction(float(scale)) ** -1
    return place * inverse.numerator if inverse.denominator == 1 else None


def _nearest(ctx: Lowering, axes: Sequence[Axis]) -> SSAValue:
    x = ctx.required(0)
    tables: dict[int, SSAValue] = {}
    for axis in axes:
        if _whole_step(axis, ZERO) is not None:
            continue

        def index(nest: Nest, at: Sequence[Expr], axis: Axis = axis) -> Scalar:
            near = _rounded(axis, nest, axis.coordinate(nest, at[0])).to(i64)
            return near.minimum(nest.index(axis.factor.old - 1)).maximum(0)

        tables[axis.number] = ctx.generate([axis.factor.new], index, element=i64, part=f"index{axis.number}")

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        at: list[Expr | Scalar] = list(i)
        for axis in axes:
            plain, place = _whole_step(axis, i[axis.number]), i[axis.number]
            at[axis.number] = nest.read(tables[axis.number], [place]) if plain is None else plain
        return nest.read_inside(x, at)

    return ctx.generate(ctx.out_dims(), point)


# -- sums -------------------------------------------------------------------------------------------------------------


def _taps(ctx: Lowering, axis: Axis) -> Taps:
    """Returns the elements and weights of each place along the axis."""
    cubic, excluded = _mode(ctx.op) == "cubic", bool(ctx.attr("exclude_outside", 0))
    a = float_attr(ctx, "cubic_coeff_a", -0.75)
    if antialias(ctx.op):
        return filtered_taps(ctx, axis, axis.taps(), filter_reach(ctx.op), a if cubic else None, excluded)
    return cubic_taps(ctx, axis, a, excluded) if cubic else linear_taps(ctx, axis)


def _along(ctx: Lowering, x: SSAValue, axis: Axis, last: bool) -> SSAValue:
    """Returns `x` resized along one axis: a sum of a few elements for each place."""
    taps, dims, k = _taps(ctx, axis), list(dims_of(x.type)), axis.number
    dims[k] = axis.factor.new
    wide = ctx.wide_element()

    def term(nest: Nest, i: Sequence[Expr], tap: Expr) -> Scalar:
        at: list[Expr | Scalar] = list(i)
        at[k] = nest.read(taps.places, [i[k], tap])
        value, weight = nest.read_inside(x, at).to(wide), nest.read(taps.weights, [i[k], tap]).to(wide)
        return axis.weighted(nest, value, weight)

    count = taps.count
    if isinstance(count, Expr) or count > 4:
        made = ctx.generate(
            dims,
            lambda nest, i, r: term(nest, i, r[0]),
            over=[count],
            combiner="add",
            element=wide,
            part=f"axis{k}",
        )
        return ctx.rounded(made) if last else made

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        total = term(nest, i, ZERO)
        for tap in range(1, count):
            total = total + term(nest, i, Expr.of(tap))
        return total

    return ctx.generate(dims, point, element=ctx.out_element() if last else wide, part=f"axis{k}")


def _at_once(ctx: Lowering, axes: Sequence[Axis]) -> SSAValue | None:
    """Returns the first operand resized along all axes in one nest; None if a place is the sum of many elements. The
    sums are nested like those of the axes one after the other: the last axis is the inner one."""
    tables = [_taps(ctx, axis) for axis in axes]
    counts = [taps.count for taps in tables if isinstance(taps.count, int)]
    if len(counts) < len(axes) or prod(counts) > MOST_TERMS:
        return None
    x, wide = ctx.required(0), ctx.wide_element()

    def sum_from(nest: Nest, n: int, i: Sequence[Expr], at: list[Expr | Scalar]) -> Scalar:
        if n == len(axes):
            return nest.read_inside(x, at).to(wide)
        axis, taps = axes[n], tables[n]
        place, total = i[axis.number], None
        for tap in map(Expr.of, range(counts[n])):
            at[axis.number] = nest.read(taps.places, [place, tap])
            term = axis.weighted(nest, sum_from(nest, n + 1, i, at), nest.read(taps.weights, [place, tap]).to(wide))
            total = term if total is None else total + term
        assert total is not None
        return total

    return ctx.generate(ctx.out_dims(), lambda nest, i: sum_from(nest, 0, i, list(i)), element=ctx.out_element())


def _resize(ctx: Lowering) -> list[SSAValue]:
    found = _known_factors(ctx.op)
    if isinstance(found, str):
        raise ctx.fail(found)
    return resized(ctx, [Axis(ctx, k, f) for k, f in enumerate(found) if not f.is_identity])


def resized(ctx: Lowering, axes: Sequence[Axis]) -> list[SSAValue]:
    """Returns the first operand resized along `axes`."""
    crops = _transformation(ctx.op) == "tf_crop_and_resize"
    if not axes:
        return [ctx.view(ctx.required(0), ctx.out_dims())]
    if _mode(ctx.op) == "nearest":
        made = _nearest(ctx, axes)
    else:
        found = _at_once(ctx, axes) if ctx.kernel.blocks else None
        made = ctx.required(0) if found is None else found
        # The last axis comes first: its rows are contiguous while they are short.
        for n, axis in enumerate(reversed(axes) if found is None else ()):
            made = _along(ctx, made, axis, n == len(axes) - 1)
    return [_extrapolated(ctx, made, axes) if crops else made]


def _extrapolated(ctx: Lowering, x: SSAValue, axes: Sequence[Axis]) -> SSAValue:
    """Returns `x` with the extrapolation value at coordinates outside the input."""
    flags: list[SSAValue] = []
    for axis in axes:

        def flag(nest: Nest, at: Sequence[Expr], axis: Axis = axis) -> Scalar:
            return axis.outside(nest, at[0]).to(i64)

        flags.append(ctx.generate([axis.factor.new], flag, element=i64, part=f"outside{axis.number}"))

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        outside = nest.const(0, i64)
        for axis, found in zip(axes, flags, strict=True):
            outside = outside | nest.read(found, [i[axis.number]])
        value = nest.read(x, i)
        return outside.ne(0).select(nest.const(float_attr(ctx, "extrapolation_value"), f32).to(value.element), value)

    return ctx.generate(ctx.out_dims(), point)


def _requires(op: OnnxOp) -> list[Requirement]:
    """Requires non-empty resized dims, and an image for interpolation."""
    pairs = list(zip(operand_dims(op, 0), dims_of(op.results[0].type), strict=True))
    found = [at_most(1, maximum(old, 1 - new), "it resizes a dim of 0") for old, new in pairs if old != new]
    if _mode(op) == "nearest" or len(pairs) < 4:
        return found
    # For tensors with at least four dims, ONNX Runtime only interpolates the spatial ones.
    text = f"mode '{_mode(op)}' cannot resize its first dims"
    (batch, batches), (channels, planes), *_, (last, lasts) = pairs
    if batch != batches:
        found.append(equal(batch, batches, text))
    if channels != planes and (len(pairs) > 4 or last != lasts):
        found.append(equal((channels - planes) * (last - lasts if len(pairs) == 4 else 1), 0, text))
    return found


SPECS: list[OpSpec] = [
    OpSpec(
        name,
        infer=_infer,
        lower=_resize,
        legal=legal(computed_reason, _reason),
        requires=_requires,
        flops=elementwise_flops(8),
        kind="movement",
    )
    for name in ("Resize", "Upsample")
]
