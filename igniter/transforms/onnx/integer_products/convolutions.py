"""Turns convolutions of dequantised tensors into integer convolutions, and these into the form of kernels.

    %a = onnx.DequantizeLinear(%q, %sa, %za)          %0 = onnx.ConvInteger(%q, %w, %za, %zw)
    %b = onnx.DequantizeLinear(%w, %sb, %zw)    ->    %1 = onnx.Add(%0, %i)
    %c = onnx.DequantizeLinear(%i, %sa * %sb)         %2 = onnx.Cast(%1) : f32
    %y = onnx.Conv(%a, %b, %c)                        %y = onnx.Mul(%2, %sa * %sb)

A bias in steps of both scales is added to the integers, as in ONNX Runtime; any other bias to the scaled result.
`settle` rewrites the ConvInteger, or one of the model: its weight becomes i8, without zero points if all numbers fit,
and its channels fill whole groups of the channels multiplied together.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import f32, i8, i32
from xdsl.ir import SSAValue

from igniter.dialects.loop.panels import SMALLEST_COLUMNS, panel_lanes
from igniter.dialects.onnx.base import OnnxOp, constant_value, constant_weight, imported_opset, make_constant
from igniter.dialects.onnx.ops.pointwise import ui8
from igniter.dialects.onnx.registry import Dims
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import ONE
from igniter.transforms.onnx.hoist_zero_points import BYTES, MIDDLE, name_of, remembered
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, defining, element, known_dims, operand

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

FLOAT = 1
"""The number of f32 in ONNX."""

PAD_OPSET = 11
"""The first opset with a Pad of integers."""

MOST_IN_GROUP = 8
"""The largest number of channels in a group whose results fill no panels. Such groups are no contraction: with 4 or 8
channels each they take 1.0 to 1.1 of ONNX Runtime's time. Groups that fill panels take 0.55 of it with 32 channels,
whereas a nest takes twice the time."""

CLOSE = 1e-6
"""The relative tolerance between the scale of a bias and the expected product of scales, in f32."""


# -- forming ----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Kernel:
    """A dequantised weight of a convolution: its bytes, its scales in a row (one, or one per channel), its zero
    point."""

    value: SSAValue
    weight: Weight
    scale: Array
    zero: SSAValue | None


def kernel_of(value: SSAValue) -> Kernel | None:
    """Returns the weight of an integer convolution, or None."""
    source = defining(value, "DequantizeLinear")
    weight = constant_weight(source.operands[0]) if source is not None else None
    if source is None or weight is None or len(weight.shape) < 3 or weight.element_type not in (i8, ui8):
        return None
    scale, zero = constant_value(source.operands[1]), operand(source, 2)
    if scale is None or scale.dtype.name != "float32" or source.attr("block_size", 0):
        return None
    if zero is not None and constant_value(zero) is None:
        return None
    if scale.size != 1 and (int(source.attr("axis", 1)) % len(weight.shape) != 0 or scale.ndim != 1):
        return None
    return Kernel(source.operands[0], weight, scale.reshape(-1), zero)


def form_convolution(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites a convolution of dequantised factors."""
    image, kernel = defining(op.operands[0], "DequantizeLinear"), kernel_of(op.operands[1])
    result = known_dims(op.results[0])
    if image is None or kernel is None or result is None or element(op.results[0]) != f32:
        return None
    step, zero = constant_value(image.operands[1]), operand(image, 2)
    lines = known_dims(zero) if zero is not None else ()
    if element(image.operands[0]) not in (i8, ui8) or image.attr("block_size", 0) or not has_kernel(op, kernel.weight):
        return None
    if step is None or step.dtype.name != "float32" or step.size != 1 or lines is None or any(d != ONE for d in lines):
        return None
    scale = (kernel.scale * step.reshape(())).astype("float32")
    bias = bias_of(operand(op, 2), scale)
    if bias is None:
        return None
    attrs = {k: op.attr(k) for k in op.attributes if not k.startswith("igniter.")}
    inputs = [image.operands[0], kernel.value, zero, kernel.zero]
    sums = rw.op("ConvInteger", inputs, [tensor_of(i32, result)], attrs).results[0]
    if bias.dtype.kind == "i" and bias.any():
        sums = rw.op("Add", [sums, a_channel(bias, result, rw)], [tensor_of(i32, result)]).results[0]
    wide = rw.op("Cast", [sums], [tensor_of(f32, result)], {"to": FLOAT}).results[0]
    made = rw.op("Mul", [wide, a_channel(scale, result, rw)], [op.results[0].type])
    if bias.dtype.kind == "f":
        made = rw.op("Add", [made.results[0], a_channel(bias, result, rw)], [op.results[0].type])
    return made.results


def has_kernel(op: OnnxOp, weight: Weight) -> bool:
    """True if a convolution has micro-kernels, in groups or not, or is in groups of few channels."""
    group, channels = int(op.attr("group", 1)), weight.shape[0]
    if group == 1:
        return channels >= SMALLEST_COLUMNS and weight.size > 0
    depth, size = weight.shape[1], channels // group
    return weight.size > 0 and (depth <= MOST_IN_GROUP or (depth % BYTES == 0 and size % panel_lanes(i32) == 0))


def settle_fast(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites an integer convolution whose kernel is faster than ONNX Runtime's even without products of bytes."""
    weight = constant_weight(op.operands[1])
    return settle(op, rw) if weight is not None and is_fast(op, weight) else None


def is_fast(op: OnnxOp, weight: Weight) -> bool:
    """True if kernels that multiply words are faster than ONNX Runtime. It adds products of u8 and u8 in vectors, and
    takes six times as long for those of u8 and i8 (3 x 3 of 32 channels on 28 x 28, one thread of a Zen 3).

    For u8 the kernels take 0.8 of its time with windows and whole panels of columns, 0.6 as dot products and in groups
    of few channels, but 1.2 with single pixels, 1.2 to 1.6 with fewer than four channels, 3 with a part of a panel."""
    if weight.element_type == i8:
        return True
    if int(op.attr("group", 1)) != 1:
        return has_kernel(op, weight)
    channels, depth, *window = weight.shape
    panels = channels >= panel_lanes(i32) and depth >= BYTES
    return math.prod(window) > 1 and (panels or channels < SMALLEST_COLUMNS)


def bias_of(value: SSAValue | None, scale: Array) -> Array | None:
    """Returns the bias of each channel: i32 in steps of `scale`, or f32; zeros without a bias, None if it is
    computed."""
    if value is None:
        return np.zeros(1, np.int32)
    plain = constant_value(value)
    if plain is not None:
        return plain.reshape(-1) if plain.dtype == np.float32 else None
    source = defining(value, "DequantizeLinear")
    numbers = constant_value(source.operands[0]) if source is not None else None
    own = constant_value(source.operands[1]) if source is not None else None
    if source is None or numbers is None or own is None or numbers.dtype != np.int32 or source.attr("block_size", 0):
        return None
    zero = constant_value(operand(source, 2)) if operand(source, 2) is not None else np.zeros(1, np.int32)
    if zero is None or zero.any():
        return None
    if np.allclose(own.reshape(-1), scale, rtol=CLOSE, atol=0):
        return numbers.reshape(-1)
    return (numbers.reshape(-1).astype(np.float32) * own.reshape(-1)).astype(np.float32)


def a_channel(values: Array, dims: Dims, rw: Rewriter) -> SSAValue:
    """Returns a constant with one number for each channel of an image, or one for all."""
    return rw.constant(values.reshape((-1, *(1 for _ in dims[2:]))) if values.size > 1 else values.reshape(()))


# -- the form of kernels ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Settled:
    """The values of a weight minus a number for each of its channels, as i8, padded with channels of zeros."""

    source: Weight
    less: tuple[int, ...]
    channels: int

    def compute(self) -> Array:
        plain = self.source.array().astype(np.int16)
        less = np.array(self.less, np.int16).reshape(-1, *(1 for _ in plain.shape[1:]))
        wide = [(0, 0), (0, self.channels - plain.shape[1]), *((0, 0) for _ in plain.shape[2:])]
        return np.pad((plain - less).astype(np.int8), wide)


def settle(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Rewrites an integer convolution to the form of kernels."""
    weight, given = constant_weight(op.operands[1]), operand(op, 3)
    numbers = np.zeros(1, np.uint8) if given is None else constant_value(given)
    dims = known_dims(op.operands[0])
    if weight is None or numbers is None or dims is None or not weight.size or weight.elided:
        return None
    zero = numbers.astype(np.int16).reshape(-1)
    less, rest = moved(weight, zero)
    channels = whole_groups(op, weight)
    missing = channels - weight.shape[1]
    if not less.any() and weight.element_type == i8 and not missing and (given is None or rest.any()):
        return None
    settled = Settled(weight, tuple(int(n) for n in less), channels)
    shape = (weight.shape[0], channels, *weight.shape[2:])
    made = make_constant(Weight(shape, i8, derivation=settled), f"{name_of(op)}.settled")
    rw.insert(made)
    image = op.operands[0] if not missing else with_channels(op.operands[0], operand(op, 2), dims, missing, rw)
    left = rw.constant(rest.astype(np.int8).reshape(numbers.shape)) if rest.any() else None
    attrs = {k: op.attr(k) for k in op.attributes if not k.startswith("igniter.")}
    return rw.op("ConvInteger", [image, made.results[0], operand(op, 2), left], [op.results[0].type], attrs).results


def moved(weight: Weight, zero: Array) -> tuple[Array, Array]:
    """Returns the offset to subtract from a weight so that it fits i8, per channel or for all, and the remaining zero
    points: zeros if the numbers fit without them."""
    limits = np.iinfo(np.int8)
    above = weight.array().astype(np.int16) - zero.reshape(-1, *(1 for _ in weight.shape[1:]))
    if above.min() >= limits.min and above.max() <= limits.max:
        return zero, np.zeros_like(zero)
    shift = np.full_like(zero, 0 if weight.element_type == i8 else MIDDLE)
    return shift, zero - shift


def whole_groups(op: OnnxOp, weight: Weight) -> int:
    """Returns the channels of a weight, rounded up to whole groups if groups are multiplied together."""
    channels = weight.shape[1]
    whole = -(-channels // BYTES) * BYTES
    return whole if int(op.attr("group", 1)) == 1 and (imported_opset(op, "") or 0) >= PAD_OPSET else channels


def with_channels(image: SSAValue, zero: SSAValue | None, dims: Dims, more: int, rw: Rewriter) -> SSAValue:
    """Returns an image with added channels at its zero point, shared by all convolutions that need it."""
    key = ("channels", image, zero, more)
    kept = remembered(key, rw)
    if kept is not None:
        return kept
    pads = np.zeros((2, len(dims)), np.int64)
    pads[1, 1] = more
    target = tensor_of(element(image) or ui8, (dims[0], dims[1] + more, *dims[2:]))
    made = rw.op("Pad", [image, rw.constant(pads.reshape(-1)), zero], [target]).results[0]
    rw.memo[key] = made
    return made
