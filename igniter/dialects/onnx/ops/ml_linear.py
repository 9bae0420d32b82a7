"""Linear models and support vector machines of ai.onnx.ml: LinearRegressor, LinearClassifier, SVMRegressor."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import f32, i64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.ops.counts import twice
from igniter.dialects.onnx.ops.ml_scores import (
    first_greatest,
    logistic,
    numbers,
    probit,
    scored,
    text,
    transform_reason,
    transform_scores,
)
from igniter.dialects.onnx.ops.rules import infos, input_dims, legal, operand_dims
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.onnx.types import StringType
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar

Array = np.ndarray[Any, Any]


def _scores(ctx: Lowering, count: int) -> SSAValue:
    """Returns rows times coefficients plus the intercepts: `[rows, count]`."""
    x, coefficients, intercepts = ctx.required(0), ctx.table("coefficients"), ctx.table("intercepts")
    dims = [ctx.dims(0)[0], Expr.of(count)]
    if ctx.element(0) != f32:
        x = ctx.map(lambda v: v.to(f32), x, element=f32, dims=ctx.dims(0), part="single")

    def product(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        return nest.read(x, [i[0], r[0]]) * nest.read(coefficients, [i[1], r[0]])

    made = ctx.generate(dims, product, over=[ctx.dims(0)[1]], combiner="add", element=f32, part="product")
    return ctx.map(lambda a, b: a + b, made, intercepts, element=f32, dims=dims, part="intercept")


def _tables(op: OnnxOp, count: int) -> Mapping[str, Array]:
    coefficients = np.array(numbers(op, "coefficients"), np.float32)
    intercepts = numbers(op, "intercepts") or [0.0] * count
    return {"coefficients": coefficients.reshape(count, -1), "intercepts": np.array(intercepts, np.float32)}


def _fits(op: OnnxOp, count: int) -> str | None:
    dims = operand_dims(op, 0)
    if len(dims) != 2:
        return "its input is not a list of rows"
    given = len(numbers(op, "coefficients"))
    if dims[1] * count != Expr.of(given):
        return f"its {given} coefficients are not known to be {count} for each of {dims[1]} features"
    if len(numbers(op, "intercepts")) not in (0, count):
        return "its intercepts do not fit its coefficients"
    return transform_reason(op)


# -- LinearRegressor --------------------------------------------------------------------------------------------------


def _targets(op: OnnxOp) -> int:
    return int(op.attr("targets", 1) or 1)


def infer_regressor(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return infos(f32, None)
    return infos(f32, [dims[0] if len(dims) == 2 else Expr.of(1), _targets(ctx.op)])


def lower_regressor(ctx: Lowering) -> list[SSAValue]:
    made, transform = _scores(ctx, _targets(ctx.op)), text(ctx.op, "post_transform", "NONE")
    if _targets(ctx.op) == 1:  # A single score only supports PROBIT.
        return [ctx.map(probit, made)] if transform == "PROBIT" else [made]
    return [scored(ctx, made, transform, ctx.out_dims())]


# -- LinearClassifier -------------------------------------------------------------------------------------------------


def _labels(op: OnnxOp) -> list[int]:
    return [int(v) for v in numbers(op, "classlabels_ints")]


def _classes(op: OnnxOp) -> int:
    return len(numbers(op, "intercepts"))


def infer_classifier(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    labels = _labels(ctx.op)
    element = i64 if labels else StringType()
    count = max(_classes(ctx.op), len(labels) or len(numbers(ctx.op, "classlabels_strings")))
    if dims is None:
        return [TensorInfo(element, None), TensorInfo(f32, None)]
    rows = dims[0] if len(dims) == 2 else Expr.of(1)
    return [TensorInfo(element, (rows,)), TensorInfo(f32, (rows, Expr.of(count)))]


def lower_classifier(ctx: Lowering) -> list[SSAValue | None]:
    labels, count, transform = _labels(ctx.op), _classes(ctx.op), text(ctx.op, "post_transform", "NONE")
    scores = _scores(ctx, count)
    wanted = [k for k in range(2) if ctx.wants(k)]
    p = ctx.procedure([scores], [ctx.output_type(k) for k in wanted])
    source, results = p.buffers[0], p.buffers[1:]
    row = p.parallel(ctx.dims(0)[0])
    own = p.local(f32, [max(count, 2)], "scores")
    with p.loop(count) as j:
        p.store(p.load(source, [row, j]), own, [j])
    if count == 1:
        score = p.load(own, [0])
        label = (score > 0).select(p.const(labels[1], i64), p.const(labels[0], i64))
        pair = (logistic(-score), logistic(score)) if transform == "LOGISTIC" else (1 - score, score)
        for k, value in enumerate(pair):
            p.store(value, own, [k])
    else:
        best = first_greatest(p, own, range(count))
        label = p.const(labels[0], i64)
        for k, value in enumerate(labels[1:], start=1):
            label = best.eq(k).select(p.const(value, i64), label)
        transform_scores(p, own, Expr.of(count), transform)
    for index, result in zip(wanted, results, strict=True):
        if index == 0:
            p.store(label, result, [row])
        else:
            for k in range(max(count, 2)):
                p.store(p.load(own, [k]), result, [row, k])
    made = dict(zip(wanted, p.end(), strict=True))
    return [made.get(k) for k in range(2)]


def classifier_reason(op: OnnxOp) -> str | None:
    labels, count = _labels(op), _classes(op)
    if not labels:
        return "its labels are strings"
    if len(labels) != max(count, 2):
        return f"{count} scores for {len(labels)} labels"
    if count == 1 and text(op, "post_transform", "NONE") not in ("NONE", "LOGISTIC"):
        return "only LOGISTIC is supported for a single score"
    return _fits(op, count)


# -- SVMRegressor -----------------------------------------------------------------------------------------------------


def svm_tables(op: OnnxOp) -> Mapping[str, Array]:
    coefficients = np.array(numbers(op, "coefficients"), np.float32)
    supports = int(op.attr("n_supports", 0) or 0)
    vectors = np.array(numbers(op, "support_vectors"), np.float32)
    if not supports:
        vectors, coefficients = coefficients.reshape(1, -1), np.ones(1, np.float32)
    return {"vectors": vectors.reshape(len(coefficients), -1), "coefficients": coefficients}


SMALL_DEGREES = (2.0, 3.0)
"""The degrees of polynomial kernels computed as products, here and in ONNX Runtime."""


SMALL_VECTORS = 1024
"""The maximum size of support vectors whose product with one row is as fast as in ONNX Runtime, in elements."""


def kernel_of(kind: str, gamma: float, coef0: float, degree: float, dot: Scalar) -> Scalar:
    """Applies a kernel to the product of two vectors (for RBF, to the square of their distance)."""
    if kind == "RBF":
        return (dot * -gamma).exp()
    if kind == "POLY":
        base = dot * gamma + coef0
        if degree in SMALL_DEGREES:
            # As in ONNX Runtime; other degrees are powers there too.
            return base * base if degree == 2.0 else base * base * base
        return base.pow(dot.nest.const(degree, f32))
    return (dot * gamma + coef0).tanh() if kind == "SIGMOID" else dot


def lower_svm_regressor(ctx: Lowering) -> list[SSAValue]:
    x, vectors, weights = ctx.required(0), ctx.table("vectors"), ctx.table("coefficients")
    rows, features = ctx.dims(0)
    count = dims_of(vectors.type)[0]
    kind = text(ctx.op, "kernel_type", "LINEAR") if int(ctx.attr("n_supports", 0) or 0) else "LINEAR"
    gamma, coef0, degree = ([float(v) for v in numbers(ctx.op, "kernel_params")] + [0.0] * 3)[:3]
    rho = float(numbers(ctx.op, "rho")[0])

    def product(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        a, b = nest.read(x, [i[0], r[0]]).to(f32), nest.read(vectors, [i[1], r[0]])
        return (a - b) * (a - b) if kind == "RBF" else a * b

    dots = ctx.generate([rows, count], product, over=[features], combiner="add", element=f32, part="product")

    def total(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        dot = nest.read(dots, [i[0], r[0]])
        return kernel_of(kind, gamma, coef0, degree, dot) * nest.read(weights, [r[0]])

    made = ctx.generate([rows, Expr.of(1)], total, over=[count], combiner="add", element=f32, part="sum")
    one_class = bool(ctx.attr("one_class", 0))

    def finish(value: Scalar) -> Scalar:
        score = value + rho
        return (score > 0).select(score.nest.const(1.0, f32), -1.0) if one_class else score

    return [ctx.map(finish, made)]


def svm_slow(op: OnnxOp, estimate: Callable[[Expr], int]) -> str | None:
    supports = int(op.attr("n_supports", 0) or 0) or len(numbers(op, "vectors_per_class"))
    kind = text(op, "kernel_type", "LINEAR") if supports else "LINEAR"
    degree = ([float(v) for v in numbers(op, "kernel_params")] + [0.0] * 3)[2]
    if kind == "SIGMOID":
        return "ONNX Runtime's tanh, a quotient of polynomials, takes three quarters of the time of Igniter's"
    if kind == "POLY" and degree not in SMALL_DEGREES:
        return f"powers of {degree:g} take up to four times as long in a kernel"
    if kind != "RBF" and len(numbers(op, "support_vectors")) > SMALL_VECTORS:
        return "the product of one row with its support vectors takes half to nine tenths of the time in ONNX Runtime"
    return None


def svm_reason(op: OnnxOp) -> str | None:
    dims = operand_dims(op, 0)
    if len(dims) != 2:
        return "its input is not a list of rows"
    if text(op, "post_transform", "NONE") != "NONE" or len(numbers(op, "rho")) != 1:
        return "it has a post transform, or more or less than one constant"
    supports = int(op.attr("n_supports", 0) or 0)
    given = len(numbers(op, "support_vectors" if supports else "coefficients"))
    if dims[1] * max(supports, 1) != Expr.of(given) or (supports and len(numbers(op, "coefficients")) != supports):
        return "its support vectors are not known to fit its input"
    return None


def linear_macs(op: OnnxOp) -> Expr:
    """rows × coefficients"""
    return operand_dims(op, 0)[0] * len(numbers(op, "coefficients"))


def svm_macs(op: OnnxOp) -> Expr:
    """rows × (elements of the support vectors + coefficients)"""
    return operand_dims(op, 0)[0] * (len(numbers(op, "support_vectors")) + len(numbers(op, "coefficients")))


SPECS: list[OpSpec] = [
    OpSpec(
        "ai.onnx.ml.LinearClassifier",
        infer=infer_classifier,
        lower=lower_classifier,
        legal=legal(classifier_reason),
        tables=lambda op: _tables(op, _classes(op)),
        macs=linear_macs,
        flops=twice(linear_macs),
        kind="reduction",
    ),
    OpSpec(
        "ai.onnx.ml.LinearRegressor",
        infer=infer_regressor,
        lower=lower_regressor,
        legal=legal(lambda op: _fits(op, _targets(op))),
        tables=lambda op: _tables(op, _targets(op)),
        macs=linear_macs,
        flops=twice(linear_macs),
        kind="reduction",
    ),
    OpSpec(
        "ai.onnx.ml.SVMRegressor",
        infer=infer_regressor,
        lower=lower_svm_regressor,
        legal=legal(svm_reason),
        tables=svm_tables,
        macs=svm_macs,
        flops=twice(svm_macs),
        unprofitable=svm_slow,
        kind="reduction",
    ),
]
