"""`form-subpixel-convolutions`: a ConvTranspose is a convolution whose channels become places.

A place of the result gets something from an element of the window where their distance is a multiple of the stride.
With strides `s`, places that are `s` apart get it from the same elements; they are a *phase*, and neighbours in a phase
see neighbours of the input:

    y[s*p + r] = sum over t of w[r + s*t] * x[p - t]

So each phase is a convolution by a part of the window, turned around, and those of all phases are one convolution that
has the phases for channels (the sub-pixel convolution of Shi et al., 2016, https://arxiv.org/abs/1609.05158):

    %y = onnx.ConvTranspose(%x, %w, %b) {strides = [2, 2], pads = [1, 1, 1, 1]}       // %w 64x32x4x4
becomes
    %p = onnx.Conv(%x, %w', %b') {pads = [1, 1, 1, 1]}                                // %w' 128x64x2x2
    %q = onnx.DepthToSpace(%p) {blocksize = 2}
    %y = onnx.Slice(%q) of [1, -1] along both axes

What works on single elements behind a DepthToSpace goes in front of it, so that the convolution ends with it. Where all
places of all phases are wanted, the convolution is marked (`igniter.phases`): phases then are loops of its nest, which
writes where the places are.

No zero is multiplied. Where the stride does not divide the window, phases see parts of other sizes: those of one size
are a convolution, and a Concat joins them. In one dim, or with strides that differ, Reshape and Transpose stand for
DepthToSpace, with shapes that are computed where only a run knows them. Strides of 1 are one phase, which may be
dilated.

Left as they are: weights that are no constants, or not finite (the rim would multiply them by zeros); strides larger
than the window; dilations with a stride; pads that hang on sizes. Unless `force` says so, too: nodes with a stride that
hang together with no convolution, which alone would change the layout of what they read and of what they make.

It stands at the end of the ONNX level, where what follows a ConvTranspose and scales its channels has been folded into
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product as combinations
from math import prod
from typing import TYPE_CHECKING, Any

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
from igniter.rewrites import budget
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
    import numpy as np

    from igniter.dialects.onnx.base import OnnxOp

    Array = np.ndarray[Any, Any]

Phase = tuple[int, ...]

POINTWISE = ("Clip", "Elu", "HardSigmoid", "HardSwish", "LeakyRelu", "Mish", "Relu", "Sigmoid", "Softplus", "Tanh")
"""Ops that go in front of a DepthToSpace, whose elements they take one by one: a convolution then ends with them."""

FULL_VECTORS = 12
"""Channels of a phase: with fewer, too much of a panel would be zeros."""

SLICE_OPSET, RESHAPE_OPSET, MODES_OPSET, ALLOWZERO_OPSET = 10, 5, 11, 14
"""The opsets from which Slice and Reshape have as operands what were attributes before, DepthToSpace has modes, and
Reshape takes a 0 for a 0."""

ONE_INTEGER = tensor_of(i64, [Expr.of(1)])


@dataclass(frozen=True)
class FormSubpixelConvolutions(ModulePass):
    """Makes each ConvTranspose a Conv whose channels are put side by side."""

    name = "form-subpixel-convolutions"
    one_rewrite = "a ConvTranspose that becomes convolutions"

    force: bool = False
    """Where ONNX Runtime's own node takes less, too."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        missed: dict[str, str] = {}
        beside = beside_convolutions(op.walk())

        def subpixel(node: OnnxOp, rw: Rewriter) -> Replacement | None:
            plan = plan_of(node)
            if isinstance(plan, Plan) and not self.force:
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
            remark(ctx, self.name, "", "applied", f"{count} transposed convolutions as convolutions", count=count)


@dataclass(frozen=True)
class Axis:
    """One spatial axis: places `stride*p + phase - low`, for `first <= p < first + count`."""

    stride: int
    dilation: int
    kernel: int
    first: int
    more: int
    """How many more steps there are than elements of the input; negative where there are fewer."""
    start: int
    """The places that are cut off in front and, `end`, behind."""
    end: int

    @staticmethod
    def of(spread: Spread) -> Axis | str:
        """The axis of a transposed convolution, or why it has none."""
        kernel, low, stride, dilation = spread.kernel.constant, spread.low.constant, spread.stride, spread.dilation
        if kernel is None or low is None:
            return "what it cuts off in front hangs on its size"
        if stride > kernel or (stride > 1 and dilation > 1):
            return f"its windows of {kernel}, dilated by {dilation}, are {stride} apart"
        first = low // stride
        count = floordiv(spread.count + low + stride - 1, Expr.of(stride)) - first
        more, end = (count - spread.size).constant, (count * stride - (spread.count + low - first * stride)).constant
        if more is None or end is None:
            return "what it cuts off behind hangs on its size"
        return Axis(stride, dilation, kernel, first, more, low - first * stride, end)

    def taps(self, phase: int) -> int:
        """The elements of the window that places of a phase see."""
        return -(-(self.kernel - phase) // self.stride)

    def pads(self, phase: int) -> tuple[int, int]:
        """What the convolution of a phase adds in front and behind."""
        reach = (self.taps(phase) - 1) * self.dilation
        return reach - self.first, self.more + self.first

    def parts(self) -> list[list[int]]:
        """The phases that see as many elements, in order."""
        cut = self.kernel % self.stride
        return [part for part in (list(range(cut)), list(range(cut, self.stride))) if part]


@dataclass(frozen=True)
class Phases:
    """The weight of the convolution of some phases: `[outs, depth, taps..]`, from `[ins, outs / groups, window..]`.
    Channels go by phase, `outer`, or each channel has its phases side by side."""

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
        import numpy as np

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
class Plan:
    """How a transposed convolution is made of convolutions."""

    axes: tuple[Axis, ...]
    groups: int
    convolutions: tuple[tuple[Phase, ...], ...]
    """The phases of each, together in the order of their numbers."""

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(a.stride for a in self.axes)

    @property
    def outer(self) -> bool:
        """Whether the phases of a channel lie apart: groups have all of their channels together."""
        return self.groups == 1 or len(self.convolutions) > 1

    def has_loops(self, outs: int) -> bool:
        """Whether phases of `outs` channels are loops around the convolution of each, which so writes where its places
        are: all of its places are wanted, and channels fill vectors."""
        whole = len(self.convolutions) == 1 and not any(a.start or a.end for a in self.axes)
        return whole and self.groups == 1 and max(self.strides) > 1 and outs >= FULL_VECTORS

    def build(self, op: OnnxOp, rw: Rewriter) -> Replacement:
        """The nodes, in front of the ConvTranspose."""
        made = [self._convolve(op, rw, phases) for phases in self.convolutions]
        channels = made[0] if len(made) == 1 else self._join(rw, made)
        placed = self._place(op, rw, channels) if max(self.strides) > 1 else channels
        return [self._cut(op, rw, placed)]

    def _convolve(self, op: OnnxOp, rw: Rewriter, phases: tuple[Phase, ...]) -> SSAValue:
        import numpy as np

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
        """Phases, which are channels, side by side."""
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
        import numpy as np

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
    """A value with the dims of `shape`: numbers, and products of dims that it has. What only a run knows is computed
    from its shape where it is more than one dim: a -1 says nothing of a tensor without elements."""
    import numpy as np

    known = [d.constant for d in dims]
    if 0 not in known and known.count(None) == 1:
        # One dim is what is left; the batch is taken as it comes.
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
    import numpy as np

    return rw.op("Gather", [shape, rw.constant(np.array([k], np.int64))], [ONE_INTEGER], {"axis": 0}).results[0]


def hoist(op: OnnxOp, rw: Rewriter) -> Replacement | None:
    """pointwise op in front of what moves its operand"""
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


def plan_of(op: OnnxOp) -> Plan | str:
    """How a ConvTranspose is made of convolutions, or why it is not."""
    data, weight, known = known_dims(operand(op, 0)), known_dims(operand(op, 1)), known_dims(op.results[0])
    if data is None or weight is None or known is None:
        return "its shapes are not known"
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
            return "it cuts off more than its windows reach"
        found.append(axis)
    axes, groups = tuple(found), int(op.attr("group", 1))
    convolutions = tuple(_convolutions(axes, groups))
    plan = Plan(axes, groups, convolutions)
    return _opset_reason(op, plan) or plan


def has_blocks(axes: Sequence[Axis]) -> bool:
    """Whether a DepthToSpace says how phases come side by side."""
    return len(axes) == 2 and axes[0].stride == axes[1].stride


def _convolutions(axes: Sequence[Axis], groups: int) -> Iterator[tuple[Phase, ...]]:
    """The phases of one convolution each: those that see as many elements, where that keeps them in order."""
    parts = [a.parts() for a in axes]
    if all(len(p) == 1 for p in parts):
        yield tuple(combinations(*(p[0] for p in parts)))
        return
    # Groups of channels hold all phases of a convolution between them.
    last = max(k for k, p in enumerate(parts) if len(p) > 1) if groups == 1 else len(axes)
    single = [[[r] for part in p for r in part] for p in parts[:last]]
    for chosen in combinations(*single, *parts[last:]):
        yield tuple(combinations(*chosen))


def _constant_reason(op: OnnxOp) -> str | None:
    import numpy as np

    weight, bias = constant_weight(op.operands[1]), operand(op, 2)
    if weight is None:
        return "its weight is no constant"
    if bias is not None and constant_weight(bias) is None:
        return "its bias is no constant"
    if not weight.elided and not bool(np.isfinite(weight.array()).all()):
        return "its weight is not finite"
    return None


def _opset_reason(op: OnnxOp, plan: Plan) -> str | None:
    opset = imported_opset(op, "") or MODES_OPSET
    if max(plan.strides) == 1:
        return None
    if has_blocks(plan.axes):
        return "DepthToSpace has no modes in its opset" if not plan.outer and opset < MODES_OPSET else None
    return "Reshape has no operand in its opset" if opset < RESHAPE_OPSET else None


def _slow_reason(op: OnnxOp, plan: Plan, beside: bool) -> str | None:
    """Why ONNX Runtime's own node takes less: alone, the layouts on both sides cost more than the zeros that are not
    multiplied, unless there are none or each channel is by itself; and convolutions of 16 bits are computed in 32."""
    weight = known_dims(op.operands[1])
    depthwise = weight is not None and weight[1] == Expr.of(1) and plan.groups > 1
    full = weight is not None and (weight[1].constant or 0) >= FULL_VECTORS
    if not beside and not depthwise and (max(plan.strides) > 1 or not full):
        return "no convolution is beside it, whose layout it would have"
    if len(plan.convolutions) > 1 and element(op.results[0]) not in (f32, f64):
        return "its phases see parts of other sizes, and floats of 16 bits are converted for each"
    return None


def _digits(phase: Phase) -> str:
    return "".join(f".{r}" for r in phase)
