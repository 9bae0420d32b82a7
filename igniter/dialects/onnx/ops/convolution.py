"""Convolutions: Conv of any rank, with groups, strides, dilations and padding, FusedConv, CausalConvWithState.

A convolution with windows of one element and stride one is a contraction: the weight of each group times a matrix of
channels and places, for the micro-kernels. Between two transpositions it is a linear layer with a packed weight. Any
other convolution is a nest over the results with a fold over channels and window; reads of the padding are guarded.
ONNX Runtime's own convolutions, on blocks of channels, are faster than these nests, so the default pipeline leaves them
to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod

from xdsl.dialects.builtin import f32
from xdsl.ir import Attribute, Operation, SSAValue

from igniter.dialects.fusion import UnpackOp
from igniter.dialects.loop.panels import SMALLEST_COLUMNS, panel_lanes
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.activation import sigmoid, unit_clip
from igniter.dialects.onnx.ops.counts import twice
from igniter.dialects.onnx.ops.pointwise import computed_reason
from igniter.dialects.onnx.ops.rules import element_type, input_dims, legal, operand, operand_dims
from igniter.dialects.onnx.ops.sliding import SAME, Slide, auto_pad, conv_slides, spatial_ints
from igniter.dialects.onnx.ops.winograd import LAST_CHANNELS, convolve_by_tiles, tiling_of, winograd_tables
from igniter.dialects.onnx.registry import PHASES_ATTRIBUTE, Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, linearize, product
from igniter.dialects.sym.requirements import Requirement, at_most

SLOW = "ONNX Runtime convolves blocks of channels, which is faster"

SMALL_GROUPS = (2, 4, 8)
"""The sizes of groups with several whole groups in a vector."""

Factor = Callable[[Nest, list[Expr], list[Expr]], Scalar]
"""A function that returns one term of a sum, given the subscripts in the weight and the matching ones in the image."""


# -- shapes -----------------------------------------------------------------------------------------------------------


def kernel_dims(op: OnnxOp, weight: Dims) -> Dims:
    """Returns the spatial dims of a window: those of the attribute (they must equal the weight's), or the weight's."""
    given = op.attr("kernel_shape")
    return tuple(Expr.of(int(k)) for k in given) if given else weight[2:]


def infer_conv(ctx: InferContext) -> list[TensorInfo]:
    data, weight = input_dims(ctx, 0), input_dims(ctx, 1)
    if data is None or weight is None:
        return [TensorInfo(element_type(ctx), None)]
    ctx.equate(data[1], weight[1] * int(ctx.op.attr("group", 1)))
    kernel = kernel_dims(ctx.op, weight)
    for given, dim in zip(kernel, weight[2:], strict=True):
        ctx.equate(given, dim)
    counts = (s.count for s in conv_slides(ctx.op, data[2:], kernel))
    return [TensorInfo(element_type(ctx), (data[0], weight[0], *counts))]


def slides_of(op: OnnxOp) -> list[Slide]:
    """Returns the windows of a Conv, one entry per spatial axis."""
    return conv_slides(op, operand_dims(op, 0)[2:], kernel_dims(op, operand_dims(op, 1)))


def is_pointwise(op: OnnxOp) -> bool:
    """True if a convolution only mixes channels: windows of one element, stride one, no padding."""
    rank = len(operand_dims(op, 0)) - 2
    if any(d != ONE for d in operand_dims(op, 1)[2:]) or any(s != 1 for s in spatial_ints(op, "strides", rank, 1)):
        return False
    return auto_pad(op) != "NOTSET" or not any(op.attr("pads") or [0])


def conv_reason(op: OnnxOp) -> str | None:
    """Returns the reason why a float convolution has no nest; None if it has one."""
    reason = window_reason(op)
    bias, channels = operand(op, 2), operand_dims(op, 1)[0]
    if reason is None and bias is not None and dims_of(bias.type) != (channels,):
        return f"its bias has dims {', '.join(map(str, dims_of(bias.type)))}, not {channels}"
    return reason


def window_reason(op: OnnxOp) -> str | None:
    """Returns the reason why the data and the weight of a convolution do not fit; None if they do."""
    data, weight = operand_dims(op, 0), operand_dims(op, 1)
    group = int(op.attr("group", 1))
    if len(data) < 3 or len(weight) != len(data):
        return f"its input and weight have rank {len(data)} and {len(weight)}"
    if kernel_dims(op, weight) != weight[2:]:
        return "its kernel_shape is not known to match its weight"
    if data[1] != weight[1] * group or (group != 1 and (weight[0].constant is None or weight[0].constant % group)):
        return "its groups are not known to divide the channels"
    if auto_pad(op) in SAME and any(d != 1 for d in spatial_ints(op, "dilations", len(data) - 2, 1)):
        return "ONNX Runtime does not dilate with automatic padding"
    return None


def phases_of(op: OnnxOp) -> tuple[int, ...]:
    """Returns the outer part of a result's channels, which becomes places (`form-subpixel-convolutions`); empty without
    a mark."""
    return tuple(int(k) for k in op.attr(PHASES_ATTRIBUTE) or ())


# -- nests ------------------------------------------------------------------------------------------------------------


def _windowed(ctx: Lowering) -> SSAValue:
    x, w = ctx.required(0), ctx.required(1)
    lanes = None if ctx.kernel.blocks else padded_lanes(ctx.op)
    if lanes is not None:
        return _in_padded_groups(ctx, lanes)
    if not ctx.kernel.blocks and _has_computed_weight(ctx.op):
        return _by_computed_weight(ctx)
    return window_sums(ctx, lambda nest, tap, place: nest.read(w, tap) * nest.read_inside(x, place))


def _has_computed_weight(op: OnnxOp) -> bool:
    """True if the channels of an image are its last dim in memory and the weight, known only at run time, should be in
    the order of `conv_orders`, or is a matrix for all places."""
    value = op.operands[1]
    while isinstance(value.owner, OnnxOp) and value.owner.op_type == "Cast":
        value = value.owner.operands[0]
    if isinstance(value.owner, UnpackOp) or not moves_channels(op.operands[0].owner) or phases_of(op):
        return False
    channels = operand_dims(op, 1)[0].constant
    fills = channels is not None and channels >= SMALLEST_COLUMNS
    return fills and (not has_panels(op) or (is_pointwise(op) and int(op.attr("group", 1)) == 1))


def _by_computed_weight(ctx: Lowering) -> SSAValue:
    """Returns the sums over windows with the channels of the results last in memory, like those of the image.

    A pointwise convolution is a product of the places with the weight. Other weights are first copied to the order
    that `pack-weights` gives to constant ones.
    """
    x, w, group, out = ctx.required(0), ctx.required(1), int(ctx.attr("group", 1)), ctx.out_dims()
    weight, slides = ctx.dims(1), slides_of(ctx.op)
    pointwise = group == 1 and is_pointwise(ctx.op)
    size, depth = floordiv(weight[0], Expr.of(group)), weight[1]
    ordered = w if pointwise else _padded_weight(ctx, size.constant or 1)

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        b, *at, o = i
        g = ZERO if group == 1 else floordiv(o, size)
        places = [s.at(p, k) for s, p, k in zip(slides, at, r[1:], strict=True)]
        tap = [o, *r] if pointwise else [*r[1:], r[0], o]
        return nest.read(ordered, tap) * nest.read_inside(x, [b, g * depth + r[0], *places])

    made = ctx.generate((out[0], *out[2:], out[1]), point, over=weight[1:], combiner="add")
    return ctx.generate(
        out, lambda nest, i: nest.read(made, [i[0], *i[2:], i[1]]), element=element_of(made.type), part="moved"
    )


def window_sums(ctx: Lowering, factor: Factor, element: Attribute | None = None) -> SSAValue:
    """Returns the sums of `factor(nest, tap, place)` over the window of each result: `tap` is an element of the weight,
    `place` the matching one of the image, possibly out of bounds."""
    slides, weight, group, out = slides_of(ctx.op), ctx.dims(1), int(ctx.attr("group", 1)), ctx.out_dims()
    phases = phases_of(ctx.op)
    size, depth = weight[0] // (group * prod(phases)), weight[1]
    # A single group, or groups of one channel, are no axis: the following nests have the same dims, and fuse at each
    # tile. Nor are small groups, several of which share a vector.
    few = element is None and has_small_groups(ctx.op)
    several = group != 1 and size != ONE and not few

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        if phases:
            b, g = i[0], ZERO
            o, at = linearize(i[1 : 2 + len(phases)], (*map(Expr.of, phases), size)), i[2 + len(phases) :]
        elif several:
            b, g, o, *at = i
            o = g * size + o
        else:
            b, o, *at = i
            g = ZERO if group == 1 else floordiv(o, size)
        places = [s.at(p, k) for s, p, k in zip(slides, at, r[1:], strict=True)]
        return factor(nest, [o, *r], [b, g * depth + r[0], *places])

    outer = phases or ((group,) if several else ())
    dims = (out[0], *map(Expr.of, outer), size, *out[2:]) if outer else out
    made = ctx.generate(dims, point, over=[depth, *weight[2:]], combiner="add", element=element)
    return ctx.view(made, out)


def _in_padded_groups(ctx: Lowering, lanes: int) -> SSAValue:
    """Returns the sums over windows, with each group padded with zero results to `lanes`, for several whole groups in a
    vector; the padding is dropped afterwards."""
    x, weight, group, out = ctx.required(0), ctx.dims(1), int(ctx.attr("group", 1)), ctx.out_dims()
    size, depth, slides = (weight[0] // group).constant or 1, weight[1], slides_of(ctx.op)
    weights, wide = _padded_weight(ctx, lanes), Expr.of(lanes)

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        b, *at, o = i
        places = [s.at(p, k) for s, p, k in zip(slides, at, r[1:], strict=True)]
        value = nest.read_inside(x, [b, floordiv(o, wide) * depth + r[0], *places])
        return nest.read(weights, [*r[1:], r[0], o]) * value

    dims = (out[0], *out[2:])
    made = ctx.generate((*dims, Expr.of(group * lanes)), point, over=weight[1:], combiner="add")
    element = element_of(made.type)
    p = ctx.procedure([made], [tensor_of(element, (*dims, out[1]))], part="groups")
    source, target = p.buffers
    b, row = p.axes(dims[:2])
    with p.over((*dims[2:], Expr.of(group))) as (*at, g):
        for lane in range(size):
            p.store(p.load(source, [b, row, *at, g * lanes + lane]), target, [b, row, *at, g * size + lane])
    dense = p.end()[0]

    def moved(nest: Nest, i: Sequence[Expr]) -> Scalar:
        return nest.read(dense, [i[0], *i[2:], i[1]])

    return ctx.generate(out, moved, element=element, part="moved")


def _padded_weight(ctx: Lowering, lanes: int) -> SSAValue:
    """Returns the weight with its results last, `lanes` to a group: `[window, channel, result]`."""
    weight, group, w = ctx.dims(1), int(ctx.attr("group", 1)), ctx.required(1)
    size = (weight[0] // group).constant or 1
    p = ctx.procedure([w], [tensor_of(element_of(w.type), (*weight[2:], weight[1], group * lanes))], part="lanes")
    source, target = p.buffers
    with p.over((*weight[2:], weight[1], Expr.of(group))) as (*taps, c, g):
        for lane in range(lanes):
            value = p.load(source, [g * size + lane, c, *taps]) if lane < size else 0.0
            p.store(value, target, [*taps, c, g * lanes + lane])
    return p.end()[0]


def add_channels(ctx: Lowering, x: SSAValue, bias: SSAValue | None) -> SSAValue:
    """Returns `x` plus one element of `bias` per channel."""
    if bias is None:
        return x

    def biased(nest: Nest, at: Sequence[Expr]) -> Scalar:
        return nest.read(x, at) + nest.read(bias, [at[1]])

    return ctx.generate(dims_of(x.type), biased, part="bias", element=element_of(x.type))


def conv_requires(op: OnnxOp) -> list[Requirement]:
    return [at_most(1, d, "its input is smaller than its window") for d in dims_of(op.results[0].type)[2:]]


def convolved(ctx: Lowering) -> SSAValue:
    """Returns the convolution of operands 0 and 1 plus the bias, operand 2."""
    tiling = tiling_of(ctx.op)
    if tiling is not None:
        return convolve_by_tiles(ctx, tiling, slides_of(ctx.op))
    return add_channels(ctx, _windowed(ctx), ctx.input(2))


# -- FusedConv --------------------------------------------------------------------------------------------------------


ACTIVATIONS: dict[str, Callable[[Scalar, float, float], Scalar]] = {
    "Clip": lambda x, a, b: (x < a).select(a, (x > b).select(b, x)),
    "HardSigmoid": lambda x, a, b: unit_clip(x * a + b),
    "LeakyRelu": lambda x, a, b: (x < 0).select(x * a, x),
    "Relu": lambda x, a, b: (x < 0).select(0, x),
    "Sigmoid": lambda x, a, b: sigmoid(x),
    "Tanh": lambda x, a, b: x.tanh(),
}
"""The activations of a FusedConv, as functions of a result and its `activation_params`."""


def _fused_conv(ctx: Lowering) -> list[SSAValue]:
    made, residual = convolved(ctx), ctx.input(3)
    if residual is not None:
        made = ctx.map(lambda x, y: x + y, made, residual, element=element_of(made.type), part="sum")
    name = str(ctx.attr("activation", ""))
    if not name:
        return [ctx.rounded(made)]
    a, b, *_ = [*(float(v) for v in ctx.attr("activation_params", [])), 0.0, 0.0]
    return [ctx.map(lambda x: ACTIVATIONS[name](x, a, b), made, part="activation")]


def _fused_reason(op: OnnxOp) -> str | None:
    name = str(op.attr("activation", ""))
    if name and name not in ACTIVATIONS:
        return f"unknown activation {name}"
    if len(op.inputs) > 3 and op.inputs[3] is not None and operand_dims(op, 3) != dims_of(op.results[0].type):
        return "its residual is not known to have the dims of its result"
    return conv_reason(op)


# -- CausalConvWithState ----------------------------------------------------------------------------------------------


def _infer_causal(ctx: InferContext) -> list[TensorInfo]:
    data, weight = input_dims(ctx, 0), input_dims(ctx, 1)
    plain = not int(ctx.op.attr("channels_last", 0)) and not int(ctx.op.attr("state_window", 0))
    if data is None or weight is None or len(data) != 3 or len(weight) != 3 or not plain:
        return [TensorInfo(element_type(ctx), data), TensorInfo(element_type(ctx), None)][: len(ctx.op.results)]
    state = (data[0], data[1], (weight[2] - 1) * int(ctx.op.attr("dilation", 1)))
    past = input_dims(ctx, 3)
    for have, want in zip(past or (), state, strict=False):
        ctx.equate(have, want)
    return [TensorInfo(element_type(ctx), data), TensorInfo(element_type(ctx), state)][: len(ctx.op.results)]


def _causal_reason(op: OnnxOp) -> str | None:
    data, weight = operand_dims(op, 0), operand_dims(op, 1)
    if len(data) != 3 or len(weight) != 3 or weight[1] != ONE or weight[0] != data[1]:
        return "it is not a depthwise convolution along one axis"
    if int(op.attr("ndim", 1)) != 1 or int(op.attr("channels_last", 0)) or int(op.attr("state_window", 0)):
        return "its channels are last, or it keeps the states of several positions"
    if str(op.attr("activation", "none")) not in ("none", "silu", "swish"):
        return f"unknown activation {op.attr('activation')}"
    reach = (weight[2] - 1) * int(op.attr("dilation", 1))
    if len(op.inputs) > 3 and op.inputs[3] is not None and operand_dims(op, 3) != (*data[:2], reach):
        return "its state is not known to be one element shorter than its window"
    return None


def _causal(ctx: Lowering) -> list[SSAValue | None]:
    """Computes causal windows: each result sees the window up to it, preceded by the state, or by 0."""
    x, w, bias, past = ctx.required(0), ctx.required(1), ctx.input(2), ctx.input(3)
    dims, taps, dilation = ctx.dims(0), ctx.dims(1)[2], int(ctx.attr("dilation", 1))
    before = (taps - 1) * dilation

    def element(nest: Nest, b: Expr, c: Expr, at: Expr) -> Scalar:
        """Reads position `at` of the state followed by the input."""
        earlier = None if past is None else nest.read_inside(past, [b, c, at])
        return nest.read_inside(x, [b, c, at - before], otherwise=earlier)

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        return element(nest, i[0], i[1], i[2] + r[0] * dilation) * nest.read(w, [i[1], ZERO, r[0]])

    made = add_channels(ctx, ctx.generate(dims, point, over=[taps], combiner="add"), bias)
    if str(ctx.attr("activation", "none")) != "none":
        made = ctx.map(lambda v: v * sigmoid(v), made, element=element_of(made.type), part="silu")
    made = ctx.rounded(made)
    if not ctx.wants(1):
        return [made, None]
    length = dims[2]
    state = ctx.generate(
        ctx.out_dims(1), lambda nest, i: element(nest, i[0], i[1], i[2] + length), element=ctx.out_element(1)
    )
    return [made, state]


# -- tables -----------------------------------------------------------------------------------------------------------


def conv_macs(op: OnnxOp) -> Expr:
    """elements of the result × elements of a window in the channels of a group"""
    weight = operand_dims(op, 1)
    return product(dims_of(op.results[0].type)) * product(weight[1:])


def conv_packs(op: OnnxOp) -> dict[int, tuple[int, ...]]:
    """Returns the weight if the channels of the image are its last dim in memory: steps of the window with their
    channels are then the depth, and output channels the columns. Otherwise places are the columns; they are contiguous
    already."""
    rank = len(operand_dims(op, 1))
    in_tiles = tiling_of(op) is not None
    if in_tiles or not has_panels(op) or not moves_channels(op.operands[0].owner):
        return {}
    return {1: (0, *range(2, rank), 1)}


def has_whole_panels(op: OnnxOp) -> bool:
    """True if the columns of each group of a convolution fill panels."""
    group, channels = int(op.attr("group", 1)), operand_dims(op, 1)[0].constant
    return group == 1 or (channels is not None and channels % (group * panel_lanes(f32)) == 0)


def has_panels(op: OnnxOp) -> bool:
    """True if micro-kernels compute a convolution: the columns of each group fill panels, or enough of one panel to pad
    the rest with zeros. Bytes need full panels."""
    if has_whole_panels(op) or has_small_groups(op) or padded_lanes(op) is not None:
        return has_whole_panels(op)
    group, channels = int(op.attr("group", 1)), operand_dims(op, 1)[0].constant
    return op.op_type != "ConvInteger" and channels is not None and channels // group >= SMALLEST_COLUMNS


def has_small_groups(op: OnnxOp) -> bool:
    """True if a vector holds the results of several groups and one load has all their inputs at a place: groups of two,
    four or eight results, with at most as many input channels."""
    group, (channels, depth) = int(op.attr("group", 1)), (d.constant for d in operand_dims(op, 1)[:2])
    if group == 1 or channels is None or depth is None or has_whole_panels(op):
        return False
    return channels // group in SMALL_GROUPS and depth <= channels // group


def padded_lanes(op: OnnxOp) -> int | None:
    """Returns the lanes of a zero-padded group of three, five, six or seven results: four or eight. Only for float
    convolutions with channels last with at most `lanes` input channels per group; None for others."""
    group, (channels, depth) = int(op.attr("group", 1)), (d.constant for d in operand_dims(op, 1)[:2])
    if group == 1 or channels is None or depth is None or op.op_type not in ("Conv", "FusedConv"):
        return None
    size = channels // group
    lanes = next((n for n in SMALL_GROUPS if n >= size > 2), size)
    return lanes if lanes != size and depth <= lanes and moves_channels(op.operands[0].owner) else None


def conv_orders(op: OnnxOp) -> dict[int, tuple[int, ...]]:
    """Returns the weight of a grouped convolution without full panels, if the channels of the image are its last dim in
    memory: the channels are contiguous for each place of the window. A convolution in tiles also reads its weight in
    such an order."""
    rank = len(operand_dims(op, 1))
    if tiling_of(op) is not None:
        return {1: LAST_CHANNELS}
    if has_panels(op) or padded_lanes(op) is not None or not moves_channels(op.operands[0].owner):
        return {}
    return {1: (*range(2, rank), 1, 0)}


def moves_channels(op: object) -> bool:
    """True if a node is a Transpose that moves the last dim to place 1."""
    if not isinstance(op, OnnxOp) or op.op_type != "Transpose":
        return False
    perm = [int(k) for k in op.attr("perm") or range(len(operand_dims(op, 0)))[::-1]]
    return len(perm) > 2 and perm[1] == len(perm) - 1


def conv_slow(op: OnnxOp, estimate: Callable[[Expr], int]) -> str | None:
    """Returns a reason for dequantised factors: ONNX Runtime fuses the convolution into one op on bytes."""
    source = op.operands[0].owner
    if isinstance(source, Operation) and source.name == "onnx.DequantizeLinear":
        return "ONNX Runtime convolves bytes"
    return None


SPECS: list[OpSpec] = [
    OpSpec(
        "Conv",
        infer=infer_conv,
        lower=lambda ctx: [ctx.rounded(convolved(ctx))],
        legal=legal(computed_reason, conv_reason),
        requires=conv_requires,
        packs=conv_packs,
        orders=conv_orders,
        macs=conv_macs,
        flops=twice(conv_macs),
        unprofitable=conv_slow,
        tables=winograd_tables,
        unprofitable_when_small=True,
        kind="contraction",
    ),
    OpSpec(
        "com.microsoft.FusedConv",
        infer=infer_conv,
        lower=_fused_conv,
        legal=legal(computed_reason, _fused_reason),
        requires=conv_requires,
        packs=conv_packs,
        orders=conv_orders,
        macs=conv_macs,
        flops=twice(conv_macs),
        unprofitable=conv_slow,
        tables=winograd_tables,
        unprofitable_when_small=True,
        kind="contraction",
    ),
    *(
        OpSpec(
            name,
            infer=_infer_causal,
            lower=_causal,
            legal=legal(computed_reason, _causal_reason),
            macs=conv_macs,
            flops=twice(conv_macs),
            kind="reduction",
        )
        for name in ("CausalConvWithState", "com.microsoft.CausalConvWithState")
    ),
]
