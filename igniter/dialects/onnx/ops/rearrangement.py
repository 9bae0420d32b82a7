"""Movement determined by lengths or sizes: ReverseSequence, CenterCropPad, UnfoldTensor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import i64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.rules import (
    element_type,
    equate_length,
    infos,
    input_dims,
    known,
    legal,
    normal_axis,
    operand_dims,
    tidy,
    unknown_rank,
)
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym.expr import ZERO, Expr, floordiv, maximum
from igniter.dialects.sym.ranges import is_nonneg
from igniter.dialects.sym.requirements import Requirement, at_most

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp


# -- ReverseSequence --------------------------------------------------------------------------------------------------


def _sequence_axes(op: OnnxOp) -> tuple[int, int]:
    """Returns the time axis and the batch axis."""
    return int(op.attr("time_axis", 0)), int(op.attr("batch_axis", 1))


def _infer_reverse(ctx: InferContext) -> list[TensorInfo]:
    dims, lengths = input_dims(ctx, 0), input_dims(ctx, 1)
    if dims is not None and lengths is not None:
        ctx.equate(lengths[0], dims[_sequence_axes(ctx.op)[1]])
    return infos(element_type(ctx), dims)


def _reverse_reason(op: OnnxOp) -> str | None:
    dims, axes = operand_dims(op, 0), _sequence_axes(op)
    if sorted(axes) != [0, 1] or len(dims) < 2:
        return "its time and batch are not its first two axes"
    if operand_dims(op, 1) != (dims[axes[1]],):
        return "it is not known to have a length for every sequence"
    return None


def _reverse(ctx: Lowering) -> list[SSAValue]:
    """Reads element `length - 1 - t` for element `t` of a sequence; elements after its length are unchanged."""
    x, lengths, (time, batch) = ctx.required(0), ctx.required(1), _sequence_axes(ctx.op)
    ctx.check_indices(lengths, ctx.dims(0)[time] + 1, "invalid sequence length", negative=False)

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        length, here = nest.read(lengths, [i[batch]]).to(i64), nest.index(i[time])
        at: list[Expr | Scalar] = list(i)
        at[time] = (here < length).select(length - 1 - here, here)
        return nest.read_inside(x, at)

    return [ctx.generate(ctx.out_dims(), point)]


# -- CenterCropPad ----------------------------------------------------------------------------------------------------


def _resized_dims(op: OnnxOp, dims: Dims, sizes: Dims | None) -> list[Expr] | str:
    axes = op.attr("axes")
    places = list(range(len(dims))) if axes is None else [normal_axis(int(a), len(dims)) for a in axes]
    if sizes is None or len(sizes) != len(places):
        return "its shape is known only at run time"
    found = list(dims)
    for axis, size in zip(places, sizes, strict=True):
        found[axis] = size
    return found


def _infer_center(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return unknown_rank(ctx)
    equate_length(ctx, 1, len(ctx.op.attr("axes") or dims))
    found = _resized_dims(ctx.op, dims, ctx.values(1))
    if isinstance(found, str):
        return infos(element_type(ctx), [ctx.fresh(f"cropped_{k}") for k in range(len(dims))])
    return infos(element_type(ctx), found)


def _center_reason(op: OnnxOp) -> str | None:
    found = _resized_dims(op, operand_dims(op, 0), known(op, 1))
    return found if isinstance(found, str) else None


def _center(ctx: Lowering) -> list[SSAValue]:
    """Crops, or pads with zeros, half on each side; the odd element is at the end."""
    x = ctx.required(0)
    starts: list[Expr] = []
    for old, new in zip(ctx.dims(0), ctx.out_dims(), strict=True):
        cut = ZERO if is_nonneg(new - old) else floordiv(maximum(old - new, ZERO), Expr.of(2))
        added = ZERO if is_nonneg(old - new) else floordiv(maximum(new - old, ZERO), Expr.of(2))
        starts.append(tidy(cut - added))

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        return nest.read_inside(x, [e + s for e, s in zip(i, starts, strict=True)])

    return [ctx.generate(ctx.out_dims(), point)]


# -- UnfoldTensor -----------------------------------------------------------------------------------------------------


def _unfolding(op: OnnxOp, rank: int) -> tuple[int, int, int]:
    """Returns the axis, and the size and the stride of the slices along it."""
    return normal_axis(int(op.attr("dim", -1)), rank), int(op.attr("size") or 0), int(op.attr("step", 1))


def _infer_unfold(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return unknown_rank(ctx)
    axis, size, step = _unfolding(ctx.op, len(dims))
    count = tidy(floordiv(dims[axis] - size, Expr.of(step)) + 1)
    return infos(element_type(ctx), [*dims[:axis], count, *dims[axis + 1 :], size])


def _unfold_reason(op: OnnxOp) -> str | None:
    dims = operand_dims(op, 0)
    if not dims:
        return "it has no axis to unfold"
    _, size, step = _unfolding(op, len(dims))
    return None if size > 0 and step > 0 else "its slices are empty, or its step is not positive"


def _unfold_requires(op: OnnxOp) -> list[Requirement]:
    dims = operand_dims(op, 0)
    axis, size, _ = _unfolding(op, len(dims))
    return [at_most(size, dims[axis], "its slices are longer than the dim")]


def _unfold(ctx: Lowering) -> list[SSAValue]:
    x, (axis, _, step) = ctx.required(0), _unfolding(ctx.op, len(ctx.dims(0)))

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        return nest.read(x, [*i[:axis], i[axis] * step + i[-1], *i[axis + 1 : -1]])

    return [ctx.generate(ctx.out_dims(), point)]


SPECS: list[OpSpec] = [
    OpSpec(
        "com.microsoft.UnfoldTensor",
        _infer_unfold,
        lower=_unfold,
        legal=legal(_unfold_reason),
        requires=_unfold_requires,
        kind="movement",
    ),
    OpSpec("CenterCropPad", _infer_center, lower=_center, legal=legal(_center_reason), kind="movement"),
    OpSpec("ReverseSequence", _infer_reverse, lower=_reverse, legal=legal(_reverse_reason), kind="movement"),
]
