"""The products whose factors can be loaded by descriptors."""

from __future__ import annotations

from xdsl.ir import SSAValue

from igniter.analysis.structured.block_accesses import block_access
from igniter.analysis.structured.dot_products import LEAST
from igniter.dialects.loop import ReadOp
from igniter.dialects.loop.attrs import scalar_type
from igniter.dialects.sym import dims_of, element_of
from igniter.dialects.sym.expr import ZERO
from igniter.schedules.launch_groups import LaunchGroup, renamed


def has_descriptors(group: LaunchGroup) -> bool:
    """True if both factors of a group's product are blocks of tensors, at all sizes."""
    assert group.product is not None
    nest, dot = group.product
    dims = dot.renamed(group.names[nest])
    return _is_block(group, dims.a, (dims.row, dims.depth)) and _is_block(group, dims.b, (dims.depth, dims.column))


def _is_block(group: LaunchGroup, factor: SSAValue, laned: tuple[str, str]) -> bool:
    read = factor.owner
    assert group.product is not None
    names = group.names[group.product[0]]
    if not isinstance(read, ReadOp) or read.guards or read.indices or group.makes(read.source):
        return False
    element = scalar_type(element_of(read.source.type))
    at = renamed(read.subscripts, names)
    # A block of any size has at least as many lanes.
    lanes = dict.fromkeys(laned, LEAST)
    found = block_access(at, dims_of(read.source.type), element, lanes, group.dims, set(group.grid))
    return not isinstance(found, str) and found.lacking == ZERO
