"""Further normalisations of com.microsoft: norms of groups, of heads and of branches, and gated norms.

GroupNorm and SkipGroupNorm come from diffusion models, with channels last; ONNX Runtime has no CPU kernel for them. The
others come from decoders: the norm of a head with a gate (Mamba 2, gated DeltaNet), and parallel streams of features
(hyper-connections), mixed by each token.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import f32
from xdsl.ir import SSAValue

from igniter.dialects.onnx.ops.activation import sigmoid, softplus
from igniter.dialects.onnx.ops.means import count_of
from igniter.dialects.onnx.ops.normalization import (
    LegalCheck,
    centre_of,
    extents_of,
    float_legal,
    inverse_deviation,
    norm_spec,
    normalised,
    per_row,
)
from igniter.dialects.onnx.ops.pointwise import elementwise_flops, float_attr, same_as_input
from igniter.dialects.onnx.ops.rules import element_type, input_dims, operand, operand_dims
from igniter.dialects.onnx.registry import Dims, InferContext, InferRule, LowerRule, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, product
from igniter.dialects.sym.requirements import Requirement, at_most, equal

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp
    from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
    from igniter.dialects.onnx.lowering.context import Subscripts


# -- groups of channels -----------------------------------------------------------------------------------------------


def _group_norm(ctx: Lowering) -> list[SSAValue | None]:
    return [_grouped(ctx, ctx.required(0))]


def _skip_group_norm(ctx: Lowering) -> list[SSAValue | None]:
    """Computes the norm of `x + skip + bias`, and that sum."""
    x, skip, bias, dims = ctx.required(0), ctx.required(3), ctx.input(4), ctx.dims(0)
    if len(ctx.dims(3)) == 2:
        skip = ctx.view(skip, [dims[0], ONE, ONE, dims[3]])

    def point(nest: Nest, at: Subscripts) -> Scalar:
        value = nest.read(x, at) + ctx.read_broadcast(nest, skip, at, dims)
        return value if bias is None else value + nest.read(bias, at[3:])

    total = ctx.generate(dims, point, part="skip")
    return [_grouped(ctx, total), total if ctx.wants(1) else None]


def _grouped(ctx: Lowering, x: SSAValue) -> SSAValue:
    """Normalises every group of channels of an image; then applies the channels' scale and bias, and a swish."""
    dims, groups = dims_of(x.type), Expr.of(int(ctx.attr("groups")))
    last = bool(ctx.attr("channels_last", 1))
    channels = dims[3 if last else 1]
    size = floordiv(channels, groups)
    shape = [dims[0], product(dims[1:3]), groups, size] if last else [dims[0], groups, size, product(dims[2:])]
    axes, parameters = ([1, 3], [2, 3]) if last else ([2, 3], [1, 2])
    flat = ctx.view(x, shape)
    centre = centre_of(ctx, flat, axes)
    inverse = inverse_deviation(ctx, centre.variance, float_attr(ctx, "epsilon", 1e-5))
    scale, bias = (ctx.view(ctx.required(k), [groups, size]) for k in (1, 2))
    if not int(ctx.attr("activation", 0)):
        return ctx.view(normalised(ctx, flat, centre, inverse, scale, bias, parameters), dims)
    made = normalised(ctx, flat, centre, inverse, scale, bias, parameters, element=element_of(inverse.type))
    return ctx.view(ctx.map(lambda v: v * sigmoid(v), made, dims=shape, part="swish"), dims)


def _group_reason(op: OnnxOp) -> str | None:
    dims, groups = operand_dims(op, 0), int(op.attr("groups") or 0)
    if len(dims) != 4:
        return "its input is not a 2-D image"
    if int(op.attr("activation", 0)) not in (0, 1):
        return "its activation is unknown"
    last = bool(op.attr("channels_last", 1))
    channels = dims[3 if last else 1]
    if channels.constant is None or groups < 1 or channels.constant % groups:
        return f"its channels are not known to form {groups} groups"
    if any(operand_dims(op, k) != (channels,) for k in (1, 2)):
        return "its scale and bias do not have one element per channel"
    return None


def _skip_group_reason(op: OnnxOp) -> str | None:
    dims = operand_dims(op, 0)
    reason = _group_reason(op)
    if reason is not None or not op.attr("channels_last", 1):
        return reason or "it has a residual, but its channels are not last"
    if operand_dims(op, 3) not in (dims, (dims[0], ONE, ONE, dims[3]), (dims[0], dims[3])):
        return "its residual is not known to have the dims of its input"
    if operand(op, 4) is not None and operand_dims(op, 4) != dims[3:]:
        return "its bias does not have one element per channel"
    return None


# -- root mean squares ------------------------------------------------------------------------------------------------


def _inverse_rms(ctx: Lowering, x: SSAValue, epsilon: float, part: str = "") -> SSAValue:
    """Returns the reciprocal of the root mean square over the last dim, which is kept as 1."""
    axis = len(dims_of(x.type)) - 1
    squares = ctx.reduce("add", x, [axis], lambda v: v * v, part=f"{part}squares")
    extents = extents_of(dims_of(x.type), [axis])

    def inverse(total: Scalar) -> Scalar:
        return 1 / (total / count_of(total.nest, extents, total) + epsilon).sqrt()

    return per_row(ctx, squares, inverse, f"{part}inverse")


def _heads(op: OnnxOp) -> Dims:
    """Returns rows, heads of a row, and features of a head."""
    dims, size = operand_dims(op, 0), operand_dims(op, 1)[0]
    return product(dims[:-1]), floordiv(dims[-1], size), size


def _gated_rms(ctx: Lowering) -> list[SSAValue]:
    shape = _heads(ctx.op)
    x, scale, gate = ctx.view(ctx.required(0), shape), ctx.required(1), ctx.view(ctx.required(2), shape)
    inverse = _inverse_rms(ctx, x, float_attr(ctx, "epsilon", 1e-5))
    plain = str(ctx.attr("activation", "silu")) == "sigmoid"

    def point(nest: Nest, at: Subscripts) -> Scalar:
        value = nest.read(x, at).widened() * nest.read(inverse, [*at[:2], ZERO]) * nest.read(scale, at[2:])
        z = nest.read(gate, at).widened()
        return value * (sigmoid(z) if plain else z * sigmoid(z))

    return [ctx.view(ctx.generate(shape, point), ctx.out_dims())]


def _gated_rms_reason(op: OnnxOp) -> str | None:
    if not operand_dims(op, 0) or len(operand_dims(op, 1)) != 1 or len(operand_dims(op, 2)) != len(operand_dims(op, 0)):
        return "its scale does not have one element per feature, or its gate has a different rank"
    if operand_dims(op, 1)[0].constant in (None, 0):
        return "the number of features per head is unknown"
    known = str(op.attr("activation", "silu")) in ("silu", "swish", "sigmoid")
    return None if known else f"unknown activation {op.attr('activation')}"


def _gated_rms_requires(op: OnnxOp) -> list[Requirement]:
    _, heads, size = _heads(op)
    text = "its gate does not have the dims of its input"
    return [
        equal(operand_dims(op, 0)[-1], heads * size, "its features are not a whole number of heads"),
        *(equal(a, b, text) for a, b in zip(operand_dims(op, 0), operand_dims(op, 2), strict=True)),
    ]


# -- branches ---------------------------------------------------------------------------------------------------------


def _branches(op: OnnxOp) -> tuple[Expr, Expr, Expr] | str:
    """Returns rows, branches and features of the first operand; or the reason why they are unknown."""
    dims, count = operand_dims(op, 0), int(op.attr("num_branches", 0))
    if len(dims) < (1 if count else 2):
        return "its input has no branches"
    if not count:
        return product(dims[:-2]), dims[-2], dims[-1]
    if dims[-1].constant is None or dims[-1].constant % count:
        return f"its features are not known to form {count} branches"
    return product(dims[:-1]), Expr.of(count), Expr.of(dims[-1].constant // count)


def _branches_of(ctx: Lowering) -> tuple[Expr, Expr, Expr]:
    found = _branches(ctx.op)
    if isinstance(found, str):
        raise ctx.fail(found)
    return found


def _branches_require(op: OnnxOp) -> list[Requirement]:
    found = _branches(op)
    assert not isinstance(found, str)
    return [at_most(1, size, "its branches and features are not positive") for size in found[1:]]


def _lead(op: OnnxOp) -> Dims:
    """Returns the dims before branches and features."""
    return operand_dims(op, 0)[: -1 if int(op.attr("num_branches", 0)) else -2]


def _branch_rms(ctx: Lowering) -> list[SSAValue]:
    shape = _branches_of(ctx)
    x, scale = ctx.view(ctx.required(0), shape), ctx.input(1)
    if scale is not None:
        scale = ctx.view(scale, shape[2:] if dims_of(scale.type) == shape[2:] else shape[1:])
    inverse = _inverse_rms(ctx, x, float_attr(ctx, "epsilon", 1e-5))

    def point(nest: Nest, at: Subscripts) -> Scalar:
        value = nest.read(x, at).widened() * nest.read(inverse, [*at[:2], ZERO])
        return value if scale is None else value * nest.read(scale, at[-len(dims_of(scale.type)) :]).widened()

    return [ctx.view(ctx.generate(shape, point), ctx.out_dims())]


def _branch_rms_reason(op: OnnxOp) -> str | None:
    found = _branches(op)
    if isinstance(found, str):
        return found
    _, c, h = found
    if operand(op, 1) is None or operand_dims(op, 1) in ((h,), (c, h), (c * h,)):
        return None
    return "its scale is not known to match its branches"


def _mix_features(op: OnnxOp, index: int) -> Expr | str:
    """Returns the features per branch of an operand of weights for branches: 1 or all."""
    found = _branches(op)
    if isinstance(found, str):
        return found
    _, c, h = found
    lead, dims = _lead(op), operand_dims(op, index)
    for features, shapes in ((ONE, [(c,), (c, ONE)]), (h, [(c, h), (c * h,)])):
        if any(dims == (*lead, *shape) for shape in shapes):
            return features
    return f"its weights of dims [{', '.join(map(str, dims))}] are not known to match {c} branches of {h} features"


def _mix_reason(index: int, op: OnnxOp) -> str | None:
    found = _mix_features(op, index)
    return found if isinstance(found, str) else None


def _mixed(ctx: Lowering, index: int) -> SSAValue:
    rows, c, _ = _branches_of(ctx)
    features = _mix_features(ctx.op, index)
    if isinstance(features, str):
        raise ctx.fail(features)
    return ctx.view(ctx.required(index), [rows, c, features])


def _feature(tensor: SSAValue, at: Expr) -> Expr:
    return ZERO if dims_of(tensor.type)[-1] == ONE else at


def _pre_mix(ctx: Lowering) -> list[SSAValue]:
    """Computes the weighted sum over the branches."""
    shape = _branches_of(ctx)
    x, weights, scale = ctx.view(ctx.required(0), shape), _mixed(ctx, 1), float_attr(ctx, "reduction_scale", 1.0)

    def point(nest: Nest, i: Subscripts, r: Subscripts) -> Scalar:
        weight = nest.read(weights, [i[0], r[0], _feature(weights, i[1])]).widened()
        return nest.read(x, [i[0], r[0], i[1]]).widened() * weight

    dims = (shape[0], shape[2])
    total = ctx.generate(dims, point, over=[shape[1]], combiner="add", element=f32, part="sum")
    return [ctx.view(ctx.map(lambda v: v * scale, total, dims=dims), ctx.out_dims())]


def _infer_pre_mix(ctx: InferContext) -> list[TensorInfo]:
    dims, count = input_dims(ctx, 0), int(ctx.op.attr("num_branches", 0))
    if dims is None:
        return [TensorInfo(element_type(ctx), None)]
    made = (*dims[:-1], floordiv(dims[-1], Expr.of(count))) if count else (*dims[:-2], dims[-1])
    return [TensorInfo(element_type(ctx), made)]


def _post_mix(ctx: Lowering) -> list[SSAValue]:
    """Mixes the branches with each other, and adds the output of a block to each."""
    rows, c, h = shape = _branches_of(ctx)
    x, made, weights = ctx.view(ctx.required(0), shape), ctx.view(ctx.required(1), [rows, h]), _mixed(ctx, 2)
    mix, mixed = ctx.input(3), x
    if mix is not None:
        between = ctx.view(mix, [rows, c, c])

        def total(nest: Nest, i: Subscripts, r: Subscripts) -> Scalar:
            weight = nest.read(between, [i[0], r[0], i[1]]).widened()
            return weight * nest.read(x, [i[0], r[0], i[2]]).widened()

        mixed = ctx.generate(shape, total, over=[c], combiner="add", element=f32, part="mix")

    def point(nest: Nest, i: Subscripts) -> Scalar:
        weight = nest.read(weights, [*i[:2], _feature(weights, i[2])]).widened()
        return nest.read(mixed, i).widened() + weight * nest.read(made, [i[0], i[2]]).widened()

    return [ctx.view(ctx.generate(shape, point), ctx.out_dims())]


def _post_mix_reason(op: OnnxOp) -> str | None:
    found = _branches(op)
    if isinstance(found, str):
        return found
    _, c, h = found
    if operand_dims(op, 1) != (*_lead(op), h):
        return "its block is not known to have the rows and features of its streams"
    if operand(op, 3) is not None and operand_dims(op, 3) != (*_lead(op), c, c):
        return "it is not known to mix every pair of its streams"
    return _mix_reason(2, op)


# -- gates ------------------------------------------------------------------------------------------------------------


def _engram_gate(ctx: Lowering) -> list[SSAValue | None]:
    """Computes the value times the sigmoid of the signed root of the product of key and query, both normalised."""
    key, query, value = (ctx.required(k) for k in range(3))
    scales, dims, epsilon = (ctx.required(3), ctx.required(4)), ctx.dims(0), float_attr(ctx, "epsilon", 1e-5)
    inverses = [_inverse_rms(ctx, x, epsilon, f"{part}.") for x, part in ((key, "key"), (query, "query"))]
    rows = (*dims[:3], ONE)

    def product_of(nest: Nest, i: Subscripts, r: Subscripts) -> Scalar:
        at, place = [*i[:3], r[0]], [i[2], r[0]]
        left, right = (
            nest.read(x, at).widened() * nest.read(inverse, i) * nest.read(scale, place).widened()
            for x, inverse, scale in zip((key, query), inverses, scales, strict=True)
        )
        return left * right

    dots = ctx.generate(rows, product_of, over=[dims[3]], combiner="add", element=f32, part="dot")

    def gate_of(dot: Scalar) -> Scalar:
        dot = dot / count_of(dot.nest, [dims[3]], dot).sqrt()
        root = dot.abs().maximum(1e-6).sqrt()
        return sigmoid((dot > 0).select(root, (dot < 0).select(-root, dot)))

    gate = per_row(ctx, dots, gate_of, "gate")

    def gated(nest: Nest, i: Subscripts) -> Scalar:
        return nest.read(gate, [*i[:3], ZERO]) * nest.read(value, [*i[:2], i[3]]).widened()

    made = ctx.generate(dims, gated)
    if not ctx.wants(1):
        return [made, None]
    wide = ctx.generate(dims, gated, element=f32, part="wide")
    scale, inverse = ctx.required(5), _inverse_rms(ctx, wide, epsilon, "value.")

    def normal(nest: Nest, i: Subscripts) -> Scalar:
        return nest.read(wide, i) * nest.read(inverse, [*i[:3], ZERO]) * nest.read(scale, i[2:]).widened()

    return [made, ctx.generate(dims, normal, part="norm")]


def _infer_engram(ctx: InferContext) -> list[TensorInfo]:
    return [TensorInfo(element_type(ctx), input_dims(ctx, 0))] * len(ctx.op.results)


def _engram_reason(op: OnnxOp) -> str | None:
    dims = operand_dims(op, 0)
    if len(dims) != 4 or operand_dims(op, 1) != dims or operand_dims(op, 2) != (*dims[:2], dims[3]):
        return "its query and its value are not known to have the dims of its keys"
    wanted = [3, 4] + ([5] if len(op.outputs) > 1 and op.outputs[1] is not None else [])
    if any(operand(op, k) is None or operand_dims(op, k) != dims[2:] for k in wanted):
        return "its scales are not known to have one element per feature"
    return None


def _attention_gate(ctx: Lowering) -> list[SSAValue | None]:
    def decay(a: Scalar, bias: Scalar, scale: Scalar) -> Scalar:
        return scale * softplus(a.widened() + bias)

    made = ctx.map(decay, *(ctx.required(k) for k in range(3)))
    if not ctx.wants(1):
        return [made, None]
    element, dims = ctx.out_element(1), ctx.dims(3)
    return [made, ctx.map(sigmoid, ctx.required(3), element=element, dims=dims, part="beta")]


def _infer_gate(ctx: InferContext) -> list[TensorInfo]:
    info = [TensorInfo(element_type(ctx), input_dims(ctx, 0)), TensorInfo(element_type(ctx), input_dims(ctx, 3))]
    return info[: len(ctx.op.results)]


def _gate_reason(op: OnnxOp) -> str | None:
    dims = operand_dims(op, 0)
    if len(dims) != 3 or any(operand_dims(op, k) != dims[2:] for k in (1, 2)):
        return "it is not known to have a bias and a scale for every head"
    if len(op.outputs) > 1 and op.outputs[1] is not None and (operand(op, 3) is None or operand_dims(op, 3) != dims):
        return "its update rates are not known to have the dims of its input"
    return None


def _gate_requires(op: OnnxOp) -> list[Requirement]:
    return [at_most(1, operand_dims(op, 0)[-1], "it has no heads")]


_SAME = same_as_input(None)


def _infer_skip_group(ctx: InferContext) -> list[TensorInfo]:
    return [TensorInfo(element_type(ctx), input_dims(ctx, 0))] * len(ctx.op.results)


def _branch_spec(name: str, lower: LowerRule, reason: LegalCheck, infer: InferRule, cost: int) -> OpSpec:
    return replace(norm_spec(name, lower, reason, infer, cost), requires=_branches_require)


SPECS: list[OpSpec] = [
    _branch_spec("com.microsoft.BranchwiseRMSNorm", _branch_rms, _branch_rms_reason, _SAME, 5),
    norm_spec("com.microsoft.EngramGate", _engram_gate, _engram_reason, _infer_engram, 12),
    OpSpec(
        "com.microsoft.GatedRMSNorm",
        infer=_SAME,
        lower=_gated_rms,
        legal=float_legal(_gated_rms_reason),
        requires=_gated_rms_requires,
        flops=elementwise_flops(16),
        kind="normalization",
    ),
    norm_spec("com.microsoft.GroupNorm", _group_norm, _group_reason, _SAME),
    _branch_spec("com.microsoft.HyperConnectionPostMix", _post_mix, _post_mix_reason, _SAME, 10),
    norm_spec("com.microsoft.HyperConnectionPreMix", _pre_mix, lambda op: _mix_reason(1, op), _infer_pre_mix, 10),
    replace(
        norm_spec("com.microsoft.LinearAttentionGate", _attention_gate, _gate_reason, _infer_gate, 20),
        requires=_gate_requires,
    ),
    norm_spec("com.microsoft.SkipGroupNorm", _skip_group_norm, _skip_group_reason, _infer_skip_group, 10),
]
