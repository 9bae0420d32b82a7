"""Movement ops with run-time values (docs/explanation/values.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from igniter.dialects.onnx.bound import BOUND_DOMAIN
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.movement import infer_reshape, lower_view, reshape_requires
from igniter.dialects.onnx.ops.rules import element_type, infos, input_dims, legal, operand_dims
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, minimum
from igniter.dialects.sym.requirements import Requirement, equal

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

# -- Expand -----------------------------------------------------------------------------------------------------------


def _infer_expand(ctx: InferContext) -> list[TensorInfo]:
    values = input_dims(ctx, 2)
    return infos(element_type(ctx), None if values is None else values[1:])


def _expand_requires(op: OnnxOp) -> list[Requirement]:
    """Requires every dim to be 1 or the result's dim."""
    before, after = operand_dims(op, 0), dims_of(op.results[0].type)
    pairs = zip(reversed(before), reversed(after), strict=False)
    return [equal((d - 1) * (d - r), 0, "its shape does not broadcast") for d, r in pairs if ONE != d != r]


def _lower_expand(ctx: Lowering) -> list[SSAValue]:
    x, dims, skipped = ctx.required(0), ctx.dims(0), len(ctx.out_dims()) - len(ctx.dims(0))

    def point(nest: Nest, i: Sequence[Expr]) -> Scalar:
        return nest.read(x, [_broadcast(e, d) for e, d in zip(i[skipped:], dims, strict=True)])

    return [ctx.generate(ctx.out_dims(), point)]


def _broadcast(e: Expr, dim: Expr) -> Expr:
    if dim == ONE:
        return ZERO
    return e if dim.constant is not None else minimum(e, dim - 1)


SPECS: list[OpSpec] = [
    OpSpec(
        f"{BOUND_DOMAIN}.Expand",
        _infer_expand,
        lower=_lower_expand,
        legal=legal(),
        requires=_expand_requires,
        kind="movement",
    ),
    # Every run checks the number of elements.
    OpSpec(
        f"{BOUND_DOMAIN}.Reshape",
        infer_reshape,
        lower=lower_view,
        legal=legal(),
        requires=reshape_requires,
        kind="movement",
    ),
]
