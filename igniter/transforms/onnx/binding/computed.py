"""Ops whose sizes are computed from operands that are not simple lists of sizes: Range, AffineGrid, DFT."""

from __future__ import annotations

import numpy as np
from xdsl.dialects.builtin import UnrankedTensorType, f64, i1, i64
from xdsl.ir import Attribute, SSAValue

from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.onnx.bound import own_attributes
from igniter.dialects.onnx.ops.rules import known
from igniter.dialects.onnx.ops.shape import range_count
from igniter.dialects.onnx.ops.signal import is_real_inverse
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.expr import Expr
from igniter.dialects.sym.tensor_types import tensor_element
from igniter.transforms.onnx.binding.arithmetic import Builder, Ints
from igniter.transforms.onnx.binding.lists import like
from igniter.transforms.onnx.binding.sizes import unknown_list
from igniter.transforms.onnx.infer_shapes import set_type
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, known_dims, operand


def _bind_range(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """Computes the count in f64, as in ONNX Runtime; the kernel reads the numbers themselves as data."""
    if range_count(*(known(op, k) for k in range(3))) is not None or any(known_dims(v) is None for v in op.operands):
        return None
    if all(constant_value(v) is not None for v in op.operands):
        return None
    build = Builder(rewriter)
    start, limit, delta = op.operands
    # The difference is in the element type.
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
    """Returns a scalar of any type as a list of one f64."""
    made = build.rewriter.op("Reshape", [value, build.value([1])], [tensor_of(_element(value), [1])]).results[0]
    return made if _element(value) == f64 else build.rewriter.op("Cast", [made], [_WIDE], {"to": 11}).results[0]


def _element(value: SSAValue) -> Attribute:
    element = tensor_element(value.type)
    assert element is not None
    return element


def _bind_affine_grid(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """Binds the spatial sizes; there is one grid per matrix."""
    build = Builder(rewriter)
    theta, size = known_dims(operand(op, 0)), unknown_list(op, 1, build)
    if theta is None or size is None or len(size) not in (4, 5) or len(theta) != 3:
        return None
    dims = build.shape(op.operands[0])
    fits = size[0:1].equals(dims[0:1])
    carrier = build.carrier(fits.select(size, -1), "its size is negative, or differs from its matrices")
    count = len(size)
    own = rewriter.op("Shape", [op.operands[0]], [tensor_of(i64, [1])], {"start": 0, "end": 1}).results[0]
    operands = [own, build.read(carrier, 1, count - 1)]
    sizes = rewriter.op("Concat", operands, [tensor_of(i64, [count])], {"axis": 0}).results[0]
    return build.bound(op, [op.operands[0], sizes], carrier).results


def _bind_dft(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    """Rewrites a transform along a run-time axis to one along the middle of three dims: the dims before the axis, the
    axis, and the dims after it. A run-time length is bound by itself."""
    build = Builder(rewriter)
    before = known_dims(operand(op, 0))
    if op.opset < 20 or before is None or len(before) < 2 or before[-1].constant not in (1, 2):
        return None
    axis = unknown_list(op, 2, build)
    if axis is None:
        length = unknown_list(op, 1, build)
        if length is None:
            return None
        carrier = build.carrier(length, "its length is negative")
        given = like(build, build.read(carrier, 0, 1), op.operands[1])
        return build.bound(op, [op.operands[0], given, operand(op, 2)], carrier).results
    length = None if operand(op, 1) is None else build.list(op.operands[1])
    real = is_real_inverse(op)
    if (length is None and operand(op, 1) is not None) or (real and length is not None):
        return None
    x, count = op.operands[0], len(before) - 1
    place = build.axes(axis, len(before))
    # The last dim holds the parts of a complex number.
    wrong = (place.less(0) + build.of(count - 1).less(place)).at_most(1)
    dims, places = build.shape(x)[:count], build.of(np.arange(count))
    here = places.equals(place)
    sizes = [
        places.less(place).select(dims, 1).product(0).reshape(1),
        here.select(dims, 1).product(0).reshape(1),
        place.less(places).select(dims, 1).product(0).reshape(1),
    ]
    bins = sizes[1] if length is None else length
    if real:
        bins = (bins * 2 - 2).at_least(0)
    elif op.attr("onesided", 0):
        bins = bins.quotient(2) + 1
    carrier = build.carrier(
        build.concat(wrong.select(-1, sizes[0]), *sizes[1:], here.select(bins, dims)), "its axis is out of range"
    )
    split = build.bound_to("Reshape", op, [x, _with_last(build, carrier, 0, 3, before[-1])], carrier)
    _forget_type(split)
    one = rewriter.constant(np.array(1, np.int64))
    operands = [split.results[0], operand(op, 1), one]
    made = rewriter.op("DFT", operands, [UnrankedTensorType(_element(x))], own_attributes(op))
    shape = _with_last(build, carrier, 3, count, Expr.of(1 if real else 2))
    return build.bound_to("Reshape", op, [made.results[0], shape], carrier).results


def _with_last(build: Builder, carrier: SSAValue, first: int, count: int, last: Expr) -> SSAValue:
    """Returns values of a carrier, followed by a constant."""
    parts = [build.read(carrier, first, count), build.value([last.constant or 0])]
    return build.rewriter.op("Concat", parts, [tensor_of(i64, [count + 1])], {"axis": 0}).results[0]


def _forget_type(op: OnnxOp) -> None:
    """Leaves the dims of a result to inference, because they differ from those of the rewritten node."""
    set_type(op.results[0], UnrankedTensorType(_element(op.results[0])))


RULES: Rules = {"AffineGrid": [_bind_affine_grid], "DFT": [_bind_dft], "Range": [_bind_range]}
