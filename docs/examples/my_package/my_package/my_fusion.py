"""`heavy-edges`: another author of fusion, which fuses pointwise nodes along the tensors that weigh most.

    x -> Conv -> Add -> Relu -> Mul -> Softmax        the three in the middle are one region, the others ONNX Runtime's

Only nodes that compute each element on its own are fused. The largest tensors disappear first, and no region gets more
than `most` nodes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from igniter.analysis.fusion.author import FusionAuthor, Pair
from igniter.analysis.fusion.graph import FusionGraph, FusionNode
from igniter.analysis.fusion.legality import Reason
from igniter.analysis.fusion.region_growing import Refusal
from igniter.analysis.fusion.region_policy import Group


@dataclass(frozen=True)
class HeavyEdges(FusionAuthor):
    """Fuses pointwise nodes, the largest tensors between them first"""

    name = "heavy-edges"
    most: int = 8
    """Nodes to a region."""

    def refuse_node(self, node: FusionNode) -> Reason | None:
        """Why a node that could be compiled is left to ONNX Runtime."""
        if node.kind != "elementwise":
            return Reason("cost", f"{node.name} is not pointwise ({node.kind})")
        return None

    def order(self, graph: FusionGraph) -> Iterable[Pair]:
        """The candidates, those with the most bytes between them first."""
        return sorted(graph.candidates, key=lambda pair: -graph.bytes_between(*pair))

    def refuse_merge(self, a: Group, b: Group) -> Refusal | None:
        """Why two groups do not become one."""
        if len(a) + len(b) > self.most:
            return Refusal("too-many", f"the region would have more than {self.most} nodes (most)")
        if not a.bytes_to(b):
            return Refusal("no-bytes", "no tensor passes between them", final=False)
        return None

    def refuse_region(self, nodes: Sequence[FusionNode]) -> Reason | None:
        """Why what has grown gets no kernel."""
        if len(nodes) < 2:
            return Reason("cost", "it found no other node to be fused with")
        return None
