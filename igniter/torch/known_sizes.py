"""Symbols with a size fixed by a condition of the trace.

Sizes of 0 and 1 are not specialised during `torch.export`, so one trace serves all sizes. If two tensors broadcast,
the trace still depends on the dims of size 1. It records them as conditions, such as `Eq(s85, 1)`, checked before each
call. The types of the graph keep the symbol `s85`, so Igniter could not see that such a dim broadcasts.
"""

from __future__ import annotations

from typing import Any

from igniter.torch.names import GraphModule, is_symbolic, is_tensor, pytree


def known_sizes(graph: GraphModule) -> dict[str, int]:
    """Returns the symbols of a traced graph with a constant size in its conditions."""
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
    """Returns the trace's `ShapeEnv`, or `None` if the graph has no symbol."""
    for node in graph.graph.nodes:
        for value in pytree.tree_leaves(node.meta.get("val")):
            dims = value.shape if is_tensor(value) else [value]
            for dim in dims:
                if is_symbolic(dim):
                    return dim.node.shape_env
    return None


def fix_sizes(model: Any, sizes: dict[str, int]) -> None:
    """Replaces symbolic dims of an ONNX model's values by their sizes. `sizes` maps the name of a dim to its size."""
    for values in (model.graph.input, model.graph.value_info, model.graph.output):
        for value in values:
            for dim in value.type.tensor_type.shape.dim:
                if dim.dim_param in sizes:
                    dim.dim_value = sizes[dim.dim_param]
