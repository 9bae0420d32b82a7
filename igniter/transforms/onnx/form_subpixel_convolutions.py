"""`form-subpixel-convolutions`: turns a ConvTranspose into a convolution whose channels become pixels.

An element of the window contributes to a pixel of the result if their distance is a multiple of the stride. With
strides `s`, pixels at a distance of `s` use the same elements of the window; they form a *phase*. Neighbours in a phase
use neighbours of the input:

    y[s*p + r] = sum over t of w[r + s*t] * x[p - t]

So each phase is a convolution by a reversed part of the window. All phases together are one convolution with the phases
as channels (the sub-pixel convolution of Shi et al., 2016, https://arxiv.org/abs/1609.05158):

    %y = onnx.ConvTranspose(%x, %w, %b) {strides = [2, 2], pads = [1, 1, 1, 1]}       // %w 64x32x4x4
becomes
    %p = onnx.Conv(%x, %w', %b') {pads = [1, 1, 1, 1]}                                // %w' 128x64x2x2
    %q = onnx.DepthToSpace(%p) {blocksize = 2}
    %y = onnx.Slice(%q) of [1, -1] along both axes

Elementwise ops after a DepthToSpace move before it, and become the epilogue of the convolution. If all pixels of all
phases are wanted, the convolution is marked (`igniter.phases`): phases are then loops of its nest, and the nest writes
to the final places.

No zero is multiplied. If the stride does not divide the window, phases use parts of different sizes: those of one size
form a convolution, and a Concat joins these. In one dim, or with different strides, Reshape and Transpose replace
DepthToSpace, with shapes computed at run time if necessary. Strides of 1 are one phase, which may be dilated.

Not rewritten: weights that are not constant, or not finite (the rim would multiply them by zeros); strides larger than
the window; dilations with a stride; pads that depend on sizes. Unless `force` is set, nodes with a stride and without
connection to a convolution also stay: they alone would have to change the layouts of their input and output.

The pass runs at the end of the ONNX level, after channel scales that follow a ConvTranspose have been folded into it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import ModuleOp, NoneType, f32, f64, i64
from xdsl.ir import SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.fusion.layouts import beside_convolutions
from igniter.dialects.onnx.base import constant_weight, imported_opset, make_constant
from igniter.dialects.onnx.ops import spec_of
from igniter.dialects.onnx.ops.rules import INFINITE
from igniter.dialects.onnx.ops.transposed import Spread, spreads
from igniter.dialects.onnx.registry import PHASES_ATTRIBUTE
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import dims_of, element_of, tensor_of
from igniter.dialects.sym.expr import Expr, floordiv
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.transforms.onnx.onnx_rewriting import (
    Replacement,
    Rewriter,
    Rules,
    defining,
    element,
    known_dims,
    operand,
    run_rules,
    splat,
)

if TYPE_CHECKING:
    from igniter.dialects.onnx.base import OnnxOp

    Array = np.ndarray[Any, Any]

Phase = tuple[int, ...]

POINTWISE = ("Clip", "Elu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Relu", "Sigmoid", "Softplus", "Tanh")
"""Ops to move before a DepthToSpace, because they are elementwise: they then become an epilogue."""

FULL_VECTORS = 12
"""The least number of channels of a phase; with fewer, too much of a panel would be padding."""

SLICE_OPSET, RESHAPE_OPSET, MODES_OPSET, ALLOWZERO_OPSET = 10, 5, 11, 14
"""The opsets since which Slice and Reshape take operands instead of attributes, DepthToSpace has modes, and Reshape has
`allowzero`."""

ONE_INTEGER = tensor_of(i64, [Expr.of(1)])


@dataclass(frozen=True)
class FormSubpixelConvolutions(ModulePass):
    """Turns each ConvTranspose into a Conv whose channels are placed side by side."""

    name = "form-subpixel-convolutions"
    one_rewrite = "a ConvTranspose replaced by convolutions"

    force: bool = False
    """Also rewrites nodes with a faster ONNX Runtime kernel."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        missed: dict[str, str] = {}
        beside = beside_convolutions(op.walk())

        def subpixel(node: OnnxOp, rw: Rewriter) -> Replacement | None:
            plan = plan_of(node)
            if isinstance(plan, SubpixelPlan) and not self.force:
                plan = _slow_reason(node, plan, node in beside) or plan
            if isinstance(plan, str):
                missed[node.node_name] = plan
                return None
            return plan.build(node, rw)

        rules: Rules = {"ConvTranspose": [subpixel], **{name: [hoist] for name in POINTWISE}}
        count = run_rules(op, rules, budget(ctx, self.name)).applied.get(subpixel.__name__, 0)
        for name, why in missed.items():
            remark(ctx, self.name, name, "missed", why)
        if count:
            remark(ctx, self.name, "", "applied", f"{count} transposed convolutions became convolutions", count=count)


@dataclass(frozen=True)
class Axis:
    """One spatial axis: pixels `stride*p + phase - low`, for `first <= p < first + count`."""

    stride: int
    dilation: int
    kernel: int
    first: int
    more: int
    """The number of steps minus the number of input elements; may be negative."""
    start: int
    """The pixels cut off at the front and, `end`, at the back."""
    end: int

    @staticmethod
    def of(spread: Spread) -> Axis | str:
        """Returns the axis of a transposed convolution, or the reason why it has none."""
        kernel, low, stride, dilation = spread.kernel.constant, spread.low.constant, spread.stride, spread.dilation
        if kernel is None or low is None:
            return "its crop at the start depends on its size"
        if spread.size.constant == 1 and dilation == 1:
            # A single element has no next one: with its window as the stride, no padding is multiplied.
            stride = kernel
        if stride > kernel or (stride > 1 and dilation > 1):
            return f"its windows of {kernel}, dilated by {dilation}, have a stride of {stride}"
        first = low // stride
        count = floordiv(spread.count + low + stride - 1, Expr.of(stride)) - first
        more, end = (count - spread.size).constant, (count * stride - (spread.count + low - first * stride)).constant
        if more is None or end is None:
            return "its crop at the end depends on its size"
        return Axis(stride, dilation, kernel, first, more, low - first * stride, end)

    def taps(self, phase: int) -> int:
        """Returns the number of window elements used by pixels of a phase."""
        return -(-(self.kernel - phase) // self.stride)

    def pads(self, phase: int) -> tuple[int, int]:
        """Returns the padding of a phase's convolution at the front and the back."""
        reach = (self.taps(phase) - 1) * self.dilation
        return reach - self.first, self.more + self.first

    def parts(self) -> list[list[int]]:
        """Returns the phases grouped by their number of window elements, in order."""
        cut = self.kernel % self.stride
        return [part for part in (list(range(cut)), list(range(cut, self.stride))) if part]


@dataclass(frozen=True)
class Phases:
    """The weight of the convolution of some phases: `[outs, depth, taps..]`, from `[ins, outs / groups, window..]`.
    Channels are ordered by phase if `outer`; otherwise the phases of a channel are adjacent."""

    source: Weight
    groups: int
    strides: tuple[int, ...]
    phases: tuple[Phase, ...]
    outer: bool

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the weight."""
        ins, outs, *window = self.source.shape
        taps = [-(-(k - r) // s) for k, r, s in zip(window, self.phases[0], self.strides, strict=True)]
        return (self.groups * outs * len(self.phases), ins // self.groups, *taps)

    def compute(self) -> Array:
        ins, outs, *window = self.source.shape
        plain = self.source.array().reshape(self.groups, ins // self.groups, outs, *window)
        axes = tuple(range(3, 3 + len(window)))
        parts = [
            np.flip(plain[(..., *(slice(r, None, s) for r, s in zip(phase, self.strides, strict=True)))], axes)
            for phase in self.phases
        ]
        # [phases, groups, depth, outs, taps..]
        stacked = np.stack(parts).swapaxes(2, 3)
        stacked = stacked if self.outer else np.moveaxis(stacked, 0, 2)
        return np.ascontiguousarray(stacked.reshape(self.shape))


@dataclass(frozen=True)
class SubpixelPlan:
    """The plan of a transposed convolution as convolutions."""

    axes: tuple[Axis, ...]
    groups: int
    convolutions: tuple[tuple[Phase, ...], ...]
    """The phases of each convolution; together they are in the order of their numbers."""

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(a.stride for a in self.axes)

    @property
    def outer(self) -> bool:
        """True if the phases of a channel are not adjacent. Groups need all of their channels together."""
        return self.groups == 1 or len(self.convolutions) > 1

    def has_loops(self, outs: int) -> bool:
        """True if phases of `outs` channels are loops around the convolution of each, which then writes to the final
        places: all pixels are wanted, and channels fill vectors."""
        whole = len(self.convolutions) == 1 and not any(a.start or a.end for a in self.axes)
        return whole and self.groups == 1 and max(self.strides) > 1 and outs >= FULL_VECTORS

    def build(self, op: OnnxOp, rw: Rewriter) -> Replacement:
        """Inserts the nodes before the ConvTranspose."""
        made = [self._convolve(op, rw, phases) for phases in self.convolutions]
        channels = made[0] if len(made) == 1 else self._join(rw, made)
        placed = self._place(op, rw, channels) if max(self.strides) > 1 else channels
        return [self._cut(op, rw, placed)]

    def _convolve(self, op: OnnxOp, rw: Rewriter, phases: tuple[Phase, ...]) -> SSAValue:
        data, source, bias = op.operands[0], constant_weight(op.operands[1]), operand(op, 2)
        dims = known_dims(data)
        assert source is not None and dims is not None
        derived = Phases(source, self.groups, self.strides, phases, self.outer)
        weight = Weight(derived.shape, source.element_type, derivation=None if source.elided else derived)
        first = phases[0]
        name = next((n for n in op.output_names if n), op.op_type)
        made = make_constant(weight, f"{name}.phases{'' if len(self.convolutions) == 1 else _digits(first)}")
        rw.insert(made)
        if bias is not None and len(phases) > 1:
            given = constant_weight(bias)
            assert given is not None
            values = given.array()
            spread = np.tile if self.outer else np.repeat
            bias = rw.constant(spread(values, len(phases)))
        pads = [axis.pads(r) for axis, r in zip(self.axes, first, strict=True)]
        attrs = {
            "pads": [low for low, _ in pads] + [high for _, high in pads],
            "dilations": [a.dilation for a in self.axes],
            "group": self.groups,
            "kernel_shape": list(derived.shape[2:]),
        }
        sizes = [d + a.more for d, a in zip(dims[2:], self.axes, strict=True)]
        if self.has_loops(source.shape[1]):
            attrs[PHASES_ATTRIBUTE] = list(self.strides)
        result = tensor_of(element_of(data.type), [dims[0], Expr.of(derived.shape[0]), *sizes])
        return rw.op("Conv", [data, made.results[0], bias], [result], attrs).results[0]

    def _join(self, rw: Rewriter, parts: Sequence[SSAValue]) -> SSAValue:
        shapes = [dims_of(part.type) for part in parts]
        dims = [shapes[0][0], sum((s[1] for s in shapes), Expr.of(0)), *shapes[0][2:]]
        return rw.op("Concat", parts, [tensor_of(element_of(parts[0].type), dims)], {"axis": 1}).results[0]

    def _place(self, op: OnnxOp, rw: Rewriter, value: SSAValue) -> SSAValue:
        """Places the phases, which are channels, side by side."""
        dims, element = known_dims(value), element_of(value.type)
        assert dims is not None
        count = prod(self.strides)
        channels = floordiv(dims[1], Expr.of(count))
        sizes = [d * s for d, s in zip(dims[2:], self.strides, strict=True)]
        result = tensor_of(element, [dims[0], channels, *sizes])
        if has_blocks(self.axes):
            attrs: dict[str, Any] = {"blocksize": self.strides[0]}
            if not self.outer:
                attrs["mode"] = "CRD"
            return rw.op("DepthToSpace", [value], [result], attrs).results[0]
        rank, depth = len(self.axes), channels.constant
        assert depth is not None
        named = [*self.strides, depth] if self.outer else [depth, *self.strides]
        split = [dims[0], *map(Expr.of, named), *dims[2:]]
        first = 1 if self.outer else 2
        order = [
            0,
            1 + rank if self.outer else 1,
            *(k for axis in range(rank) for k in (2 + rank + axis, first + axis)),
        ]
        opset = imported_opset(op, "") or ALLOWZERO_OPSET
        apart = _reshaped(rw, value, [(0,), *named, *((2 + k,) for k in range(rank))], split, opset)
        turned = rw.op("Transpose", [apart], [tensor_of(element, [split[k] for k in order])], {"perm": order})
        pairs = [(2 + 2 * k, 3 + 2 * k) for k in range(rank)]
        return _reshaped(rw, turned.results[0], [(0,), depth, *pairs], [dims[0], channels, *sizes], opset)

    def _cut(self, op: OnnxOp, rw: Rewriter, value: SSAValue) -> SSAValue:
        cut = [k for k, a in enumerate(self.axes) if a.start or a.end]
        if not cut:
            return value
        says = {
            "starts": [self.axes[k].start for k in cut],
            "ends": [-self.axes[k].end or INFINITE for k in cut],
            "axes": [2 + k for k in cut],
        }
        if (imported_opset(op, "") or SLICE_OPSET) < SLICE_OPSET:
            return rw.op("Slice", [value], [op.results[0].type], says).results[0]
        given = [rw.constant(np.array(v, np.int64)) for v in says.values()]
        return rw.op("Slice", [value, *given], [op.results[0].type]).results[0]


def _reshaped(
    rw: Rewriter, value: SSAValue, shape: Sequence[int | tuple[int, ...]], dims: Sequence[Expr], opset: int
) -> SSAValue:
    """Returns a value with the dims of `shape`: numbers, and products of its own dims. If more than one dim is known
    only at run time, they are computed from the shape: a -1 is ambiguous for a tensor without elements."""
    known = [d.constant for d in dims]
    if 0 not in known and known.count(None) == 1:
        # One dim is the remainder; the batch dim is kept.
        known = [(0 if k == 0 else -1) if d is None else d for k, d in enumerate(known)]
    result = tensor_of(element_of(value.type), dims)
    if None not in known:
        given = rw.constant(np.array(known, np.int64))
        return rw.op("Reshape", [value, given], [result]).results[0]
    have = known_dims(value) or ()
    whole = rw.op("Shape", [value], [tensor_of(i64, [Expr.of(len(have))])]).results[0]
    parts: list[SSAValue] = []
    for entry in shape:
        if isinstance(entry, int):
            parts.append(rw.constant(np.array([entry], np.int64)))
            continue
        factors = [_gathered(rw, whole, k) for k in entry]
        product = factors[0]
        for factor in factors[1:]:
            product = rw.op("Mul", [product, factor], [ONE_INTEGER]).results[0]
        parts.append(product)
    given = rw.op("Concat", parts, [tensor_of(i64, [Expr.of(len(parts))])], {"axis": 0}).results[0]
    attrs = {"allowzero": 1} if opset >= ALLOWZERO_OPSET else {}
    return rw.op("Reshape", [value, given], [result], attrs).results[0]


def _gathered(rw: Rewriter, shape: SSAValue, k: int) -> SSAValue:
    return rw.op("Gather", [shape, rw.constant(np.array([k], np.int64))], [ONE_INTEGER], {"axis": 0}).results[0]


def hoist(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """Moves a pointwise op before the movement of its operand."""
    moves: list[OnnxOp] = []
    value = op.operands[0]
    while (move := defining(value, "DepthToSpace", "Slice")) is not None and value.has_one_use():
        moves.append(move)
        value = move.operands[0]
    others = (v for v in op.operands[1:] if not isinstance(v.type, NoneType))
    if not moves or moves[-1].op_type != "DepthToSpace" or any(splat(v) is None for v in others):
        return None
    if element(op.results[0]) != element(op.operands[0]):
        return None
    attrs = {k: op.attr(k) for k in op.attributes}
    value = rw.op(op.qualified_name, [value, *op.operands[1:]], [value.type], attrs).results[0]
    for move in reversed(moves):
        attrs = {k: move.attr(k) for k in move.attributes}
        value = rw.op(move.op_type, [value, *move.operands[1:]], [move.results[0].type], attrs).results[0]
    return [value]


def plan_of(op: OnnxOp) -> SubpixelPlan | str:
    """Returns the plan of a ConvTranspose, or the reason why it has none."""
    data, weight, known = known_dims(operand(op, 0)), known_dims(operand(op, 1)), known_dims(op.results[0])
    if data is None or weight is None or known is None:
        return "its shapes are unknown"
    spec = spec_of(op)
    reason = spec.legal(op) if spec is not None and spec.legal is not None else None
    if reason is None:
        reason = _constant_reason(op)
    if reason is not None:
        return reason
    found: list[Axis] = []
    for spread in spreads(op, data[2:], weight[2:]):
        axis = Axis.of(spread)
        if isinstance(axis, str):
            return axis
        if any(p < 0 for part in axis.parts() for p in axis.pads(part[0])):
            return "it crops more than its windows cover"
        found.append(axis)
    axes, groups = tuple(found), int(op.attr("group", 1))
    convolutions = tuple(_convolutions(axes, groups))
    plan = SubpixelPlan(axes, groups, convolutions)
    return _opset_reason(op, plan) or plan


def has_blocks(axes: Sequence[Axis]) -> bool:
    """True if a DepthToSpace can place the phases."""
    return len(axes) == 2 and axes[0].stride == axes[1].stride


def _convolutions(axes: Sequence[Axis], groups: int) -> Iterator[tuple[Phase, ...]]:
    """Yields the phases of each convolution: those with equally many window elements, if that keeps them in order."""
    parts = [a.parts() for a in axes]
    if all(len(p) == 1 for p in parts):
        yield tuple(combinations(*(p[0] for p in parts)))
        return
    # Groups of channels need all phases in one convolution.
    last = max(k for k, p in enumerate(parts) if len(p) > 1) if groups == 1 else len(axes)
    single = [[[r] for part in p for r in part] for p in parts[:last]]
    for chosen in combinations(*single, *parts[last:]):
        yield tuple(combinations(*chosen))


def _constant_reason(op: OnnxOp) -> str | None:
    weight, bias = constant_weight(op.operands[1]), operand(op, 2)
    if weight is None:
        return "its weight is not a constant"
    if bias is not None and constant_weight(bias) is None:
        return "its bias is not a constant"
    if not weight.elided and not bool(np.isfinite(weight.array()).all()):
        return "its weight is not finite"
    return None


def _opset_reason(op: OnnxOp, plan: SubpixelPlan) -> str | None:
    opset = imported_opset(op, "") or MODES_OPSET
    if max(plan.strides) == 1:
        return None
    if has_blocks(plan.axes):
        return "DepthToSpace has no modes in this opset" if not plan.outer and opset < MODES_OPSET else None
    return "Reshape has no shape operand in this opset" if opset < RESHAPE_OPSET else None


def _slow_reason(op: OnnxOp, plan: SubpixelPlan, beside: bool) -> str | None:
    """Returns the reason why ONNX Runtime's own node is faster. An isolated node pays for layout changes on both sides
    more than it saves in multiplications by zero, unless it has neither, or is depthwise with phases that all read the
    same several elements (windows of 4 by stride 2, 64 channels of 28 x 28, take 0.35 of its time, but of 3 by 2 1.35,
    of 2 by 2 1.1 to 1.2); and 16-bit convolutions are computed in 32 bits."""
    weight = known_dims(op.operands[1])
    alike = len(plan.convolutions) == 1 and any(a.taps(0) > 1 for a in plan.axes)
    depthwise = weight is not None and weight[1] == Expr.of(1) and plan.groups > 1 and alike
    full = weight is not None and (weight[1].constant or 0) >= FULL_VECTORS
    if not beside and not depthwise and (max(plan.strides) > 1 or not full):
        return "it has no neighbouring convolution to share a layout with"
    if len(plan.convolutions) > 1 and element(op.results[0]) not in (f32, f64):
        return "its phases read parts of different sizes, and 16-bit floats would be converted for each phase"
    return None


def _digits(phase: Phase) -> str:
    return "".join(f".{r}" for r in phase)
