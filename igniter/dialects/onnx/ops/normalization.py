"""The normalisations of ONNX; `transformer.py` has those of ONNX Runtime, built from these.

All are reductions and elementwise nests with the same parallel axes, the rows, over which they fuse: a mean, then the
distances from it and their squares (two passes keep a variance accurate, and the distances correct the mean), then the
result. Values needed once per row, such as a reciprocal, are nests over the rows. Statistics are computed in f32, for
f64 in f64.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f16, f32, f64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.loop import is_float
from igniter.dialects.onnx.lowering.broadcast import broadcast_reason
from igniter.dialects.onnx.lowering.scalar import compute_type
from igniter.dialects.onnx.ops.means import count_of
from igniter.dialects.onnx.ops.pointwise import computed_reason, elementwise_flops, float_attr, same_as_input
from igniter.dialects.onnx.ops.reduction import reduced_dims
from igniter.dialects.onnx.ops.rules import element_type, input_dims, legal, normal_axis, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, InferRule, LegalRule, LowerRule, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import Expr, product
from igniter.dialects.sym.requirements import Requirement, at_most

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
    from igniter.dialects.onnx.lowering.context import ScalarFunction, Subscripts


LegalCheck = Callable[["OnnxOp"], "str | None"]
ScalarRule = Callable[["Scalar"], "Scalar"]


# -- moments ----------------------------------------------------------------------------------------------------------


def extents_of(dims: Dims, axes: Sequence[int]) -> list[Expr]:
    return [dims[k] for k in axes]


def _mean_of(ctx: Lowering, x: SSAValue, axes: Sequence[int]) -> SSAValue:
    """Returns the mean over `axes`; they are kept as 1."""
    extents = extents_of(dims_of(x.type), axes)
    total = ctx.reduce("add", x, axes, part="sum")
    return per_row(ctx, total, lambda s: s / count_of(s.nest, extents, s), "mean")


@dataclass(frozen=True)
class Centre:
    """The centre of a row: its rounded mean, and the error of that mean, `drift`.

    The mean of elements with a large common offset has the rounding error of their sum, or at best of a float of their
    size. The sum of the distances from it gives the error, for one addition per element.
    """

    mean: SSAValue
    drift: SSAValue
    """The mean distance from `mean`."""
    variance: SSAValue


def centre_of(ctx: Lowering, x: SSAValue, axes: Sequence[int]) -> Centre:
    """Returns the centre and the variance over `axes` (kept as 1): the corrected two-pass algorithm (Chan, Golub and
    LeVeque, *Algorithms for computing the sample variance*, 1983)."""
    extents = extents_of(dims_of(x.type), axes)
    mean = _mean_of(ctx, x, axes)
    squares = ctx.reduce("add", [x, mean], axes, lambda v, m: (v - m) * (v - m), part="squares")
    missed = ctx.reduce("add", [x, mean], axes, lambda v, m: v - m, part="missed")
    drift = per_row(ctx, missed, lambda d: d / count_of(d.nest, extents, d), "drift")
    variance = ctx.map(
        lambda s, d: (s / count_of(s.nest, extents, s) - d * d).maximum(0),
        squares,
        drift,
        element=element_of(squares.type),
        dims=dims_of(squares.type),
        part="variance",
    )
    return Centre(mean, drift, variance)


def inverse_deviation(ctx: Lowering, variance: SSAValue, epsilon: float) -> SSAValue:
    """Returns `1 / sqrt(variance + epsilon)`."""
    return per_row(ctx, variance, lambda v: 1 / (v + epsilon).sqrt(), "inverse")


def per_row(ctx: Lowering, x: SSAValue, function: ScalarRule, part: str, element: Attribute | None = None) -> SSAValue:
    wide = element_of(x.type) if element is None else element
    return ctx.map(function, x, element=wide, dims=dims_of(x.type), part=part)


def normalised(
    ctx: Lowering,
    x: SSAValue,
    centre: Centre | None,
    inverse: SSAValue,
    scale: SSAValue | None,
    bias: SSAValue | None,
    parameter_axes: Sequence[int] | None = None,
    element: Attribute | None = None,
) -> SSAValue:
    """Returns `(x - mean - drift) * inverse * scale + bias`. The parameters broadcast to `x` or belong to
    `parameter_axes`."""
    dims = dims_of(x.type)
    shift: SSAValue | None = None
    if centre is not None:
        # Computed once per row; an element then costs the addition of an FMA.
        wide, rows = element_of(inverse.type), dims_of(inverse.type)
        shift = ctx.map(lambda d, i: d * i, centre.drift, inverse, element=wide, dims=rows, part="shift")

    def parameter(nest: Nest, tensor: SSAValue, at: Subscripts) -> Scalar:
        if parameter_axes is None:
            return ctx.read_broadcast(nest, tensor, at, dims).widened()
        return nest.read(tensor, [at[k] for k in parameter_axes]).widened()

    def point(nest: Nest, at: Subscripts) -> Scalar:
        value = nest.read(x, at).widened()
        if centre is not None:
            value = value - ctx.read_broadcast(nest, centre.mean, at, dims)
        value = value * ctx.read_broadcast(nest, inverse, at, dims)
        if shift is not None:
            value = value - ctx.read_broadcast(nest, shift, at, dims)
        if scale is not None:
            value = value * parameter(nest, scale, at)
        return value if bias is None else value + parameter(nest, bias, at)

    return ctx.generate(dims, point, element=element)


# -- layer and RMS normalisation --------------------------------------------------------------------------------------


def _trailing(op: OnnxOp, rank: int) -> list[int]:
    return list(range(normal_axis(int(op.attr("axis", -1)), rank), rank))


def _layer_norm_infer(ctx: InferContext) -> list[TensorInfo]:
    dims, own = input_dims(ctx, 0), element_type(ctx)
    statistics = None if dims is None else reduced_dims(dims, _trailing(ctx.op, len(dims)), True)
    stash = f32 if int(ctx.op.attr("stash_type", 1)) == 1 else own
    return [TensorInfo(own, dims), *[TensorInfo(stash, statistics)] * (len(ctx.op.results) - 1)]


def _layer_norm(ctx: Lowering) -> list[SSAValue | None]:
    epsilon = float_attr(ctx, "epsilon", 1e-5)
    made, mean, inverse = layer_norm_of(ctx, ctx.required(0), ctx.required(1), ctx.input(2), epsilon)
    return [made, _statistic(ctx, mean, 1), _statistic(ctx, inverse, 2)]


def layer_norm_of(
    ctx: Lowering, x: SSAValue, scale: SSAValue, bias: SSAValue | None, epsilon: float
) -> tuple[SSAValue, SSAValue, SSAValue]:
    centre = centre_of(ctx, x, _trailing(ctx.op, len(dims_of(x.type))))
    inverse = inverse_deviation(ctx, centre.variance, epsilon)
    return normalised(ctx, x, centre, inverse, scale, bias), centre.mean, inverse


def rms_norm_of(ctx: Lowering, x: SSAValue, scale: SSAValue, epsilon: float) -> tuple[SSAValue, SSAValue]:
    axes = _trailing(ctx.op, len(dims_of(x.type)))
    extents = extents_of(dims_of(x.type), axes)
    squares = ctx.reduce("add", x, axes, lambda v: v * v, part="squares")
    inverse = per_row(ctx, squares, lambda s: 1 / (s / count_of(s.nest, extents, s) + epsilon).sqrt(), "inverse")
    return normalised(ctx, x, None, inverse, scale, None), inverse


def _statistic(ctx: Lowering, value: SSAValue, index: int) -> SSAValue | None:
    """Returns a statistic as an output of the node, in its type; None if it is unused."""
    if not ctx.wants(index):
        return None
    element = ctx.out_element(index)
    return value if element_of(value.type) == element else per_row(ctx, value, lambda v: v.to(element), "out", element)


def _rms_norm(ctx: Lowering) -> list[SSAValue | None]:
    made, inverse = rms_norm_of(ctx, ctx.required(0), ctx.required(1), float_attr(ctx, "epsilon", 1e-5))
    return [made, _statistic(ctx, inverse, 1)]


def trailing_reason(op: OnnxOp) -> str | None:
    """Returns the reason why the scale or the bias does not broadcast to the input; None if both do."""
    dims = dims_of(op.operands[0].type)
    try:
        _trailing(op, len(dims))
    except ValueError as error:
        return str(error)
    return broadcast_reason([dims_of(v.type) for v in op.inputs[1:] if v is not None], dims)


# -- channel normalisations -------------------------------------------------------------------------------------------


def _batch_norm(ctx: Lowering) -> list[SSAValue | None]:
    """Computes `x * k + c`, with `k = scale / sqrt(variance + epsilon)` and `c = bias - mean * k` per channel."""
    if ctx.opset >= 14 and ctx.attr("training_mode", 0):
        return _batch_norm_in_training(ctx)
    epsilon = float_attr(ctx, "epsilon", 1e-5)
    scale, bias, mean, variance = (ctx.required(k) for k in range(1, 5))
    wide = compute_type(ctx.element(0))
    factor = ctx.map(
        lambda s, v: s.to(wide) / (v.to(wide) + epsilon).sqrt(),
        scale,
        variance,
        element=wide,
        dims=dims_of(scale.type),
        part="factor",
    )
    offset = ctx.map(
        lambda b, m, k: b.to(wide) - m.to(wide) * k,
        bias,
        mean,
        factor,
        element=wide,
        dims=dims_of(scale.type),
        part="offset",
    )

    def point(nest: Nest, at: Subscripts) -> Scalar:
        return nest.read(ctx.required(0), at) * nest.read(factor, [at[1]]) + nest.read(offset, [at[1]])

    return [ctx.generate(ctx.out_dims(), point)]


def _batch_norm_in_training(ctx: Lowering) -> list[SSAValue | None]:
    """Normalises by the statistics of the batch, and mixes them into the running statistics."""
    x, dims, momentum = ctx.required(0), ctx.dims(0), float_attr(ctx, "momentum", 0.9)
    axes = [k for k in range(len(dims)) if k != 1]
    centre = centre_of(ctx, x, axes)
    inverse = inverse_deviation(ctx, centre.variance, float_attr(ctx, "epsilon", 1e-5))
    made = normalised(ctx, x, centre, inverse, ctx.required(1), ctx.required(2), [1])

    def running(index: int, rule: ScalarFunction, *own: SSAValue) -> SSAValue | None:
        if not ctx.wants(index):
            return None
        old, element = ctx.required(2 + index), ctx.out_element(index)
        channels = [ctx.view(v, dims_of(old.type)) for v in own]
        return ctx.map(rule, old, *channels, element=element, dims=dims_of(old.type), part=f"running{index}")

    def mixed_mean(old: Scalar, mean: Scalar, drift: Scalar) -> Scalar:
        return _mixed(old, mean + drift, momentum)

    def mixed_variance(old: Scalar, variance: Scalar) -> Scalar:
        return _mixed(old, variance, momentum)

    return [made, running(1, mixed_mean, centre.mean, centre.drift), running(2, mixed_variance, centre.variance)]


def _mixed(old: Scalar, new: Scalar, momentum: float) -> Scalar:
    wide = old.widened()
    return wide * momentum + new.to(wide.element) * (1 - momentum)


def _batch_norm_infer(ctx: InferContext) -> list[TensorInfo]:
    own, channel = element_type(ctx), input_dims(ctx, 1)
    statistics = TensorInfo(element_type(ctx, 3), channel)
    return [TensorInfo(own, input_dims(ctx, 0)), *[statistics] * (len(ctx.op.results) - 1)]


def _batch_norm_reason(op: OnnxOp) -> str | None:
    if op.opset >= 14 and op.attr("training_mode", 0):
        return _channel_reason(op)
    if op.opset < 7 and not op.attr("is_test", 0):
        return "it computes the statistics of the batch, in training"
    if op.opset < 9 and int(op.attr("spatial", 1)) == 0:
        return "its statistics are per element (spatial = 0)"
    if any(v is not None and v.first_use is not None for v in op.outputs[1:]):
        return "its running statistics are outputs of training"
    return _channel_reason(op)


def _batch_norm_requires(op: OnnxOp) -> list[Requirement]:
    """Requires a non-empty batch: statistics of an empty one are NaN, and ONNX Runtime rejects it."""
    if op.opset < 14 or not op.attr("training_mode", 0):
        return []
    return [at_most(1, product(operand_dims(op, 0)), "its batch is empty")]


def _channel_reason(op: OnnxOp) -> str | None:
    """Returns the reason why the parameters do not have one element per channel, dim 1; None if they do."""
    dims = dims_of(op.operands[0].type)
    if len(dims) < 2:
        return f"its input has rank {len(dims)} and no channels"
    for value in op.inputs[1:]:
        if value is not None and dims_of(value.type) != (dims[1],):
            return f"its parameters have dims [{', '.join(map(str, dims_of(value.type)))}], not [{dims[1]}]"
    return None


def _instance_norm(ctx: Lowering) -> list[SSAValue]:
    x, dims = ctx.required(0), ctx.dims(0)
    axes = list(range(2, len(dims)))
    centre = centre_of(ctx, x, axes)
    inverse = inverse_deviation(ctx, centre.variance, float_attr(ctx, "epsilon", 1e-5))
    return [normalised(ctx, x, centre, inverse, ctx.required(1), ctx.required(2), [1])]


def _group_norm(ctx: Lowering) -> list[SSAValue]:
    """Views the channels as groups of channels. Opset 18 has one scale per group, opset 21 one per channel."""
    dims = ctx.dims(0)
    groups = Expr.of(int(ctx.attr("num_groups")))
    size = dims[1] // groups
    x = ctx.view(ctx.required(0), [dims[0], groups, size, *dims[2:]])
    axes = list(range(2, len(dims) + 1))
    centre = centre_of(ctx, x, axes)
    inverse = inverse_deviation(ctx, centre.variance, float_attr(ctx, "epsilon", 1e-5))
    scale, bias = ctx.required(1), ctx.required(2)
    by_group = ctx.opset < 21
    if not by_group:
        scale, bias = ctx.view(scale, [groups, size]), ctx.view(bias, [groups, size])
    made = normalised(ctx, x, centre, inverse, scale, bias, [1] if by_group else [1, 2])
    return [ctx.view(made, dims)]


def _group_reason(op: OnnxOp) -> str | None:
    dims = dims_of(op.operands[0].type)
    if op.opset >= 21 and element_of(op.operands[0].type) == f64 and int(op.attr("stash_type", 1)) == 1:
        return "its statistics are f32 (stash_type), but kernels compute statistics of f64 in f64"
    groups = int(op.attr("num_groups"))
    channels = dims[1].constant if len(dims) >= 2 else None
    if channels is None or groups < 1 or channels % groups:
        return f"its channels are not known to form {groups} groups"
    want = (Expr.of(groups if op.opset < 21 else channels),)
    if any(v is not None and dims_of(v.type) != want for v in op.inputs[1:]):
        return f"its scale and bias do not have {want[0]} elements"
    return None


# -- norms ------------------------------------------------------------------------------------------------------------


def _lp_norm(ctx: Lowering) -> list[SSAValue]:
    """Divides `x` by its 1- or 2-norm along an axis; gives 0 if the norm is 0."""
    x = ctx.required(0)
    axes = [normal_axis(int(ctx.attr("axis", -1)), len(ctx.dims(0)))]
    if int(ctx.attr("p", 2)) == 1:
        norm = ctx.reduce("add", x, axes, lambda v: v.abs(), part="norm")
    else:
        squares = ctx.reduce("add", x, axes, lambda v: v * v, part="squares")
        norm = per_row(ctx, squares, lambda s: s.sqrt(), "norm")
    return [ctx.map(lambda v, n: n.eq(0).select(0, v / n), x, norm)]


def _mean_variance(ctx: Lowering) -> list[SSAValue]:
    x, dims = ctx.required(0), ctx.dims(0)
    axes = _mean_variance_axes(ctx.op, len(dims))
    centre = centre_of(ctx, x, axes)
    # Epsilon is 0 in f16, as in ONNX's function and in ONNX Runtime: constant input becomes NaN.
    epsilon = 0.0 if ctx.element(0) == f16 else 1e-9
    inverse = per_row(ctx, centre.variance, lambda v: 1 / (v.sqrt() + epsilon), "inverse")
    return [normalised(ctx, x, centre, inverse, None, None)]


def _mean_variance_axes(op: OnnxOp, rank: int) -> list[int]:
    given: Sequence[int] = op.attr("axes", [0, 2, 3])
    return sorted({normal_axis(int(a), rank) for a in given})


def _mean_variance_reason(op: OnnxOp) -> str | None:
    try:
        _mean_variance_axes(op, len(dims_of(op.operands[0].type)))
    except ValueError as error:
        return str(error)
    return None


def _norm_reason(op: OnnxOp) -> str | None:
    return "it has no axis to normalise over" if not dims_of(op.operands[0].type) else None


# -- tables -----------------------------------------------------------------------------------------------------------


def _floats_reason(op: OnnxOp) -> str | None:
    element = element_of(op.results[0].type)
    return None if is_float(element) else f"only floats are supported, not {element}"


def float_legal(*checks: LegalCheck) -> LegalRule:
    """Returns the legality rule of an op whose first result has float elements."""
    return legal(computed_reason, _floats_reason, *checks)


_SAME = same_as_input(None)


def _row_requires(op: OnnxOp) -> list[Requirement]:
    """Requires non-empty rows, even if there are no rows, as ONNX Runtime does."""
    dims = operand_dims(op, 0)
    return [at_most(1, product([dims[k] for k in _trailing(op, len(dims))]), "its rows are empty")]


def _group_requires(op: OnnxOp) -> list[Requirement]:
    """Requires a non-empty input: the Reshape in ONNX Runtime's function cannot infer the group size otherwise."""
    return [at_most(1, product(operand_dims(op, 0)), "its input is empty")]


def norm_spec(
    name: str,
    lower: LowerRule,
    reason: LegalCheck,
    infer: InferRule = _SAME,
    cost: int = 8,
    requires: Callable[[OnnxOp], list[Requirement]] | None = None,
) -> OpSpec:
    """Returns the spec of a normalisation with `cost` operations per element of its first result, whose dims `infer`
    computes."""
    return OpSpec(
        name,
        infer=infer,
        lower=lower,
        legal=float_legal(reason),
        requires=requires,
        flops=elementwise_flops(cost),
        kind="normalization",
    )


SPECS: list[OpSpec] = [
    replace(
        norm_spec("BatchNormalization", _batch_norm, _batch_norm_reason, _batch_norm_infer, 2),
        requires=_batch_norm_requires,
    ),
    norm_spec("GroupNormalization", _group_norm, _group_reason, requires=_group_requires),
    norm_spec("InstanceNormalization", _instance_norm, _channel_reason),
    norm_spec("LayerNormalization", _layer_norm, trailing_reason, _layer_norm_infer, requires=_row_requires),
    norm_spec("LpNormalization", _lp_norm, _norm_reason),
    norm_spec("MeanVarianceNormalization", _mean_variance, _mean_variance_reason),
    norm_spec("RMSNormalization", _rms_norm, trailing_reason, cost=5, requires=_row_requires),
    norm_spec("SimplifiedLayerNormalization", _rms_norm, trailing_reason, _layer_norm_infer, 5, _row_requires),
]
