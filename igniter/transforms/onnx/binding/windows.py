"""Slice, Pad and Col2Im: for every axis, nonnegative values that select its elements."""

from __future__ import annotations

import numpy as np

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.ops.rules import known
from igniter.transforms.onnx.binding.arithmetic import Builder, Ints
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, known_dims, operand

TO_THE_END = ((1 << 31) - 1, (1 << 63) - 1)


def _operand_list(op: OnnxOp, index: int, build: Builder, default: Ints) -> Ints | None:
    """Returns a list operand, constant or not; `default` if it is omitted."""
    value = operand(op, index)
    return default if value is None else build.list(value)


def _per_axis(build: Builder, places: Ints, values: Ints, rank: int, default: Ints) -> Ints:
    """Returns a list for all axes: `values` at `places`, and `default` elsewhere."""
    count = len(places)
    here = places.reshape(1, count).equals(np.arange(rank).reshape(rank, 1))
    found = (here * values.reshape(1, count)).sum(1)
    return here.sum(1).at_most(1).select(found, default)


def _bind_slice(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """Binds the first element, the count, and the step, split into its forward and its backward amount."""
    before = known_dims(operand(op, 0))
    if before is None or not before or all(known(op, k) is not None for k in range(1, 5) if operand(op, k) is not None):
        return None
    build = Builder(rewriter)
    starts, ends = build.list(operand(op, 1)), build.list(operand(op, 2))
    if starts is None or ends is None or not len(starts) or len(starts) != len(ends):
        return None
    count, rank = len(starts), len(before)
    axes = _operand_list(op, 3, build, build.of(np.arange(count)))
    steps = _operand_list(op, 4, build, build.of([1] * count))
    if axes is None or steps is None or len(axes) != count or len(steps) != count:
        return None
    places = build.axes(axes, rank)
    dims = build.shape(op.operands[0])
    # The dim of each given axis.
    here = places.reshape(count, 1).equals(np.arange(rank).reshape(1, rank))
    dim = (here * dims.reshape(1, rank)).sum(1)
    back = steps.less(0)
    # A step larger than the dim takes one element, whatever its size.
    longest = dim.at_least(1)
    stride = back.select(build.of(0) - steps.at_least(-(1 << 62)), steps).at_most(longest).at_least(1)
    first = starts.less(0).select(starts + dim, starts)
    last = ends.less(0).select(ends + dim, ends)
    all_back = ends.equals(TO_THE_END[0]) + ends.equals(TO_THE_END[1])
    forward_first, forward_last = first.at_least(0).at_most(dim), last.at_least(0).at_most(dim)
    back_first = first.at_least(0).at_most(dim - 1)
    back_last = all_back.select(-1, last.at_least(-1).at_most(dim - 1))
    distance = back.select(back_first - back_last, forward_last - forward_first).at_least(0)
    taken = (distance + (stride - 1)).quotient(stride)
    first = back.select(back_first.at_least(0), forward_first)
    # Invalid axes, repeated axes, and a step of 0.
    mask = build.mask(places, rank)
    wrong = places.less(0).sum(0) + build.of([1]).less(mask).sum(0) + steps.equals(0).sum(0)
    zeros = build.of([0] * rank)
    sizes = _per_axis(build, places, taken, rank, dims)
    values = build.concat(
        _per_axis(build, places, first, rank, zeros),
        wrong.at_most(1).reshape(1).select(-1, sizes),
        _per_axis(build, places, back.select(0, stride), rank, build.of([1] * rank)),
        _per_axis(build, places, back.select(stride, 0), rank, zeros),
    )
    carrier = build.carrier(values, "its axes are out of range, or not distinct, or a step is 0")
    return build.bound(op, list(op.inputs), carrier).results


def _bind_pad(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """Binds for each side of every axis the number of added and of removed elements."""
    before = known_dims(operand(op, 0))
    if before is None or not before or all(known(op, k) is not None for k in (1, 3) if operand(op, k) is not None):
        return None
    build = Builder(rewriter)
    rank = len(before)
    pads = build.list(operand(op, 1))
    if pads is None or len(pads) % 2:
        return None
    count = len(pads) // 2
    axes = _operand_list(op, 3, build, build.of(np.arange(count)))
    if axes is None or len(axes) != count or not count:
        return None
    places = build.axes(axes, rank)
    zeros = build.of([0] * rank)
    low = _per_axis(build, places, pads[:count], rank, zeros)
    high = _per_axis(build, places, pads[count:], rank, zeros)
    wrong = places.less(0).sum(0) + build.of([1]).less(build.mask(places, rank)).sum(0)
    sides = [low.at_least(0), (zeros - low).at_least(0), high.at_least(0), (zeros - high).at_least(0)]
    values = build.concat(wrong.at_most(1).reshape(1).select(-1, sides[0]), *sides[1:])
    carrier = build.carrier(values, "its axes are out of range, or not distinct")
    return build.bound(op, list(op.inputs), carrier).results


def _bind_col2im(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """Binds the channels of whole blocks, the image and the blocks."""
    before = known_dims(operand(op, 0))
    if before is None or len(before) != 3 or (known(op, 1) is not None and known(op, 2) is not None):
        return None
    build = Builder(rewriter)
    image, block = build.list(operand(op, 1)), build.list(operand(op, 2))
    if image is None or block is None or len(image) != len(block) or not len(image):
        return None
    count, x = len(image), op.operands[0]
    channels = build.shape(x)[1:2].quotient(block.product(0).reshape(1).at_least(1))
    carrier = build.carrier(build.concat(channels, image, block), "its image_shape or block_shape has a negative size")
    operands = [x, build.read(carrier, 1, count), build.read(carrier, 1 + count, count)]
    return build.bound(op, operands, carrier).results


RULES: Rules = {"Col2Im": [_bind_col2im], "Pad": [_bind_pad], "Slice": [_bind_slice]}
