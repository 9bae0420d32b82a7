"""The nodes of one graph as integers, with their facts for region growing and fusion authors.

Constants are no nodes: a region clones the small ones and takes the others as operands. An operand derived from a
region's symbols (`operand_kind` says `values`) makes no edge to a fusible node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, cast

from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from igniter.analysis.authors import AuthorError
from igniter.analysis.fusion.author import FusionAuthor, Pair, asking, checked
from igniter.analysis.fusion.cost import CostModel, op_kind
from igniter.analysis.fusion.legality import Legality, Reason, all_legal, node_reason, operand_kind, type_symbols
from igniter.analysis.fusion.ort_kernels import has_kernel
from igniter.analysis.fusion.symbols import carrier_edges
from igniter.analysis.onnx.byte_convolutions import around_byte_convolutions
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.names import op_name
from igniter.dialects.onnx.ops import spec_of

if TYPE_CHECKING:
    from igniter.dialects.fusion import RegionOp
    from igniter.dialects.onnx.registry import OpSpec


@dataclass(frozen=True)
class FusionNode:
    """One node with its facts: a fusion author's view of it."""

    op: OnnxOp
    cost: CostModel
    convolved: bool = False
    """True if it belongs to a convolution left to ORT (`byte_convolutions.py`)."""

    @property
    def label(self) -> str:
        """The name of the node in remarks."""
        return node_label(self.op)

    @property
    def name(self) -> str:
        """The name of its ONNX op, `com.microsoft.Gelu`."""
        return op_name(self.op)

    @property
    def kind(self) -> str:
        """The kind of its op: `elementwise`, `contraction`, `reduction`, `movement`, ... (`OpSpec.kind`)."""
        return op_kind(self.op)

    @property
    def spec(self) -> OpSpec | None:
        """The spec of its op; `None` if unknown."""
        return spec_of(self.op) if isinstance(cast("Operation", self.op), OnnxOp) else None

    @property
    def flops(self) -> int:
        """The typical number of its scalar operations."""
        return self.cost.flops(self.op)


@dataclass(frozen=True)
class FusionGraph:
    """One graph's nodes, in the order of the block."""

    nodes: tuple[Operation, ...]
    labels: tuple[str, ...]
    """The name of each node in remarks."""
    reasons: tuple[Reason | None, ...]
    """The reason why a node can be in no region."""
    edges: tuple[tuple[int, int], ...]
    """Edges from the producer of a tensor to its users at run time."""
    dropped: tuple[tuple[int, int], ...]
    """Edges from a node to users of its result that need it only outside of regions."""
    siblings: tuple[tuple[int, int], ...]
    """Neighbours among the readers of one tensor."""
    classes: tuple[str, ...]
    """The author's class of each node (`FusionAuthor.classify`); "" for nodes in no region."""
    cost: CostModel = field(default_factory=CostModel)
    convolved: frozenset[Operation] = frozenset()
    can_leave: Callable[[OnnxOp], bool] = has_kernel

    @property
    def eligible(self) -> list[bool]:
        """True for fusible nodes."""
        return [reason is None for reason in self.reasons]

    @cached_property
    def candidates(self) -> tuple[Pair, ...]:
        """The pairs whose regions may become one: the edges, by target and the nearest source first, then the siblings.

        They include pairs with an infusible node; these are never tried.
        """
        return (*sorted(self.edges, key=lambda edge: (edge[1], -edge[0])), *self.siblings)

    def node(self, number: int) -> FusionNode:
        """Returns an author's view of a node."""
        op = self.nodes[number]
        return FusionNode(cast("OnnxOp", op), self.cost, op in self.convolved)

    def must_compile(self, number: int) -> bool:
        """True if ONNX Runtime has no kernel for a node: fallback is impossible."""
        op = self.nodes[number]
        return isinstance(op, OnnxOp) and not self.can_leave(op)

    def bytes_between(self, source: int, target: int) -> int:
        """Returns the typical bytes from `source` to `target`."""
        return sum(self.cost.bytes(v) for v in set(self.nodes[target].operands) if v.owner is self.nodes[source])


def node_label(op: Operation) -> str:
    """Returns the name of a node in remarks: its name, or its first output's, or its op's."""
    if not isinstance(op, OnnxOp):
        return op.name
    outputs = [name for name in op.output_names if name]
    return op.node_name or (outputs[0] if outputs else op.qualified_name)


def region_nodes(region: RegionOp) -> list[OnnxOp]:
    """Returns the computing ONNX nodes of a region, in order: requirements of its kernel count them."""
    return [op for op in region.block.ops if isinstance(op, OnnxOp) and is_node(op)]


def is_node(op: Operation) -> bool:
    """True if an op of a graph's block computes something at run time."""
    return op.name not in ("onnx.Constant", "onnx.NoValue") and not op.has_trait(IsTerminator)


@dataclass(frozen=True)
class Judges:
    """The deciders about nodes: the author about profit, the backend (`legal`) about available code."""

    author: FusionAuthor
    cost: CostModel
    legal: Legality = all_legal
    can_leave: Callable[[OnnxOp], bool] = has_kernel
    """True if ONNX Runtime has a kernel for a node."""
    left: Mapping[str, Reason] = field(default_factory=dict[str, Reason])
    """The nodes left to ONNX Runtime on request, by label."""

    def reason(self, node: FusionNode) -> Reason | None:
        """Returns the reason why a node with a lowering is in no region."""
        return self.legal(node.op) or self.choice(node, self.left.get(node.label) or author_reason(self.author, node))

    def choice(self, node: FusionNode, reason: Reason | None) -> Reason | None:
        """Returns the author's reason for leaving a node; `None` if ONNX Runtime has no kernel for it."""
        return reason if reason is None or self.can_leave(node.op) else None


def build_graph(block: Block, judges: Judges, siblings: bool, inputs: Sequence[SSAValue] | None = None) -> FusionGraph:
    """Returns the graph of a block's nodes. They can see `inputs`: by default the block's own."""
    author, cost = judges.author, judges.cost
    nodes = tuple(op for op in block.ops if is_node(op))
    number = {op: index for index, op in enumerate(nodes)}
    symbols: set[str] = set()
    for argument in block.args if inputs is None else inputs:
        symbols |= type_symbols(argument.type)
    convolved = frozenset(around_byte_convolutions(nodes))
    views = [FusionNode(cast("OnnxOp", op), cost, op in convolved) for op in nodes]
    reasons = _reasons(views, judges, frozenset(symbols))
    edges: dict[tuple[int, int], None] = {}
    dropped: dict[tuple[int, int], None] = {}
    for target, op in enumerate(nodes):
        for inner in op.walk():
            for index, operand in enumerate(inner.operands):
                source = number.get(operand.owner) if isinstance(operand.owner, Operation) else None
                if source is None or source == target:
                    continue
                free = reasons[target] is None and operand_kind(inner, index) == "values"
                (dropped if free else edges)[source, target] = None
    edges.update(dict.fromkeys((number[a], number[b]) for a, b in carrier_edges(nodes) if reasons[number[b]] is None))
    pairs = _siblings(block, nodes, number, reasons) if siblings else ()
    labels = tuple(map(node_label, nodes))
    classes: list[str] = []
    for node, reason in zip(views, reasons, strict=True):
        with asking(author, "classify", node.label):
            classes.append(author.classify(node) if reason is None else "")
    return FusionGraph(
        nodes,
        labels,
        reasons,
        tuple(edges),
        tuple(dropped),
        tuple(pairs),
        tuple(classes),
        cost,
        convolved,
        judges.can_leave,
    )


def author_reason(author: FusionAuthor, node: FusionNode) -> Reason | None:
    """Returns the author's reason to keep a node out of regions although it could be in one."""
    with asking(author, "refuse_node", node.label):
        return checked(author, "refuse_node", author.refuse_node(node), Reason, node.label)


def _reasons(nodes: Sequence[FusionNode], judges: Judges, outer_symbols: frozenset[str]) -> tuple[Reason | None, ...]:
    """Returns the reason why each node is in no region: first a missing lowering or missing code on the backend, beyond
    authors' control, then the author's refusals."""
    author = judges.author
    known = [node_reason(node.op, outer_symbols) or judges.reason(node) for node in nodes]
    with asking(author, "refuse_together"):
        together = dict[int, Reason | None](author.refuse_together(nodes, known))
        given = [checked(author, "refuse_together", reason, Reason, nodes[k].label) for k, reason in together.items()]
    if None in given or not all(0 <= k < len(nodes) for k in together):
        raise AuthorError(
            f"the fusion author '{author.name}' in refuse_together must return a mapping from node numbers to Reasons"
        )
    return tuple(judges.choice(nodes[k], together.get(k)) or reason for k, reason in enumerate(known))


def _siblings(
    block: Block, nodes: Sequence[Operation], number: dict[Operation, int], reasons: Sequence[Reason | None]
) -> list[tuple[int, int]]:
    values: list[SSAValue] = [*block.args, *(r for op in nodes for r in op.results)]
    pairs: dict[tuple[int, int], None] = {}
    for value in values:
        readers = sorted(
            {
                number[use.operation]
                for use in value.uses
                if use.operation in number and operand_kind(use.operation, use.index) == "tensor"
            }
        )
        readers = [reader for reader in readers if reasons[reader] is None]
        for first, second in pairwise(readers):
            pairs[first, second] = None
    return list(pairs)
