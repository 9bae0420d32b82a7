"""`default`: Igniter's own fusion author. All that it decides is here.

What can be fused is, with these exceptions. A node stays with ONNX Runtime where ORT's kernel is at least as fast
whatever is fused with it: transposed convolutions, transforms, products and convolutions of bytes where no target
multiplies bytes. A region holds one contraction with weights and what follows it, or several of computed tensors that
read each other, which is what attention is; convolutions that go through a large image row by row share one
(`row_chains.py`). Views, which cost ORT nothing, stay at the rims of regions, and a node that
ended up alone becomes a kernel only where that beats ORT's.
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
    rounds_many_rows,
)
from igniter.analysis.fusion.legality import Reason, as_tensor, operand_kind
from igniter.analysis.fusion.region_growing import Refusal
from igniter.analysis.fusion.row_chains import are_chained
from igniter.analysis.onnx.quantized_neighbours import beside_integer_ops
from igniter.dialects.onnx.draws import draws
from igniter.dialects.onnx.names import VIEWS, op_name

if TYPE_CHECKING:
    from igniter.analysis.fusion.graph import FusionGraph, FusionNode
    from igniter.analysis.fusion.region_policy import Group

SIBLING_DISTANCE = 64
"""Two regions that only share an input merge when at most this many nodes lie between them in the graph: merging
what is far apart keeps their other inputs and outputs in memory for longer."""

WINNING_KINDS = frozenset(("reduction", "normalization"))
WINNING_OPS = frozenset(
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
"""Single ops whose kernels here beat ORT's, besides whole kinds: those that ORT computes in several passes over
memory, without vectors, or with an accurate but slow function."""


@dataclass(frozen=True)
class DefaultAuthor(FusionAuthor):
    """Leaves to ONNX Runtime what that does as fast, and fuses the rest."""

    name = "default"

    contractions: Contractions = "all"
    """Which MatMuls and their like are fused: none, those up to `small_flops`, or all."""
    small_flops: int = 65_536
    singletons: Singletons = "winning"
    """Which single nodes become a region: none, those whose kernels beat ORT's, or all."""
    byte_products: bool = True
    """Whether a target of the library multiplies bytes (`Target.byte_products`)."""
    views: Views = "fused"
    """Which views are in regions: those between other nodes of one, or all, as copies."""

    def refuse_node(self, node: FusionNode) -> Reason | None:
        """ORT's kernel is at least as fast, whatever is fused with it."""
        op, spec = node.op, node.spec
        slow = spec.slow(op, node.cost.estimate) if spec is not None and spec.slow else None
        small = self._is_small(node)
        if small and self.contractions != "none" and not (spec is not None and spec.slow_when_small):
            slow = None
        if slow is None and not self.byte_products and not small and multiplies_bytes(op):
            slow = "no target multiplies bytes, and ONNX Runtime adds their products in 16 bits"
        if slow is None and self.byte_products and rounds_many_rows(op):
            slow = "ONNX Runtime has tiles of rows for products of bytes"
        if node.convolved and slow is None:
            slow = "it is part of a convolution, or done in its layout"
        if slow is not None and self.singletons != "all":
            return Reason("cost", f"{node.name} is left to ONNX Runtime: {slow}")
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
        """What ORT makes one integer op of, with a node that it runs."""
        return beside_integer_ops([node.op for node in nodes], refused)

    def classify(self, node: FusionNode) -> str:
        """`weights` for a contraction with a constant operand, `products` for one of two tensors that are computed,
        and nothing for what is no contraction, or a small one."""
        if node.kind != "contraction" or self._is_small(node):
            return ""
        return "weights" if any(is_constant(v) for v in node.op.operands[:2]) else "products"

    def order(self, graph: FusionGraph) -> Iterable[Pair]:
        """What moves the operands of a contraction goes to it, and what dequantises to its reader, before what computes
        them can take it."""
        return [*_moves(graph), *_dequantized(graph), *graph.candidates]

    def refuse_merge(self, a: Group, b: Group) -> Refusal | None:
        """Contractions that are better apart, and groups that only share an input and are far from each other."""
        connected = a.feeds(b) or b.feeds(a)
        if a.classes and b.classes and not (connected and are_chained(a, b)):
            if "weights" in a.classes or "weights" in b.classes:
                return Refusal("contractions", "each holds a contraction of its own, one of them with weights")
            if not connected:
                message = "each holds a contraction, and neither reads the other"
                return Refusal("contractions", message, final=False)
        if not connected:
            gap = max(a.first, b.first) - min(a.last, b.last) - 1
            if gap > SIBLING_DISTANCE:
                return Refusal("far", f"they share an input only, and {gap} nodes lie between them", final=False)
        return None

    def give_back(self, node: FusionNode, inside: Set[Operation]) -> Reason | None:
        """A view whose source leaves the region, or enters it, as well: it costs ORT nothing, and a kernel a copy."""
        if self.views == "all" or node.name not in VIEWS or operand_kind(node.op, 0) != "tensor":
            return None
        source = node.op.operands[0]
        if source.owner in inside and all(use.operation in inside for use in source.uses):
            return None
        return Reason("view", "a view of a tensor that the region gets or gives anyway costs ORT nothing")

    def refuse_region(self, nodes: Sequence[FusionNode]) -> Reason | None:
        """A kernel of views alone moves what need not move, and one of a single node has to beat ORT's."""
        working = [node for node in nodes if node.name not in VIEWS or self.views == "all"]
        if not working:
            return Reason("view", "views move no data, so a kernel of nothing else gains nothing")
        if len(working) > 1 or self.singletons == "all":
            return None
        (node,) = working
        if draws(node.op):
            return None
        if self.contractions != "all" and _folds_into_matmul(node):
            return Reason("cost", f"{node.name} of the last two dims is part of the MatMul that ONNX Runtime runs")
        if node.kind == "contraction" and self.contractions == "all":
            return None
        if self.singletons == "winning" and (node.name in WINNING_OPS or node.kind in WINNING_KINDS):
            return None
        return Reason("cost", f"{node.name} alone is left to ONNX Runtime (singletons={self.singletons})")

    def within_loop(self) -> DefaultAuthor:
        """Every node becomes a region: one that did not would have ORT run the loop."""
        return replace(self, singletons="all")


def _moves(graph: FusionGraph) -> Iterator[Pair]:
    """The edges into contractions of computed tensors, through nodes that move elements, and into any contraction
    through those that widen them, nearest first."""
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


def _dequantized(graph: FusionGraph) -> Iterator[Pair]:
    """The edges to readers from what dequantises for them alone: regions are to pass integers."""
    for source, target in graph.edges:
        op = graph.nodes[source]
        if op_name(op) == "DequantizeLinear" and all(u.operation is graph.nodes[target] for u in op.results[0].uses):
            yield source, target


def _folds_into_matmul(node: FusionNode) -> bool:
    """Whether a Transpose swaps the last two dims for nothing but MatMuls, which take their operands either way."""
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
