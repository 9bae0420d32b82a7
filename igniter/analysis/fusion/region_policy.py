"""The growing groups of nodes, and the conditions for merging two of them: the policy of `grow_regions`.

The limits and the rule on random draws are fixed; the profit of a merge is decided by the fusion author. Cycles are
checked afterwards (`region_growing.py`), independently of the author.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects.builtin import NoneType
from xdsl.ir import SSAValue

from igniter.analysis.authors import AuthorError
from igniter.analysis.fusion.author import FusionAuthor, Pair, asking, checked
from igniter.analysis.fusion.graph import FusionGraph, FusionNode
from igniter.analysis.fusion.legality import operand_kind
from igniter.analysis.fusion.region_growing import Refusal
from igniter.dialects.onnx.draws import draws

OWN_KINDS = frozenset(("barrier", "cycle", "draws", "inputs", "nodes", "outputs"))
"""The kinds of refusals forbidden to authors."""


@dataclass(frozen=True)
class Limits:
    """The limits on the size of a region; ORT itself sets no limit on a custom op."""

    nodes: int = 512
    inputs: int = 256
    outputs: int = 128


class Group:
    """The nodes of a growing region; an author may read it, not change it."""

    __slots__ = ("_numbers", "classes", "first", "graph", "inputs", "last", "outputs")

    def __init__(self, graph: FusionGraph, number: int):
        self.graph = graph
        self._numbers = [number]
        self.first = self.last = number
        """The first and the last node, in the order of the block."""
        kind = graph.classes[number]
        self.classes = Counter([kind] if kind else ())
        """The number of nodes in each of the author's classes, 0 for an unknown one."""
        self.inputs: dict[SSAValue, int] = {}
        """Tensors from outside, and the number of the nodes' operands that use each."""
        self.outputs: dict[SSAValue, int] = {}
        """Tensors needed outside, and the number of operands there that use each."""
        if graph.reasons[number] is None:
            self._add_tensors(number)

    def _add_tensors(self, number: int) -> None:
        op = self.graph.nodes[number]
        for position, operand in enumerate(op.operands):
            if operand_kind(op, position) == "tensor":
                self.inputs[operand] = self.inputs.get(operand, 0) + 1
        for result in op.results:
            if not isinstance(result.type, NoneType):
                # An operand with known values needs no tensor, wherever its node is placed.
                uses = sum(operand_kind(use.operation, use.index) != "values" for use in result.uses)
                if uses:
                    self.outputs[result] = uses

    def __len__(self) -> int:
        return len(self._numbers)

    @property
    def numbers(self) -> list[int]:
        """The nodes by number, in order."""
        return sorted(self._numbers)

    @property
    def nodes(self) -> list[FusionNode]:
        """The nodes, in order."""
        return [self.graph.node(n) for n in self.numbers]

    @property
    def label(self) -> str:
        """The name of the first node in remarks."""
        return self.graph.labels[self.first]

    def feeds(self, other: Group) -> bool:
        """True if `other` reads a tensor of this group."""
        outputs, inputs = self.outputs, other.inputs
        if len(outputs) > len(inputs):
            return any(value in outputs for value in inputs)
        return any(value in inputs for value in outputs)

    def bytes_to(self, other: Group) -> int:
        """Returns the typical bytes of this group's tensors in `other`."""
        return sum(self.graph.cost.bytes(value) for value in self.outputs if value in other.inputs)

    def absorb(self, other: Group) -> None:
        """Merges `other` into this group; `other` is empty afterwards."""
        if len(self._numbers) < len(other._numbers):
            self._numbers, other._numbers = other._numbers, self._numbers
        self._numbers += other._numbers
        self.first, self.last = min(self.first, other.first), max(self.last, other.last)
        self.classes.update(other.classes)
        for x, y in ((self, other), (other, self)):
            fewer, more = (y.inputs, x.outputs) if len(y.inputs) < len(x.outputs) else (x.outputs, y.inputs)
            for value in [v for v in fewer if v in more]:
                x.outputs[value] -= y.inputs.pop(value)
                if not x.outputs[value]:
                    del x.outputs[value]
        self.inputs = _added(self.inputs, other.inputs)
        self.outputs = _added(self.outputs, other.outputs)
        other._numbers, other.inputs, other.outputs = [], {}, {}


class RegionPolicy:
    """The limits on regions and the author's decisions on merges, asked for two groups at a time."""

    def __init__(self, graph: FusionGraph, limits: Limits, author: FusionAuthor):
        self.limits = limits
        self.author = author
        self.draws = [draws(op) for op in graph.nodes]
        self.groups = [Group(graph, number) for number in range(len(graph.nodes))]
        """The groups by representative."""

    def refuse(self, a: int, b: int) -> Refusal | None:
        limits, first, second = self.limits, self.groups[a], self.groups[b]
        if self.draws[a] or self.draws[b]:
            return Refusal("draws", "random values must stay values of the graph, so that verification can feed them")
        if len(first) + len(second) > limits.nodes:
            return Refusal("nodes", f"the region would have more than {limits.nodes} nodes (max-nodes)")
        refusal = self._author_refusal(first, second)
        if refusal is not None:
            return refusal
        inputs, outputs = self._merged(first, second)
        if inputs > limits.inputs:
            return Refusal("inputs", f"the region would have {inputs} inputs (max-inputs={limits.inputs})", final=False)
        if outputs > limits.outputs:
            message = f"the region would have {outputs} outputs (max-outputs={limits.outputs})"
            return Refusal("outputs", message, final=False)
        return None

    def _author_refusal(self, a: Group, b: Group) -> Refusal | None:
        author = self.author
        with asking(author, "refuse_merge", a.label, b.label):
            refusal = author.refuse_merge(a, b)
        checked(author, "refuse_merge", refusal, Refusal, a.label, b.label)
        if refusal is not None and refusal.kind in OWN_KINDS:
            raise AuthorError(
                f"the fusion author '{author.name}' refuses a merge of '{a.label}' and '{b.label}' with the kind "
                f"'{refusal.kind}', which is reserved for Igniter; use another kind"
            )
        return refusal

    def _merged(self, a: Group, b: Group) -> tuple[int, int]:
        """Returns the numbers of inputs and outputs of the merged region; an upper bound if within the limits."""
        limits = self.limits
        inputs = len(a.inputs) + len(b.inputs)
        outputs = len(a.outputs) + len(b.outputs)
        if inputs <= limits.inputs and outputs <= limits.outputs:
            return inputs, outputs
        inputs -= sum(value in b.inputs for value in a.inputs)
        for x, y in ((a, b), (b, a)):
            for value, uses in x.outputs.items():
                inside = y.inputs.get(value, 0)
                inputs -= inside > 0
                outputs -= inside == uses
        return inputs, outputs

    def merged(self, kept: int, gone: int) -> None:
        self.groups[kept].absorb(self.groups[gone])


def ordered_candidates(graph: FusionGraph, author: FusionAuthor) -> Sequence[Pair]:
    """Returns the candidates in the author's order; omitted candidates come last."""
    with asking(author, "order"):
        first = [(a, b) for a, b in author.order(graph)]
    known = set(graph.candidates)
    for pair in first:
        if pair not in known:
            inside = all(0 <= n < len(graph.nodes) for n in pair)
            shown = " and ".join(repr(graph.labels[n]) for n in pair) if inside else str(pair)
            raise AuthorError(
                f"the fusion author '{author.name}' in order names {shown}, which is not a candidate; choose from "
                "graph.candidates"
            )
    tried = set(first)
    return [*first, *(pair for pair in graph.candidates if pair not in tried)]


def _added(a: dict[SSAValue, int], b: dict[SSAValue, int]) -> dict[SSAValue, int]:
    """Returns the sum of two counts; the larger one is reused."""
    if len(a) < len(b):
        a, b = b, a
    for value, count in b.items():
        a[value] = a.get(value, 0) + count
    return a
