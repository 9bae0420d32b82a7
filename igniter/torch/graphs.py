"""Preparation of a functional graph for export, and its text for cache keys.

* A tensor constant of the graph (`torch.tensor([1, 2])` in the traced code) becomes an input that always gets the same
  value.
* Dynamo passes sizes as separate inputs. If a size is also a dim of an input tensor, it is read from the tensor: in
  ONNX it is then the symbol of this dim, while a separate input would be an unknown number.
* PyTorch makes the outputs that are views (`igniter/torch/views.py`).
* An output with permuted strides (a transposed tensor) is returned in its memory order and permuted by PyTorch. So its
  strides are those of eager, without a copy.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from igniter.torch.compare import tolerances
from igniter.torch.exporter import is_number, output_nodes
from igniter.torch.known_sizes import known_sizes
from igniter.torch.names import GraphModule, Node, fx, is_symbolic, is_tensor, pytree, torch
from igniter.torch.views import split_views

_SYMBOL = re.compile(r"\b[a-z]+\d+\b")


@dataclass
class Prepared:
    """A graph ready for the exporter, with the treatment of its inputs and outputs.

    `constants` are tensors to pass after the inputs. `outputs` describes the source of each output of the graph's core.
    `rest` makes the original outputs from the inputs and the core's outputs; it is `None` if both are the same.
    """

    graph: GraphModule | None
    """`None` for a graph from the cache, which has a `model` instead."""
    inputs: list[Input] = field(default_factory=list["Input"])
    constants: list[Any] = field(default_factory=list[Any])
    sizes: dict[str, int] = field(default_factory=dict[str, int])
    """The symbols with a constant size in the conditions of the trace."""
    outputs: list[Output] = field(default_factory=list["Output"])
    rest: GraphModule | None = None
    rtol: list[float] = field(default_factory=list[float])
    """The smallest tolerance of each output of the original graph."""
    single: bool = False
    """True if the graph returns a single value, not a tuple."""
    model: bytes = b""
    """The exported model, if it is known already."""
    in_place: dict[int, int] = field(default_factory=dict[int, int])
    """The outputs that are new values of inputs, to be written in the memory of these inputs, by number."""


@dataclass(frozen=True)
class Input:
    """One input: its name in the model, whether the model reads it, and its Python type if it is a number."""

    name: str
    used: bool
    number: type | None = None


@dataclass(frozen=True)
class Output:
    """One output: output `place` of the exported graph; or the input `passed`, constants included; or `constant`.

    `number` is the Python type of an output that is a number. `permuted` is the permutation to apply to the exported
    tensor.
    """

    place: int = -1
    passed: int = -1
    constant: Any = None
    number: type | None = None
    permuted: tuple[int, ...] | None = None


def prepare(graph: GraphModule, in_place: Mapping[int, int] | None = None) -> Prepared:
    """Returns a prepared copy of `graph`; `graph` is not changed. `in_place` maps outputs to the numbers of the inputs
    that they update: the copy returns the new value of the whole input (`igniter.torch.updates`)."""
    split = split_views(graph)
    found = _new_values(graph, in_place or {})
    if found:
        whole = split_views(_returning(graph, found))
        split, found = (split, {}) if whole.rest is not None else (whole, found)
    nodes = fx.Graph()
    nodes.output(nodes.graph_copy(split.core.graph, {}))
    copy = fx.GraphModule(graph, nodes)
    original = next(n for n in reversed(graph.graph.nodes) if n.op == "output")
    single = not isinstance(original.args[0], (tuple, list))
    prepared = Prepared(copy, sizes=known_sizes(graph), rest=split.rest, rtol=tolerances(graph, 0.0), single=single)
    prepared.in_place = {place: number for place, number in (in_place or {}).items() if place in found}
    _inputs_first(copy)
    _lift_tensors(copy, prepared)
    _read_sizes(copy)
    _order_outputs(copy, prepared)
    copy.graph.eliminate_dead_code()
    copy.graph.lint()
    copy.recompile()
    inputs = [node for node in copy.graph.nodes if node.op == "placeholder"]
    prepared.inputs = [Input(n.name, bool(n.users), _number_type(n.meta.get("val"))) for n in inputs]
    return prepared


def _new_values(graph: GraphModule, in_place: Mapping[int, int]) -> dict[int, Node]:
    """Returns the nodes that compute the new values of inputs, by output."""
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    users = {place: list(inputs[number].users) for place, number in in_place.items()}
    return {place: found[0] for place, found in users.items() if len(found) == 1}


def _returning(graph: GraphModule, others: Mapping[int, Node]) -> GraphModule:
    """Returns a copy of a graph with other nodes at some positions of its outputs."""
    nodes = fx.Graph()
    copies: dict[Node, Node] = {}
    nodes.graph_copy(graph.graph, copies)
    outputs = [others.get(place, value) for place, value in enumerate(output_nodes(graph))]
    nodes.output(tuple(copies[value] if isinstance(value, fx.Node) else value for value in outputs))
    return fx.GraphModule(graph, nodes)


def _inputs_first(module: GraphModule) -> None:
    """Moves inputs before all other nodes. In a part cut out of a graph, they are just before their first use."""
    for node in reversed([node for node in module.graph.nodes if node.op == "placeholder"]):
        first = next(iter(module.graph.nodes))
        if node is not first:
            first.prepend(node)


def _lift_tensors(module: GraphModule, prepared: Prepared) -> None:
    graph = module.graph
    last = [node for node in graph.nodes if node.op == "placeholder"]
    for node in [node for node in graph.nodes if node.op == "get_attr"]:
        value = _attribute(module, node.target)
        if not is_tensor(value):
            continue
        with graph.inserting_before(last[-1].next if last else next(iter(graph.nodes))):
            lifted = graph.placeholder(f"constant_{len(prepared.constants)}")
        lifted.meta = dict(node.meta)
        prepared.constants.append(value.detach())
        last.append(lifted)
        node.replace_all_uses_with(lifted)
        graph.erase_node(node)


def _attribute(module: Any, path: str) -> Any:
    for name in path.split("."):
        module = getattr(module, name)
    return module


def _read_sizes(module: GraphModule) -> None:
    """Replaces inputs that are sizes by `sym_size` of the first input tensor with this dim."""
    graph = module.graph
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    where: dict[str, tuple[Node, int]] = {}
    for node in inputs:
        if is_tensor(node.meta.get("val")):
            for axis, dim in enumerate(node.meta["val"].shape):
                if is_symbolic(dim):
                    where.setdefault(str(dim.node.expr), (node, axis))
    after = inputs[-1].next if inputs else None
    for node in inputs:
        value = node.meta.get("val")
        found = where.get(str(value.node.expr)) if is_symbolic(value) else None
        if found is None or not node.users:
            continue
        with graph.inserting_before(after):
            size = graph.call_function(torch.ops.aten.sym_size.int, found)
        size.meta = {"val": value}
        node.replace_all_uses_with(size)


def _order_outputs(module: GraphModule, prepared: Prepared) -> None:
    """Returns each node once and in its memory order, and records the original outputs."""
    graph = module.graph
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    places: dict[Node, int] = {}
    returned: list[Node] = []
    end = next(node for node in reversed(graph.nodes) if node.op == "output")
    for value in output_nodes(module):
        if not isinstance(value, fx.Node):
            prepared.outputs.append(Output(constant=value))
        elif value in inputs:
            prepared.outputs.append(Output(passed=inputs.index(value)))
        else:
            order = memory_order(value.meta["val"])
            if value not in places:
                places[value] = len(returned)
                returned.append(value if order is None else _permuted(graph, end, value, order))
            back = None if order is None else tuple(order.index(axis) for axis in range(len(order)))
            prepared.outputs.append(Output(places[value], number=_number_type(value.meta["val"]), permuted=back))
    end.args = (tuple(returned),)


def _permuted(graph: Any, end: Node, value: Node, order: tuple[int, ...]) -> Node:
    with graph.inserting_before(end):
        node = graph.call_function(torch.ops.aten.permute.default, (value, list(order)))
    node.meta = {"val": value.meta["val"].permute(order)}
    return node


def memory_order(value: Any) -> tuple[int, ...] | None:
    """Returns the axes of a dense tensor, outermost in memory first; `None` if it is row-major or not dense."""
    if not is_tensor(value) or value.dim() < 2 or value.layout is not torch.strided:
        return None
    sizes = [_hint(s) for s in value.shape]
    strides = [_hint(s) for s in value.stride()]
    if None in sizes or None in strides or 0 in strides:
        return None
    order = sorted(range(len(sizes)), key=lambda axis: (-strides[axis], sizes[axis] == 1))
    expected = 1
    for axis in reversed(order):
        # The stride of an axis of one element has no effect.
        if strides[axis] != expected and sizes[axis] != 1:
            return None
        expected *= sizes[axis]
    wide = [axis for axis in order if sizes[axis] != 1]
    return None if wide == sorted(wide) else tuple(order)


def _hint(size: Any) -> Any:
    """Returns the value of a size at the time of the trace; `None` if it depends on data."""
    return size if isinstance(size, int) else getattr(size.node, "hint", None)


def _number_type(value: Any) -> type | None:
    if not is_number(value):
        return None
    if isinstance(value, (bool, torch.SymBool)):
        return bool
    return float if isinstance(value, (float, torch.SymFloat)) else int


def graph_text(graph: GraphModule, prepared: Prepared) -> str:
    """Returns the text of a graph for its cache key: ops, arguments and types, with symbols renamed in order of
    appearance, and a digest of each tensor constant."""
    names: dict[str, str] = {}

    def renamed(match: re.Match[str]) -> str:
        return names.setdefault(match[0], f"n{len(names)}")

    lines: list[str] = []
    for name, module in graph.named_modules():
        if not isinstance(module, fx.GraphModule):
            continue
        for node in module.graph.nodes:
            values = ", ".join(_kind(v, renamed) for v in pytree.tree_leaves(node.meta.get("val")))
            lines.append(f"{name} {node.name} = {node.op} {node.target} {node.args} {node.kwargs}: {values}")
    lines += [f"{names[symbol]} = {size}" for symbol, size in sorted(prepared.sizes.items()) if symbol in names]
    lines += [hashlib.sha256(tensor_bytes(value)).hexdigest() for value in prepared.constants]
    return "\n".join(lines)


def _kind(value: Any, renamed: Callable[[re.Match[str]], str]) -> str:
    """Returns a type as text. Symbols are renamed only in sizes, because names of element types look like symbols."""
    if is_tensor(value):
        return f"{value.dtype}{[_SYMBOL.sub(renamed, str(dim)) for dim in value.shape]}"
    return f"{type(value).__name__} {_SYMBOL.sub(renamed, str(value)) if is_symbolic(value) else value}"


def tensor_bytes(value: Any) -> Any:
    """Returns the elements of a tensor as a buffer of bytes, in row-major order."""
    dense = value.detach().resolve_conj().resolve_neg().contiguous().reshape(-1)
    return dense.view(torch.uint8).numpy() if dense.numel() else b""
