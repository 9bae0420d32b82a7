"""The finished regions of a graph with their neighbours, for the last decision of a fusion author."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from xdsl.ir import Operation, SSAValue

from igniter.analysis.fusion.graph import FusionGraph, FusionNode
from igniter.analysis.fusion.legality import tensor_operands
from igniter.dialects.onnx.names import VIEWS, op_name


@dataclass(frozen=True)
class FinishedRegion:
    """A region after growth: its nodes, and the tensors that it shares with other regions."""

    nodes: tuple[FusionNode, ...]
    shared: tuple[SSAValue, ...]
    """The region's own inputs and results that another region makes or reads, also through views."""

    @property
    def stands_alone(self) -> bool:
        """True if its neighbours are nodes of ONNX Runtime, or inputs and outputs of the graph."""
        return not self.shared


def finished_regions(graph: FusionGraph, groups: Sequence[Sequence[int]]) -> list[FinishedRegion]:
    """Returns the groups of nodes with their neighbours."""
    region_of = {graph.nodes[n]: k for k, group in enumerate(groups) for n in group}
    found: list[FinishedRegion] = []
    for k, group in enumerate(groups):
        shared: dict[SSAValue, None] = {}
        for op in (graph.nodes[n] for n in group):
            shared.update((v, None) for v in tensor_operands(op) if _maker(v, region_of) not in (None, k))
            shared.update((r, None) for r in op.results if any(reader != k for reader in _readers(r, region_of)))
        found.append(FinishedRegion(tuple(graph.node(n) for n in group), tuple(shared)))
    return found


def _maker(value: SSAValue, region_of: dict[Operation, int]) -> int | None:
    owner = value.owner
    while isinstance(owner, Operation):
        if owner in region_of:
            return region_of[owner]
        if op_name(owner) not in VIEWS:
            return None
        owner = owner.operands[0].owner
    return None


def _readers(value: SSAValue, region_of: dict[Operation, int]) -> Iterator[int]:
    for use in value.uses:
        reader = use.operation
        if reader in region_of:
            yield region_of[reader]
        elif op_name(reader) in VIEWS and use.index == 0:
            for result in reader.results:
                yield from _readers(result, region_of)
