"""Signatures of fusion regions: regions with equal signatures compute the same, so equal layers are lowered once.

Two regions with one signature have the same nodes in the same order, with equal attributes, types and edges; a kernel
of one is a kernel of the other. Names do not count. The elements of weights (operands) do not count either, but being a
weight does, and so do constants inside.

Regions with a difference only in the names of symbols have different signatures; `deduplicate-kernels` merges their
kernels.
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.ir import Operation, SSAValue

from igniter.dialects.fusion import RegionOp
from igniter.dialects.onnx.base import constant_weight

# Properties of a node without effect on its results: see igniter.dialects.onnx.base.
_NAMES = frozenset(
    ("node_name", "doc_string", "metadata", "device_configurations", "output_names", "output_info", "attribute_info")
)
_REGION_NAMES = frozenset(("sym_name", "kernel"))


def region_signature(region: RegionOp, anything: frozenset[Operation] = frozenset()) -> Hashable:
    """Returns the signature of one region. Nodes in `anything` count as equal, whatever their attributes."""
    numbers: dict[SSAValue, int] = {}
    for value in region.block.args:
        numbers[value] = len(numbers)
    nodes: list[Hashable] = []
    for op in region.block.ops:
        nodes.append((op.name, tuple(op.result_types)) if op in anything else _node(op, numbers))
        for result in op.results:
            numbers[result] = len(numbers)
    own = tuple((k, a) for k, a in sorted(region.properties.items()) if k not in _REGION_NAMES)
    weights = tuple(constant_weight(v) is not None for v in region.inputs)
    return (region.block.arg_types, weights, own, tuple(sorted(region.attributes.items())), tuple(nodes))


def _node(op: Operation, numbers: dict[SSAValue, int]) -> Hashable:
    properties = tuple((k, a) for k, a in sorted(op.properties.items()) if k not in _NAMES)
    # Nodes with subgraphs are in no region, so operands, attributes and types are complete.
    operands = tuple(numbers[v] for v in op.operands)
    return (op.name, operands, tuple(sorted(op.attributes.items())), properties, tuple(op.result_types))
