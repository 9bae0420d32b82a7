"""Transposed convolutions: ConvTranspose, and Col2Im, a sum of overlapping windows.

An element of a window contributes to a place of the result if their distance is a multiple of the stride. With stride
`s`, places are divided into `s` phases: all places of a phase use the same elements of the window, and neighbours in a
phase use neighbours in the input. A nest over phases and places therefore needs no test, and reads contiguous rows of
the input.

`form-subpixel-convolutions` replaces a ConvTranspose with a constant weight by convolutions, so it does not reach this
lowering.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from xdsl.dialects.builtin import i1
from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import constant_weight
from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.convolution import SLOW, add_channels, kernel_dims
from igniter.dialects.onnx.ops.counts import counted, twice
from igniter.dialects.onnx.ops.pointwise import computed_reason
from igniter.dialects.onnx.ops.rules import (
    constants,
    element_type,
    infos,
    input_dims,
    known,
    legal,
    operand_dims,
    tidy,
    unknown_rank,
)
from igniter.dialects.onnx.ops.sliding import SAME, auto_pad, spatial_ints
from igniter.dialects.onnx.registry import Dims, InferContext, OpSpec, TensorInfo
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ZERO, Expr, floordiv, maximum, minimum, mod, product
from igniter.dialects.sym.requirements import Requirement, at_most

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

# -- ConvTranspose ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spread:
    """The spread of elements over one axis: element `i` contributes to `i*stride + tap*dilation -
    low` for every tap."""

    size: Expr
    kernel: Expr
    stride: int
    dilation: int
    low: Expr
    count: Expr
    """The size of the result."""

    @property
    def phases(self) -> int:
        """The number of phases in the nest."""
        return self.stride if self.dilation == 1 else 1

    @property
    def taps(self) -> Expr:
        """The number of window elements for one place."""
        return self.kernel.ceildiv(self.phases)

    def source(self, place: Expr, phase: Expr, tap: Expr) -> tuple[Expr, Expr, list[Expr]]:
        """Returns, for place `place*phases + phase`: the elements of the input and of the window, and the guards (>= 0)
        of both."""
        if self.phases > 1:
            offset = phase + self.low
            element = mod(offset, Expr.of(self.stride)) + tap * self.stride
            whole = tidy(mod(self.kernel, Expr.of(self.stride))) == ZERO
            return (
                place + floordiv(offset, Expr.of(self.stride)) - tap,
                element,
                [] if whole else [self.kernel - 1 - element],
            )
        distance = place + self.low - tap * self.dilation
        if self.stride == 1:
            return distance, tap, []
        return floordiv(distance, Expr.of(self.stride)), tap, [-mod(distance, Expr.of(self.stride))]


def spreads(op: OnnxOp, sizes: Dims, kernel: Dims) -> list[Spread]:
    """Returns the axes of a ConvTranspose, with ONNX Runtime's sizes: a SAME result is no larger than the reach of the
    windows."""
    rank = len(sizes)
    strides, dilations = spatial_ints(op, "strides", rank, 1), spatial_ints(op, "dilations", rank, 1)
    given, added = op.attr("output_shape"), spatial_ints(op, "output_padding", rank, 0)
    pads = spatial_ints(op, "pads", 2 * rank, 0) if auto_pad(op) == "NOTSET" else [0] * (2 * rank)
    found: list[Spread] = []
    for k, (size, taps) in enumerate(zip(sizes, kernel, strict=True)):
        full = (size - 1) * strides[k] + (taps - 1) * dilations[k] + 1 + added[k]
        low, count = Expr.of(pads[k]), full - pads[k] - pads[k + rank]
        if given or auto_pad(op) in SAME:
            count = Expr.of(int(given[k])) if given else minimum(size * strides[k], full)
            cut = tidy(maximum(full - count, ZERO))
            half = floordiv(cut, Expr.of(2))
            low = half if auto_pad(op) == "SAME_UPPER" else cut - half
        found.append(Spread(size, taps, strides[k], dilations[k], tidy(low), tidy(count)))
    return found


def _infer_transposed(ctx: InferContext) -> list[TensorInfo]:
    data, weight = input_dims(ctx, 0), input_dims(ctx, 1)
    if data is None or weight is None:
        return unknown_rank(ctx)
    ctx.equate(data[1], weight[0])
    kernel = kernel_dims(ctx.op, weight)
    for given, dim in zip(kernel, weight[2:], strict=True):
        ctx.equate(given, dim)
    counts = [s.count for s in spreads(ctx.op, data[2:], kernel)]
    return infos(element_type(ctx), (data[0], weight[1] * int(ctx.op.attr("group", 1)), *counts))


def _transposed_reason(op: OnnxOp) -> str | None:
    data, weight = operand_dims(op, 0), operand_dims(op, 1)
    group = int(op.attr("group", 1))
    if len(data) < 3 or len(weight) != len(data):
        return f"its input and weight have rank {len(data)} and {len(weight)}"
    if kernel_dims(op, weight) != weight[2:]:
        return "its kernel_shape is not known to match its weight"
    if data[1] != weight[0] or (group != 1 and (weight[0].constant is None or weight[0].constant % group)):
        return "its groups are not known to divide the channels"
    channels = weight[1] * group
    bias = op.inputs[2] if len(op.inputs) > 2 else None
    if bias is not None and dims_of(bias.type) != (channels,):
        return f"its bias has dims {', '.join(map(str, dims_of(bias.type)))}, not {channels}"
    return None


def _finite_reason(op: OnnxOp) -> str | None:
    weight = constant_weight(op.operands[1])
    if weight is None or weight.elided or bool(np.isfinite(weight.array()).all()):
        return None
    return "its weight is not finite"


def _conv_transpose(ctx: Lowering) -> list[SSAValue]:
    x, w = ctx.required(0), ctx.required(1)
    data, weight, group, out = ctx.dims(0), ctx.dims(1), int(ctx.attr("group", 1)), ctx.out_dims()
    axes, depth, rank = spreads(ctx.op, data[2:], weight[2:]), weight[0] // group, len(data) - 2
    finite = ctx.is_weight(1)

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        b, g, o, *at = i
        channel = g * depth + r[0]
        sources = [a.source(p, f, t) for a, f, p, t in zip(axes, at[:rank], at[rank:], r[1:], strict=True)]
        guards = [guard for _, _, found in sources for guard in found]
        # Both reads are guarded: missing elements must not be multiplied by an infinity; weights contain none
        # (`_finite_reason`).
        ends = [] if finite else [e for a, s in zip(axes, sources, strict=True) for e in (s[0], a.size - 1 - s[0])]
        element = nest.read_inside(w, [channel, o, *(s[1] for s in sources)], guards=[*guards, *ends])
        return element * nest.read_inside(x, [b, channel, *(s[0] for s in sources)], guards=guards)

    phases = [Expr.of(a.phases) for a in axes]
    places = [a.count.ceildiv(a.phases) for a in axes]
    dims = (out[0], Expr.of(group), weight[1], *phases, *places)
    made = ctx.generate(dims, point, over=[depth, *(a.taps for a in axes)], combiner="add", part="phases")
    if all(a.phases == 1 for a in axes):
        return [ctx.rounded(add_channels(ctx, ctx.view(made, out), ctx.input(2)))]
    grouped, bias = ctx.view(made, (out[0], out[1], *phases, *places)), ctx.input(2)

    def gathered(nest: Nest, i: Sequence[Expr]) -> Scalar:
        inner = [mod(p, f) for p, f in zip(i[2:], phases, strict=True)]
        outer = [floordiv(p, f) for p, f in zip(i[2:], phases, strict=True)]
        value = nest.read(grouped, [*i[:2], *inner, *outer])
        return value if bias is None else value + nest.read(bias, [i[1]])

    return [ctx.generate(out, gathered)]


def _transposed_requires(op: OnnxOp) -> list[Requirement]:
    return [at_most(1, d, "its result would be empty") for d in dims_of(op.results[0].type)[2:]]


def transposed_macs(op: OnnxOp) -> Expr:
    """elements of the input × elements of a window in the channels of a group of the result"""
    weight = operand_dims(op, 1)
    return product(operand_dims(op, 0)) * product(weight[1:])


# -- Col2Im -----------------------------------------------------------------------------------------------------------


def col2im_axes(op: OnnxOp, image: Dims, block: Dims) -> list[Spread]:
    """Returns the spread of the blocks over the image, axis by axis."""
    rank = len(image)
    strides, dilations = spatial_ints(op, "strides", rank, 1), spatial_ints(op, "dilations", rank, 1)
    pads = spatial_ints(op, "pads", 2 * rank, 0)
    found: list[Spread] = []
    for k, size in enumerate(image):
        free = size + (pads[k] + pads[k + rank] - dilations[k] * (block[k] - 1) - 1)
        windows = tidy(floordiv(free, Expr.of(strides[k])) + 1)
        found.append(Spread(windows, block[k], strides[k], dilations[k], Expr.of(pads[k]), size))
    return found


def _infer_col2im(ctx: InferContext) -> list[TensorInfo]:
    data, image, block = input_dims(ctx, 0), ctx.values(1), ctx.values(2)
    if data is None or image is None or constants(block) is None:
        return unknown_rank(ctx)
    channels = tidy(floordiv(data[1], product(block or ())))
    return infos(element_type(ctx), (data[0], channels, *image))


def _col2im_reason(op: OnnxOp) -> str | None:
    image, block, data = known(op, 1), known(op, 2), operand_dims(op, 0)
    if image is None or block is None or constants(block) is None:
        return "its image_shape and block_shape are known only at run time"
    if tidy(mod(data[1], product(block))) != ZERO:
        return f"{data[1]} columns are not known to be a whole number of blocks"
    windows = tidy(product(a.size for a in col2im_axes(op, image, block)))
    return None if windows == data[2] else f"its number of blocks ({data[2]}) is not known to be {windows}"


def lower_col2im(ctx: Lowering) -> list[SSAValue]:
    """Sums the columns of every place of the image."""
    image, block, out = ctx.values(1), ctx.values(2), ctx.out_dims()
    if image is None or block is None:
        raise ctx.fail("its image_shape and block_shape are known only at run time")
    axes = col2im_axes(ctx.op, image, block)
    x = ctx.view(ctx.required(0), (*out[:2], *(a.kernel for a in axes), *(a.size for a in axes)))

    def point(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        # The phases of a place come from divisions here: a column is read once, so a nest over phases has no benefit.
        sources: list[Expr] = []
        guards: list[Expr] = []
        for axis, place, tap in zip(axes, i[2:], r, strict=True):
            distance = place + axis.low - tap * axis.dilation
            sources.append(floordiv(distance, Expr.of(axis.stride)))
            guards += [-mod(distance, Expr.of(axis.stride))] if axis.stride > 1 else []
        return nest.read_inside(x, [*i[:2], *r, *sources], guards=guards).widened()

    # A sum of booleans is true if one of them is.
    combiner = "or" if element_of(x.type) == i1 else "add"
    return [ctx.rounded(ctx.generate(out, point, over=[a.kernel for a in axes], combiner=combiner))]


SPECS: list[OpSpec] = [
    OpSpec(
        "Col2Im",
        infer=_infer_col2im,
        lower=lower_col2im,
        legal=legal(computed_reason, _col2im_reason),
        flops=counted("elements of the input", lambda op: product(operand_dims(op, 0))),
        kind="movement",
    ),
    OpSpec(
        "ConvTranspose",
        infer=_infer_transposed,
        lower=_conv_transpose,
        legal=legal(computed_reason, _transposed_reason, _finite_reason),
        requires=_transposed_requires,
        macs=transposed_macs,
        flops=twice(transposed_macs),
        unprofitable=lambda op, estimate: SLOW,
        unprofitable_when_small=True,
        kind="contraction",
    ),
]
