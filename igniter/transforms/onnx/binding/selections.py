"""Ops with data-dependent result sizes: a count before a carrier, and a node to fill the counted elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from xdsl.dialects.builtin import i1, i64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.bound import COUNT_AXIS, COUNT_DOMAIN, own_attributes
from igniter.dialects.onnx.ops.rules import normal_axis
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.tensor_types import tensor_element
from igniter.transforms.onnx.binding.arithmetic import Builder, Ints
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, known_dims, operand


def _ones(build: Builder, value: SSAValue, rank: int) -> Ints:
    """Counts the nonzero elements of a tensor."""
    dims = known_dims(value) or ()
    node = build.rewriter.op
    flags = (
        value
        if tensor_element(value.type) == i1
        else node("Cast", [value], [tensor_of(i1, dims)], {"to": 9}).results[0]
    )
    ones = node("Cast", [flags], [tensor_of(i64, dims)], {"to": 7}).results[0]
    total = node("ReduceSum", [ones, build.value(np.arange(rank))], [tensor_of(i64, [])], {"keepdims": 0}).results[0]
    return Ints(build, total, None).reshape(1)


def _bind_non_zero(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    dims = known_dims(operand(op, 0))
    if not dims:
        return None
    build = Builder(rewriter)
    carrier = build.carrier(_ones(build, op.operands[0], len(dims)), "it has a negative number of elements")
    return build.bound(op, list(op.inputs), carrier).results


def _bind_compress(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    dims, given = known_dims(operand(op, 0)), known_dims(operand(op, 1))
    if not dims or given is None or len(given) != 1:
        return None
    build = Builder(rewriter)
    condition = op.operands[1]
    flat = op.attributes.get("axis") is None
    sizes = [d.constant for d in dims]
    if not flat:
        sizes = [sizes[normal_axis(int(op.attr("axis")), len(dims))]]
    most = None if any(s is None for s in sizes) else int(np.prod([s for s in sizes if s is not None]))
    if most is not None and given[0].constant is not None and given[0].constant > most:
        operands = [condition, build.value([0]), build.value([most])]
        condition = rewriter.op("Slice", operands, [tensor_of(i1, [most])]).results[0]
    carrier = build.carrier(_ones(build, condition, 1), "it takes a negative number of elements")
    return build.bound(op, list(op.inputs), carrier).results


def _bind_suppression(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    if any(known_dims(v) is None for v in op.inputs if v is not None):
        return None
    build = Builder(rewriter)
    attrs: dict[str, Any] = {**own_attributes(op), COUNT_AXIS: 0}
    counted = rewriter.op(f"{COUNT_DOMAIN}.{op.op_type}", list(op.inputs), [tensor_of(i64, [1])], attrs).results[0]
    carrier = build.carrier(Ints(build, counted, None), "it selects a negative number of boxes")
    return build.bound(op, list(op.inputs), carrier).results


def _bind_unique(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    dims = known_dims(operand(op, 0))
    if dims is None:
        return None
    build = Builder(rewriter)
    given = op.attributes.get("axis")
    axis = 0 if given is None else normal_axis(int(op.attr("axis")), len(dims))
    attrs: dict[str, Any] = {**own_attributes(op), COUNT_AXIS: axis}
    counted = rewriter.op(f"{COUNT_DOMAIN}.{op.op_type}", list(op.inputs), [tensor_of(i64, [1])], attrs).results[0]
    carrier = build.carrier(Ints(build, counted, None), "it keeps a negative number of elements")
    return build.bound(op, list(op.inputs), carrier).results


RULES_WITHOUT_ARITHMETIC: Rules = {"NonMaxSuppression": [_bind_suppression], "Unique": [_bind_unique]}
"""Rules for any opset."""
RULES: Rules = {
    "Compress": [_bind_compress],
    "NonZero": [_bind_non_zero],
    **RULES_WITHOUT_ARITHMETIC,
}
