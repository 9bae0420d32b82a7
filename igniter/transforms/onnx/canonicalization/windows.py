"""Rules for windows: elements of a convolution's window that only ever see padding.

    %y = Conv(%x, %w) {pads = [36, 36, 36, 36], dilations = [36, 36]}     // %x is 33 x 33, %w 256 x 256 x 3 x 3
becomes
    %y = Conv(%x, %c) {pads = [0, 0, 0, 0], dilations = [36, 36]}         // %c is the middle of %w, 256 x 256 x 1 x 1
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import OnnxOp, constant_weight, make_constant
from igniter.dialects.onnx.ops.convolution import kernel_dims, window_reason
from igniter.dialects.onnx.ops.rules import operand_dims
from igniter.dialects.onnx.ops.sliding import Slide, conv_slides
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import element_of, tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, defining, known_dims, operand

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

SLICE_OPSET = 10
"""The first opset whose Slice has operands."""


@dataclass(frozen=True)
class Window:
    """A weight without the outermost elements of its window: `first` and `end` per spatial axis."""

    source: Weight
    first: tuple[int, ...]
    end: tuple[int, ...]

    def compute(self) -> Array:
        window = tuple(slice(a, b) for a, b in zip(self.first, self.end, strict=True))
        return np.ascontiguousarray(self.source.array()[(slice(None), slice(None), *window)])


def drop_elements_in_padding(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Drops the elements of a window that only see padding, whose products are 0 times the weight. The padding shrinks
    with the window, so the image is not copied to a larger one."""
    shapes = [known_dims(v) for v in op.operands[:2]]
    if None in shapes or window_reason(op) is not None or defining(op.operands[1], "DequantizeLinear") is not None:
        return None
    weight = operand_dims(op, 1)
    slides = conv_slides(op, operand_dims(op, 0)[2:], kernel_dims(op, weight))
    seen = [_seen(slide) for slide in slides]
    if all(s is None or s == (0, slide.kernel.constant) for s, slide in zip(seen, slides, strict=True)):
        return None
    # Automatic padding of an axis of unknown size cannot be written as numbers.
    if any(p.constant is None for s in slides for p in (s.low, s.high)):
        return None
    whole = [s.kernel.constant or 0 for s in slides]
    kept = [(0, k) if s is None else s for s, k in zip(seen, whole, strict=True)]
    smaller = _cut(op, rw, kept)
    if smaller is None:
        return None
    low = [(s.low.constant or 0) - a * s.dilation for s, (a, _) in zip(slides, kept, strict=True)]
    high = [(s.high.constant or 0) - (k - b) * s.dilation for s, (_, b), k in zip(slides, kept, whole, strict=True)]
    attrs = {k: op.attr(k) for k in op.attributes if k != "auto_pad" and not k.startswith("igniter.")}
    attrs |= {"pads": [*low, *high], "kernel_shape": [b - a for a, b in kept]}
    given = [op.operands[0], smaller, *(operand(op, k) for k in range(2, len(op.operands)))]
    return rw.op(op.qualified_name, given, [op.results[0].type], attrs).results


def _seen(slide: Slide) -> tuple[int, int] | None:
    """Returns the first element of a window that sees the image in some window, and the end of those that do; `None`
    where sizes are unknown, or if no element does. Elements before the first one do not exceed the padding."""
    numbers = [e.constant for e in (slide.size, slide.kernel, slide.low, slide.high, slide.count)]
    if any(n is None for n in numbers):
        return None
    size, kernel, low, high, count = (n or 0 for n in numbers)
    if size < 1 or count < 1 or min(low, high) < 0:
        return None
    places = [
        range(k * slide.dilation - low, k * slide.dilation - low + (count - 1) * slide.stride + 1)
        for k in range(kernel)
    ]
    inside = [k for k, at in enumerate(places) if at[-1] >= 0 and at[0] < size]
    if not inside:
        return None
    return min(inside[0], low // slide.dilation), max(inside[-1] + 1, kernel - high // slide.dilation)


def _cut(op: OnnxOp, rw: Rewriter, kept: list[tuple[int, int]]) -> SSAValue | None:
    """Returns the part of the weight with the `kept` elements of the window; `None` if the opset cannot slice."""
    value, dims = op.operands[1], operand_dims(op, 1)
    first, end = zip(*kept, strict=True)
    weight = constant_weight(value)
    if weight is not None:
        shape = [*weight.shape[:2], *(b - a for a, b in kept)]
        name = next((n for n in op.output_names if n), op.op_type)
        made = make_constant(
            Weight(shape, weight.element_type, derivation=Window(weight, first, end)), f"{name}.window"
        )
        rw.insert(made)
        return made.results[0]
    if op.opset < SLICE_OPSET:
        return None
    window = [Expr.of(b - a) for a, b in kept]
    axes = range(2, len(dims))
    numbers = [rw.constant(np.array(n, np.int64)) for n in (first, end, axes)]
    return rw.op("Slice", [value, *numbers], [tensor_of(element_of(value.type), [*dims[:2], *window])]).results[0]


RULES: Rules = {"Conv": [drop_elements_in_padding], "com.microsoft.FusedConv": [drop_elements_in_padding]}
