"""Reductions over run-time axes: the outer and inner extents of each axis become values of a carrier.

A reduced axis of d elements has outer extent 1 and inner extent d; any other axis has d and 1. The kernel
(`igniter.dialects.onnx.ops.bound_reduction`) loops over both for every axis. Without `keepdims` the remaining dims are
values as well; the number of axes must be known.
"""

from __future__ import annotations

import numpy as np

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.bound import own_attributes
from igniter.dialects.onnx.ops.reduction import REDUCTIONS
from igniter.transforms.onnx.binding.arithmetic import Builder
from igniter.transforms.onnx.binding.sizes import left_dims, rank_of, unknown_list
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, known_dims, operand


def _bind_axes(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    build = Builder(rewriter)
    axes = unknown_list(op, 1, build)
    if axes is None or known_dims(operand(op, 0)) is None:
        return None
    x, rank = op.operands[0], rank_of(op)
    if not len(axes):
        # There are no axes to wait for.
        operands = [x, rewriter.constant(np.zeros(0, np.int64))]
        return rewriter.op(op.op_type, operands, [op.results[0].type], own_attributes(op)).results
    places = build.axes(axes, rank)
    mask = build.mask(places, rank)
    dims = build.shape(x)
    # An invalid axis is refused, and so is a repeated one if the rank depends on it.
    wrong = places.less(0).sum(0).reshape(1)
    if not op.attr("keepdims", 1):
        wrong = wrong + build.of([1]).less(mask).sum(0).reshape(1)
    wrong = wrong.at_most(1)
    reduced = mask.at_most(1)
    values = [wrong.select(-1, reduced.select(1, dims)), reduced.select(dims, 1)]
    if not op.attr("keepdims", 1):
        values.append(left_dims(build, dims, reduced, rank - len(axes)))
    carrier = build.carrier(build.concat(*values), "its axes are out of range, or not distinct")
    return build.bound(op, [x, op.operands[1]], carrier).results


RULES: Rules = {name: [_bind_axes] for name in REDUCTIONS}
