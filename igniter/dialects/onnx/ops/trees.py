"""Tree ensembles of ai.onnx.ml: TreeEnsembleRegressor, TreeEnsembleClassifier, TreeEnsemble.

A row is a point: it traverses every tree from its root to a leaf, and sums the leaves' weights in the order of the
trees. The trees are constant tables beside the kernel (`tree_tables.py`). Aggregates, base values, post transforms and
the two-class rules for a single score are ONNX Runtime's; classifiers with text labels are left to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import Float64Type, f32, f64, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.ops.ml_scores import (
    TRANSFORMS,
    first_greatest,
    logistic,
    numbers,
    probit,
    text,
    transform_reason,
    transform_scores,
)
from igniter.dialects.onnx.ops.rules import input_dims, legal, operand_dims
from igniter.dialects.onnx.ops.tree_tables import Trees, trees_of
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.onnx.types import StringType
from igniter.dialects.sym import element_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.requirements import Requirement, at_most
from igniter.errors import IgniterError

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Scalar
    from igniter.dialects.onnx.lowering.procedure import Procedure

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")
ORDER = ("roots", "feature", "value", "mode", "missing", "yes", "no", "first", "target", "weight")


def score_type(op: OnnxOp) -> Attribute:
    """Returns the type of thresholds, weights and sums: f64 for inputs of f64, else f32."""
    return f64 if isinstance(element_of(op.operands[0].type), Float64Type) else f32


def tables(op: OnnxOp) -> Mapping[str, np.ndarray[Any, Any]]:
    """Returns the tables of a node, in its arithmetic type."""
    dtype = np.float64 if score_type(op) == f64 else np.float32
    found = trees_of(op).tables
    return {name: found[name].astype(dtype) if name in ("value", "weight") else found[name] for name in ORDER}


def transform_of(op: OnnxOp) -> str:
    if op.op_type == "TreeEnsemble":
        return TRANSFORMS[int(op.attr("post_transform", 0))]
    return text(op, "post_transform", "NONE")


def aggregate_of(op: OnnxOp) -> str:
    if op.op_type == "TreeEnsemble":
        return AGGREGATES[int(op.attr("aggregate_function", 1))]
    return text(op, "aggregate_function", "SUM")


def base_values(op: OnnxOp) -> list[float]:
    given = op.attr("base_values_as_tensor")
    found = numbers(op, "base_values") if given is None else np.asarray(given).reshape(-1)
    return [float(v) for v in found]


# -- the walk ---------------------------------------------------------------------------------------------------------


class Walk:
    """The procedure of an ensemble: for each row, the scores of all targets, in a local buffer."""

    def __init__(self, ctx: Lowering, targets: int, results: list[Attribute]):
        self.ctx = ctx
        self.trees: Trees = trees_of(ctx.op)
        self.element = score_type(ctx.op)
        self.p: Procedure = ctx.procedure([ctx.required(0), *(ctx.table(n) for n in ORDER)], results)
        self.x = self.p.buffers[0]
        self.table = dict(zip(ORDER, self.p.buffers[1:], strict=False))
        self.results = self.p.buffers[1 + len(ORDER) :]
        self.row = self.p.parallel(ctx.dims(0)[0])
        self.targets = targets
        self.scores = self.p.local(self.element, [targets], "scores")
        self.aggregate = aggregate_of(ctx.op) if ctx.op.op_type != "TreeEnsembleClassifier" else "SUM"

    def run(self) -> None:
        """Traverses all trees and sums the weights of their leaves."""
        p = self.p
        start = {"MIN": float("inf"), "MAX": float("-inf")}.get(self.aggregate, 0.0)
        for k in range(self.targets):
            p.store(start, self.scores, [k])
        with p.sequential(self.trees.trees) as tree:
            leaf = self._leaf(p.load(self.table["roots"], [tree]).to(i64))
            first = p.load(self.table["first"], [leaf]).to(i64)
            end = p.load(self.table["first"], [leaf + 1]).to(i64)
            with p.sequential(end, first) as w:
                at = p.index(w)
                target = p.const(0, i64) if self.targets == 1 else p.load(self.table["target"], [at]).to(i64)
                self._add(target, p.load(self.table["weight"], [at]))
        if self.aggregate == "AVERAGE":
            for k in range(self.targets):
                p.store(p.load(self.scores, [k]) / float(self.trees.trees), self.scores, [k])

    def _leaf(self, root: Scalar) -> Scalar:
        p = self.p
        at, going = p.variable(root, "at"), p.variable(p.true(), "going")
        with p.sequential(self.trees.depth, going=going):
            node = at.get()
            yes = p.load(self.table["yes"], [node]).to(i64)
            going.set(yes >= 0)
            with p.when(yes >= 0):
                feature = p.load(self.table["feature"], [node]).to(i64)
                value = p.load(self.x, [self.row, feature]).to(self.element)
                at.set(self._goes_yes(node, value).select(yes, p.load(self.table["no"], [node]).to(i64)))
        return at.get()

    def _goes_yes(self, node: Scalar, value: Scalar) -> Scalar:
        p, split = self.p, self.p.load(self.table["value"], [node])
        answers = {
            0: lambda: value <= split,
            1: lambda: value < split,
            2: lambda: value >= split,
            3: lambda: value > split,
            4: lambda: value.eq(split),
            5: lambda: value.ne(split),
        }
        modes = sorted(self.trees.modes)
        found = answers[modes[0]]() if modes else p.true()
        if len(modes) > 1:
            mode = p.load(self.table["mode"], [node])
            for other in modes[1:]:
                found = mode.eq(other).select(answers[other](), found)
        if self.trees.tables["missing"].any():
            found = found | (value.is_nan() & p.load(self.table["missing"], [node]).ne(0))
        return found

    def _add(self, target: Scalar, weight: Scalar) -> None:
        p = self.p
        old = p.load(self.scores, [target])
        if self.aggregate == "MIN":
            made = (weight < old).select(weight, old)
        elif self.aggregate == "MAX":
            made = (weight > old).select(weight, old)
        else:
            made = old + weight
        p.store(made, self.scores, [target])


# -- regressors -------------------------------------------------------------------------------------------------------


def _targets(op: OnnxOp) -> int:
    return int(op.attr("n_targets", 1) or 1)


def infer_regressor(ctx: InferContext) -> list[TensorInfo]:
    dims, info = input_dims(ctx, 0), ctx.input(0)
    element = f32 if info is None or ctx.op.op_type != "TreeEnsemble" else info.element
    if dims is None:
        return [TensorInfo(element, None)]
    return [TensorInfo(element, (dims[0] if len(dims) == 2 else Expr.of(1), Expr.of(_targets(ctx.op))))]


def lower_regressor(ctx: Lowering) -> list[SSAValue]:
    targets, transform, base = _targets(ctx.op), transform_of(ctx.op), base_values(ctx.op)
    walk = Walk(ctx, targets, [ctx.output_type()])
    walk.run()
    p = walk.p
    if len(base) == targets:
        for k, value in enumerate(base):
            p.store(p.load(walk.scores, [k]) + value, walk.scores, [k])
    if targets > 1:
        transform_scores(p, walk.scores, Expr.of(targets), transform)
    elif transform == "PROBIT":  # A single score only supports PROBIT.
        p.store(probit(p.load(walk.scores, [0])), walk.scores, [0])
    for k in range(targets):
        p.store(p.load(walk.scores, [k]).to(ctx.out_element()), walk.results[0], [walk.row, k])
    return list(p.end())


def _trees_reason(op: OnnxOp) -> str | None:
    if len(operand_dims(op, 0)) != 2:
        return "its input is not a list of rows"
    try:
        trees = trees_of(op)
    except IgniterError as error:
        return str(error)
    except (TypeError, ValueError) as error:
        return f"its attributes do not fit each other ({error})"
    if not trees.trees:
        return "it has no trees"
    return None


def regressor_reason(op: OnnxOp) -> str | None:
    reason = _trees_reason(op)
    if reason is not None:
        return reason
    trees, targets = trees_of(op), _targets(op)
    if op.op_type == "TreeEnsemble" and int(op.attr("post_transform", 0)) in (1, 2):
        return "its post transform is a softmax or a logistic function, which ONNX Runtime confuses"
    if op.op_type != "TreeEnsemble" and (reason := transform_reason(op)) is not None:
        return reason
    if aggregate_of(op) not in AGGREGATES:
        return f"unknown aggregate '{aggregate_of(op)}'"
    if targets == 1 and (np.diff(trees.tables["first"])[trees.tables["yes"] < 0] != 1).any():
        return "a leaf does not have exactly one weight"
    if aggregate_of(op) in ("MIN", "MAX") and trees.always != frozenset(range(targets)):
        return "a target may get no weight, so it has no minimum or maximum"
    if not trees.ever <= frozenset(range(targets)):
        return "a weight is for a target that does not exist"
    return None


# -- classifiers ------------------------------------------------------------------------------------------------------


def infer_classifier(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    labels = numbers(ctx.op, "classlabels_int64s")
    count = len(labels) or len(numbers(ctx.op, "classlabels_strings"))
    label = i64 if labels else StringType()
    if dims is None:
        return [TensorInfo(label, None), TensorInfo(f32, None)]
    rows = dims[0] if len(dims) == 2 else Expr.of(1)
    return [TensorInfo(label, (rows,)), TensorInfo(f32, (rows, Expr.of(count)))]


def lower_classifier(ctx: Lowering) -> list[SSAValue | None]:
    labels = [int(v) for v in numbers(ctx.op, "classlabels_int64s")]
    wanted = [k for k in range(2) if ctx.wants(k)]
    walk = Walk(ctx, len(labels), [ctx.output_type(k) for k in wanted])
    walk.run()
    p, base = walk.p, base_values(ctx.op)
    if len(labels) == 2:
        label = _two_classes(walk, labels, base, transform_of(ctx.op))
    else:
        for k, value in enumerate(base):
            p.store(p.load(walk.scores, [k]) + value, walk.scores, [k])
        scored = sorted(walk.trees.always | frozenset(range(len(base))))
        best = first_greatest(p, walk.scores, scored)
        label = p.const(labels[0], i64)
        for k, value in enumerate(labels[1:], start=1):
            label = best.eq(k).select(p.const(value, i64), label)
        transform_scores(p, walk.scores, Expr.of(len(labels)), transform_of(ctx.op))
    for index, result in zip(wanted, walk.results, strict=True):
        if index == 0:
            p.store(label, result, [walk.row])
        else:
            for k in range(len(labels)):
                p.store(p.load(walk.scores, [k]).to(f32), result, [walk.row, k])
    made = dict(zip(wanted, p.end(), strict=True))
    return [made.get(k) for k in range(2)]


def _two_classes(walk: Walk, labels: list[int], base: list[float], transform: str) -> Scalar:
    """Returns the label of two classes; leaves the scores of both in the buffer."""
    p, trees = walk.p, walk.trees
    second = 1 in trees.ever
    one, two = p.load(walk.scores, [0]), p.load(walk.scores, [1])
    if len(base) == 2 and second:
        two = one + base[1]
        one = -two
    elif len(base) == 2:
        one, two = one + base[0], two + base[1]
    elif len(base) == 1:
        one = one + base[0]
    weight = two if second else one
    alone = len(trees.ever) == 1
    if alone:
        positive = weight > 0.5 if trees.positive else weight > 0
        label = positive.select(p.const(labels[1], i64), p.const(labels[0], i64))
    else:
        positive = weight > 0
        label = positive.select(p.const(1, i64), p.const(0, i64))
    if second or len(base) == 2:
        p.store(one, walk.scores, [0])
        p.store(two, walk.scores, [1])
        transform_scores(p, walk.scores, Expr.of(2), transform)
        return label
    if transform == "LOGISTIC":
        pair = logistic(-one), logistic(one)
    else:
        pair = 1 - one if trees.positive else -one, one
    for k, value in enumerate(pair):
        p.store(value, walk.scores, [k])
    return label


def classifier_reason(op: OnnxOp) -> str | None:
    labels = numbers(op, "classlabels_int64s")
    if not labels:
        return "its labels are strings"
    reason = _trees_reason(op) or transform_reason(op)
    if reason is not None:
        return reason
    trees, count, base = trees_of(op), len(labels), base_values(op)
    if count < 2:
        return "it has only one class"
    if trees.ever != trees.always:
        return "a class may get a weight in some rows and none in others"
    if not trees.ever <= frozenset(range(count)) or len(base) not in (0, 1 if count == 2 else 0, count):
        return "its weights or base values do not fit its classes"
    if not trees.ever and not base:
        return "it has no weights"
    if count == 2 and 1 not in trees.ever and len(base) < 2 and transform_of(op) == "PROBIT":
        return "the PROBIT of a single score of two classes is not defined"
    return None


def _flops(op: OnnxOp) -> Expr:
    """2 × rows × trees × depth of a balanced tree with the average number of nodes"""
    if op.op_type == "TreeEnsemble":
        trees, nodes = len(op.attr("tree_roots") or ()), len(op.attr("nodes_featureids") or ())
    else:
        ids: list[int] = op.attr("nodes_treeids") or []
        trees, nodes = len(set(ids)), len(ids)
    return operand_dims(op, 0)[0] * (2 * trees * max(1, nodes // max(1, trees)).bit_length())


def _slow(op: OnnxOp, estimate: Callable[[Expr], int]) -> str | None:
    return "ONNX Runtime's trees, with each node in one cache line, take up to half the time of a kernel's tables"


def _requires(op: OnnxOp) -> list[Requirement]:
    """Requires that the input has every feature used by a node."""
    features = trees_of(op).tables["feature"]
    dims = operand_dims(op, 0)
    return [at_most(int(features.max(initial=-1)) + 1, dims[-1], "a node reads a feature that its input lacks")]


SPECS: list[OpSpec] = [
    *(
        OpSpec(
            f"ai.onnx.ml.{name}",
            infer=infer_regressor,
            lower=lower_regressor,
            legal=legal(regressor_reason),
            flops=_flops,
            tables=tables,
            requires=_requires,
            unprofitable=_slow,
            kind="reduction",
        )
        for name in ("TreeEnsemble", "TreeEnsembleRegressor")
    ),
    OpSpec(
        "ai.onnx.ml.TreeEnsembleClassifier",
        infer=infer_classifier,
        lower=lower_classifier,
        legal=legal(classifier_reason),
        flops=_flops,
        tables=tables,
        requires=_requires,
        unprofitable=_slow,
        kind="reduction",
    ),
]
