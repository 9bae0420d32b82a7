"""Softmax and related ops.

All are reductions and elementwise nests with the same parallel axes, the rows: a maximum; exponentials, stored so that
they are computed once; their sum; and its reciprocal or logarithm, once per row. A row of -inf only, or with NaN or
+inf, is NaN throughout, as in ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.ops.counts import counted
from igniter.dialects.onnx.ops.means import count_of
from igniter.dialects.onnx.ops.normalization import float_legal
from igniter.dialects.onnx.ops.pointwise import EXP, operand_count, same_as_input
from igniter.dialects.onnx.ops.reduction import arg_extreme
from igniter.dialects.onnx.ops.rules import normal_axis
from igniter.dialects.onnx.registry import LowerRule, OpSpec
from igniter.dialects.sym import dims_of, element_of

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
    from igniter.dialects.onnx.lowering.context import Subscripts


def _softmax_axes(op: OnnxOp, rank: int) -> list[int]:
    """Returns the axes normalised together: one since opset 13, all from `axis` on before."""
    if op.opset >= 13:
        return [normal_axis(int(op.attr("axis", -1)), rank)]
    return list(range(normal_axis(int(op.attr("axis", 1)), rank), rank))


def _own_axes(ctx: Lowering) -> list[int]:
    return _softmax_axes(ctx.op, len(ctx.dims(0)))


_WEIGHING = frozenset(("MatMul", "FusedMatMul", "Einsum"))


def _softmax(ctx: Lowering) -> list[SSAValue]:
    weights = any(getattr(use.operation, "op_type", "") in _WEIGHING for use in ctx.op.results[0].uses)
    return [softmax_of(ctx, ctx.required(0), _own_axes(ctx), ctx.out_element(), weights=weights)]


def softmax_of(
    ctx: Lowering,
    x: SSAValue,
    axes: Sequence[int],
    element: Attribute,
    *,
    fully_masked: float | None = None,
    weights: bool = False,
    sink: SSAValue | float | None = None,
    part: str = "",
) -> SSAValue:
    """Returns the softmax of `x` over `axes`, of type `element`. Rows with all elements at most `fully_masked`, if
    given, are 0. `sink` is an extra element of each row; it has no result.

    `weights`: the result weights the values of a contraction, and `postpone-scales` moves the division by the sum after
    it. The exponentials are then divided by their number, so that they sum to at most 1, and no sum of values overflows
    unless their mean does.
    """
    dims = dims_of(x.type)
    top = ctx.reduce("max", x, axes, part="max")
    wide, rows = element_of(top.type), dims_of(top.type)

    given = [sink] if isinstance(sink, SSAValue) else []

    def beside(m: Scalar, read: Sequence[Scalar]) -> Scalar:
        """Returns the sink of a row."""
        return read[0].to(wide) if read else m.nest.const(sink if isinstance(sink, float) else 0.0, wide)

    def higher(m: Scalar, *s: Scalar) -> Scalar:
        return m.maximum(beside(m, s))

    def added(t: Scalar, m: Scalar, *s: Scalar) -> Scalar:
        return t + (beside(m, s) - m).exp(nonpositive=True)

    if sink is not None:
        top = ctx.map(higher, top, *given, element=wide, dims=rows, part="top")
    floor = top
    if fully_masked is not None or weights:
        extents = [dims[k] for k in axes]

        def least(m: Scalar) -> Scalar:
            # A row of -inf only must not compute exp(inf - inf): its exponentials are 0, and so is the inverse of their
            # sum.
            m = m if fully_masked is None else m.maximum(fully_masked)
            return m + count_of(m.nest, extents, m).log() if weights else m

        floor = ctx.map(least, top, element=wide, dims=rows, part="floor")
    raised = ctx.map(lambda v, m: (v - m).exp(nonpositive=True), x, floor, element=wide, dims=dims, part="exp")
    total = ctx.reduce("add", raised, axes, part="sum")
    if sink is not None:
        total = ctx.map(added, total, floor, *given, element=wide, dims=rows, part="whole")
    if fully_masked is None:
        inverse = ctx.map(lambda s: 1 / s, total, element=wide, dims=rows, part="inverse")
    else:
        inverse = ctx.map(
            lambda s, m: (m <= fully_masked).select(0, 1 / s), total, top, element=wide, dims=rows, part="inverse"
        )
    return ctx.map(lambda e, r: e * r, raised, inverse, element=element, dims=dims, part=part)


def _log_softmax(ctx: Lowering) -> list[SSAValue]:
    x, axes = ctx.required(0), _own_axes(ctx)
    top = ctx.reduce("max", x, axes, part="max")
    total = ctx.reduce("add", [x, top], axes, lambda v, m: (v - m).exp(nonpositive=True), part="sum")
    log = ctx.map(lambda s: s.log(), total, element=element_of(total.type), dims=dims_of(total.type), part="log")
    return [ctx.map(lambda v, m, s: v - m - s, x, top, log)]


def _hardmax(ctx: Lowering) -> list[SSAValue]:
    """Gives 1 at the first of the greatest elements."""
    dims, axes = ctx.dims(0), _own_axes(ctx)
    first = arg_extreme(ctx, "max", axes[0], last=False, keepdims=True)

    def point(nest: Nest, at: Subscripts) -> Scalar:
        here = nest.index(at[axes[0]]).eq(ctx.read_broadcast(nest, first, at, dims))
        return here.select(nest.const(1, ctx.element(0)), 0)

    return [ctx.generate(dims, point)]


def _softmax_reason(op: OnnxOp) -> str | None:
    rank = len(dims_of(op.operands[0].type))
    try:
        axes = _softmax_axes(op, rank)
    except ValueError as error:
        return str(error)
    if rank == 0:
        return "it has no axis to normalise over"
    if op.op_type == "Hardmax" and len(axes) != 1:
        return "before opset 13 it normalises over several axes at once"
    return None


def _softmax_spec(name: str, lower: LowerRule) -> OpSpec:
    return OpSpec(
        name,
        infer=same_as_input(None),
        lower=lower,
        legal=float_legal(_softmax_reason),
        flops=counted("14 × elements of the input", lambda op: operand_count(op) * (EXP + 4)),
        kind="normalization",
    )


SPECS: list[OpSpec] = [
    _softmax_spec("Hardmax", _hardmax),
    _softmax_spec("LogSoftmax", _log_softmax),
    _softmax_spec("Softmax", _softmax),
]
