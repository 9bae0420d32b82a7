"""Floats among a module's attributes as constants of Dynamo's graph.

With `dynamic=True`, Dynamo makes a symbol of every float that a module reads from an attribute (a scale, a dropout
rate). AOTAutograd cannot keep most of them: it traces the graph, finds that it needs the value, and makes Dynamo trace
everything again with this value as a constant. That doubles a first call. So the value is taken before AOTAutograd
begins, with a guard on it. An attribute that had another value in an earlier trace of the same code keeps its symbol,
and so do floats among the arguments of a call.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from igniter.torch.names import GraphModule, Node, is_tensor

_values: dict[tuple[Any, str], float] = {}
"""The value of each attribute that was made a constant, by the number of the traced frame and Dynamo's name for it."""


@contextmanager
def constant_floats(graph: GraphModule) -> Generator[None]:
    """Replaces floats of modules by their values in `graph`. Within the context, AOTAutograd knows of that."""
    state = import_module("torch._dynamo.symbolic_convert").TensorifyState
    names = [name for node in graph.graph.nodes if (name := _make_constant(graph, node))]
    added = {name for name in names if not state.should_specialize(name)}
    for name in added:
        state.specialize(name)
    if names:
        graph.recompile()
    try:
        yield
    finally:
        state.force_specializations.difference_update(added)


def _make_constant(graph: GraphModule, node: Node) -> str:
    """Replaces the reads of an input by its value; returns the symbol. Empty if the input is not such a float."""
    value = node.meta.get("example_value")
    number: Any = getattr(value, "item_memo", None) if node.op == "placeholder" and is_tensor(value) else None
    symbol: Any = getattr(getattr(number, "node", None), "_expr", None)
    source: Any = getattr(node.meta.get("grapharg"), "source", None)
    if (
        symbol is None
        or source is None
        or not hasattr(symbol, "name")
        or not source.guard_source.is_unspecialized_nn_module()
    ):
        return ""
    if not all(user.target == "item" for user in node.users):
        return ""
    frame = import_module("torch._guards").CompileContext.current_compile_id()
    key = getattr(frame, "frame_id", None), str(source.name)
    if _values.setdefault(key, number.node.hint) != number.node.hint:
        return ""
    # This adds a guard on the value.
    constant = import_module("torch.fx.experimental.symbolic_shapes").guard_scalar(number)
    for user in list(node.users):
        user.replace_all_uses_with(constant)
        graph.graph.erase_node(user)
    return str(symbol.name)
