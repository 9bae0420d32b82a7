"""What makes two fusion regions compute the same, as a hashable value: equal layers are lowered once, not once each.

Two regions with one signature have the same nodes in the same order, with equal attributes and types, wired alike; a
kernel of one is a kernel of the other. Names do not count, nor do the elements of weights, which are operands, but that
they are weights does, as do constants inside.
Regions that differ only in the names of their symbols have different signatures (`deduplicate-kernels`, which knows
the kernels, joins those).
"""

from __future__ import annotations

from collections.abc import Hashable

from xdsl.ir import Operation, SSAValue

from igniter.dialects.fusion import RegionOp
from igniter.dialects.onnx.base import constant_weight

# Properties of a node that say nothing of what it computes: see igniter.dialects.onnx.base.
_NAMES = frozenset(
    ("node_name", "doc_string", "metadata", "device_configurations", "output_names", "output_info", "attribute_info")
)
_REGION_NAMES = frozenset(("sym_name", "kernel"))


def region_signature(region: RegionOp, anything: frozenset[Operation] = frozenset()) -> Hashable:
    """The signature of one region. Nodes in `anything` count as equal whatever their attributes are."""
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
    # Nodes with subgraphs are in no region, so operands, attributes and types are all there is.
    operands = tuple(numbers[v] for v in op.operands)
    return (op.name, operands, tuple(sorted(op.attributes.items())), properties, tuple(op.result_types))
