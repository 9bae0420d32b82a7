"""`default`: Igniter's own fusion author. All its decisions are here.

Every fusible node is fused, with these exceptions. A node is left to ONNX Runtime if ORT's kernel is at least as fast
in every fusion: transposed convolutions, transforms, products and convolutions of bytes where no target multiplies
bytes. A region holds one contraction with weights and its epilogue, or several chained ones of computed tensors, as in
attention; chains of convolutions over a large image share one (`row_chains.py`). Views cost ORT nothing, so they stay
outside where they begin or end a region. A single node becomes a kernel only if its kernel beats ORT's.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from xdsl.ir import Operation

from igniter.analysis.fusion.author import FusionAuthor, Pair
from igniter.analysis.fusion.cost import (
    Contractions,
    Singletons,
    Views,
    is_constant,
    is_widening,
    multiplies_bytes,
    op_kind,
)
from igniter.analysis.fusion.legality import Reason, as_tensor, operand_kind
from igniter.analysis.fusion.measured_choice import measured_reason
from igniter.analysis.fusion.measured_points import measured
from igniter.analysis.fusion.region_growing import Refusal
from igniter.analysis.fusion.row_chains import are_chained
from igniter.analysis.onnx.quantized_neighbours import beside_integer_ops
from igniter.dialects.onnx.draws import draws
from igniter.dialects.onnx.names import VIEWS, op_name

if TYPE_CHECKING:
    from igniter.analysis.fusion.finished_regions import FinishedRegion
    from igniter.analysis.fusion.graph import FusionGraph, FusionNode
    from igniter.analysis.fusion.region_policy import Group

SIBLING_DISTANCE = 64
"""Two regions with only a common input merge if at most this many nodes lie between them in the graph: merging distant
regions keeps their other inputs and outputs in memory for longer."""

PROFITABLE_KINDS = frozenset(("reduction", "normalization"))
PROFITABLE_OPS = frozenset(
    (
        "ArgMax",
        "ArgMin",
        "Celu",
        "CumSum",
        "Elu",
        "Erf",
        "Exp",
        "GRU",
        "Gelu",
        "HardSwish",
        "LSTM",
        "Log",
        "Mish",
        "Pow",
        "RNN",
        "Selu",
        "Softplus",
        "Swish",
        "Transpose",
        "Where",
        "com.microsoft.BiasGelu",
        "com.microsoft.FastGelu",
        "com.microsoft.Gelu",
        "com.microsoft.QuickGelu",
    )
)
"""Single ops whose kernels here beat ORT's, besides whole kinds: ORT computes them in several passes over memory,
without vectors, or with an accurate but slow function."""


@dataclass(frozen=True)
class DefaultAuthor(FusionAuthor):
    """Leaves nodes to ONNX Runtime where that is as fast, and fuses the rest."""

    name = "default"

    contractions: Contractions = "all"
    """The fused MatMuls and similar ops: none, those up to `small_flops`, or all."""
    small_flops: int = 65_536
    singletons: Singletons = "winning"
    """The single nodes with a region: none, those whose kernels beat ORT's, or all."""
    byte_products: bool = True
    """True if a target of the library multiplies bytes (`Target.byte_products`)."""
    views: Views = "fused"
    """The views in regions: those between other nodes of one, or all, as copies."""
    algorithms: bool = False
    """True if the backend computes procedures by their algorithm (`Backend.algorithms`)."""
    points: str = ""
    """The instruction set whose measured points decide about regions (`measured_points.py`); by default that of the
    targets, and `off` for none. With all `singletons`, no points decide."""

    def refuse_node(self, node: FusionNode) -> Reason | None:
        """Refuses a node if ORT's kernel is at least as fast in every fusion."""
        op, spec = node.op, node.spec
        unprofitable = spec.unprofitable(op, node.cost.estimate) if spec is not None and spec.unprofitable else None
        small = self._is_small(node)
        if self.algorithms and spec is not None and spec.unprofitable_by_steps:
            unprofitable = None
        if small and self.contractions != "none" and not (spec is not None and spec.unprofitable_when_small):
            unprofitable = None
        if unprofitable is None and not self.byte_products and not small and multiplies_bytes(op):
            unprofitable = "no target has byte products, and ONNX Runtime adds them in 16 bits"
        if node.convolved and unprofitable is None:
            unprofitable = "it is part of a convolution, or done in its layout"
        if unprofitable is not None and self.singletons != "all":
            return Reason("cost", f"{node.name} is left to ONNX Runtime: {unprofitable}")
        if node.kind != "contraction" or self.contractions == "all":
            return None
        if self.contractions == "none":
            return Reason("cost", f"{node.name} is left to ONNX Runtime (contractions=none)")
        if small:
            return None
        return Reason("cost", f"{node.name} of {node.flops:,} operations is left to ONNX Runtime (contractions=small)")

    def _is_small(self, node: FusionNode) -> bool:
        return node.kind == "contraction" and node.flops <= self.small_flops

    def refuse_together(self, nodes: Sequence[FusionNode], refused: Sequence[Reason | None]) -> Mapping[int, Reason]:
        """Refuses nodes fused by ORT into one integer op with a node left to it."""
        return beside_integer_ops([node.op for node in nodes], refused)

    def classify(self, node: FusionNode) -> str:
        """Returns `weights` for a contraction with a constant operand, `products` for one of two computed tensors, and
        "" for other nodes and small contractions."""
        if node.kind != "contraction" or self._is_small(node):
            return ""
        return "weights" if any(is_constant(v) for v in node.op.operands[:2]) else "products"

    def order(self, graph: FusionGraph) -> Iterable[Pair]:
        """Returns the candidates: first data movement joins the contraction behind it, and dequantisation and widening
        their reader, before their producers can take them."""
        return [*_moves(graph), *_with_reader(graph), *graph.candidates]

    def refuse_merge(self, a: Group, b: Group) -> Refusal | None:
        """Refuses merges of contractions that are faster apart, and of distant groups with only a common input."""
        connected = a.feeds(b) or b.feeds(a)
        if a.classes and b.classes and not (connected and are_chained(a, b)):
            if "weights" in a.classes or "weights" in b.classes:
                return Refusal("contractions", "both contain a contraction, at least one of them with weights")
            if not connected:
                message = "both contain a contraction, and neither reads the other"
                return Refusal("contractions", message, final=False)
        if not connected:
            gap = max(a.first, b.first) - min(a.last, b.last) - 1
            if gap > SIBLING_DISTANCE:
                return Refusal("far", f"they only share an input, and {gap} nodes are between them", final=False)
        return None

    def give_back(self, node: FusionNode, inside: Set[Operation]) -> Reason | None:
        """Gives back a view whose source also leaves or enters the region: it costs ORT nothing, and a kernel a
        copy."""
        if self.views == "all" or node.name not in VIEWS or operand_kind(node.op, 0) != "tensor":
            return None
        source = node.op.operands[0]
        if source.owner in inside and all(use.operation in inside for use in source.uses):
            return None
        return Reason("view", "a view of an input or output of the region costs ONNX Runtime nothing")

    def refuse_region(self, nodes: Sequence[FusionNode]) -> Reason | None:
        """Refuses a kernel of views alone (a mere copy) and a single node unless it beats ORT's kernel."""
        working = [node for node in nodes if node.name not in VIEWS or self.views == "all"]
        if not working:
            return Reason("view", "a kernel of views only gains nothing, because views move no data")
        if len(working) > 1 or self.singletons == "all":
            return None
        (node,) = working
        if draws(node.op):
            return None
        if self.contractions != "all" and _folds_into_matmul(node):
            return Reason("cost", f"{node.name} of the last two dims is part of the MatMul that ONNX Runtime runs")
        if node.kind == "contraction" and self.contractions == "all":
            return None
        if self.singletons == "winning" and (node.name in PROFITABLE_OPS or node.kind in PROFITABLE_KINDS):
            return None
        return Reason("cost", f"{node.name} alone is left to ONNX Runtime (singletons={self.singletons})")

    def refuse_finished(self, region: FinishedRegion) -> Reason | None:
        """Refuses a region whose like was measured slower than ONNX Runtime."""
        found = measured(self.points)
        return None if found is None or self.singletons == "all" else measured_reason(region, found)

    def within_loop(self) -> DefaultAuthor:
        """Returns an author with a region for every node: any other node would leave the whole loop to ORT."""
        return replace(self, singletons="all")


def _moves(graph: FusionGraph) -> Iterator[Pair]:
    """Yields the edges into contractions of computed tensors, through data movement, and into any contraction through
    widening, nearest first."""
    nodes = graph.nodes
    sources: dict[int, list[int]] = {}
    for source, target in graph.edges:
        sources.setdefault(target, []).append(source)
    for target, kind in enumerate(graph.classes):
        pending = [target] if kind else []
        while pending:
            reader = pending.pop()
            for source in sources.get(reader, ()):
                alone = all(use.operation is nodes[reader] for result in nodes[source].results for use in result.uses)
                moves = kind == "products" and op_kind(nodes[source]) == "movement"
                if alone and (moves or is_widening(nodes[source])):
                    yield source, reader
                    pending.append(source)


def _with_reader(graph: FusionGraph) -> Iterator[Pair]:
    """Yields the edges to readers from DequantizeLinear nodes, and from Casts that widen, without other readers: so
    regions pass integers and 16-bit floats."""
    for source, target in graph.edges:
        op = graph.nodes[source]
        widens = op_name(op) == "DequantizeLinear" or is_widening(op)
        if widens and all(u.operation is graph.nodes[target] for u in op.results[0].uses):
            yield source, target


def _folds_into_matmul(node: FusionNode) -> bool:
    """True if a Transpose swaps the last two dims for MatMuls alone; these take their operands either way."""
    op = node.op
    if node.name != "Transpose":
        return False
    given: list[int] | None = op.attr("perm")
    tensor = as_tensor(op.results[0].type)
    if given is None and (tensor is None or tensor.get_num_dims() != 2):
        return False
    order = [1, 0] if given is None else given
    rank = len(order)
    swapped = rank >= 2 and order == [*range(rank - 2), rank - 1, rank - 2]
    return swapped and all(op_name(use.operation) == "MatMul" for use in op.results[0].uses)
