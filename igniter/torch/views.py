"""Views among the outputs of a graph. PyTorch makes them, so they are not copied and share memory as in eager.

ONNX Runtime returns each tensor in its own memory. In eager, views of an input or of another output share memory. So a
graph is split: the core computes tensors, the rest makes views of these tensors and of the inputs.

    def graph(x, i):                    core                    rest
        y = x * 2                       y = x * 2               def rest(x, i, y):
        return y, y[i], x.t()           return y                    return y, y[i], x.t()

A view of a changed input needs other treatment. In a functional graph such an input has a new value, and the view is a
view of the new value:

    def graph(x, i):
        new = x + 1
        return new, new[i]              new is copied into x, and new[i] is to be x[i]

The code that copies `new` into `x` needs a view of `x`: `regrown` makes it from the input itself.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from igniter.errors import IgniterError
from igniter.torch.exporter import output_nodes
from igniter.torch.names import GraphModule, Node, fx, is_tensor, pytree, torch


@dataclass(frozen=True)
class Split:
    """A graph split in two: `core` and `rest`. `rest` takes the graph's inputs, then the core's outputs.

    `rest` is `None` if the core returns the outputs of the graph.
    """

    core: GraphModule
    rest: GraphModule | None


def split_views(graph: GraphModule) -> Split:
    """Splits a graph into its core and the views around it. A graph without such views is returned as the core."""
    outputs = [value for value in dict.fromkeys(output_nodes(graph)) if isinstance(value, fx.Node)]
    roots = {value: root_of(value) for value in outputs if is_tensor(value.meta.get("val"))}
    outside = [value for value, root in roots.items() if root is not value and _is_outside(value, root, roots)]
    if not outside:
        return Split(graph, None)
    inside = [value for value in outputs if value not in outside and value.op != "placeholder"]
    needed = [roots[value] for value in outside if roots[value].op != "placeholder"]
    returned = list(dict.fromkeys([*inside, *needed]))
    return Split(_returning(graph, returned), _rest(graph, returned))


def _is_outside(value: Node, root: Node, roots: Mapping[Node, Node]) -> bool:
    """True if an output is made by `rest` as a view of its root.

    The core computes a single view of a tensor if the view is smaller. The other elements then need not be computed.
    """
    if not _needs_only(value, root):
        return False
    shared = sum(other is root for other in roots.values()) > 1
    return shared or root.op == "placeholder" or _count(value) >= _count(root)


def _count(node: Node) -> float:
    """Returns the element count of a tensor at the sizes of the trace; -inf if a size depends on data."""
    sizes: list[Any] = [d if isinstance(d, int) else getattr(d.node, "hint", None) for d in node.meta["val"].shape]
    return -math.inf if None in sizes else float(math.prod(sizes))


def root_of(node: Node) -> Node:
    """Returns the tensor at the end of a node's chain of views."""
    while node.op == "call_function" and _is_view(node):
        node = node.args[0]
    return node


def _is_view(node: Node) -> bool:
    if not node.args or not isinstance(node.args[0], fx.Node):
        return False
    if node.target is operator.getitem:
        # An op with several results either is a view of its operand (a split) or computes something.
        return bool(getattr(node.args[0].target, "is_view", False))
    return bool(getattr(node.target, "is_view", False))


def _needs_only(node: Node, root: Node) -> bool:
    """True if a view of `root` is computed from `root` and from sizes of the inputs and of `root` alone."""
    pending, seen = [node], {root}
    while pending:
        each = pending.pop()
        if each in seen or each.op == "placeholder":
            continue
        seen.add(each)
        if each.op != "call_function" or not (_is_view(each) or _is_size(each)):
            return False
        pending += each.all_input_nodes
    return True


def _is_size(node: Node) -> bool:
    """True if a node is a number computed from sizes. Reading an element of a tensor is not: it must be computed."""
    values = pytree.tree_leaves(node.meta.get("val"))
    reads = node.target is torch.ops.aten._local_scalar_dense.default
    return not reads and not any(is_tensor(value) for value in values)


def _returning(graph: GraphModule, outputs: Sequence[Node]) -> GraphModule:
    """Returns the graph with the same inputs and with a tuple of `outputs`."""
    nodes = fx.Graph()
    copies: dict[Node, Node] = {}
    nodes.graph_copy(graph.graph, copies)
    nodes.output(tuple(copies[node] for node in outputs))
    nodes.eliminate_dead_code()
    return fx.GraphModule(graph, nodes)


def _rest(graph: GraphModule, returned: Sequence[Node]) -> GraphModule:
    """Returns a graph that makes the outputs of `graph` from its inputs and from the tensors `returned`."""
    nodes = fx.Graph()
    known: dict[Node, Node] = {}
    for node in graph.graph.nodes:
        if node.op == "placeholder":
            known[node] = nodes.placeholder(node.name)
    for node in returned:
        known[node] = nodes.placeholder(f"given_{node.name}")
    original = next(n for n in reversed(graph.graph.nodes) if n.op == "output")
    outputs = [_copied(value, nodes, known) for value in output_nodes(graph)]
    nodes.output(tuple(outputs) if isinstance(original.args[0], (tuple, list)) else outputs[0])
    return fx.GraphModule(graph, nodes)


def _copied(value: Any, nodes: Any, known: dict[Node, Node]) -> Any:
    """Copies a node and its transitive operands, down to the nodes in `known`, into another graph."""
    if not isinstance(value, fx.Node):
        return value
    pending = [value]
    while pending:
        node = pending[-1]
        missing = [each for each in node.all_input_nodes if each not in known]
        if node in known or not missing:
            pending.pop()
            if node not in known:
                known[node] = nodes.node_copy(node, known.__getitem__)
        else:
            pending += missing
    return known[value]


@dataclass(frozen=True)
class Aliases:
    """Outputs that are views of changed inputs.

    `views` maps the positions of these outputs to the numbers of their inputs. `news` maps the numbers of changed
    inputs to the positions of the outputs with their new values.
    """

    views: Mapping[int, int]
    news: Mapping[int, int]


def regrown(graph: GraphModule, aliases: Aliases) -> tuple[GraphModule, GraphModule]:
    """Returns the graph with `None` for the outputs in `aliases.views`, and a graph that makes these from the inputs.

    Raises `IgniterError` if one of them is not a chain of views of the input or of its new value.
    """
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    outputs = output_nodes(graph)
    nodes = fx.Graph()
    places = {node: nodes.placeholder(node.name) for node in inputs}
    made: list[Any] = []
    for position, number in aliases.views.items():
        value, source = outputs[position], inputs[number]
        new = outputs[aliases.news[number]] if number in aliases.news else source
        root = _root_in(value, (source, new)) if isinstance(value, fx.Node) else None
        if root is None or not _needs_only(value, root):
            raise IgniterError(
                f"output {position} of the graph is a view of input {number}, which the graph changes, and the graph "
                f"does not identify it: '{value}'"
            )
        made.append(_copied(value, nodes, {**places, root: places[source]}))
    nodes.output(tuple(made))
    rest = fx.Graph()
    copies: dict[Node, Node] = {}
    rest.graph_copy(graph.graph, copies)
    left = [None if place in aliases.views else value for place, value in enumerate(outputs)]
    rest.output(tuple(copies[value] if isinstance(value, fx.Node) else value for value in left))
    rest.eliminate_dead_code()
    return fx.GraphModule(graph, rest), fx.GraphModule(graph, nodes)


def _root_in(node: Node, roots: Sequence[Node]) -> Node | None:
    """Returns the first of `roots` on a node's chain of views, or `None`."""
    while node not in roots:
        if node.op != "call_function" or not _is_view(node):
            return None
        node = node.args[0]
    return node


__all__ = ["Aliases", "Split", "regrown", "root_of", "split_views"]
