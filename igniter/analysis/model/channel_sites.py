"""Where the channels of a model's values can be scaled for nodes that are to be quantised.

A factor can where every node to be quantised that reads it multiplies its channels by a constant weight. How it is
divided depends on where it comes from:

    absorbed    from a convolution or product alone, through ops that keep factors: the weight of that is divided
    divided     else: a node in front of the readers divides it, and the quantisation takes that over

The result of a convolution that has codes of its own can where ops in float read it:

    restored    its weight is divided, and a node behind it multiplies, which dequantisation takes over

ONNX Runtime joins an op whose factors are all dequantised with a quantisation behind it, and its kernels for that want
one scale. So a result is not scaled where that could come to be.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from xdsl.ir import BlockArgument, SSAValue

from igniter.analysis.model.channel_scales import Channels, Producer, Reader
from igniter.analysis.model.quantization_plan import Candidate, value_name
from igniter.dialects.onnx.base import NoValueOp, OnnxOp, constant_weight
from igniter.dialects.onnx.structure import GraphOp

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, Any]

CONVOLUTIONS = ("Conv", "ConvTranspose")
KEEP_FACTORS = ("Relu", "LeakyRelu", "MaxPool", "AveragePool", "GlobalAveragePool", "Identity")
"""Ops of which `f(s * x) = s * f(x)` for positive `s`, channel by channel."""
WITH_TWO = ("Add", "Sub", "Mul", "Div")
UNJOINED = ("BatchNormalization", "Elu", "Erf", "Exp", "Gelu", "HardSigmoid", "HardSwish", "Mish", "Softplus", "Tanh")
"""Ops that ONNX Runtime has no kernel of integers for."""
BOUNDS = ("Clip",)
"""Ops that kernels of integers take in, and that keep no factors."""


@dataclass(frozen=True, eq=False)
class Site:
    """A value whose channels can be scaled, the nodes that read it, and the one whose weight is divided, if any. Of the
    result of a convolution there are no readers."""

    name: str
    value: SSAValue
    readers: tuple[Candidate, ...]
    producer: Candidate | None

    @property
    def axis(self) -> int:
        """The axis of the channels: the second of images, the last of rows."""
        return 1 if all(r.op.op_type in CONVOLUTIONS for r in self.readers) else -1

    def serves(self, names: Collection[str]) -> bool:
        """Whether scaling is of use, or costs nothing, where the nodes of these names are quantised."""
        if self.producer is not None and (self.readers or self.producer.name in names):
            return True
        return any(reader.name in names for reader in self.readers)


def sites(graph: GraphOp, nodes: Sequence[Candidate]) -> list[Site]:
    """The values of a graph whose channels can be scaled, in the order of the nodes that read them."""
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
    results = [Site(value_name(v, graph), v, (), node) for v, node in makers.items() if _is_restorable(node, by_value)]
    return found + [site for site in results if site.name]


def _is_restorable(node: Candidate, factors: Collection[SSAValue]) -> bool:
    value = node.op.results[0]
    if node.op.op_type not in CONVOLUTIONS or value in factors or row_axis(node) is None:
        return False
    readers = [use.operation for use in value.uses]
    return bool(readers) and all(isinstance(r, OnnxOp) and stays_in_float(r, value, factors) for r in readers)


def stays_in_float(op: OnnxOp, value: SSAValue, factors: Collection[SSAValue]) -> bool:
    """Whether a reader of a dequantised value is not joined with a quantisation behind it: it has another factor in
    float, or nothing is quantised that it gives."""
    if op.regions:
        return False
    if op.op_type in WITH_TWO and any(v is not value and not _is_of_convolution(v) for v in op.operands):
        return True
    if op.op_type in UNJOINED and not op.domain:
        return True
    pending = list(op.results)
    while pending:
        found = pending.pop()
        if found in factors:
            return False
        for use in found.uses:
            if use.operation.name in ("onnx.Relu", "onnx.Clip"):
                pending += use.operation.results
    return op.op_type not in ("Relu", "Clip")


def _is_of_convolution(value: SSAValue) -> bool:
    owner = value.owner
    return isinstance(owner, OnnxOp) and owner.op_type in CONVOLUTIONS


def _multiplies(node: Candidate, value: SSAValue) -> bool:
    """Whether a node multiplies the channels of a value, its first factor, by a constant weight."""
    op = node.op
    weight = constant_weight(op.operands[1])
    if weight is None or weight.elided or op.operands[0] is not value or node.computed != [0]:
        return False
    if op.op_type == "Gemm":
        return not op.attr("transA", 0)
    return len(weight.shape) == 2 if op.op_type == "MatMul" else len(weight.shape) > 2


def _source(value: SSAValue, readers: set[OnnxOp]) -> tuple[SSAValue, bool]:
    """What a value is of through ops that kernels of integers take in or that keep factors, and whether nothing but
    `readers` reads anything on the way and all of the ops keep factors."""
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
    """The axis of a node's weight that its results' channels have; `None` where these are not to be scaled by it."""
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
    """The axis of a node's weight that channels of its first factor have, and in how many groups they are."""
    op = node.op
    if op.op_type == "Conv":
        return 1, int(op.attr("group", 1))
    if op.op_type == "Gemm" and op.attr("transB", 0):
        return 1, 1
    return 0, 1


def reader_of(node: Candidate, whole: bool) -> Reader:
    """What a node's weight has for each channel; `whole` where the weight has one scale for all of it."""
    import numpy as np

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
    """What a node's weight has for each of its results' channels; `None` where nothing is known of what it reads."""
    import numpy as np

    weight, axis = constant_weight(node.op.operands[1]), row_axis(node)
    given = held.get(value_name(node.op.operands[0], graph))
    if weight is None or axis is None or given is None:
        return None
    values = np.abs(weight.array().astype(np.float32))
    over = tuple(k for k in range(values.ndim) if k != axis)
    return Producer(values.max(axis=over), values.size // values.shape[axis] * float(given.square.mean()))


__all__ = ["Site", "depth_axis", "producer_of", "reader_of", "row_axis", "sites"]
