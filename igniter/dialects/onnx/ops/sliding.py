"""Sliding windows over spatial axes: shared by convolutions, pools and their transposes.

Sizes are ONNX Runtime's. Its pools divide towards zero, so that a window slightly larger than its input still gives one
result; its convolutions reject that.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from igniter.dialects.onnx.ops.rules import tidy
from igniter.dialects.onnx.registry import Dims
from igniter.dialects.sym.expr import ONE, ZERO, Expr, floordiv, maximum, minimum
from igniter.dialects.sym.ranges import is_nonneg

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

SAME = ("SAME_UPPER", "SAME_LOWER")

LARGE = 32
"""The largest window over an input of unknown size that is visited whole, with its elements in the padding."""


@dataclass(frozen=True)
class Slide:
    """The windows along one axis of `size`: `kernel` elements, `dilation` apart."""

    size: Expr
    kernel: Expr
    stride: int
    dilation: int
    low: Expr
    """The elements of padding before the first; `high` after the last. Negative values crop."""
    high: Expr
    count: Expr
    """The number of windows."""

    @property
    def reach(self) -> Expr:
        """The distance from the first element of a window to the end of its last."""
        return (self.kernel - 1) * self.dilation + 1

    def at(self, window: Expr, tap: Expr) -> Expr:
        """Returns the position in the input of one element of a window; out of bounds in the padding."""
        return window * self.stride + tap * self.dilation - self.low

    @property
    def is_larger(self) -> bool:
        """True if a window may have many more elements than the input: its elements in the padding are not visited."""
        if self.size.constant is not None:
            return is_nonneg(self.kernel - self._most - 1)
        return self.kernel.constant is not None and self.kernel.constant > LARGE

    @property
    def _most(self) -> Expr:
        """The largest number of elements of a window inside the input, for windows of any length."""
        return self.size.ceildiv(self.dilation)

    @property
    def visited(self) -> Expr:
        """The number of elements of a window to visit: `kernel`, or the part that can be inside the input."""
        return tidy(minimum(self.kernel, self._most)) if self.is_larger else self.kernel

    def visit(self, window: Expr, k: Expr) -> tuple[Expr, list[Expr]]:
        """Returns the position in the input of the `k`-th visited element of a window, and conditions (nonnegative
        expressions) under which the window has the element."""
        if not self.is_larger:
            return self.at(window, k), []
        if self.dilation == 1 and self.size.constant is not None and self.low != ZERO:
            # Every window visits the whole input.
            tap = k + self.low - window * self.stride
            return k, [tap, self.kernel - 1 - tap]
        first = (
            tidy(maximum((self.low - window * self.stride).ceildiv(self.dilation), ZERO)) if self.low != ZERO else ZERO
        )
        tap = first + k
        return self.at(window, tap), [] if first == ZERO else [self.kernel - 1 - tap]

    def inside(self, window: Expr, padded: bool = False) -> Expr:
        """Returns the number of elements of a window inside the input, or inside the input and its padding."""
        start, d = window * self.stride - self.low, Expr.of(self.dilation)
        fits = self.count == tidy(floordiv(self.size + self.low + self.high - self.reach, Expr.of(self.stride)) + 1)
        if fits and (padded or self.low == self.high == ZERO):
            return self.kernel
        end = self.size + (self.high if padded else ZERO)
        last = minimum(floordiv(end - 1 - start, d), self.kernel - 1)
        first = ZERO if padded else floordiv(maximum(-start, ZERO) + self.dilation - 1, d)
        return last - first + 1


def spatial_ints(op: OnnxOp, name: str, rank: int, default: int) -> list[int]:
    """Returns an attribute with one integer per spatial axis."""
    return [int(v) for v in op.attr(name) or [default] * rank]


def conv_slides(op: OnnxOp, sizes: Dims, kernel: Sequence[Expr]) -> list[Slide]:
    """Returns the windows of a convolution over spatial dims `sizes`. `SAME` padding gives
    ceil(size / stride) windows."""
    rank = len(sizes)
    found: list[Slide] = []
    for k, (low, high) in enumerate(_given_pads(op, rank)):
        stride, dilation = spatial_ints(op, "strides", rank, 1)[k], spatial_ints(op, "dilations", rank, 1)[k]
        reach = (kernel[k] - 1) * dilation + 1
        if auto_pad(op) in SAME:
            low, high = _same_pads(op, sizes[k], stride, reach)
            count = sizes[k].ceildiv(stride)
        else:
            count = floordiv(sizes[k] + low + high - reach, Expr.of(stride)) + 1
        found.append(Slide(sizes[k], kernel[k], stride, dilation, low, high, tidy(count)))
    return found


def pool_slides(op: OnnxOp, sizes: Dims) -> list[Slide]:
    """Returns the windows of a pool. `SAME` padding ignores the dilation, as in ONNX Runtime."""
    rank = len(sizes)
    found: list[Slide] = []
    for k, (low, high) in enumerate(_given_pads(op, rank)):
        kernel = Expr.of(spatial_ints(op, "kernel_shape", rank, 1)[k])
        stride, dilation = spatial_ints(op, "strides", rank, 1)[k], spatial_ints(op, "dilations", rank, 1)[k]
        if auto_pad(op) in SAME:
            low, high = _same_pads(op, sizes[k], stride, kernel)
        slide = Slide(sizes[k], kernel, stride, dilation, low, high, ZERO)
        count = _pool_count(slide, bool(op.attr("ceil_mode", 0)))
        found.append(Slide(sizes[k], kernel, stride, dilation, low, high, tidy(count)))
    return found


def _pool_count(slide: Slide, ceil: bool) -> Expr:
    added = slide.low + slide.high
    free, stride = slide.size + added - slide.reach, Expr.of(slide.stride)
    up = free.ceildiv(stride) + 1
    if ceil:
        # The last window must begin inside the input or its left padding.
        begun = floordiv(slide.size + slide.low - 1, stride) + 1
        plain = slide.stride == 1 or (added == ZERO and is_nonneg(slide.reach - slide.stride))
        return up if plain else minimum(up, begun)
    down = floordiv(free, stride) + 1
    if slide.stride == 1 or is_nonneg(free):
        return down
    # Only an empty batch may have a dim of 0: ONNX Runtime rejects others.
    if is_nonneg(free - 1 + stride) or is_nonneg(added - slide.reach - 1 + stride):
        return maximum(down, ONE)
    if added - slide.reach + stride == ZERO:
        return maximum(down, minimum(slide.size, ONE))
    return maximum(down, minimum(up, ONE))


def auto_pad(op: OnnxOp) -> str:
    """Returns `NOTSET`, `VALID`, `SAME_UPPER` or `SAME_LOWER`."""
    return str(op.attr("auto_pad", "NOTSET"))


def _given_pads(op: OnnxOp, rank: int) -> list[tuple[Expr, Expr]]:
    pads = spatial_ints(op, "pads", 2 * rank, 0) if auto_pad(op) == "NOTSET" else [0] * (2 * rank)
    return [(Expr.of(pads[k]), Expr.of(pads[k + rank])) for k in range(rank)]


def _same_pads(op: OnnxOp, size: Expr, stride: int, reach: Expr) -> tuple[Expr, Expr]:
    needed = tidy(maximum((size.ceildiv(stride) - 1) * stride + reach - size, ZERO))
    low = tidy(floordiv(needed + (1 if auto_pad(op) == "SAME_LOWER" else 0), Expr.of(2)))
    return low, needed - low
