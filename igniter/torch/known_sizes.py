"""Sizes that the conditions of a trace fix, though the trace keeps their symbols.

`torch.export` is asked not to look at sizes of 0 and 1, so that one trace serves them all. Where two tensors broadcast
with each other it still has to know which dims are 1. It notes that as a condition, `Eq(s85, 1)`, which is checked
before each call, and the types of the graph go on saying `s85`. Igniter would not know that such a dim broadcasts.
"""

from __future__ import annotations

from typing import Any

from igniter.torch.names import GraphModule, is_symbolic, is_tensor, pytree


def known_sizes(graph: GraphModule) -> dict[str, int]:
    """The symbols of a traced graph that its conditions make numbers."""
    found: dict[str, int] = {}
    for condition in getattr(_shapes(graph), "guards", ()):
        expression: Any = condition.expr
        if getattr(expression, "rel_op", "") != "==":
            continue
        for one, other in ((expression.lhs, expression.rhs), (expression.rhs, expression.lhs)):
            if one.is_Symbol and other.is_Integer:
                found[str(one)] = int(other)
    return found


def _shapes(graph: GraphModule) -> Any:
    """What the trace knows of its symbols; `None` where it has none."""
    for node in graph.graph.nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            dims = value.shape if is_tensor(value) else [value]
            for dim in dims:
                if is_symbolic(dim):
                    return dim.node.shape_env
    return None


def fix_sizes(model: Any, sizes: dict[str, int]) -> None:
    """Make dims of an ONNX model's values numbers, by the names that they have."""
    for values in (model.graph.input, model.graph.value_info, model.graph.output):
        for value in values:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in sizes:
                    dim.dim_value = sizes[dim.dim_param]
