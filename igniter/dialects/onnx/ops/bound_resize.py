"""Resize by run-time scales or sizes (docs/explanation/values.md).

The carrier has the dims of the result; then, for the resized axes, the requested sizes if the aspect ratio is kept, and
the numbers of elements read by an antialiasing filter. Scales are read as data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from igniter.dialects.onnx.bound import BOUND_DOMAIN
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.pointwise import computed_reason, elementwise_flops
from igniter.dialects.onnx.ops.resize import Axis, Factor, antialias, mode_reason, resize_axes, resized
from igniter.dialects.onnx.ops.rules import element_type, infos, input_dims, legal, unknown_rank
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

CARRIER = 4
"""The operand after the data, the region, the scales and the sizes."""


def keeps_aspect(op: OnnxOp) -> str:
    """Returns `not_larger` or `not_smaller` if one factor, derived from the sizes, applies to all axes; else an empty
    string."""
    policy = str(op.attr("keep_aspect_ratio_policy", "stretch"))
    return "" if policy == "stretch" else policy


@dataclass(frozen=True)
class BoundAxis(Axis):
    """An axis with a factor computed at run time."""

    scales: SSAValue | None
    """The operand of scales, if given."""
    place: int
    """The index of the axis among the resized axes."""
    asked: tuple[tuple[Expr, Expr], ...]
    """For all resized axes, the old size and the requested size; only if the aspect ratio is kept."""
    count: Expr | None

    def scale(self, nest: Nest) -> Scalar:
        if self.scales is not None:
            return nest.read(self.scales, [self.place])
        if not self.asked:
            return super().scale(nest)
        found = [nest.index(new).to(f32) / nest.index(old).to(f32) for old, new in self.asked]
        least = keeps_aspect(self.ctx.op) == "not_larger"
        total = found[0]
        for other in found[1:]:
            total = total.minimum(other) if least else total.maximum(other)
        return total

    def taps(self) -> int | Expr:
        assert self.count is not None  # with a filter, the carrier has it
        return self.count


def _infer(ctx: InferContext) -> list[TensorInfo]:
    dims, values = input_dims(ctx, 0), input_dims(ctx, CARRIER)
    if dims is None or values is None:
        return unknown_rank(ctx)
    axes = resize_axes(ctx.op, len(dims))
    return infos(element_type(ctx), [values[1 + k] if k in axes else dim for k, dim in enumerate(dims)])


def _lower(ctx: Lowering) -> list[SSAValue]:
    dims, values = ctx.dims(0), ctx.dims(CARRIER)[1:]
    axes = resize_axes(ctx.op, len(dims))
    scales = ctx.input(2)
    if scales is not None and dims_of(scales.type) == (Expr.of(0),):
        scales = None
    new, rest = values[: len(dims)], values[len(dims) :]
    asked: tuple[tuple[Expr, Expr], ...] = ()
    if scales is None and keeps_aspect(ctx.op):
        asked = tuple(zip((dims[k] for k in axes), rest, strict=False))
        rest = rest[len(axes) :]
    filtered = antialias(ctx.op)
    return resized(
        ctx,
        [
            BoundAxis(ctx, k, Factor(dims[k], new[k], None), scales, n, asked, rest[n] if filtered else None)
            for n, k in enumerate(axes)
        ],
    )


SPECS: list[OpSpec] = [
    OpSpec(
        f"{BOUND_DOMAIN}.Resize",
        infer=_infer,
        lower=_lower,
        legal=legal(computed_reason, mode_reason),
        flops=elementwise_flops(8),
        kind="movement",
    )
]
