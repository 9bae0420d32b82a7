"""Reductions over axes known only at run time (docs/explanation/values.md).

The carrier has the outer extents o of the axes, then the inner ones r, then the dims of the result with reduced axes
dropped. Axis k of d elements is read at i + j, i below o and j below r, and o or r is 1. The requirement o + r = d + 1
states this, and keeps the read in bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.ir import SSAValue

from igniter.dialects.loop import Combiner
from igniter.dialects.onnx.bound import BOUND_DOMAIN
from igniter.dialects.onnx.lowering.context import ScalarFunction, call_scalars
from igniter.dialects.onnx.lowering.scalar import compute_type
from igniter.dialects.onnx.ops.counts import counted, times
from igniter.dialects.onnx.ops.means import mean_of_sums, mean_parts
from igniter.dialects.onnx.ops.pointwise import EXP, computed_reason, operand_count
from igniter.dialects.onnx.ops.reduction import (
    REDUCTIONS_BY_FOLD,
    Reduction,
    above_maximum,
    log_of_sum,
)
from igniter.dialects.onnx.ops.rules import element_type, input_dims, legal, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, LowerRule, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import product
from igniter.dialects.sym.requirements import Requirement, equal

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Scalar

CARRIER = 2
"""The operand after the data and the axes."""


def _infer(ctx: InferContext) -> list[TensorInfo]:
    dims, values = input_dims(ctx, 0), input_dims(ctx, CARRIER)
    if dims is None or values is None:
        return [TensorInfo(element_type(ctx), None)]
    outer, _, left = _extents(values, len(dims))
    return [TensorInfo(element_type(ctx), outer if ctx.op.attr("keepdims", 1) else left)]


def _extents(values: Dims, rank: int) -> tuple[Dims, Dims, Dims]:
    return values[1 : 1 + rank], values[1 + rank : 1 + 2 * rank], values[1 + 2 * rank :]


def _requires(op: OnnxOp) -> list[Requirement]:
    dims = operand_dims(op, 0)
    outer, inner, _ = _extents(operand_dims(op, CARRIER), len(dims))
    text = "its axes do not fit the dims of its input"
    found = [equal(o + r, d + 1, text) for d, o, r in zip(dims, outer, inner, strict=True)]
    return [*found, equal(product(outer), product(dims_of(op.results[0].type)), text)]


def fold(
    ctx: Lowering, combiner: Combiner, tensors: Sequence[SSAValue], function: ScalarFunction, part: str = ""
) -> SSAValue:
    """Folds `function` of the elements of `tensors`; all but the first have the outer extents."""
    outer, inner, _ = _extents(ctx.dims(CARRIER), len(ctx.dims(0)))
    nest = ctx.nest(part)
    at = nest.axes(outer)
    along = [nest.reduction(r) for r in inner]
    whole = nest.read(tensors[0], [i + j for i, j in zip(at, along, strict=True)])
    value = call_scalars(function, [whole, *(nest.read(t, at) for t in tensors[1:])]).widened()
    return nest.finish((combiner, value, at, tensor_of(compute_type(value.element), outer)))[0]


def unchanged(x: Scalar) -> Scalar:
    """Returns an element unchanged."""
    return x


def _lower(this: Reduction) -> LowerRule:
    def lower(ctx: Lowering) -> list[SSAValue]:
        before, after = this.rules_for(ctx.element(0))
        combiner = this.combiner_of(ctx.element(0))
        made = fold(ctx, combiner, [ctx.required(0)], before, "fold")
        if after is not None or element_of(made.type) != ctx.out_element():
            made = ctx.map(after or unchanged, made, dims=dims_of(made.type))
        return [ctx.view(made, ctx.out_dims())]

    return lower


def _mean(ctx: Lowering) -> list[SSAValue]:
    _, inner, _ = _extents(ctx.dims(CARRIER), len(ctx.dims(0)))
    element = ctx.element(0)
    sums = [fold(ctx, "add", [ctx.required(0)], p.rule, p.name) for p in mean_parts(element)]
    mean = ctx.map(mean_of_sums(inner, element), *sums, element=element, dims=dims_of(sums[0].type))
    return [ctx.view(mean, ctx.out_dims())]


def _log_sum_exp(ctx: Lowering) -> list[SSAValue]:
    top = fold(ctx, "max", [ctx.required(0)], lambda x: x, "max")
    total = fold(ctx, "add", [ctx.required(0), top], above_maximum, "sum")
    return [ctx.view(ctx.map(log_of_sum, total, top, dims=dims_of(top.type)), ctx.out_dims())]


def _spec(name: str, lower: LowerRule, cost: int) -> OpSpec:
    return OpSpec(
        f"{BOUND_DOMAIN}.{name}",
        infer=_infer,
        lower=lower,
        legal=legal(computed_reason),
        requires=_requires,
        flops=counted(times(cost, "elements of the input"), lambda op: operand_count(op) * cost),
        kind="reduction",
    )


SPECS: list[OpSpec] = [
    _spec("ReduceLogSumExp", _log_sum_exp, EXP + 2),
    _spec("ReduceMean", _mean, 1),
    *(_spec(name, _lower(this), this.cost) for name, this in REDUCTIONS_BY_FOLD.items()),
]
