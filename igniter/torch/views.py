"""Outputs of a graph that are views of its inputs: made on the torch side, where a view is no copy.

AOTAutograd makes an output that shares its input's memory anew, from the sizes and strides of what the compiled graph
returned. What ONNX Runtime returned lies in order in memory of its own, and the strides of such a tensor, applied to
the input's memory, would find other elements than the view has.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from igniter.torch.names import GraphModule, Node, fx, is_tensor, pytree, torch


def views_of_inputs(outputs: Sequence[Any]) -> list[Node]:
    """The outputs, each once, that ops without a copy make of inputs and of sizes."""
    known: dict[Node, bool] = {}
    found = [value for value in outputs if isinstance(value, fx.Node) and value.op != "placeholder"]
    return [value for value in dict.fromkeys(found) if is_tensor(value.meta.get("val")) and _is_free(value, known)]


def _is_free(node: Node, known: dict[Node, bool]) -> bool:
    """Whether a node is an input, a size, or a view of such."""
    if node not in known:
        known[node] = node.op == "placeholder" or (
            node.op == "call_function"
            and _copies_nothing(node)
            and all(_is_free(each, known) for each in node.all_input_nodes)
        )
    return known[node]


def _copies_nothing(node: Node) -> bool:
    values = pytree.tree_leaves(node.meta.get("val"))
    if not any(is_tensor(value) for value in values):
        # Numbers of sizes: what reads an element of a tensor computes that first.
        return node.target is not torch.ops.aten._local_scalar_dense.default
    return node.target is operator.getitem or bool(getattr(node.target, "is_view", False))


def only(module: GraphModule, outputs: Sequence[Node]) -> GraphModule:
    """The graph with these outputs alone, a tuple; inputs are those that it had."""
    nodes = fx.Graph()
    copies: dict[Node, Node] = {}
    nodes.graph_copy(module.graph, copies)
    nodes.output(tuple(copies[node] for node in outputs))
    nodes.eliminate_dead_code()
    return fx.GraphModule(module, nodes)


__all__ = ["only", "views_of_inputs"]
