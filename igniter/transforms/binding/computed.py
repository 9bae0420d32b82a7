"""Ops whose sizes are computed from operands that are more than a list of them: Range, AffineGrid, DFT."""

from __future__ import annotations

from xdsl.dialects.builtin import f64, i1, i64
from xdsl.ir import Attribute, SSAValue

from igniter.analysis.tensor_types import tensor_element
from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.onnx.ops.rules import known
from igniter.dialects.onnx.ops.shape import range_count
from igniter.dialects.sym import tensor_of
from igniter.transforms.binding.arithmetic import Builder, Ints
from igniter.transforms.binding.lists import like
from igniter.transforms.binding.sizes import unknown_list
from igniter.transforms.onnx_rewriting import Replacement, Rewriter, Rules, known_dims, operand


def _bind_range(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """How many numbers there are, computed in f64 as in ONNX Runtime; the numbers themselves are read as data."""
    if range_count(*(known(op, k) for k in range(3))) is not None or any(known_dims(v) is None for v in op.operands):
        return None
    if all(constant_value(v) is not None for v in op.operands):
        return None
    build = Builder(rewriter)
    start, limit, delta = op.operands
    # The difference is one in the type of the elements.
    distance = rewriter.op("Sub", [limit, start], [limit.type]).results[0]
    steps = rewriter.op("Div", [_wide(build, distance), _wide(build, delta)], [_WIDE]).results[0]
    steps = rewriter.op("Ceil", [steps], [_WIDE]).results[0]
    count = Ints(build, rewriter.op("Cast", [steps], [tensor_of(i64, [1])], {"to": 7}).results[0], None)
    nothing = rewriter.op("Cast", [_wide(build, delta)], [tensor_of(i1, [1])], {"to": 9}).results[0]
    forward = Ints(build, rewriter.op("Cast", [nothing], [tensor_of(i64, [1])], {"to": 7}).results[0], None)
    carrier = build.carrier(forward.select(count.at_least(0), -1), "its delta is 0")
    return build.bound(op, list(op.inputs), carrier).results


_WIDE = tensor_of(f64, [1])


def _wide(build: Builder, value: SSAValue) -> SSAValue:
    """A scalar of any type as a list of one f64."""
    made = build.rewriter.op("Reshape", [value, build.value([1])], [tensor_of(_element(value), [1])]).results[0]
    return made if _element(value) == f64 else build.rewriter.op("Cast", [made], [_WIDE], {"to": 11}).results[0]


def _element(value: SSAValue) -> Attribute:
    element = tensor_element(value.type)
    assert element is not None
    return element


def _bind_affine_grid(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """The spatial sizes; there are as many grids as matrices."""
    build = Builder(rewriter)
    theta, size = known_dims(operand(op, 0)), unknown_list(op, 1, build)
    if theta is None or size is None or len(size) not in (4, 5) or len(theta) != 3:
        return None
    dims = build.shape(op.operands[0])
    fits = size[0:1].equals(dims[0:1])
    carrier = build.carrier(fits.select(size, -1), "its size is negative, or not that of its matrices")
    count = len(size)
    own = rewriter.op("Shape", [op.operands[0]], [tensor_of(i64, [1])], {"start": 0, "end": 1}).results[0]
    operands = [own, build.read(carrier, 1, count - 1)]
    sizes = rewriter.op("Concat", operands, [tensor_of(i64, [count])], {"axis": 0}).results[0]
    return build.bound(op, [op.operands[0], sizes], carrier).results


def _bind_dft(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """Along the middle axis of three, which a view makes of what lies before and behind the axis."""
    build = Builder(rewriter)
    before = known_dims(operand(op, 0))
    if op.opset < 20 or before is None or len(before) < 2 or before[-1].constant not in (1, 2):
        return None
    length, axis = unknown_list(op, 1, build), unknown_list(op, 2, build)
    if axis is None:
        if length is None:
            return None
        carrier = build.carrier(length, "its length is negative")
        given = like(build, build.read(carrier, 0, 1), op.operands[1])
        return build.bound(op, [op.operands[0], given, operand(op, 2)], carrier).results
    return None


RULES: Rules = {"AffineGrid": [_bind_affine_grid], "DFT": [_bind_dft], "Range": [_bind_range]}
