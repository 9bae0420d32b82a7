"""`heavy-edges`: a fusion author that fuses pointwise nodes, along the largest tensors first.

    x -> Conv -> Add -> Relu -> Mul -> Softmax        the three in the middle are one region, the others ONNX Runtime's

Only pointwise nodes are fused. The largest tensors disappear first, and no region gets more than `most` nodes.
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
    """The maximum number of nodes in a region."""

    def refuse_node(self, node: FusionNode) -> Reason | None:
        """Returns the reason to leave a compilable node to ONNX Runtime, or None."""
        if node.kind != "elementwise":
            return Reason("cost", f"{node.name} is not pointwise ({node.kind})")
        return None

    def order(self, graph: FusionGraph) -> Iterable[Pair]:
        """Returns the candidates, the largest number of bytes between them first."""
        return sorted(graph.candidates, key=lambda pair: -graph.bytes_between(*pair))

    def refuse_merge(self, a: Group, b: Group) -> Refusal | None:
        """Returns the reason not to merge two groups, or None."""
        if len(a) + len(b) > self.most:
            return Refusal("too-many", f"the region would have more than {self.most} nodes (most)")
        if not a.bytes_to(b):
            return Refusal("no-bytes", "no tensor passes between them", final=False)
        return None

    def refuse_region(self, nodes: Sequence[FusionNode]) -> Reason | None:
        """Returns the reason not to make a kernel of a finished region, or None."""
        if len(nodes) < 2:
            return Reason("cost", "it found no other node to be fused with")
        return None
