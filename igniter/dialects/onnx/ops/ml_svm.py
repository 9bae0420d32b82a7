"""SVMClassifier of ai.onnx.ml: a vote for every pair of classes, or the greatest of the classes' scores.

With support vectors, every pair of classes has a score: a sum over the vectors of both, in f64 as in ONNX Runtime,
computed here over all vectors with a coefficient of 0 for the others. Its sign is a vote. Probabilities are computed
from the scores by the second method of Wu, Lin and Weng, *Probability estimates for multi-class classification by
pairwise coupling* (2004). Without support vectors the model is linear: one score per class.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import f32, f64, i64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.ops.counts import twice
from igniter.dialects.onnx.ops.ml_linear import kernel_of, svm_macs, svm_slow
from igniter.dialects.onnx.ops.ml_scores import (
    first_greatest,
    logistic,
    numbers,
    text,
    transform_reason,
    transform_scores,
)
from igniter.dialects.onnx.ops.rules import input_dims, legal, operand_dims
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.onnx.types import StringType
from igniter.dialects.sym import dims_of
from igniter.dialects.sym.expr import Expr

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
    from igniter.dialects.onnx.lowering.procedure import Procedure

Array = np.ndarray[Any, Any]
MOST_ROUNDS = 100
"""The maximum number of rounds of the search for the probabilities."""
LEAST_PROBABILITY = 1e-7


# -- the node ---------------------------------------------------------------------------------------------------------


def _labels(op: OnnxOp) -> list[int]:
    return [int(v) for v in numbers(op, "classlabels_ints")]


def _classes(op: OnnxOp) -> int:
    return len(_labels(op)) or len(numbers(op, "classlabels_strings"))


def _vectors(op: OnnxOp) -> int:
    """Returns the number of support vectors."""
    return sum(int(v) for v in numbers(op, "vectors_per_class"))


def _pairs(op: OnnxOp) -> list[tuple[int, int]]:
    return list(combinations(range(_classes(op)), 2))


def _has_probabilities(op: OnnxOp) -> bool:
    return bool(numbers(op, "prob_a"))


def _score_count(op: OnnxOp) -> int:
    """Returns the number of scores of a row in the result."""
    classes = _classes(op)
    return len(_pairs(op)) if _vectors(op) and not _has_probabilities(op) and classes > 2 else classes


def _infer(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    element = i64 if _labels(ctx.op) else StringType()
    if dims is None:
        return [TensorInfo(element, None), TensorInfo(f32, None)]
    rows = dims[0] if len(dims) == 2 else Expr.of(1)
    return [TensorInfo(element, (rows,)), TensorInfo(f32, (rows, Expr.of(_score_count(ctx.op))))]


def _reason(op: OnnxOp) -> str | None:
    dims, classes, vectors, pairs = operand_dims(op, 0), _classes(op), _vectors(op), len(_pairs(op))
    given = {name: len(numbers(op, name)) for name in ("coefficients", "support_vectors", "rho", "prob_a", "prob_b")}
    transform = text(op, "post_transform", "NONE")
    if not _labels(op):
        return "its labels are strings"
    if len(dims) != 2 or classes < 2:
        return "its input is not a list of rows, or it has a single class"
    rows = vectors or classes
    if dims[1] * rows != Expr.of(given["support_vectors" if vectors else "coefficients"]):
        return "its vectors are not known to fit its input"
    if not vectors:
        return transform_reason(op) if given["rho"] else "it has no constant"
    if len(numbers(op, "vectors_per_class")) != classes or given["coefficients"] != (classes - 1) * vectors:
        return "its coefficients do not fit its vectors"
    if given["rho"] != pairs or given["prob_a"] not in (0, pairs) or given["prob_b"] != given["prob_a"]:
        return "it does not have one constant for every pair of classes"
    if classes == 2 and not given["prob_a"] and transform == "PROBIT":
        return "for a single score ONNX Runtime computes only one PROBIT and leaves the other undefined"
    return transform_reason(op)


def _tables(op: OnnxOp) -> Mapping[str, Array]:
    labels = {"labels": np.array(_labels(op), np.int64)}
    coefficients, vectors, classes = np.array(numbers(op, "coefficients"), np.float32), _vectors(op), _classes(op)
    if not vectors:
        return {**labels, "coefficients": coefficients.reshape(classes, -1)}
    pairs, by_class = _pairs(op), coefficients.reshape(classes - 1, vectors)
    ends = np.cumsum([0, *(int(v) for v in numbers(op, "vectors_per_class"))])
    weights = np.zeros((len(pairs), vectors), np.float32)
    for row, (i, j) in enumerate(pairs):
        mine, theirs = slice(ends[i], ends[i + 1]), slice(ends[j], ends[j + 1])
        weights[row, mine], weights[row, theirs] = by_class[j - 1, mine], by_class[i, theirs]
    found = {
        **labels,
        "vectors": np.array(numbers(op, "support_vectors"), np.float32).reshape(vectors, -1),
        "weights": weights,
        "rho": np.array(numbers(op, "rho"), np.float32),
        "pairs": np.array(pairs, np.int64),
    }
    if _has_probabilities(op):
        found["sigmoids"] = np.stack([np.array(numbers(op, f"prob_{k}"), np.float32) for k in "ab"], axis=1)
    return found


# -- scores -----------------------------------------------------------------------------------------------------------


def _products(ctx: Lowering, vectors: SSAValue, distances: bool) -> SSAValue:
    """Returns the product of every row with every vector; or the squares of their distances."""
    x, (rows, features) = ctx.required(0), ctx.dims(0)

    def product(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        a, b = nest.read(x, [i[0], r[0]]).to(f32), nest.read(vectors, [i[1], r[0]])
        return (a - b) * (a - b) if distances else a * b

    dims = [rows, dims_of(vectors.type)[0]]
    return ctx.generate(dims, product, over=[features], combiner="add", element=f32, part="product")


def _linear_scores(ctx: Lowering) -> SSAValue:
    rho = float(numbers(ctx.op, "rho")[0])
    made = _products(ctx, ctx.table("coefficients"), distances=False)
    return ctx.map(lambda v: v + rho, made, element=f32, dims=dims_of(made.type), part="scores")


def _pair_scores(ctx: Lowering) -> SSAValue:
    """Returns a score for every row and every pair of classes."""
    kind = text(ctx.op, "kernel_type", "LINEAR")
    gamma, coef0, degree = ([float(v) for v in numbers(ctx.op, "kernel_params")] + [0.0] * 3)[:3]
    products = _products(ctx, ctx.table("vectors"), kind == "RBF")
    weights, rho = ctx.table("weights"), ctx.table("rho")
    rows, vectors = dims_of(products.type)
    kernels = ctx.map(
        lambda v: kernel_of(kind, gamma, coef0, degree, v), products, element=f32, dims=[rows, vectors], part="kernel"
    )

    def weighted(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        weight = nest.read(weights, [i[1], r[0]])
        # Vectors of neither class do not count, whatever their kernel value is.
        return weight.eq(0).select(0.0, weight * nest.read(kernels, [i[0], r[0]])).to(f64)

    dims = [rows, dims_of(weights.type)[0]]
    sums = ctx.generate(dims, weighted, over=[vectors], combiner="add", element=f64, part="sum")
    return ctx.map(lambda s, c: (s + c.to(f64)).to(f32), sums, rho, element=f32, dims=dims, part="scores")


# -- classes ----------------------------------------------------------------------------------------------------------


def _lower(ctx: Lowering) -> list[SSAValue | None]:
    by_pairs = bool(_vectors(ctx.op))
    scores = _pair_scores(ctx) if by_pairs else _linear_scores(ctx)
    tables = [ctx.table("labels")]
    if by_pairs:
        tables.append(ctx.table("pairs"))
        tables += [ctx.table("sigmoids")] if _has_probabilities(ctx.op) else []
    wanted = [k for k in range(2) if ctx.wants(k)]
    p = ctx.procedure([scores, *tables], [ctx.output_type(k) for k in wanted], "classes")
    row = p.parallel(dims_of(scores.type)[0])
    own, label = (_by_votes if by_pairs else _by_score)(ctx, p, row)
    for index, result in zip(wanted, p.buffers[1 + len(tables) :], strict=True):
        if index == 0:
            p.store(label, result, [row])
        else:
            with p.loop(_score_count(ctx.op)) as j:
                p.store(p.load(own, [j]), result, [row, j])
    made = dict(zip(wanted, p.end(), strict=True))
    return [made.get(k) for k in range(2)]


def _by_score(ctx: Lowering, p: Procedure, row: Expr) -> tuple[SSAValue, Scalar]:
    """Returns the transformed scores of the classes, and the label of the greatest; with two
    classes, the sign decides."""
    (source, labels), classes = p.buffers[:2], _classes(ctx.op)
    own = p.local(f32, [classes], "scores")
    with p.loop(classes) as j:
        p.store(p.load(source, [row, j]), own, [j])
    best = first_greatest(p, own, range(classes))
    if classes == 2 and not _has_probabilities(ctx.op):
        positive = all(v >= 0 for v in numbers(ctx.op, "coefficients"))
        top = p.load(own, [best])
        best = ((top >= 0.5) if positive else (top > 0)).select(1, best)
    label = p.load(labels, [best])
    transform_scores(p, own, Expr.of(classes), text(ctx.op, "post_transform", "NONE"))
    return own, label


def _by_votes(ctx: Lowering, p: Procedure, row: Expr) -> tuple[SSAValue, Scalar]:
    """Returns the scores of the result, and the label of the class with the most votes."""
    source, labels, pairs = p.buffers[:3]
    classes, count = _classes(ctx.op), len(_pairs(ctx.op))
    votes = p.local(i64, [classes], "votes")
    with p.loop(classes) as c:
        p.store(0, votes, [c])
    with p.sequential(count) as q:
        side = (p.load(source, [row, q]) > 0).select(p.load(pairs, [q, Expr.of(0)]), p.load(pairs, [q, Expr.of(1)]))
        p.store(p.load(votes, [side]) + 1, votes, [side])
    label = p.load(labels, [first_greatest(p, votes, range(classes))])
    transform, shown = text(ctx.op, "post_transform", "NONE"), _score_count(ctx.op)
    own = p.local(f32, [shown], "scores")
    if _has_probabilities(ctx.op):
        _couple(p, source, pairs, p.buffers[3], row, own)
        transform_scores(p, own, Expr.of(shown), transform)
    elif classes == 2:
        score = p.load(source, [row, Expr.of(0)])
        both = (logistic(-score), logistic(score)) if transform == "LOGISTIC" else (1 - score, score)
        for k, value in enumerate((-score, score) if transform == "NONE" else both):
            p.store(value, own, [Expr.of(k)])
    else:
        with p.loop(shown) as j:
            p.store(p.load(source, [row, j]), own, [j])
        transform_scores(p, own, Expr.of(shown), transform)
    return own, label


def _couple(p: Procedure, scores: SSAValue, pairs: SSAValue, sigmoids: SSAValue, row: Expr, own: SSAValue) -> None:
    """Computes the probabilities of the classes from the pairwise winning probabilities."""
    classes, count = dims_of(own.type)[0], dims_of(pairs.type)[0]
    wins, form = p.local(f32, [classes, classes], "wins"), p.local(f32, [classes, classes], "form")
    with p.sequential(count) as q:
        a, b = (p.load(sigmoids, [q, Expr.of(k)]) for k in range(2))
        won = (1 - logistic(p.load(scores, [row, q]) * a + b)).maximum(LEAST_PROBABILITY).minimum(1 - LEAST_PROBABILITY)
        first, second = (p.load(pairs, [q, Expr.of(k)]) for k in range(2))
        p.store(won, wins, [first, second])
        p.store(1 - won, wins, [second, first])
    with p.sequential(classes) as i:
        total = p.variable(p.const(0.0, f32), "total")
        with p.sequential(classes) as j, p.when(p.index(i).ne(p.index(j))):
            lost = p.load(wins, [j, i])
            total.set(total.get() + lost * lost)
            p.store(-lost * p.load(wins, [i, j]), form, [i, j])
        p.store(total.get(), form, [i, i])
        p.store(1 / p.index(classes).to(f32), own, [i])
    going = p.variable(p.true(), "going")
    gradient = p.local(f32, [classes], "gradient")
    with p.sequential(MOST_ROUNDS, going=going):
        _round(p, form, gradient, own, lambda more: going.set(more), classes)


def _round(
    p: Procedure, form: SSAValue, gradient: SSAValue, own: SSAValue, go_on: Callable[[Scalar], None], classes: Expr
) -> None:
    """Does one round over all classes, unless the optimality conditions hold within 0.005 / classes."""
    value = p.variable(p.const(0.0, f32), "value")
    with p.sequential(classes) as i:
        total = p.variable(p.const(0.0, f32), "total")
        with p.sequential(classes) as j:
            total.set(total.get() + p.load(form, [i, j]) * p.load(own, [j]))
        p.store(total.get(), gradient, [i])
        value.set(value.get() + p.load(own, [i]) * total.get())
    error = p.variable(p.const(0.0, f32), "error")
    with p.sequential(classes) as i:
        off = (p.load(gradient, [i]) - value.get()).abs()
        error.set((off > error.get()).select(off, error.get()))
    more = error.get() >= 0.005 / (classes.constant or 1)
    go_on(more)
    with p.when(more), p.sequential(classes) as i:
        slope, curve = p.load(gradient, [i]), p.load(form, [i, i])
        step = (value.get() - slope) / curve
        p.store(p.load(own, [i]) + step, own, [i])
        value.set((value.get() + step * (step * curve + 2 * slope)) / (1 + step) / (1 + step))
        with p.sequential(classes) as j:
            p.store((p.load(gradient, [j]) + step * p.load(form, [i, j])) / (1 + step), gradient, [j])
            p.store(p.load(own, [j]) / (1 + step), own, [j])


SPECS: list[OpSpec] = [
    OpSpec(
        "ai.onnx.ml.SVMClassifier",
        infer=_infer,
        lower=_lower,
        legal=legal(_reason),
        tables=_tables,
        macs=svm_macs,
        flops=twice(svm_macs),
        unprofitable=svm_slow,
        kind="reduction",
    ),
]
