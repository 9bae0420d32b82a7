"""Grouping of a graph's regions, and the views between them, into programs: provably the fewest.

Every node other than a view or a region with a kernel is a barrier. A node's *depth* is the largest number of edges
from program nodes to barriers on a path to it. Nodes of one depth can all be in one program: a path between two of them
never leaves it. Nodes connected by a path across depths cannot. So one program for each depth is the minimum.
`grow_regions` still checks every merge, and applies the limits.

A view inside a program does not need the computation of its shape; one outside does. So whenever a view is moved
outside, the graph gets more edges and is divided again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from xdsl.ir import Block, Operation, SSAValue

from igniter.analysis.fusion.graph import is_node, node_label
from igniter.analysis.fusion.graph_order import topological_order
from igniter.analysis.fusion.legality import Reason, node_reason, operand_kind, tensor_operands, type_symbols
from igniter.analysis.fusion.program_loops import compiled, loop_reason
from igniter.analysis.fusion.region_growing import Refusal, grow_regions
from igniter.analysis.fusion.symbols import SymbolSources, is_inside
from igniter.dialects.fusion import RegionOp, is_step
from igniter.dialects.onnx.base import OnnxOp
from igniter.dialects.onnx.draws import draws
from igniter.dialects.onnx.names import VIEWS, is_loop, op_name


@dataclass(frozen=True)
class ProgramSelection:
    """The division of a graph into programs."""

    nodes: tuple[Operation, ...]
    groups: tuple[tuple[int, ...], ...]
    """The nodes of each program, in the order of the graph; programs in an executable order."""
    order: tuple[int, ...]
    """The resulting graph, in an executable order: `-1 - k` for program k, a node's number otherwise."""
    bindings: tuple[tuple[SSAValue, ...], ...]
    """For each program the tensors read only to bind its symbols."""
    left: Mapping[Operation, Reason]
    """The reason why each other region or loop is in no program."""


def select_programs(block: Block, max_nodes: int, alone: bool = False, loops: bool = True) -> ProgramSelection:
    """Returns the programs of one graph. Views used inside and outside of a program are copied on the way.

    `alone`: a region without company becomes a program too. `loops`: programs may hold loops.
    """
    sources = SymbolSources(block.args)
    outer = _symbols_of_inputs(block)
    outside: dict[Operation, Reason] = {} if loops else {op: _LOOP for op in block.ops if is_loop(op)}
    while True:
        graph = _build(block, outer, outside)
        groups = graph.grow(max_nodes)
        programs = [group for group in groups if graph.is_program(group, alone)]
        inside = {n for group in programs for n in group}
        moved = {op: _ALONE for n, op in enumerate(graph.nodes) if graph.views[n] and n not in inside}
        for group in programs:
            moved.update(_leaving_views([graph.nodes[n] for n in group]))
        bindings = [sources.bindings([graph.nodes[n] for n in group]) for group in programs]
        for group, found in zip(programs, bindings, strict=True):
            if isinstance(found, Reason):
                moved.update((graph.nodes[n], found) for n in group)
        if moved:
            outside.update(moved)
            continue
        bound = [found for found in bindings if not isinstance(found, Reason)]
        left = {op: r for op, r in graph.reasons.items() if is_step(op)}
        for n, op in enumerate(graph.nodes):
            if is_step(op) and n not in inside:
                left.setdefault(op, _ALONE)
        return graph.arrange(programs, bound, left)


def is_program_loop(op: Operation, block: Block) -> bool:
    """True if an op of a graph is a loop for a program."""
    return is_loop(op) and _node_reason(op, _symbols_of_inputs(block)) is None


def _symbols_of_inputs(block: Block) -> frozenset[str]:
    return frozenset(name for argument in block.args for name in type_symbols(argument.type))


_LOOP = Reason("loop", "programs without loops are requested")
_ALONE = Reason("alone", "no other region can join it in a program")
_VIEW = Reason("view", "a view of an input or output of a program costs ONNX Runtime nothing")


@dataclass(frozen=True)
class _Graph:
    nodes: tuple[Operation, ...]
    views: tuple[bool, ...]
    """True for views that may be in a program."""
    reasons: dict[Operation, Reason]
    """The reason why a node can be in no program."""
    edges: tuple[tuple[int, int], ...]

    @property
    def eligible(self) -> list[bool]:
        return [op not in self.reasons for op in self.nodes]

    def grow(self, max_nodes: int) -> list[tuple[int, ...]]:
        """Groups all eligible nodes by depth."""
        eligible = self.eligible
        depths = self._depths(eligible)
        level: dict[int, list[int]] = {}
        for n, depth in enumerate(depths):
            if eligible[n]:
                level.setdefault(depth, []).append(n)
        pairs = [pair for members in level.values() for pair in pairwise(members)]
        count = len(self.nodes)
        growth = grow_regions(count, self.edges, eligible, pairs, _Limit(count, max_nodes), range(count))
        return [members for members in growth.members if eligible[members[0]]]

    def _depths(self, eligible: Sequence[bool]) -> list[int]:
        depths = [0] * len(self.nodes)
        for source, target in sorted(self.edges, key=lambda edge: edge[1]):
            leaves = eligible[source] and not eligible[target]
            depths[target] = max(depths[target], depths[source] + leaves)
        return depths

    def is_program(self, group: Sequence[int], alone: bool) -> bool:
        """True if there is a region, and something besides it."""
        regions = sum(not self.views[n] for n in group)
        return regions > 0 and (alone or len(group) > 1 or is_loop(self.nodes[group[0]]))

    def arrange(
        self,
        programs: Sequence[tuple[int, ...]],
        bindings: Sequence[tuple[SSAValue, ...]],
        left: Mapping[Operation, Reason],
    ) -> ProgramSelection:
        """Returns programs and single nodes in an executable order, each as late as its last member."""
        count = len(self.nodes)
        unit = {n: count + k for k, group in enumerate(programs) for n in group}
        edges = {(unit.get(a, a), unit.get(b, b)): None for a, b in self.edges}
        priority = [*range(count), *(group[-1] for group in programs)]
        found = topological_order(len(priority), [e for e in edges if e[0] != e[1]], priority)
        ranked = [u - count for u in found if u >= count]
        place = {old: new for new, old in enumerate(ranked)}
        order = [u if u < count else -1 - place[u - count] for u in found if u not in unit]
        groups = tuple(programs[old] for old in ranked)
        return ProgramSelection(self.nodes, groups, tuple(order), tuple(bindings[old] for old in ranked), left)


def _build(block: Block, outer: frozenset[str], outside: Mapping[Operation, Reason]) -> _Graph:
    nodes = tuple(op for op in block.ops if is_node(op))
    number = {op: index for index, op in enumerate(nodes)}
    reasons: dict[Operation, Reason] = {}
    for op in nodes:
        reason = outside.get(op) or _node_reason(op, outer)
        if reason is not None:
            reasons[op] = reason
    views = tuple(op not in reasons and not is_step(op) for op in nodes)
    edges: dict[tuple[int, int], None] = {}
    for target, op in enumerate(nodes):
        # A program does not need the computation of shapes.
        needed = tensor_operands(op) if op not in reasons else (v for inner in op.walk() for v in inner.operands)
        for operand in needed:
            source = number.get(operand.owner) if isinstance(operand.owner, Operation) else None
            if source is not None and source != target:
                edges[source, target] = None
    return _Graph(nodes, views, reasons, tuple(edges))


def _node_reason(op: Operation, outer: frozenset[str]) -> Reason | None:
    if isinstance(op, RegionOp):
        if any(draws(inner) for inner in op.block.ops):
            return Reason("draws", "random values must stay values of the graph, so that verification can feed them")
        return None if op.kernel_name is not None else Reason("no-kernel", "it has no kernel; run lower-onnx-to-loop")
    if is_loop(op):
        assert isinstance(op, OnnxOp)
        return loop_reason(op, outer, _body_reason)
    if op_name(op) not in VIEWS:
        return Reason("barrier", f"{op_name(op)} is not a region")
    if any(operand_kind(op, k) == "tensor" for k in range(1, len(op.operands))) or operand_kind(op, 0) != "tensor":
        return Reason("shape", f"{op_name(op)}: its shape is unknown")
    return node_reason(op, outer)


def _body_reason(op: Operation, known: frozenset[str]) -> Reason | None:
    if isinstance(op, RegionOp) and op.kernel_name is None:
        return _node_reason(op, known)
    return compiled(op, known)


def _leaving_views(members: Sequence[Operation]) -> dict[Operation, Reason]:
    """Moves unprofitable views out of the program of `members`, and returns them: their elements are those of an input,
    or of a result in another shape. If the program needs such a view too, the one outside is a copy."""
    inside = set(members)
    views = [op for op in members if not is_step(op)]
    root: dict[SSAValue, SSAValue] = {}
    aliases: dict[SSAValue, list[SSAValue]] = {}
    for op in views:
        source = op.operands[0]
        root[op.results[0]] = top = root.get(source, source)
        aliases.setdefault(top, [top]).append(op.results[0])
    moved: dict[Operation, Reason] = {}
    for op in reversed(views):
        result = op.results[0]
        top = root[result]
        if not _leaves(result, inside):
            continue
        others = any(_leaves(alias, inside) for alias in aliases[top] if alias is not result)
        if top.owner in inside and not others:
            continue
        moved[_outside_copy(op, inside)] = _VIEW
    return moved


def _leaves(value: SSAValue, inside: set[Operation]) -> bool:
    return any(not is_inside(use.operation, inside) for use in value.uses)


def _outside_copy(op: Operation, inside: set[Operation]) -> Operation:
    """Returns a view for the uses outside; `op` itself if it has no others."""
    (result,) = op.results
    if not any(is_inside(use.operation, inside) for use in result.uses):
        inside.discard(op)
        return op
    copy = op.clone()
    copy.results[0].name_hint = result.name_hint
    block = op.parent
    assert block is not None
    block.insert_op_after(copy, op)
    for use in [use for use in result.uses if not is_inside(use.operation, inside)]:
        use.operation.operands[use.index] = copy.results[0]
    return copy


class _Limit:
    """The policy of `grow_regions`: programs of at most `max_nodes` nodes."""

    def __init__(self, count: int, max_nodes: int):
        self.max_nodes = max_nodes
        self.size = [1] * count

    def refuse(self, a: int, b: int) -> Refusal | None:
        if self.size[a] + self.size[b] > self.max_nodes:
            return Refusal("nodes", f"the program would have more than {self.max_nodes} nodes (max-nodes)")
        return None

    def merged(self, kept: int, gone: int) -> None:
        self.size[kept] += self.size[gone]


def region_labels(ops: Iterable[Operation]) -> list[str]:
    """Returns the names of a program's nodes in remarks."""
    return [op.label if isinstance(op, RegionOp) else node_label(op) for op in ops]
