"""Ops that give an operand other dims: what these are is computed in front of a carrier."""

from __future__ import annotations

import numpy as np

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.ops.rules import known
from igniter.dialects.sym import dims_of
from igniter.transforms.onnx.binding.arithmetic import Builder, Ints
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, known_dims, operand


def unknown_list(op: OnnxOp, index: int, build: Builder) -> Ints | None:
    """An operand that lists integers, how many of which is known and their values are not."""
    return build.list(operand(op, index)) if known(op, index) is None else None


def _bind_reshape(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """-1 and 0 are resolved in front of the carrier."""
    build = Builder(rewriter)
    before, target = known_dims(operand(op, 0)), unknown_list(op, 1, build)
    if before is None or target is None or not len(target):
        return None
    x = op.operands[0]
    dims = build.shape(x)
    written = target
    if not op.attr("allowzero", 0):
        rank = len(target)
        # A 0 without a dim in its place is refused.
        own = build.concat(dims[:rank], [-2] * max(0, rank - len(before)))
        target = target.equals(0).select(own, target)
    wild = target.equals(-1)
    rest = wild.select(1, target).product(0).reshape(1)
    # Two -1 are refused, and -1 beside a 0 that is a size; a quotient with a rest is none that the elements fit.
    whole = dims.product(0).reshape(1).quotient(rest.at_least(1))
    wrong = build.of(1) - wild.sum(0).reshape(1).less(2)
    if op.attr("allowzero", 0):
        wrong = wrong + written.equals(0).sum(0).reshape(1)
    filled = wrong.at_most(1).select(-1, whole)
    carrier = build.carrier(wild.select(filled, target), "the shape it is to have has a negative size")
    # Whatever is 0 now is a size.
    attrs = {"allowzero": 1} if op.opset >= 14 else {}
    return build.bound(op, [x, build.read(carrier, 0, len(target))], carrier, attrs).results


def _bind_unsqueeze(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """A Reshape to dims that are put together in front of the carrier."""
    build = Builder(rewriter)
    axes = unknown_list(op, 1, build)
    before = known_dims(operand(op, 0))
    if axes is None or before is None:
        return None
    rank = len(before) + len(axes)
    places = build.axes(axes, rank)
    mask = build.mask(places, rank)
    # The place among the old dims of what is at place k: as many new dims as stand before it are taken off.
    source = build.of(np.arange(rank)) - (mask.reshape(1, rank) * np.tri(rank, rank, -1, dtype=np.int64)).sum(1)
    kept = build.of(1) - mask.at_most(1)
    here = source.reshape(rank, 1).equals(np.arange(len(before)).reshape(1, len(before))) * kept.reshape(rank, 1)
    dims = (here * build.shape(op.operands[0]).reshape(1, len(before))).sum(1) if before else build.of([0] * rank)
    return _reshaped(build, op, axes, mask, kept.select(dims, 1), places)


def _bind_squeeze(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """A Reshape to the dims that are left; those that go are 1, or the elements do not fit."""
    build = Builder(rewriter)
    axes = unknown_list(op, 1, build)
    before = known_dims(operand(op, 0))
    if axes is None or before is None or not len(axes) <= len(before):
        return None
    places = build.axes(axes, len(before))
    mask = build.mask(places, len(before))
    dims = build.shape(op.operands[0])
    gone = (mask.at_most(1) * (build.of(1) - dims.equals(1))).sum(0).reshape(1)
    left = left_dims(build, dims, mask.at_most(1), len(before) - len(axes))
    return _reshaped(build, op, axes, mask, left, build.concat(places, gone.at_most(1) * -1))


def _reshaped(build: Builder, op: OnnxOp, axes: Ints, mask: Ints, dims: Ints, signs: Ints) -> Replacement:
    """The first operand with other dims, if no axis is there twice and none of `signs` is negative."""
    x = op.operands[0]
    wrong = (signs.less(0).sum(0).reshape(1) + build.of([1]).less(mask).sum(0).reshape(1)).at_most(1)
    values = build.concat(dims, wrong * -1)
    carrier = build.carrier(
        values, "its axes are out of range, not different from each other, or of dims that are not 1"
    )
    operands = [x, build.read(carrier, 0, len(dims))]
    return build.bound_to("Reshape", op, operands, carrier, {"allowzero": 1} if op.opset >= 14 else {}).results


def left_dims(build: Builder, dims: Ints, gone: Ints, count: int) -> Ints:
    """The `count` dims whose flag in `gone` is 0, in order."""
    rank = len(dims)
    kept = build.of(1) - gone
    before = (kept.reshape(1, rank) * np.tri(rank, rank, -1, dtype=np.int64)).sum(1)
    here = before.reshape(1, rank).equals(np.arange(max(count, 0)).reshape(-1, 1))
    return (here * kept.reshape(1, rank) * dims.reshape(1, rank)).sum(1)


def _bind_expand(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """The values are the dims of the result, broadcast in front of the carrier."""
    build = Builder(rewriter)
    before, target = known_dims(operand(op, 0)), unknown_list(op, 1, build)
    if before is None or target is None or max(len(target), len(before)) == 0:
        return None
    rank = max(len(target), len(before))
    x = op.operands[0]
    dims = build.concat([1] * (rank - len(before)), build.shape(x))
    target = build.concat([1] * (rank - len(target)), target)
    agree = (dims.equals(1) + dims.equals(target)).at_most(1)
    carrier = build.carrier(target.equals(1).select(dims, agree.select(target, -1)), "its shape does not broadcast")
    return build.bound(op, [x, build.read(carrier, 0, rank)], carrier).results


def rank_of(op: OnnxOp) -> int:
    """The rank of the first operand."""
    return len(dims_of(op.operands[0].type))


RULES: Rules = {
    "Expand": [_bind_expand],
    "Reshape": [_bind_reshape],
    "Squeeze": [_bind_squeeze],
    "Unsqueeze": [_bind_unsqueeze],
}
