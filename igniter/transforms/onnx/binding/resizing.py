"""Resize: computes the sizes of its result, in f32 as in ONNX Runtime."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import f32, i1, i64
from xdsl.ir import SSAValue

from igniter.dialects.onnx.base import OnnxOp, constant_value
from igniter.dialects.onnx.ops.bound_resize import keeps_aspect
from igniter.dialects.onnx.ops.resize import antialias, filter_reach, resize_axes
from igniter.dialects.onnx.ops.rules import known
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.tensor_types import tensor_element
from igniter.transforms.onnx.binding.arithmetic import Builder, Ints
from igniter.transforms.onnx.onnx_rewriting import Replacement, Rewriter, Rules, known_dims, operand

if TYPE_CHECKING:
    from igniter.dialects.onnx.registry import Dims


class _Floats:
    """Builds nodes on lists of f32."""

    def __init__(self, rewriter: Rewriter, count: int):
        self.rewriter = rewriter
        self.count = count

    def node(self, name: str, *operands: SSAValue, **attrs: Any) -> SSAValue:
        return self.rewriter.op(name, operands, [tensor_of(f32, [self.count])], attrs).results[0]

    def counted(self, value: SSAValue) -> SSAValue:
        """Returns a list with a known number of elements, through a Reshape. The rewritten node implied that number;
        the Reshape keeps the requirement."""
        count = self.rewriter.constant(np.array([self.count], np.int64))
        element = tensor_element(value.type)
        assert element is not None
        return self.rewriter.op("Reshape", [value, count], [tensor_of(element, [self.count])]).results[0]

    def number(self, value: float) -> SSAValue:
        return self.rewriter.constant(np.full(1, value, np.float32))

    def of(self, build: Builder, ints: Ints) -> SSAValue:
        return self.node("Cast", build.value(ints), to=1)

    def whole(self, build: Builder, value: SSAValue) -> Ints:
        """Rounds towards 0."""
        made = self.rewriter.op("Cast", [value], [tensor_of(i64, [self.count])], {"to": 7})
        return Ints(build, made.results[0], None)

    def positive(self, build: Builder, value: SSAValue) -> Ints:
        """Returns 1 for numbers above 0."""
        flags = self.rewriter.op("Less", [self.number(0), value], [tensor_of(i1, [self.count])])
        made = self.rewriter.op("Cast", flags.results, [tensor_of(i64, [self.count])], {"to": 7})
        return Ints(build, made.results[0], None)


def _count(value: SSAValue | None) -> int:
    """Returns the length of a list; 0 if it is omitted or unknown."""
    dims: Dims | None = known_dims(value)
    return 0 if dims is None or len(dims) != 1 or dims[0].constant is None else dims[0].constant


def _bind_resize(op: OnnxOp, rewriter: Rewriter) -> Replacement | None:
    before = known_dims(operand(op, 0))
    if before is None or not before:
        return None
    build = Builder(rewriter)
    axes = resize_axes(op, len(before))
    scales, sizes = operand(op, 2), operand(op, 3)
    by_scales = _count(scales) == len(axes)
    if not by_scales and (_count(sizes) != len(axes) or known(op, 3) is not None):
        return None
    if by_scales and constant_value(scales) is not None:
        return None
    floats = _Floats(rewriter, len(axes))
    dims = build.shape(op.operands[0])
    old = build.take(dims, axes)
    extra: Sequence[Ints] = ()
    if by_scales:
        assert scales is not None
        scales = floats.counted(scales)
        new = floats.whole(build, floats.node("Mul", floats.of(build, old), scales))
        new = floats.positive(build, scales).select(new, -1)
        factor = scales
    else:
        assert sizes is not None
        asked = build.list(floats.counted(sizes))
        assert asked is not None
        new, factor = asked, floats.node("Div", floats.of(build, asked), floats.of(build, old))
        policy = keeps_aspect(op)
        if policy:
            factor = _extreme(floats, factor, "Min" if policy == "not_larger" else "Max", build)
            size = floats.node("Add", floats.node("Mul", floats.of(build, old), factor), floats.number(0.5))
            new = floats.whole(build, floats.node("Floor", size))
            extra = [asked]
    if antialias(op):
        reach = floats.node("Div", floats.number(2 * filter_reach(op)), factor)
        reach = floats.node("Max", reach, floats.number(2 * filter_reach(op)))
        extra = [*extra, floats.whole(build, floats.node("Ceil", reach)) + 2]
    whole = build.concat(dims, new)
    picks = [len(before) + axes.index(k) if k in axes else k for k in range(len(before))]
    carrier = build.carrier(
        build.concat(build.take(whole, picks), *extra), "a scale is not positive, or a size negative"
    )
    return build.bound(op, list(op.inputs), carrier).results


def _extreme(floats: _Floats, value: SSAValue, which: str, build: Builder) -> SSAValue:
    """Returns the least or the greatest of a list, repeated to its length."""
    rewriter = floats.rewriter
    single = tensor_of(f32, [1])
    parts = [
        rewriter.op("Gather", [value, build.value([k])], [single], {"axis": 0}).results[0] for k in range(floats.count)
    ]
    least = rewriter.op(which, parts, [single]).results[0]
    return rewriter.op("Concat", [least] * floats.count, [dims_list(floats.count)], {"axis": 0}).results[0]


def dims_list(count: int) -> Any:
    """Returns the type of a list of f32."""
    return tensor_of(f32, [count])


RULES: Rules = {"Resize": [_bind_resize]}
