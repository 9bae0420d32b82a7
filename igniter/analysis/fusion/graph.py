"""The nodes of one graph as integers, with what region growing asks of them: edges, siblings, and a policy.

Constants are no nodes: a region clones the small ones and takes the others as operands. An operand that a region
gets from its symbols (`operand_kind` says `values`) makes no edge to a node that can be fused.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from xdsl.dialects.builtin import NoneType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.traits import IsTerminator

from igniter.analysis.fusion.cost import CostModel, is_widening, op_kind
from igniter.analysis.fusion.legality import Reason, node_reason, operand_kind, type_symbols
from igniter.analysis.fusion.region_growing import Refusal
from igniter.analysis.fusion.symbols import carrier_edges
from igniter.analysis.onnx.conv_layout import nodes_in_conv_layout
from igniter.analysis.onnx.quantized_neighbours import beside_integer_ops
from igniter.dialects.onnx.draws import draws

if TYPE_CHECKING:
    from igniter.dialects.fusion import RegionOp
    from igniter.dialects.onnx.base import OnnxOp

SIBLING_DISTANCE = 64
"""Two regions that only share an input merge when at most this many nodes lie between them in the graph: merging
what is far apart keeps their other inputs and outputs in memory for longer."""


@dataclass(frozen=True)
class Limits:
    """How large a region may grow; ORT itself sets no limit on a custom op."""

    nodes: int = 512
    inputs: int = 256
    outputs: int = 128


@dataclass(frozen=True)
class FusionGraph:
    """One graph's nodes, in the order of the block."""

    nodes: tuple[Operation, ...]
    labels: tuple[str, ...]
    """What each node is called in remarks."""
    reasons: tuple[Reason | None, ...]
    """Why a node can be in no region."""
    edges: tuple[tuple[int, int], ...]
    """From the node that computes a tensor to one that must have it at run time."""
    dropped: tuple[tuple[int, int], ...]
    """From a node to one that would need its result, were that one in no region."""
    siblings: tuple[tuple[int, int], ...]
    """Neighbours among the nodes that read the same tensor."""
    contractions: tuple[str, ...]
    """`CostModel.contraction_class` of each node."""
    moves: tuple[tuple[int, int], ...]
    """From a node that only moves or widens elements to a contraction that reads them where and as they were."""

    @property
    def eligible(self) -> list[bool]:
        return [reason is None for reason in self.reasons]


def node_label(op: Operation) -> str:
    """What a node is called in remarks: its name, or its first output's, or its op's."""
    from igniter.dialects.onnx.base import OnnxOp

    if not isinstance(op, OnnxOp):
        return op.name
    outputs = [name for name in op.output_names if name]
    return op.node_name or (outputs[0] if outputs else op.qualified_name)


def region_nodes(region: RegionOp) -> list[OnnxOp]:
    """The ONNX nodes of a region that compute something, in order: what requirements of its kernel count."""
    from igniter.dialects.onnx.base import OnnxOp

    return [op for op in region.block.ops if isinstance(op, OnnxOp) and is_node(op)]


def is_node(op: Operation) -> bool:
    """Whether an op of a graph's block computes something at run time."""
    return op.name not in ("onnx.Constant", "onnx.NoValue") and not op.has_trait(IsTerminator)


def build_graph(block: Block, cost: CostModel, siblings: bool, inputs: Sequence[SSAValue] | None = None) -> FusionGraph:
    """The graph of a block's nodes, which can see `inputs`: by default the block's own."""
    nodes = tuple(op for op in block.ops if is_node(op))
    number = {op: index for index, op in enumerate(nodes)}
    symbols: set[str] = set()
    for argument in block.args if inputs is None else inputs:
        symbols |= type_symbols(argument.type)
    outer = frozenset(symbols)
    convolved = nodes_in_conv_layout(nodes)
    known = [node_reason(op, outer) or cost.left_to_ort(op, op in convolved) for op in nodes]
    beside = beside_integer_ops(nodes, known)
    reasons = tuple(beside.get(k, reason) for k, reason in enumerate(known))
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
    classes = tuple(cost.contraction_class(op) if reasons[k] is None else "" for k, op in enumerate(nodes))
    moves = tuple(_moves(nodes, edges, classes))
    return FusionGraph(nodes, labels, reasons, tuple(edges), tuple(dropped), tuple(pairs), classes, moves)


def _moves(
    nodes: Sequence[Operation], edges: Iterable[tuple[int, int]], classes: Sequence[str]
) -> Iterator[tuple[int, int]]:
    """The edges into contractions of computed tensors, through nodes that move elements, and into any contraction
    through those that widen them, nearest first."""
    sources: dict[int, list[int]] = {}
    for source, target in edges:
        sources.setdefault(target, []).append(source)
    for target, kind in enumerate(classes):
        pending = [target] if kind else []
        while pending:
            reader = pending.pop()
            for source in sources.get(reader, ()):
                alone = all(use.operation is nodes[reader] for result in nodes[source].results for use in result.uses)
                moves = kind == "products" and op_kind(nodes[source]) == "movement"
                if alone and (moves or is_widening(nodes[source])):
                    yield source, reader
                    pending.append(source)


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


class RegionPolicy:
    """The limits on regions, kept up to date as they grow: the policy of `grow_regions`."""

    def __init__(self, graph: FusionGraph, limits: Limits):
        self.limits = limits
        count = len(graph.nodes)
        self.contractions = list(graph.contractions)
        self.draws = [draws(op) for op in graph.nodes]
        self.nodes = [1] * count
        self.span = [(index, index) for index in range(count)]
        """The first and the last node of each region, in the order of the block."""
        self.inputs: list[dict[SSAValue, int]] = [{} for _ in range(count)]
        """Tensors that come from outside of a region, and how many of its operands they are."""
        self.outputs: list[dict[SSAValue, int]] = [{} for _ in range(count)]
        """Tensors of a region that are needed outside of it, and by how many operands."""
        for index, op in enumerate(graph.nodes):
            if graph.reasons[index] is not None:
                continue
            for position, operand in enumerate(op.operands):
                if operand_kind(op, position) == "tensor":
                    self.inputs[index][operand] = self.inputs[index].get(operand, 0) + 1
            for result in op.results:
                if not isinstance(result.type, NoneType):
                    uses = sum(not _is_free(use.operation, use.index) for use in result.uses)
                    if uses:
                        self.outputs[index][result] = uses

    def refuse(self, a: int, b: int) -> Refusal | None:
        limits = self.limits
        if self.draws[a] or self.draws[b]:
            return Refusal("draws", "what is drawn stays a value of the graph, which verification feeds")
        if self.nodes[a] + self.nodes[b] > limits.nodes:
            return Refusal("nodes", f"the region would have more than {limits.nodes} nodes (max-nodes)")
        crossing = self._crossing(a, b) or self._crossing(b, a)
        kinds = self.contractions[a], self.contractions[b]
        if "weights" in kinds and all(kinds):
            return Refusal("contractions", "each holds a contraction of its own, one of them with weights")
        if kinds == ("products", "products") and not crossing:
            return Refusal("contractions", "each holds a contraction, and neither reads the other", final=False)
        if not crossing:
            gap = max(self.span[a][0], self.span[b][0]) - min(self.span[a][1], self.span[b][1]) - 1
            if gap > SIBLING_DISTANCE:
                return Refusal("far", f"they share an input only, and {gap} nodes lie between them", final=False)
        inputs, outputs = self._merged(a, b)
        if inputs > limits.inputs:
            return Refusal("inputs", f"the region would have {inputs} inputs (max-inputs={limits.inputs})", final=False)
        if outputs > limits.outputs:
            message = f"the region would have {outputs} outputs (max-outputs={limits.outputs})"
            return Refusal("outputs", message, final=False)
        return None

    def _crossing(self, a: int, b: int) -> bool:
        """Whether `b` reads a tensor of `a`."""
        outputs, inputs = self.outputs[a], self.inputs[b]
        if len(outputs) > len(inputs):
            return any(value in outputs for value in inputs)
        return any(value in inputs for value in outputs)

    def _merged(self, a: int, b: int) -> tuple[int, int]:
        """How many inputs and outputs the merged region would have; an upper bound where that is within limits."""
        limits = self.limits
        inputs = len(self.inputs[a]) + len(self.inputs[b])
        outputs = len(self.outputs[a]) + len(self.outputs[b])
        if inputs <= limits.inputs and outputs <= limits.outputs:
            return inputs, outputs
        inputs -= sum(value in self.inputs[b] for value in self.inputs[a])
        for x, y in ((a, b), (b, a)):
            for value, uses in self.outputs[x].items():
                inside = self.inputs[y].get(value, 0)
                inputs -= inside > 0
                outputs -= inside == uses
        return inputs, outputs

    def merged(self, kept: int, gone: int) -> None:
        self.nodes[kept] += self.nodes[gone]
        self.contractions[kept] = self.contractions[kept] or self.contractions[gone]
        (first, last), (start, end) = self.span[kept], self.span[gone]
        self.span[kept] = min(first, start), max(last, end)
        for x, y in ((kept, gone), (gone, kept)):
            outputs, inputs = self.outputs[x], self.inputs[y]
            fewer, more = (inputs, outputs) if len(inputs) < len(outputs) else (outputs, inputs)
            for value in [v for v in fewer if v in more]:
                outputs[value] -= inputs.pop(value)
                if not outputs[value]:
                    del outputs[value]
        self.inputs[kept] = _added(self.inputs[kept], self.inputs[gone])
        self.outputs[kept] = _added(self.outputs[kept], self.outputs[gone])
        self.inputs[gone], self.outputs[gone] = {}, {}


def _added(a: dict[SSAValue, int], b: dict[SSAValue, int]) -> dict[SSAValue, int]:
    """The sum of two counts; the larger one is reused."""
    if len(a) < len(b):
        a, b = b, a
    for value, count in b.items():
        a[value] = a.get(value, 0) + count
    return a


def _is_free(op: Operation, index: int) -> bool:
    """Whether an operand needs no tensor wherever its node ends up in a region."""
    return operand_kind(op, index) == "values"
