"""Shared parts of the ai.onnx.ml ops: attributes, and post transforms of scores as in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xdsl.dialects.builtin import f32, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.registry import Dims
from igniter.dialects.sym import element_of, tensor_of
from igniter.dialects.sym.expr import Expr

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Scalar
    from igniter.dialects.onnx.lowering.procedure import Procedure

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")
NEAR_ZERO = 1e-7
"""The threshold of SOFTMAX_ZERO: scores of smaller magnitude are left out of the sum, and are not exponentiated."""


def text(op: OnnxOp, name: str, default: str) -> str:
    """Returns a text attribute."""
    found = op.attr(name, default)
    return default if found is None else found.decode() if isinstance(found, bytes) else str(found)


def numbers(op: OnnxOp, name: str) -> list[Any]:
    """Returns a list attribute; [] if it is absent."""
    found = op.attr(name)
    return [] if found is None else list(found)


def logistic(x: Scalar) -> Scalar:
    """Returns 1/(1 + exp(-x)), computed from exp(-|x|)."""
    value = 1 / ((-x.abs()).exp() + 1)
    return (x < 0).select(1 - value, value)


def probit(x: Scalar) -> Scalar:
    """Returns the quantile of the normal distribution, by Winitzki's formula for the inverse of erf, with ORT's
    constants."""
    at = x * 2 - 1
    log = ((1 - at) * (at + 1)).log()
    first = log * 0.5 + 2 / (3.14159 * 0.147)
    root = ((first * first - log * (1 / 0.147)).sqrt() - first).sqrt()
    return (at < 0).select(-root, root) * 1.41421356


def transform_scores(p: Procedure, scores: SSAValue, count: Expr, transform: str) -> None:
    """Applies a post transform to the `count` scores in a local buffer."""
    if transform in ("LOGISTIC", "PROBIT"):
        rule: Callable[[Scalar], Scalar] = logistic if transform == "LOGISTIC" else probit
        with p.loop(count) as j:
            p.store(rule(p.load(scores, [j])), scores, [j])
    elif transform in ("SOFTMAX", "SOFTMAX_ZERO"):
        _softmax(p, scores, count, zero=transform == "SOFTMAX_ZERO")


def _softmax(p: Procedure, scores: SSAValue, count: Expr, zero: bool) -> None:
    element = element_of(scores.type)
    top = p.variable(p.const(-3.4028234663852886e38, element), "top")
    with p.sequential(count) as j:
        value = p.load(scores, [j])
        top.set((value > top.get()).select(value, top.get()))
    total = p.variable(p.const(0.0, element), "total")
    with p.sequential(count) as j:
        value = p.load(scores, [j])
        made = (value - top.get()).exp()
        if zero:
            wide = value.abs() > NEAR_ZERO
            total.set(total.get() + wide.select(made, 0.0))
            made = wide.select(made, value * (-top.get()).exp())
        else:
            total.set(total.get() + made)
        p.store(made, scores, [j])
    with p.sequential(count) as j:
        p.store(p.load(scores, [j]) / total.get(), scores, [j])


def transform_reason(op: OnnxOp) -> str | None:
    given = text(op, "post_transform", "NONE")
    return None if given in TRANSFORMS else f"unknown post transform '{given}'"


def scored(ctx: Lowering, scores: SSAValue, transform: str, dims: Dims, element: Attribute = f32) -> SSAValue:
    """Returns a tensor `[rows, count]` of scores with a post transform applied to each row."""
    if transform == "NONE":
        return scores
    p = ctx.procedure([scores], [tensor_of(element, dims)], "scores")
    source, target = p.buffers
    row = p.parallel(dims[0])
    own = p.local(element, [dims[1]], "scores")
    with p.loop(dims[1]) as j:
        p.store(p.load(source, [row, j]), own, [j])
    transform_scores(p, own, dims[1], transform)
    with p.loop(dims[1]) as j:
        p.store(p.load(own, [j]), target, [row, j])
    return p.end()[0]


def first_greatest(p: Procedure, scores: SSAValue, places: Sequence[int]) -> Scalar:
    """Returns the first of `places` with the greatest score, as an i64."""
    best = p.load(scores, [places[0]])
    where = p.const(places[0], i64)
    for k in places[1:]:
        value = p.load(scores, [k])
        better = value > best
        best, where = better.select(value, best), better.select(p.const(k, i64), where)
    return where
