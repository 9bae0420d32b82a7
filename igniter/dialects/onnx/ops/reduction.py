"""Reductions over axes, and arg-reductions.

Sums accumulate in the type of the elements (f32 for 16-bit floats) and in any order. Sums and products of integers are
exact and wrap, as in NumPy, PyTorch and ONNX's reference; ONNX Runtime computes those of i32 and i64 in f64. A mean of
integers is the exact sum, without wrapping, over the count (`means.py`). An empty reduction gives the identity of its
combiner, and an empty mean is 0, as in ONNX Runtime. A NaN element makes a maximum or minimum NaN, as in ONNX's
reference; in ONNX Runtime the result depends on its position in the row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.loop import Combiner, is_float
from igniter.dialects.onnx.lowering.scalar import int_limits
from igniter.dialects.onnx.ops.counts import counted, times
from igniter.dialects.onnx.ops.means import mean_of_sums, mean_parts
from igniter.dialects.onnx.ops.pointwise import EXP, computed_reason, operand_count
from igniter.dialects.onnx.ops.rules import (
    attr_or_input,
    constants,
    element_type,
    input_dims,
    known,
    legal,
    needs_values,
    normal_axis,
    operand,
    operand_dims,
)
from igniter.dialects.onnx.registry import Dims, InferContext, LowerRule, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, maximum, minimum, product
from igniter.dialects.sym.requirements import Requirement, at_most

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Scalar

ScalarRule = Callable[["Scalar"], "Scalar"]

# -- axes -------------------------------------------------------------------------------------------------------------


def reduced_axes(op: OnnxOp, rank: int, values: Dims | None) -> list[int] | None:
    """Returns the axes of a reduction, counted from the front; None if they are only known at run time.

    `values` are the known elements of the axes operand of newer opsets.
    """
    given = attr_or_input(op, "axes", values)
    if given is None and operand(op, 1) is not None:
        return None
    axes = constants(given)
    if given is not None and axes is None:
        return None
    if not axes:
        return [] if int(op.attr("noop_with_empty_axes", 0) or 0) else list(range(rank))
    return sorted({normal_axis(a, rank) for a in axes})


def reduced_dims(dims: Dims, axes: Sequence[int], keepdims: bool) -> Dims:
    """Returns the remaining dims, with 1 for reduced ones if they are kept."""
    return tuple(ONE if k in axes else d for k, d in enumerate(dims) if keepdims or k not in axes)


def _infer(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    axes = None if dims is None else reduced_axes(ctx.op, len(dims), ctx.values(1))
    keep = bool(ctx.op.attr("keepdims", 1))
    if dims is None or axes is None:
        unknown = None if dims is None or not keep else tuple(ctx.fresh(f"reduced_{k}") for k in range(len(dims)))
        return [TensorInfo(element_type(ctx), unknown)]
    return [TensorInfo(element_type(ctx), reduced_dims(dims, axes, keep))]


def _axes(ctx: Lowering) -> list[int]:
    axes = reduced_axes(ctx.op, len(ctx.dims(0)), ctx.values(1))
    assert axes is not None  # `legal` has checked it
    return axes


# -- reductions -------------------------------------------------------------------------------------------------------


def saturated(x: Scalar, element: Attribute) -> Scalar:
    """Converts a float to the nearest integer towards zero in `element`; the least one for NaN."""
    least, most = int_limits(element)
    end = float(most + 1)
    return (x >= end).select(x.nest.const(most, element), (x >= float(least)).select(x.to(element), least))


@dataclass(frozen=True)
class Reduction:
    """The combiner of a reduction, the function applied to each element before it, and the function of the result."""

    combiner: Combiner
    before: ScalarRule = lambda x: x
    after: ScalarRule | None = None
    cost: int = 1

    def combiner_of(self, element: Attribute) -> Combiner:
        """Returns the combiner for elements of a type."""
        return self.combiner if element != i1 else _BOOL_COMBINERS.get(self.combiner, self.combiner)

    def rules_for(self, element: Attribute) -> tuple[ScalarRule, ScalarRule | None]:
        """Returns `before` and `after` for elements of a type. A float function of a sum of
        integers uses an f64 sum."""
        before, after = self.before, self.after
        if after is None or is_float(element):
            return before, after
        return lambda x: before(x.to(f64)), lambda x: saturated(after(x), element)


def _reduction(name: str, this: Reduction) -> OpSpec:
    def lower(ctx: Lowering) -> list[SSAValue]:
        axes, keep = _axes(ctx), bool(ctx.attr("keepdims", 1))
        before, after = this.rules_for(ctx.element(0))
        if _is_noop(ctx, axes):
            # No axis is reduced, but every element is still the reduction of one element.
            return [ctx.map(lambda x: before(x) if after is None else after(before(x)), ctx.required(0))]
        fold = this.combiner_of(ctx.element(0))
        part = "" if after is None else "fold"
        made = ctx.reduce(fold, ctx.required(0), axes, before, keepdims=keep, part=part, by_rows=fold == "add")
        if after is None and element_of(made.type) == ctx.out_element():
            return [made]
        return [ctx.map(after or (lambda x: x), made)]

    requires = _extreme_requires if name in ("ReduceMax", "ReduceMin") else None
    return replace(_reduction_spec(name, lower, this.cost), requires=requires)


_BOOL_COMBINERS: dict[Combiner, Combiner] = {"max": "or", "min": "and"}


def _is_noop(ctx: Lowering, axes: Sequence[int]) -> bool:
    return not axes and bool(ctx.attr("noop_with_empty_axes", 0))


def _reduction_spec(name: str, lower: LowerRule, cost: int) -> OpSpec:
    return OpSpec(
        name,
        infer=_infer,
        lower=lower,
        legal=legal(computed_reason, needs_values(1, "list of axes"), _axes_reason),
        flops=counted(times(cost, "elements of the input"), lambda op: operand_count(op) * cost),
        kind="reduction",
    )


def _axes_reason(op: OnnxOp) -> str | None:
    dims = dims_of(op.operands[0].type)
    try:
        axes = reduced_axes(op, len(dims), known(op, 1))
    except ValueError as error:
        return str(error)
    if axes is None:
        return "its list of axes is known only at run time"
    want = reduced_dims(dims, axes, bool(op.attr("keepdims", 1)))
    return None if dims_of(op.results[0].type) == want else "its result does not have the dims of the reduction"


def _mean(ctx: Lowering) -> list[SSAValue]:
    axes, keep = _axes(ctx), bool(ctx.attr("keepdims", 1))
    if _is_noop(ctx, axes):
        return [ctx.view(ctx.required(0), ctx.out_dims())]
    x, element = ctx.required(0), ctx.element(0)
    parts = mean_parts(element)
    sums = [ctx.reduce("add", x, axes, p.rule, keepdims=keep, part=p.name, by_rows=True) for p in parts]
    return [ctx.map(mean_of_sums([ctx.dims(0)[k] for k in axes], element), *sums, element=element)]


def finite(x: Scalar) -> Scalar:
    """Returns `x`, or 0 if it is infinite or NaN."""
    return (x.abs() < float("inf")).select(x, 0)


def _log_sum_exp(ctx: Lowering) -> list[SSAValue]:
    """Computes `log(sum(exp(x - m))) + m`, with `m` the maximum if it is finite, and 0 otherwise.

    Functions of integers round towards zero, as in ONNX Runtime: only the maxima have a non-zero exponential.
    """
    axes = _axes(ctx)
    if _is_noop(ctx, axes):
        return [ctx.view(ctx.required(0), ctx.out_dims())]
    x = ctx.required(0)
    top = ctx.reduce("max", x, axes, part="max")
    total = ctx.reduce("add", [x, top], axes, above_maximum, part="sum")
    dims = reduced_dims(ctx.dims(0), axes, True)
    return [ctx.view(ctx.map(log_of_sum, total, top, dims=dims), ctx.out_dims())]


def above_maximum(v: Scalar, m: Scalar) -> Scalar:
    """Returns the term of an element in the sum of exponentials relative to a maximum."""
    return (v - finite(m)).exp() if v.is_float else v.eq(m).select(1, v.nest.const(0, v.element))


def log_of_sum(s: Scalar, m: Scalar) -> Scalar:
    """Returns the logarithm of a sum of exponentials, given the sum relative to the maximum."""
    return s.log() + finite(m) if s.is_float else (s.to(f64).log() + m.to(f64)).to(m.element)


# -- arg-reductions ---------------------------------------------------------------------------------------------------


def _axis(op: OnnxOp, rank: int) -> int:
    return normal_axis(int(op.attr("axis", 0)), rank)


def _arg_infer(ctx: InferContext) -> list[TensorInfo]:
    dims = input_dims(ctx, 0)
    if dims is None:
        return [TensorInfo(i64, None)]
    return [TensorInfo(i64, reduced_dims(dims, [_axis(ctx.op, len(dims))], bool(ctx.op.attr("keepdims", 1))))]


def arg_extreme(ctx: Lowering, combiner: Combiner, axis: int, last: bool, keepdims: bool) -> SSAValue:
    """Returns the positions of the extremes along `axis`: the first ones, or the `last`; of NaNs if there are any."""
    x, dims = ctx.required(0), ctx.dims(0)
    best = ctx.reduce(combiner, x, [axis], part=combiner)
    nest = ctx.nest("find")
    at = [nest.parallel(d) if k != axis else None for k, d in enumerate(dims)]
    along = nest.reduction(dims[axis])
    value = nest.read(x, [along if s is None else s for s in at]).widened()
    found = value.eq(nest.read(best, [0 if s is None else s for s in at]))
    if value.is_float:
        found = found | value.is_nan()
    position = found.select(nest.index(along), 0 if last else nest.index(maximum(ONE, dims[axis]) - 1))
    target = [ZERO if s is None else s for s in at if keepdims or s is not None]
    result = tensor_of(i64, reduced_dims(dims, [axis], keepdims))
    return nest.finish(("max" if last else "min", position, target, result))[0]


def _arg(combiner: Combiner) -> LowerRule:
    def lower(ctx: Lowering) -> list[SSAValue]:
        axis = _axis(ctx.op, len(ctx.dims(0)))
        last = bool(ctx.attr("select_last_index", 0))
        return [arg_extreme(ctx, combiner, axis, last, bool(ctx.attr("keepdims", 1)))]

    return lower


def _axis_reason(op: OnnxOp) -> str | None:
    rank = len(dims_of(op.operands[0].type))
    return "it has no axis to reduce over" if rank == 0 else None


def _arg_requires(op: OnnxOp) -> list[Requirement]:
    """Requires elements for an extreme, as in ONNX Runtime, unless the result is empty."""
    dims = operand_dims(op, 0)
    axis = _axis(op, len(dims))
    others = product(d for k, d in enumerate(dims) if k != axis)
    return [at_most(minimum(others, ONE), dims[axis], "it has no elements to find an extreme among")]


def _extreme_requires(op: OnnxOp) -> list[Requirement]:
    """Requires elements for an extreme of bools, which has no identity in ONNX Runtime."""
    dims = operand_dims(op, 0)
    axes = reduced_axes(op, len(dims), known(op, 1))
    if axes is None or element_of(op.operands[0].type) != i1:
        return []
    others = product(d for k, d in enumerate(dims) if k not in axes)
    text = "it has no elements to find an extreme among"
    return [at_most(minimum(others, ONE), product(dims[k] for k in axes), text)]


def _arg_spec(name: str, combiner: Combiner) -> OpSpec:
    return OpSpec(
        name,
        infer=_arg_infer,
        lower=_arg(combiner),
        legal=legal(computed_reason, _axis_reason),
        requires=_arg_requires,
        flops=counted("4 × elements of the input", lambda op: operand_count(op) * 4),
        kind="reduction",
    )


REDUCTIONS_BY_FOLD: dict[str, Reduction] = {
    "ReduceL1": Reduction("add", lambda x: x.abs(), cost=2),
    "ReduceL2": Reduction("add", lambda x: x * x, lambda x: x.sqrt(), cost=2),
    "ReduceLogSum": Reduction("add", after=lambda x: x.log()),
    "ReduceMax": Reduction("max"),
    "ReduceMin": Reduction("min"),
    "ReduceProd": Reduction("mul"),
    "ReduceSum": Reduction("add"),
    "ReduceSumSquare": Reduction("add", lambda x: x * x, cost=2),
}
REDUCTIONS = (*REDUCTIONS_BY_FOLD, "ReduceLogSumExp", "ReduceMean")
"""The ops that reduce over a list of axes."""

SPECS: list[OpSpec] = [
    _arg_spec("ArgMax", "max"),
    _arg_spec("ArgMin", "min"),
    _reduction_spec("ReduceLogSumExp", _log_sum_exp, EXP + 2),
    _reduction_spec("ReduceMean", _mean, 1),
    *(_reduction(name, this) for name, this in REDUCTIONS_BY_FOLD.items()),
]
