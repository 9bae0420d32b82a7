"""Losses: NegativeLogLikelihoodLoss and SoftmaxCrossEntropyLoss.

Every place has a class: the logarithm of its probability is selected, negated and weighted. A place with the class
`ignore_index` has weight 0. The mean is weighted.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import IntegerType, i64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.counts import counted
from igniter.dialects.onnx.ops.normalization import float_legal
from igniter.dialects.onnx.ops.pointwise import EXP, operand_count
from igniter.dialects.onnx.ops.rules import element_type, input_dims, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ZERO, Expr, product
from igniter.dialects.sym.requirements import FINE

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

REDUCTIONS = ("none", "sum", "mean")


def _reduction(op: OnnxOp) -> str:
    return str(op.attr("reduction", "mean"))


def _infer(ctx: InferContext) -> list[TensorInfo]:
    scores, classes, weight = (input_dims(ctx, k) for k in range(3))
    if scores is not None and classes is not None:
        for a, b in zip((scores[0], *scores[2:]), classes, strict=True):
            ctx.equate(a, b)
        for dim in weight or ():
            ctx.equate(dim, scores[1])
    loss: Dims | None = () if _reduction(ctx.op) != "none" else classes
    own = element_type(ctx)
    return [TensorInfo(own, loss), TensorInfo(own, scores)][: len(ctx.op.results)]


def _reason(op: OnnxOp) -> str | None:
    scores, classes = operand_dims(op, 0), operand_dims(op, 1)
    if len(scores) < 2 or classes != (scores[0], *scores[2:]):
        return "it is not known to have a class for every row of scores"
    weight = op.inputs[2] if len(op.inputs) > 2 else None
    if weight is not None and dims_of(weight.type) != (scores[1],):
        return "it is not known to have a weight for every class"
    if not isinstance(element_of(op.operands[1].type), IntegerType):
        return "its classes are not integers"
    return None if _reduction(op) in REDUCTIONS else f"unknown reduction '{_reduction(op)}'"


def _loss(ctx: Lowering, log_share: SSAValue, offsets: Sequence[SSAValue]) -> SSAValue:
    """Returns the loss; the logarithm of a class's probability is the element of `log_share` less those of `offsets`,
    whose dim of classes is 1."""
    classes, weight, dims, wide = ctx.required(1), ctx.input(2), ctx.dims(0), ctx.wide_element()
    ignored = ctx.attr("ignore_index")
    places = ctx.dims(1)
    _check_classes(ctx, classes, dims[1], ignored)

    def class_of(nest: Nest, at: Sequence[Expr]) -> tuple[Scalar, Scalar]:
        found = nest.read(classes, at).to(i64)
        counted = (found < 0).select(found + nest.index(dims[1]), found)
        return counted, nest.index(1).eq(1) if ignored is None else found.ne(int(ignored))

    def share(nest: Nest, at: Sequence[Expr]) -> Scalar:
        """Returns the weight of a place."""
        chosen, counts = class_of(nest, at)
        value = nest.const(1, wide) if weight is None else nest.read_inside(weight, [chosen]).to(wide)
        return counts.select(value, 0.0)

    def picked(nest: Nest, at: Sequence[Expr]) -> Scalar:
        chosen, counts = class_of(nest, at)
        value = nest.read_inside(log_share, [at[0], chosen, *at[1:]]).to(wide)
        for offset in offsets:
            value = value - nest.read(offset, [at[0], ZERO, *at[1:]]).to(wide)
        return counts.select(-value * share(nest, at), 0.0)

    reduction = _reduction(ctx.op)
    if reduction == "none":
        return ctx.generate(places, picked)
    total = ctx.generate(
        (), lambda nest, _, r: picked(nest, r), over=places, combiner="add", element=wide, part="total"
    )
    if reduction == "sum":
        return ctx.rounded(total)
    count = ctx.generate((), lambda nest, _, r: share(nest, r), over=places, combiner="add", element=wide, part="count")
    return ctx.map(lambda s, n: s / n, total, count)


def _check_classes(ctx: Lowering, classes: SSAValue, count: Expr, ignored: int | None) -> None:
    def wrong(nest: Nest, _: Sequence[Expr], at: Sequence[Expr]) -> Scalar:
        value = nest.read(classes, at).to(i64)
        outside = (value < nest.index(-count)) | (value >= nest.index(count))
        if ignored is not None:
            outside = outside & value.ne(int(ignored))
        return outside.select(value.maximum(FINE + 1), nest.const(FINE, i64))

    found = ctx.generate([], wrong, over=dims_of(classes.type), combiner="max", element=i64, part="check")
    ctx.check(found, "indices element out of data bounds", (-count, count - 1))


def _negative_log_likelihood(ctx: Lowering) -> list[SSAValue]:
    return [_loss(ctx, ctx.required(0), ())]


def _softmax_cross_entropy(ctx: Lowering) -> list[SSAValue | None]:
    x = ctx.required(0)
    top = ctx.reduce("max", x, [1], part="max")
    total = ctx.reduce("add", [x, top], [1], lambda v, m: (v - m).exp(), part="sum")
    log = ctx.map(lambda s: s.log(), total, element=element_of(total.type), dims=dims_of(total.type), part="log")
    if not ctx.wants(1):
        return [_loss(ctx, x, [top, log])]
    logs = ctx.map(lambda v, m, s: v - m - s, x, top, log, element=ctx.out_element(1), dims=ctx.dims(0), part="logs")
    return [_loss(ctx, logs, ()), logs]


def _targets(op: OnnxOp) -> Expr:
    return 2 * product(operand_dims(op, 1))


SPECS: list[OpSpec] = [
    OpSpec(
        "NegativeLogLikelihoodLoss",
        infer=_infer,
        lower=_negative_log_likelihood,
        legal=float_legal(_reason),
        flops=counted("2 × elements of the target", _targets),
        kind="reduction",
    ),
    OpSpec(
        "SoftmaxCrossEntropyLoss",
        infer=_infer,
        lower=_softmax_cross_entropy,
        legal=float_legal(_reason),
        flops=counted("12 × elements of the input", lambda op: operand_count(op) * (EXP + 2)),
        kind="normalization",
    ),
]
