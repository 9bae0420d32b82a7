"""ConvInteger: convolutions of bytes, with groups, strides, dilations and padding, whose sums are i32.

    sum (x - zx) * (w - zw)  =  sum x * w  -  zx * (sum w - depth * zw)  -  zw * sum x

With a constant weight, the nest sums the products of raw bytes: a contraction of bytes, for which micro-kernels exist.
The zero points are corrected afterwards. `zx * (..)` is one number per channel, in a table computed when the model is
written. A zero point of the weight (rare after `form-integer-products`) additionally needs the sums of the windows. The
padding holds the zero point of the image.

With other weights, each factor inside the sum subtracts its zero point.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from igniter.dialects.onnx.lowering import Lowering, Nest, Scalar
from igniter.dialects.onnx.ops.convolution import (
    conv_macs,
    conv_orders,
    conv_packs,
    conv_requires,
    infer_conv,
    slides_of,
    window_reason,
    window_sums,
)
from igniter.dialects.onnx.ops.counts import twice
from igniter.dialects.onnx.ops.rules import legal, operand, operand_dims, weight_operand
from igniter.dialects.onnx.registry import InferContext, OpSpec, TensorInfo
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym.expr import ONE, ZERO, Expr, product

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

    Array = np.ndarray[Any, Any]

IMAGE_ZERO, WEIGHT_ZERO = 2, 3
"""The operands of zero points."""

COLUMNS = "columns"
"""The table of the corrections of each channel's sums, per unit of the image's zero point; premultiplied if that is
constant."""


def _infer(ctx: InferContext) -> list[TensorInfo]:
    return [TensorInfo(i32, info.dims) for info in infer_conv(ctx)]


def _reason(op: OnnxOp) -> str | None:
    channels = operand_dims(op, 1)[:1]
    for index, several in ((IMAGE_ZERO, ()), (WEIGHT_ZERO, channels)):
        given = () if operand(op, index) is None else operand_dims(op, index)
        if product(given) != ONE and given != several:
            return "it does not have a single zero point, or one for each channel of its weight"
    return window_reason(op)


def _slow(op: OnnxOp, estimate: Callable[[Expr], int]) -> str | None:
    return None if weight_operand(op, 1) is not None else "ONNX Runtime packs a computed weight"


# -- the table --------------------------------------------------------------------------------------------------------


def zero_point(op: OnnxOp, index: int) -> Array | None:
    """Returns the zero points of an operand, as a vector; None if they are computed."""
    if operand(op, index) is None:
        return np.zeros(1, np.int64)
    found = weight_operand(op, index)
    return None if found is None else found.array().astype(np.int64).reshape(-1)


@dataclass(frozen=True)
class Columns:
    """For each channel, the sum of a weight less its zero point, times a number."""

    weight: Weight
    zero: tuple[int, ...]
    times: int

    def compute(self) -> Array:
        rows = self.weight.array().reshape(self.weight.shape[0], -1)
        sums = rows.sum(axis=1, dtype=np.int64) - rows.shape[1] * np.array(self.zero, np.int64)
        return (sums * self.times).astype(np.int32)


def _tables(op: OnnxOp) -> Mapping[str, Weight]:
    weight, image, zero = weight_operand(op, 1), zero_point(op, IMAGE_ZERO), zero_point(op, WEIGHT_ZERO)
    if weight is None or zero is None or (image is not None and not image.any() and not zero.any()):
        return {}
    times = 1 if image is None else int(image[0])
    numbers = tuple(int(z) for z in zero)
    return {COLUMNS: Weight(weight.shape[:1], i32, derivation=Columns(weight, numbers, times))}


# -- nests ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Zeros:
    """The zero points of a node during its lowering."""

    ctx: Lowering

    def read(self, nest: Nest, index: int, channel: Expr = ZERO) -> Scalar | None:
        """Reads the zero point of the image, or of a channel of the weight; None if it is absent or 0."""
        given, known = self.ctx.input(index), zero_point(self.ctx.op, index)
        if given is None or (known is not None and not known.any()):
            return None
        return nest.read(given, [ZERO if d == ONE else channel for d in self.ctx.dims(index)])

    def image(self, nest: Nest) -> Scalar | None:
        return self.read(nest, IMAGE_ZERO)

    def weight(self, nest: Nest, channel: Expr) -> Scalar | None:
        return self.read(nest, WEIGHT_ZERO, channel)


def _convolve(ctx: Lowering) -> list[SSAValue]:
    zeros = _Zeros(ctx)
    if ctx.has_table(COLUMNS):
        return [_corrected(ctx, zeros, _products(ctx, zeros))]
    known = [zero_point(ctx.op, index) for index in (IMAGE_ZERO, WEIGHT_ZERO)]
    if all(zero is not None and not zero.any() for zero in known):
        return [_products(ctx, zeros)]
    return [_differences(ctx, zeros)]


def _products(ctx: Lowering, zeros: _Zeros) -> SSAValue:
    """Returns the sums of products of raw bytes."""
    x, w = ctx.required(0), ctx.required(1)

    def factor(nest: Nest, tap: list[Expr], place: list[Expr]) -> Scalar:
        value = nest.read_inside(x, place, otherwise=zeros.image(nest))
        return value.to(i32) * nest.read(w, tap).to(i32)

    return window_sums(ctx, factor, i32)


def _differences(ctx: Lowering, zeros: _Zeros) -> SSAValue:
    """Returns the sums of products of bytes less their zero points."""
    x, w = ctx.required(0), ctx.required(1)

    def factor(nest: Nest, tap: list[Expr], place: list[Expr]) -> Scalar:
        before, other = zeros.image(nest), zeros.weight(nest, tap[0])
        value = nest.read_inside(x, place, otherwise=before).to(i32)
        weight = nest.read(w, tap).to(i32)
        value = value if before is None else value - before.to(i32)
        return value * (weight if other is None else weight - other.to(i32))

    return window_sums(ctx, factor, i32)


def _corrected(ctx: Lowering, zeros: _Zeros, sums: SSAValue) -> SSAValue:
    """Returns the sums of products, corrected for the zero points."""
    table, constant = ctx.table(COLUMNS), zero_point(ctx.op, IMAGE_ZERO)
    of_weight = zero_point(ctx.op, WEIGHT_ZERO)
    windows = None if of_weight is not None and not of_weight.any() else _windows(ctx, zeros)
    group = int(ctx.attr("group", 1))
    size = ctx.dims(1)[0] // group

    def point(nest: Nest, at: Sequence[Expr]) -> Scalar:
        b, channel, *places = at
        columns = nest.read(table, [channel])
        image = None if constant is not None else zeros.image(nest)
        value = nest.read(sums, at) - (columns if image is None else image.to(i32) * columns)
        other = zeros.weight(nest, channel)
        if windows is None or other is None:
            return value
        return value - other.to(i32) * nest.read(windows, [b, ZERO if group == 1 else channel // size, *places])

    return ctx.generate(ctx.out_dims(), point, element=i32, part="zeros")


def _windows(ctx: Lowering, zeros: _Zeros) -> SSAValue:
    """Returns the sums of the image over each window, for each group: first over the channels, then over the places."""
    x, slides, group = ctx.required(0), slides_of(ctx.op), int(ctx.attr("group", 1))
    (batch, _, *space), (_, depth, *taps), out = ctx.dims(0), ctx.dims(1), ctx.out_dims()

    def across(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        b, g, *at = i
        return nest.read(x, [b, g * depth + r[0], *at]).to(i32)

    channels = ctx.generate([batch, group, *space], across, over=[depth], combiner="add", element=i32, part="channels")

    def around(nest: Nest, i: Sequence[Expr], r: Sequence[Expr]) -> Scalar:
        b, g, *at = i
        zero = zeros.image(nest)
        outside = None if zero is None else zero.to(i32) * nest.const(depth.constant or 0, i32)
        places = [s.at(p, k) for s, p, k in zip(slides, at, r, strict=True)]
        return nest.read_inside(channels, [b, g, *places], otherwise=outside)

    return ctx.generate([batch, group, *out[2:]], around, over=taps, combiner="add", element=i32, part="windows")


SPECS: list[OpSpec] = [
    OpSpec(
        "ConvInteger",
        infer=_infer,
        lower=_convolve,
        legal=legal(_reason),
        requires=conv_requires,
        packs=conv_packs,
        orders=conv_orders,
        macs=conv_macs,
        flops=twice(conv_macs),
        unprofitable=_slow,
        unprofitable_when_small=True,
        tables=_tables,
        kind="contraction",
    ),
]
