"""A functional graph split into compiled pieces, with eager ops between them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import import_module
from typing import Any

from igniter.torch.exporter import output_nodes
from igniter.torch.names import GraphModule, Node, fx, torch
from igniter.torch.options import TorchOptions
from igniter.torch.piece import Piece
from igniter.torch.statistics import GraphReport, PieceReport, op_name
from igniter.torch.support import computes, why_not
from igniter.torch.views import split_views


def make_program(
    graph: GraphModule,
    options: TorchOptions,
    report: GraphReport,
    is_weight: Callable[[Any], bool],
    never: Collection[int] = (),
) -> Callable[..., Any]:
    """Compiles `graph` to a callable with the same arguments (tensors and numbers).

    Unsupported ops stay eager, each with a reason in `report`. The others are grouped into as few pieces as possible.
    `never` lists the inputs changed by the caller.
    """
    reasons = {node: why for node in graph.graph.nodes if (why := why_not(node))}
    for node, why in reasons.items():
        if node.op == "call_function":
            report.left.setdefault(op_name(node.target), why)
    made = [node for node in output_nodes(split_views(graph).core) if isinstance(node, fx.Node)]
    can = any(computes(node) and node not in reasons for node in graph.graph.nodes)
    if not can or not any(node.op != "placeholder" for node in made):
        report.leave("no part of it can be compiled" if report.left else "it has no ops")
        return graph
    bad = {node for node in reasons if node.op == "call_function"}
    if not bad:
        return _piece(graph, options, report, is_weight, never) or graph
    return _partitioned(graph, bad, options, report, is_weight, never)


def _piece(
    graph: GraphModule,
    options: TorchOptions,
    report: GraphReport,
    is_weight: Callable[[Any], bool],
    never: Collection[int],
) -> Piece | None:
    count = sum(computes(node) for node in graph.graph.nodes)
    if count < options.smallest:
        report.left[f"{count} ops"] = f"a part of fewer than {options.smallest} ops is not compiled"
        return None
    piece = PieceReport(count)
    report.pieces.append(piece)
    return Piece(graph, options, piece, is_weight, never)


def _partitioned(
    graph: GraphModule,
    bad: Collection[Node],
    options: TorchOptions,
    report: GraphReport,
    is_weight: Callable[[Any], bool],
    never: Collection[int],
) -> Callable[..., Any]:
    """Returns the graph with its pieces as calls. Subgraphs of control flow stay with their ops."""
    partitioner = import_module("torch.fx.passes.infra.partitioner")
    support = import_module("torch.fx.passes.operator_support")
    owners = {user for node in graph.graph.nodes if node.op == "get_attr" for user in node.users if _has_graphs(user)}

    class Compilable(support.OperatorSupportBase):
        def is_node_supported(self, submodules: Any, node: Node) -> bool:
            return node.op == "call_function" and node not in bad and node not in owners

    for node in owners:
        report.left.setdefault(op_name(node.target), "control flow is compiled only if the whole graph compiles")
    found = partitioner.CapabilityBasedPartitioner(graph, Compilable(), allows_single_node_partition=True)
    partitions = [p for p in found.propose_partitions() if any(computes(node) for node in p.nodes)]
    inputs = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
    changing = {inputs[place] for place in never}
    fused = found.fuse_partitions(partitions)
    for node in [node for node in fused.graph.nodes if node.op == "call_module"]:
        inside = getattr(fused, node.target)
        never_here = [place for place, arg in enumerate(node.args) if arg.name in changing]
        piece = _piece(inside, options, report, is_weight, never_here)
        if piece is not None:
            delattr(fused, node.target)
            setattr(fused, node.target, piece)
    fused.recompile()
    return fused


def _has_graphs(node: Node) -> bool:
    return isinstance(node.target, torch._ops.HigherOrderOperator)
