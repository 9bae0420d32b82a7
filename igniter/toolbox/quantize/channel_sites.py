"""The values of a model whose channels can be scaled before quantisation.

A factor can be scaled if every node to be quantised that reads it multiplies its channels by a constant weight. Its
producer decides the division:

    absorbed    made by a convolution or product alone, through ops that keep factors: its weight is divided
    taken over  made by an op with a constant factor for each channel, without other readers: that factor is divided
    divided     else: a node in front of the readers divides it

The first two cost nothing at run time. The scales of QuantizeLinear could divide too, one for each channel, but ONNX
Runtime has convolutions with channels last, where it processes such scales one number at a time.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from xdsl.dialects.builtin import Float32Type
from xdsl.ir import BlockArgument, SSAValue

from igniter.dialects.onnx.base import NoValueOp, OnnxOp, constant_weight
from igniter.dialects.onnx.structure import GraphOp
from igniter.toolbox.quantize.channel_scales import Channels, Producer, Reader
from igniter.toolbox.quantize.quantization_plan import Candidate, value_name

if TYPE_CHECKING:
    Array = np.ndarray[Any, Any]

CONVOLUTIONS = ("Conv", "ConvTranspose")
KEEP_FACTORS = ("Relu", "LeakyRelu", "MaxPool", "AveragePool", "GlobalAveragePool", "Identity")
"""Ops with `f(s * x) = s * f(x)` for positive `s`, channel by channel."""
NORMALISATIONS = ("LayerNormalization", "BatchNormalization")
"""Ops whose second and third operand are a factor and a summand for each channel."""
BOUNDS = ("Clip",)
"""Ops that integer kernels fuse, but without keeping factors."""


@dataclass(frozen=True, eq=False)
class Site:
    """A value whose channels can be scaled, its readers, and the node whose weight is divided, if any."""

    name: str
    value: SSAValue
    readers: tuple[Candidate, ...]
    producer: Candidate | None

    @property
    def axis(self) -> int:
        """The axis of the channels: the second of images, the last of rows."""
        return 1 if self.readers[0].op.op_type in CONVOLUTIONS else -1

    @property
    def rank(self) -> int:
        """The number of dims of convolutions' images; 0 for rows of any rank."""
        weight = constant_weight(self.readers[0].op.operands[1])
        assert weight is not None
        return len(weight.shape) if self.axis == 1 else 0

    @property
    def takes_over(self) -> tuple[OnnxOp, tuple[int, ...]] | None:
        """The producer of the value, and its constant operands to divide instead."""
        op = self.value.owner
        if not isinstance(op, OnnxOp) or op.domain or not self._alone():
            return None
        if op.op_type in ("Mul", "Div"):
            places = (1,) if op.op_type == "Div" else (0, 1)
            found = next((k for k in places if self._is_by_channel(op.operands[k])), None)
            return None if found is None else (op, (found,))
        if op.op_type in NORMALISATIONS and len(op.results) >= 1 and self._normalises(op):
            given = tuple(k for k in (1, 2) if k < len(op.operands) and not isinstance(op.operands[k].owner, NoValueOp))
            return (op, given) if all(constant_weight(op.operands[k]) is not None for k in given) else None
        return None

    @property
    def is_free(self) -> bool:
        """True if scales cost no computation."""
        return self.producer is not None or self.takes_over is not None

    def serves(self, names: Collection[str]) -> bool:
        """True if scaling is useful, or costs nothing, when the nodes of these names are quantised."""
        return self.is_free or any(reader.name in names for reader in self.readers)

    def _alone(self) -> bool:
        ops = {reader.op for reader in self.readers}
        return all(use.operation in ops for use in self.value.uses)

    def _is_by_channel(self, value: SSAValue) -> bool:
        """True if a value is a constant with one number, or one for each channel."""
        weight = constant_weight(value)
        if weight is None or weight.elided or not isinstance(weight.element_type, Float32Type):
            return False
        sizes = [k for k, d in enumerate(weight.shape) if d != 1]
        at = [1] if self.axis == 1 else [len(weight.shape) - 1]
        return len(weight.shape) <= (self.rank or len(weight.shape)) and (
            not sizes or (sizes == at and len(weight.shape) == (self.rank or len(weight.shape)))
        )

    def _normalises(self, op: OnnxOp) -> bool:
        if op.op_type == "BatchNormalization":
            return self.axis == 1 and not op.attr("training_mode", 0)
        weight = constant_weight(op.operands[1])
        return self.axis == -1 and op.attr("axis", -1) == -1 and weight is not None and len(weight.shape) == 1


def sites(graph: GraphOp, nodes: Sequence[Candidate]) -> list[Site]:
    """Returns the values of a graph whose channels can be scaled, in the order of their readers."""
    by_value: dict[SSAValue, list[Candidate]] = {}
    for node in nodes:
        for index in node.computed:
            by_value.setdefault(node.op.operands[index], []).append(node)
    makers: dict[SSAValue, Candidate] = {node.op.results[0]: node for node in nodes}
    found: list[Site] = []
    for value, readers in by_value.items():
        name = value_name(value, graph)
        if not name or not all(_multiplies(r, value) for r in readers):
            continue
        if len({r.op.op_type in CONVOLUTIONS for r in readers}) != 1:
            continue
        source, only = _source(value, {r.op for r in readers})
        maker = makers.get(source)
        if maker is None:
            found.append(Site(name, value, tuple(readers), None))
        elif only and row_axis(maker) is not None:
            found.append(Site(name, value, tuple(readers), maker))
    return found


def _multiplies(node: Candidate, value: SSAValue) -> bool:
    """True if a node multiplies the channels of a value, its first factor, by a constant weight."""
    op = node.op
    weight = constant_weight(op.operands[1])
    if weight is None or weight.elided or op.operands[0] is not value or node.computed != [0]:
        return False
    if op.op_type == "Gemm":
        return not op.attr("transA", 0)
    return len(weight.shape) == 2 if op.op_type == "MatMul" else len(weight.shape) > 2


def _source(value: SSAValue, readers: set[OnnxOp]) -> tuple[SSAValue, bool]:
    """Returns the source of a value behind ops of `KEEP_FACTORS` and `BOUNDS`; and True if `readers` are the only
    readers of everything on the way and all of the ops keep factors."""
    only = all(use.operation in readers for use in value.uses)
    while not isinstance(value, BlockArgument):
        op = value.owner
        if not isinstance(op, OnnxOp) or op.op_type not in (*KEEP_FACTORS, *BOUNDS) or op.domain:
            break
        only = only and op.op_type in KEEP_FACTORS
        value = op.operands[0]
        only = only and value.get_unique_use() is not None
    return value, only


def row_axis(node: Candidate) -> int | None:
    """Returns the axis of a node's weight with its results' channels; `None` if the weight cannot scale these."""
    op, weight = node.op, constant_weight(node.op.operands[1])
    if weight is None or weight.elided:
        return None
    if op.op_type == "ConvTranspose":
        return 1 if op.attr("group", 1) == 1 else None
    if op.op_type == "MatMul":
        return len(weight.shape) - 1 if len(weight.shape) == 2 else None
    if op.op_type == "Gemm" and (op.attr("alpha", 1.0) != 1.0 or op.attr("beta", 1.0) != 1.0):
        return None
    if len(op.operands) > 2 and not isinstance(op.operands[2].owner, NoValueOp):
        bias = constant_weight(op.operands[2])
        if bias is None or bias.elided or len(bias.shape) != 1 or bias.shape != (weight.shape[node.weight_axis],):
            return None
    return node.weight_axis


def depth_axis(node: Candidate) -> tuple[int, int]:
    """Returns the axis of a node's weight with the channels of its first factor, and the number of their groups."""
    op = node.op
    if op.op_type == "Conv":
        return 1, int(op.attr("group", 1))
    if op.op_type == "Gemm" and op.attr("transB", 0):
        return 1, 1
    return 0, 1


def reader_of(node: Candidate, whole: bool) -> Reader:
    """Returns the figures of a node's weight for each channel it reads; `whole`: the weight has a single scale."""
    weight = constant_weight(node.op.operands[1])
    assert weight is not None
    axis, groups = depth_axis(node)
    values = np.abs(weight.array().astype(np.float32))
    if node.op.op_type == "ConvTranspose":
        # [groups * depth, outputs of a group, window..]
        groups = int(node.op.attr("group", 1))
        parts = values.reshape(groups, -1, values.shape[1], values[0, 0].size).swapaxes(1, 2)
    else:
        rows = values if axis == 1 else np.moveaxis(values, 0, 1)
        parts = rows.reshape(groups, rows.shape[0] // groups, rows.shape[1], -1)
    return Reader(parts.max(axis=3), np.square(parts).sum(axis=3), parts.shape[3], whole)


def producer_of(node: Candidate, graph: GraphOp, held: Mapping[str, Channels]) -> Producer | None:
    """Returns the figures of a node's weight for each channel of its results; `None` if its input is uncalibrated."""
    weight, axis = constant_weight(node.op.operands[1]), row_axis(node)
    given = held.get(value_name(node.op.operands[0], graph))
    if weight is None or axis is None or given is None:
        return None
    values = np.abs(weight.array().astype(np.float32))
    over = tuple(k for k in range(values.ndim) if k != axis)
    return Producer(values.max(axis=over), values.size // values.shape[axis] * float(given.square.mean()))


__all__ = ["Site", "depth_axis", "producer_of", "reader_of", "row_axis", "sites"]
