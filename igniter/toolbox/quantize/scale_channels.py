"""Inserts scales of channels into a model.

    %y = onnx.Conv(%x, %w)    ->    %s = onnx.Mul(%x, %inverse)              // 1 / s, a number for each channel
                                    %y = onnx.Conv(%s, %scaled)              // w * s

The model's results stay the same, up to rounding. If %x comes only from a convolution or product, through ops that
commute with factors, the weight and bias of that node are divided instead. If %x comes from an op with constant factors
per channel, and has no other readers, these factors are divided.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.ir import Operation

from igniter.dialects.onnx.base import NoValueOp, OnnxOp, constant_weight, make_constant, make_op
from igniter.dialects.onnx.structure import GraphOp
from igniter.dialects.onnx.weights import Weight
from igniter.toolbox.compress.weight_plan import weight_name
from igniter.toolbox.quantize.channel_sites import Site, depth_axis, row_axis, sites
from igniter.toolbox.quantize.quantization_plan import Candidate

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

MARK = ".scaled"
"""The suffix of the name of a divided value."""


@dataclass(frozen=True)
class ScaledAxis:
    """A weight multiplied by one number for each index along an axis. With `groups`, each group has its own part of the
    numbers and is one of as many parts of the first axis."""

    source: Weight
    factors: tuple[float, ...]
    axis: int
    groups: int = 1

    def compute(self) -> Array:
        plain, factors = self.source.array(), np.array(self.factors, np.float64)
        if self.groups == 1:
            shape = [-1 if k == self.axis else 1 for k in range(plain.ndim)]
            return (plain * factors.reshape(shape)).astype(plain.dtype)
        apart = plain.reshape(self.groups, -1, *plain.shape[1:])
        wide = [self.groups, 1, -1, *(1 for _ in plain.shape[2:])]
        return (apart * factors.reshape(wide)).astype(plain.dtype).reshape(plain.shape)


def scale_channels(graph: GraphOp, nodes: Sequence[Candidate], scales: Mapping[str, Array]) -> list[str]:
    """Divides the channels of values by `scales`, in place. Returns the names of the divided values."""
    done: list[str] = []
    for site in sites(graph, nodes):
        if site.name in scales and _fits(site, scales[site.name]):
            _scale(site, scales[site.name])
            done.append(site.name)
    return done


def _fits(site: Site, scale: Array) -> bool:
    if site.producer is not None:
        weight, axis = constant_weight(site.producer.op.operands[1]), row_axis(site.producer)
        if weight is None or axis is None or weight.shape[axis] != scale.size:
            return False
    for node in site.readers:
        weight = constant_weight(node.op.operands[1])
        axis, groups = depth_axis(node)
        if weight is None or weight.shape[axis] * groups != scale.size:
            return False
    return True


def _scale(site: Site, scale: Array) -> None:
    exact = scale.astype(np.float64)
    over = site.takes_over
    if site.producer is not None:
        _divide(site.producer, exact)
    elif over is not None:
        _take_over(site, *over, exact)
    else:
        rank = site.rank
        inverse = (1.0 / exact).astype(np.float32)
        # The weight is multiplied by the inverse of the rounded number.
        exact = 1.0 / inverse.astype(np.float64)
        shaped = inverse.reshape(1, -1, *(1 for _ in range(rank - 2))) if site.axis == 1 else inverse
        constant = make_constant(shaped, f"{site.name}.inverse")
        names = [f"{site.name}{MARK}"]
        divided = make_op("Mul", [site.value, constant.results[0]], [site.value.type], output_names=names)
        first = min((r.op for r in site.readers), key=_place)
        for made in (constant, divided):
            assert first.parent is not None
            first.parent.insert_op_before(made, first)
        for reader in site.readers:
            reader.op.operands[0] = divided.results[0]
    for reader in site.readers:
        axis, groups = depth_axis(reader)
        _multiply(reader.op, 1, exact, axis, groups)


def _take_over(site: Site, op: OnnxOp, places: Sequence[int], scale: Array) -> None:
    """Divides the result of an op by a number per channel, in its constants."""
    shaped = scale.reshape(1, -1, *(1 for _ in range(site.rank - 2))) if site.axis == 1 else scale
    if op.op_type == "BatchNormalization":
        shaped = scale
    for place in places:
        weight = constant_weight(op.operands[place])
        assert weight is not None and op.parent is not None
        plain = weight.array().astype(np.float64)
        made = make_constant(
            (plain * shaped if op.op_type == "Div" else plain / shaped).astype(np.float32),
            f"{site.name}.factors{place}",
        )
        op.parent.insert_op_before(made, op)
        op.operands[place] = made.results[0]


def _place(op: Operation) -> int:
    block = op.parent
    assert block is not None
    return block.get_operation_index(op)


def _divide(node: Candidate, scale: Array) -> None:
    """Divides a node's results by a number per channel."""
    axis = row_axis(node)
    assert axis is not None
    _multiply(node.op, 1, 1.0 / scale, axis, 1)
    if len(node.op.operands) > 2 and not isinstance(node.op.operands[2].owner, NoValueOp):
        _multiply(node.op, 2, 1.0 / scale, 0, 1)


def _multiply(op: OnnxOp, index: int, factors: Array, axis: int, groups: int) -> None:
    value = op.operands[index]
    weight, place = constant_weight(value), value.owner
    assert weight is not None and isinstance(place, OnnxOp) and op.parent is not None
    scaled = ScaledAxis(weight, tuple(factors.tolist()), axis, groups)
    name = weight_name(place)
    if value.get_unique_use() is None:
        name = f"{name}.{op.node_name or op.output_names[0]}"
    made = make_constant(Weight(weight.shape, weight.element_type, derivation=scaled), name)
    op.parent.insert_op_before(made, op)
    op.operands[index] = made.results[0]
    if value.first_use is None:
        assert place.parent is not None
        place.parent.erase_op(place)


__all__ = ["ScaledAxis", "scale_channels"]
