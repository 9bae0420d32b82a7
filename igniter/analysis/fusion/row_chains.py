"""Chains of convolutions worth one kernel, with a pass over an image row by row.

An inverted residual expands an image by a pointwise convolution, applies a depthwise one, and projects it again. The
intermediates are six times as large as its input and output. In one kernel they are a few rows
(`igniter.schedules.rows`). That is profitable where they exceed the second-level cache; otherwise
each convolution is better alone, with loops of its own.

    Conv (1 x 1, or dense) -> .. -> Conv with a group for each channel -> .. -> Conv (1 x 1)

The elementwise nodes between them have no other readers; the first or the last convolution may be missing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from xdsl.dialects.builtin import Float32Type
from xdsl.ir import Operation, SSAValue

from igniter.analysis.fusion.cost import CostModel, op_kind
from igniter.analysis.fusion.legality import as_tensor, has_dims, operand_kind
from igniter.dialects.onnx.names import op_name
from igniter.dialects.onnx.ops.winograd import tiling_of
from igniter.dialects.sym import dims_of

if TYPE_CHECKING:
    from igniter.analysis.fusion.region_policy import Group
    from igniter.dialects.onnx.base import OnnxOp

MOST = 3
"""The most convolutions in a chain."""

IMAGE_RANK = 4
"""The rank of an image in rows: batch, channels, rows and places."""


def are_chained(a: Group, b: Group) -> bool:
    """True if two groups with convolutions are consecutive parts of such a chain."""
    if a.classes["weights"] + b.classes["weights"] > MOST or {*a.classes, *b.classes} != {"weights"}:
        return False
    return _leads(a, b) or _leads(b, a)


def _leads(a: Group, b: Group) -> bool:
    """True if one large tensor of `a`, without other readers, is an image of a chain in `b`."""
    passed = [value for value in a.outputs if value in b.inputs]
    if len(passed) != 1 or any(value in a.inputs for value in b.outputs):
        return False
    (value,) = passed
    if a.outputs[value] != b.inputs[value] or not _is_large(value, a.graph.cost):
        return False
    nodes = {node.op for node in b.nodes}
    readers = [u for u in value.uses if u.operation in nodes and operand_kind(u.operation, u.index) == "tensor"]
    if len(readers) != 1 or readers[0].index != 0:
        return False
    before, behind = _convolution_behind(value, {node.op for node in a.nodes}), readers[0].operation
    if before is None or op_name(behind) != "Conv":
        return False
    if _is_depthwise(behind):
        return not _is_depthwise(before) and not _has_depthwise(a) and _is_dense(before)
    return _is_depthwise(before) and not _has_depthwise(b) and _is_single(behind)


def _is_large(value: SSAValue, cost: CostModel) -> bool:
    """True if one image exceeds the second-level cache. It must be of f32: other types are converted first, so windows
    do not read them as stored."""
    tensor = as_tensor(value.type)
    if tensor is None or not has_dims(tensor) or len(dims_of(tensor)) != IMAGE_RANK:
        return False
    if not isinstance(tensor.element_type, Float32Type):
        return False
    images = max(1, cost.estimate(dims_of(tensor)[0]))
    return cost.bytes(value) // images > cost.machine.l2_bytes


def _convolution_behind(value: SSAValue, inside: set[Operation]) -> OnnxOp | None:
    """Returns the only convolution of a group that leads to a value through elementwise nodes."""
    found: set[Operation] = set()
    pending, seen = [value], {value}
    while pending:
        op = pending.pop().owner
        if not isinstance(op, Operation) or op not in inside:
            continue
        if op_name(op) == "Conv":
            found.add(op)
            continue
        if op_kind(op) != "elementwise":
            return None
        fresh = [operand for operand in op.operands if operand not in seen]
        seen.update(fresh)
        pending += fresh
    return cast("OnnxOp", found.pop()) if len(found) == 1 else None


def _has_depthwise(group: Group) -> bool:
    return any(op_name(node.op) == "Conv" and _is_depthwise(node.op) for node in group.nodes)


def _groups(op: Operation) -> int:
    return cast("OnnxOp", op).attr("group") or 1


def _is_depthwise(op: Operation) -> bool:
    """True if windows of several rows move along each channel separately."""
    weight = dims_of(op.operands[1].type)
    return weight[0] == weight[1] * _groups(op) and weight[1] == 1 and weight[2] != 1 and _groups(op) > 1


def _is_dense(op: OnnxOp) -> bool:
    """True if all channels are multiplied with each other, and not in tiles."""
    return _groups(op) == 1 and tiling_of(op) is None


def _is_single(op: Operation) -> bool:
    """True for a pointwise convolution without strides and padding."""
    weight, node = dims_of(op.operands[1].type), cast("OnnxOp", op)
    steps: list[int] = node.attr("strides") or []
    pads: list[int] = node.attr("pads") or []
    return _groups(op) == 1 and all(d == 1 for d in weight[2:]) and set(steps) <= {1} and set(pads) <= {0}
