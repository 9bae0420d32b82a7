"""Ops for a change of dims: the new dims are computed before a carrier."""

from __future__ import annotations

import numpy as np

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.ops.rules import known
from igniter.dialects.sym import dims_of
from igniter.transforms.onnx.binding.arithmetic import Builder, Ints
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, known_dims, operand


def unknown_list(op: OnnxOp, index: int, build: Builder) -> Ints | None:
    """Returns a list operand if the number of its integers is known and their values are not; else None."""
    return build.list(operand(op, index)) if known(op, index) is None else None


def _bind_reshape(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """Resolves -1 and 0 before the carrier."""
    build = Builder(rewriter)
    before, target = known_dims(operand(op, 0)), unknown_list(op, 1, build)
    if before is None or target is None or not len(target):
        return None
    x = op.operands[0]
    dims = build.shape(x)
    written = target
    if not op.attr("allowzero", 0):
        rank = len(target)
        # A 0 without a dim at its place is refused.
        own = build.concat(dims[:rank], [-2] * max(0, rank - len(before)))
        target = target.equals(0).select(own, target)
    wild = target.equals(-1)
    rest = wild.select(1, target).product(0).reshape(1)
    # Two -1 are refused, and so is -1 beside a 0 that is a size; if the quotient has a remainder, the elements do not
    # fit.
    whole = dims.product(0).reshape(1).quotient(rest.at_least(1))
    wrong = build.of(1) - wild.sum(0).reshape(1).less(2)
    if op.attr("allowzero", 0):
        wrong = wrong + written.equals(0).sum(0).reshape(1)
    filled = wrong.at_most(1).select(-1, whole)
    carrier = build.carrier(wild.select(filled, target), "its requested shape has a negative size")
    # A 0 in the resolved shape is a size.
    attrs = {"allowzero": 1} if op.opset >= 14 else {}
    return build.bound(op, [x, build.read(carrier, 0, len(target))], carrier, attrs).results


def _bind_unsqueeze(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """Rewrites to a Reshape; its dims are computed before the carrier."""
    build = Builder(rewriter)
    axes = unknown_list(op, 1, build)
    before = known_dims(operand(op, 0))
    if axes is None or before is None:
        return None
    rank = len(before) + len(axes)
    places = build.axes(axes, rank)
    mask = build.mask(places, rank)
    # The old place of the dim at place k: k minus the number of new dims before it.
    source = build.of(np.arange(rank)) - (mask.reshape(1, rank) * np.tri(rank, rank, -1, dtype=np.int64)).sum(1)
    kept = build.of(1) - mask.at_most(1)
    here = source.reshape(rank, 1).equals(np.arange(len(before)).reshape(1, len(before))) * kept.reshape(rank, 1)
    dims = (here * build.shape(op.operands[0]).reshape(1, len(before))).sum(1) if before else build.of([0] * rank)
    return _reshaped(build, op, axes, mask, kept.select(dims, 1), places)


def _bind_squeeze(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """Rewrites to a Reshape to the remaining dims; removed dims must be 1, or the elements do not fit."""
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
    """Returns the first operand with other dims; refuses repeated axes and negative `signs`."""
    x = op.operands[0]
    wrong = (signs.less(0).sum(0).reshape(1) + build.of([1]).less(mask).sum(0).reshape(1)).at_most(1)
    values = build.concat(dims, wrong * -1)
    carrier = build.carrier(values, "its axes are out of range, not distinct, or of dims other than 1")
    operands = [x, build.read(carrier, 0, len(dims))]
    return build.bound_to("Reshape", op, operands, carrier, {"allowzero": 1} if op.opset >= 14 else {}).results


def left_dims(build: Builder, dims: Ints, gone: Ints, count: int) -> Ints:
    """Returns the `count` dims whose flag in `gone` is 0, in order."""
    rank = len(dims)
    kept = build.of(1) - gone
    before = (kept.reshape(1, rank) * np.tri(rank, rank, -1, dtype=np.int64)).sum(1)
    here = before.reshape(1, rank).equals(np.arange(max(count, 0)).reshape(-1, 1))
    return (here * kept.reshape(1, rank) * dims.reshape(1, rank)).sum(1)


def _bind_expand(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """Uses the dims of the result as values, broadcast before the carrier."""
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
    """Returns the rank of the first operand."""
    return len(dims_of(op.operands[0].type))


RULES: Rules = {
    "Expand": [_bind_expand],
    "Reshape": [_bind_reshape],
    "Squeeze": [_bind_squeeze],
    "Unsqueeze": [_bind_unsqueeze],
}
