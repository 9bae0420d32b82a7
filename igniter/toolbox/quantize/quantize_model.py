"""`quantize-model`: quantises products and convolutions, with the ranges found by calibration.

    %y = onnx.Conv(%x, %w, %b)     ->    %q = onnx.QuantizeLinear(%x, %s, %z)
                                         %d = onnx.DequantizeLinear(%q, %s, %z)
                                         %v = onnx.DequantizeLinear(%codes, %scales) {axis = 0}
                                         %c = onnx.DequantizeLinear(%bias, %both) {axis = 0}
                                         %e = onnx.Conv(%d, %v, %c)
                                         %y = a pair of both again, behind a Relu or a Clip if that reads %e

A value with several readers is quantised once. The bias is i32 in steps of the product of both scales. The result of a
convolution, after a Relu or a Clip as its only reader, is quantised for all its readers, because integer kernels return
integers. The result of a product is not: its readers quantise it if needed. The outputs of the graph stay in float.

First the model is brought to the form of `quantizable_form`. The results of calibration are in a JSON file, as written
by `igniter quantize --parameters`; all keys except `values` are optional:

    {"values": {"name of a value": [least, greatest], ...},
     "scales": {"name of a value": [what each channel is divided by], ...},
     "shifts": {"name of a node": [what each channel of its result is too large by], ...}}
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.context import Context
from xdsl.dialects.builtin import IntegerType, ModuleOp, Signedness, f32
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass

from igniter.analysis.onnx.weight_codes import Codes, Coding, Scales, Zeros, parameters
from igniter.dialects.onnx.base import NoValueOp, OnnxOp, constant_weight, make_constant, make_op
from igniter.dialects.onnx.structure import GraphOp, ReturnOp, main_graph
from igniter.dialects.onnx.weights import Weight
from igniter.dialects.sym import tensor_of
from igniter.dialects.sym.tensor_types import known_dims_of, unranked
from igniter.errors import IgniterError
from igniter.frontend.opsets import convert_opset, raise_opset
from igniter.remarks import remark
from igniter.rewrite_budget import budget
from igniter.toolbox.compress.weight_plan import weight_name
from igniter.toolbox.quantize.bias_shifts import take_shift
from igniter.toolbox.quantize.quantizable_form import quantizable_form
from igniter.toolbox.quantize.quantization_plan import Candidate, candidates, value_name
from igniter.toolbox.quantize.scale_channels import scale_channels
from igniter.transforms.onnx.infer_shapes import InferShapes

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

Ranges = Mapping[str, tuple[float, float]]
LEAST_OPSET, OF_CHANNELS = 10, 13
I8, UI8 = IntegerType(8), IntegerType(8, Signedness.UNSIGNED)
LARGEST_I32 = 2.0**31 - 1
NOTHING_SEEN = 1.0 / 256.0
"""The scale of a value with only zeros in all samples; the biases of its readers are in steps of it."""
WITH_RESULTS = ("Conv", "ConvTranspose")
"""The ops whose integer kernels return integers."""
BOUNDING = ("Relu", "Clip")


@dataclass(frozen=True)
class Style:
    """The options of quantisation."""

    activations: str = "u8"
    """The type of activations: u8 or i8."""
    symmetric: bool = False
    """Fixes the zero points of activations to the middle."""
    granularity: str = "channel"
    """The granularity of weights: channel or tensor."""
    asymmetric_weights: bool = False
    """Gives weights zero points."""

    def checked(self) -> Style:
        """Returns itself. Raises `IgniterError` for unknown options."""
        if self.activations not in ("u8", "i8"):
            raise IgniterError(f"activations are u8 or i8, not '{self.activations}'")
        if self.granularity not in ("channel", "tensor"):
            raise IgniterError(f"the granularity of weights is channel or tensor, not '{self.granularity}'")
        return self

    def parameters(self, low: float, high: float) -> tuple[float, int]:
        """Returns the scale and the zero point of a range."""
        low, high, least = min(low, 0.0), max(high, 0.0), -128 if self.activations == "i8" else 0
        if self.symmetric:
            scale = float(np.float32(max(-low, high) / 127.0))
            return (scale if scale > 0 else NOTHING_SEEN), least + 128
        scale = float(np.float32((high - low) / 255.0))
        if not scale > 0:
            return NOTHING_SEEN, least + 128 if least else 0
        return scale, int(np.clip(np.rint(-low / scale), 0, 255)) + least


@dataclass(frozen=True)
class QuantizeModel(ModulePass):
    """Computes products and convolutions on quantised tensors"""

    name = "quantize-model"
    one_rewrite = "a node quantised"

    ranges: str = ""
    """The JSON file with the ranges of values."""
    activations: str = "u8"
    """The stored type of activations: u8 or i8."""
    symmetric: bool = False
    """Fixes the zero points of activations to the middle."""
    granularity: str = "channel"
    """The part of a weight with its own scale: channel or tensor."""
    asymmetric_weights: bool = False
    """Gives weights zero points."""
    only: tuple[str, ...] = ()
    """Patterns of names and ops of nodes; only these are quantised."""
    leave: tuple[str, ...] = ()
    """The same patterns, for nodes left in float."""

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        style = Style(self.activations, self.symmetric, self.granularity, self.asymmetric_weights).checked()
        if require_opset(op, style):
            InferShapes().apply(ctx, op)
        quantizable_form(ctx, op)
        found, graph = read_parameters(self.ranges), main_graph(op)
        scale_channels(graph, candidates(op, (), self.only, self.leave), found.scales)
        rewrites = budget(ctx, self.name)
        taken = [c for c in candidates(op, (), self.only, self.leave) if rewrites.take(c.name, "it is quantised")]
        quantize(op, taken, found.ranges, style, found.shifts)
        for candidate in taken:
            remark(ctx, self.name, candidate.name, "applied", "it computes on quantised tensors")


@dataclass(frozen=True)
class Parameters:
    """The results of calibration: ranges of values, scales of their channels, and mean errors of nodes."""

    ranges: Ranges
    scales: Mapping[str, Array] = field(default_factory=dict[str, "Array"])
    """The divisors of the channels of values (`scale_channels`)."""
    shifts: Mapping[str, Array] = field(default_factory=dict[str, "Array"])
    """By node, the mean error of each channel of its result."""

    def as_dict(self) -> dict[str, Any]:
        """Returns the parameters in JSON's types, as `read_parameters` accepts them."""
        return {
            "values": {name: list(pair) for name, pair in self.ranges.items()},
            "scales": {name: scale.tolist() for name, scale in self.scales.items()},
            "shifts": {name: shift.tolist() for name, shift in self.shifts.items()},
        }


def read_parameters(path: str) -> Parameters:
    """Reads a file of parameters. Raises `IgniterError` if it contains no ranges."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        ranges = {name: (float(low), float(high)) for name, (low, high) in found["values"].items()}
        arrays = [
            {name: np.array(each, np.float32) for name, each in found.get(key, {}).items()}
            for key in ("scales", "shifts")
        ]
        return Parameters(ranges, *arrays)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise IgniterError(f"there are no ranges in '{path}': {error}") from error


def quantize(
    module: ModuleOp,
    nodes: list[Candidate],
    ranges: Ranges,
    style: Style,
    shifts: Mapping[str, Array] | None = None,
) -> None:
    """Quantises nodes, in place. `shifts` are, by node, the mean errors of the channels of its result; they are
    subtracted from its bias."""
    made = node_quantizer(module, ranges, style)
    made.shifts = shifts or {}
    for candidate in nodes:
        made.node(candidate)
    for candidate in nodes:
        made.result(candidate)
    made.erase_unread()


def require_opset(module: ModuleOp, style: Style) -> bool:
    """Raises the opset to the version needed for a style. True if nodes were rewritten for it. Raises `IgniterError` on
    failure."""
    least = OF_CHANNELS if style.granularity == "channel" else LEAST_OPSET
    if raise_opset(module, least) is None:
        return False
    refused = convert_opset(module, least)
    if refused is not None:
        other = "; a granularity of tensor needs no more than opset 10" if least == OF_CHANNELS else ""
        raise IgniterError(f"quantised models have opset {least} at least, and {refused}{other}")
    return True


def node_quantizer(module: ModuleOp, ranges: Ranges, style: Style) -> NodeQuantizer:
    """Returns the quantiser for single nodes of a module whose opset is new enough."""
    return NodeQuantizer(main_graph(module), ranges, style)


def coded_result(op: OnnxOp) -> SSAValue:
    """Returns the result of a convolution's integer kernels: its own, or the bounded one if only the bound reads it."""
    use = op.results[0].get_unique_use()
    reader = use.operation if use is not None else None
    bounded = isinstance(reader, OnnxOp) and reader.op_type in BOUNDING and not reader.domain and use is not None
    return reader.results[0] if bounded and isinstance(reader, OnnxOp) and use and use.index == 0 else op.results[0]


@dataclass
class NodeQuantizer:
    """Quantises nodes of a graph one by one; a value or a weight is quantised once for all of them."""

    graph: GraphOp
    ranges: Ranges
    style: Style
    pairs: dict[SSAValue, tuple[SSAValue, float]] = field(default_factory=dict[SSAValue, "tuple[SSAValue, float]"])
    """Maps a value to its dequantised form and its scale."""
    weights: dict[tuple[SSAValue, int], tuple[SSAValue, Array]] = field(
        default_factory=dict["tuple[SSAValue, int]", "tuple[SSAValue, Array]"]
    )

    shifts: Mapping[str, Array] = field(default_factory=dict[str, "Array"])

    def node(self, candidate: Candidate) -> None:
        """Gives a node quantised factors and the corresponding bias."""
        op, scales, computed = candidate.op, list[Any](), candidate.computed
        shift = self.shifts.get(candidate.name)
        if shift is not None:
            take_shift(candidate, shift, value_name(op.results[0], self.graph))
        for index in range(2):
            value = op.operands[index]
            if index in computed:
                found, scale = self._pair(value)
            else:
                found, scale = self._weight(value, candidate.weight_axis)
            op.operands[index] = found
            scales.append(scale)
        if op.op_type != "MatMul" and 1 not in computed and len(op.operands) > 2:
            self._bias(op, scales[0], scales[1])

    def result(self, candidate: Candidate) -> None:
        """Quantises the result of a convolution for all its readers, if its range is known."""
        if candidate.op.op_type not in WITH_RESULTS:
            return
        value = coded_result(candidate.op)
        known = value in self.pairs or value_name(value, self.graph) in self.ranges
        if not known or any(isinstance(use.operation, ReturnOp) for use in value.uses):
            return
        found, _ = self._pair(value)
        self._readers(value, found)

    def _readers(self, value: SSAValue, found: SSAValue) -> None:
        for use in list(value.uses):
            reader = use.operation
            if isinstance(reader, OnnxOp) and reader.op_type == "QuantizeLinear":
                continue
            reader.operands[use.index] = found

    def _pair(self, value: SSAValue) -> tuple[SSAValue, float]:
        known = self.pairs.get(value)
        if known is not None:
            return known
        name = value_name(value, self.graph)
        if name not in self.ranges:
            raise IgniterError(f"the range of '{name}' is not known: calibrate it, or leave what reads it in float")
        scale, zero = self.style.parameters(*self.ranges[name])
        kind = np.int8 if self.style.activations == "i8" else np.uint8
        place = self._behind(value)
        constants = [
            self._insert(make_constant(np.asarray(scale, np.float32), f"{name}.scale"), place),
            self._insert(make_constant(np.asarray(zero, kind), f"{name}.zero"), place),
        ]
        element = I8 if kind is np.int8 else UI8
        codes = make_op("QuantizeLinear", [value, *constants], [_retyped(value.type, element)])
        back = make_op("DequantizeLinear", [self._insert(codes, place), *constants], [value.type])
        found = (self._insert(back, place), scale)
        self.pairs[value] = found
        return found

    def _behind(self, value: SSAValue) -> Operation:
        """Returns the op before which new nodes are inserted: directly after the value."""
        first = self.graph.body.first_op
        owner = value.owner
        place = owner.next_op if isinstance(owner, Operation) else first
        assert place is not None
        return place

    def _weight(self, value: SSAValue, axis: int) -> tuple[SSAValue, Array]:
        known = self.weights.get((value, axis))
        if known is not None:
            return known
        weight, place = constant_weight(value), value.owner
        assert weight is not None and isinstance(place, OnnxOp) and place.next_op is not None
        whole = self.style.granularity == "tensor" or len(weight.shape) < 2
        coding = Coding(8, None if whole else axis, 0, not self.style.asymmetric_weights)
        name, shape, behind = weight_name(place), coding.parameter_shape(weight.shape), place.next_op
        parts = [
            Weight(weight.shape, coding.element, derivation=Codes(weight, coding)),
            Weight(shape, f32, derivation=Scales(weight, coding)),
        ]
        # Even if they are 0: without them, some of ONNX Runtime's own rewrites fail.
        parts.append(Weight(shape, coding.element, derivation=Zeros(weight, coding)))
        made = [
            self._insert(make_constant(part, f"{name}.{what}"), behind)
            for part, what in zip(parts, ("codes", "scales", "zeros"), strict=True)
        ]
        attrs = {} if coding.axis is None else {"axis": coding.axis}
        back = make_op("DequantizeLinear", made, [value.type], attrs)
        found = (self._insert(back, behind), parameters(weight, coding)[0])
        self.weights[(value, axis)] = found
        return found

    def erase_unread(self) -> None:
        """Erases unused constants."""
        for op in list(self.graph.body.ops):
            if isinstance(op, OnnxOp) and op.op_type == "Constant" and op.results[0].first_use is None:
                self.graph.body.erase_op(op)

    def _bias(self, op: OnnxOp, left: float, right: Array) -> None:
        """Quantises the bias to i32 in steps of both scales, if it is a constant that fits."""
        value = op.operands[2]
        weight = constant_weight(value)
        scaled = op.op_type == "Gemm" and (op.attr("alpha", 1.0) != 1.0 or op.attr("beta", 1.0) != 1.0)
        if weight is None or isinstance(value.owner, NoValueOp) or len(weight.shape) != 1 or scaled:
            return
        steps = (np.float32(left) * right).astype(np.float32)
        if not (steps.size == 1 or steps.size == weight.size) or not (steps > 0).all():
            return
        codes = np.rint(weight.array().astype(np.float64) / steps.astype(np.float64))
        if not np.isfinite(codes).all() or np.abs(codes).max(initial=0.0) > LARGEST_I32:
            return
        name = value_name(op.results[0], self.graph)
        made = [
            self._insert(make_constant(codes.astype(np.int32), f"{name}.bias"), op),
            self._insert(make_constant(steps.reshape(()) if steps.size == 1 else steps, f"{name}.bias.scale"), op),
        ]
        attrs = {"axis": 0} if steps.size > 1 else {}
        back = make_op("DequantizeLinear", made, [tensor_of(f32, weight.shape)], attrs)
        op.operands[2] = self._insert(back, op)

    def _insert(self, op: Operation, before: Operation) -> SSAValue:
        assert before.parent is not None
        before.parent.insert_op_before(op, before)
        return op.results[0]


def _retyped(kind: Attribute, element: Attribute) -> Attribute:
    dims = known_dims_of(kind)
    return unranked(element) if dims is None else tensor_of(element, dims)


__all__ = [
    "NodeQuantizer",
    "QuantizeModel",
    "Ranges",
    "Style",
    "coded_result",
    "node_quantizer",
    "quantize",
    "require_opset",
]
