"""Updates of some rows of an input, such as a static cache of keys and values, made in place by PyTorch.

In a functional graph an input changed in place has a new value, which AOTAutograd copies into the input. For one row of
a long cache this would copy the cache in every call:

    def graph(cache, at, row):                      core                        after it
        new = index_put(cache, [at], row)           new = index_put(..)         cache.index_put_([at], row)
        return new, attention(new)                  return row, at, attention(new)

The core is computed with the old content of the input, and the update is made after it. AOTAutograd then receives the
input itself as the new value, and copies nothing.

A single row, such as the key of one token, needs no copy for the attention either: the session has `new` as an output
in the memory of the input. Its kernel writes the row there, and the attention reads the whole cache. The row does not
depend on the cache's old content, so a repetition of the call in eager writes the same.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from igniter.torch.exporter import output_nodes
from igniter.torch.graphs import memory_order
from igniter.torch.names import GraphModule, Node, fx, is_tensor, torch
from igniter.torch.views import root_of


@dataclass(frozen=True)
class Update:
    """The update of input `number`, whose new value is the graph's output `place`. The core returns the new rows at
    `place`, and the indices at the positions in `indices`; `None` stands for all indices of a dim. `in_place` is true
    if a session may write the row itself."""

    place: int
    number: int
    indices: tuple[int | None, ...]
    in_place: bool = False


def split_updates(graph: GraphModule, news: Mapping[int, int]) -> tuple[GraphModule, list[Update]]:
    """Returns the core of a functional graph and its updates. `news` maps changed inputs to the outputs with their new
    values. A graph without updates of rows is returned as it is."""
    inputs = [node for node in graph.graph.nodes if node.op == "placeholder"]
    outputs: list[Any] = list(output_nodes(graph))
    count, updates = len(outputs), list[Update]()
    # A view of the old content, returned or copied elsewhere, must not see the update.
    viewed = {root_of(value) for value in _read(outputs, inputs, news) if isinstance(value, fx.Node)}
    for number, place in news.items():
        new = outputs[place]
        if not _updates(new, inputs[number]) or inputs[number] in viewed:
            continue
        indices, rows = new.args[1], new.args[2]
        for index in indices:
            if index is not None and index not in outputs[count:]:
                outputs.append(index)
        found = tuple(None if each is None else outputs.index(each, count) for each in indices)
        updates.append(Update(place, number, found, _is_one_row(new, inputs[number])))
        outputs[place] = rows
    if not updates:
        return graph, []
    nodes = fx.Graph()
    copies: dict[Node, Node] = {}
    nodes.graph_copy(graph.graph, copies)
    nodes.output(tuple(copies[value] if isinstance(value, fx.Node) else value for value in outputs))
    nodes.eliminate_dead_code()
    return fx.GraphModule(graph, nodes), updates


def _read(outputs: Sequence[Any], inputs: Sequence[Node], news: Mapping[int, int]) -> list[Any]:
    """Returns the outputs of the graph, with the rows and indices of updates in place of the new values."""
    found = list(outputs)
    for number, place in news.items():
        if _updates(outputs[place], inputs[number]):
            indices, found[place] = outputs[place].args[1:]
            found += indices
    return found


def _updates(new: Any, source: Node) -> bool:
    """True if a node is its source with rows of the same type at given indices, and the indices are integers."""
    if not isinstance(new, fx.Node) or new.target is not torch.ops.aten.index_put.default:
        return False
    if new.args[0] is not source or len(new.args) > 3 or new.kwargs:
        return False
    indices, rows = new.args[1], new.args[2]
    return isinstance(rows, fx.Node) and all(index is None or _is_integers(index) for index in indices)


def _is_integers(index: Any) -> bool:
    value: Any = index.meta.get("val") if isinstance(index, fx.Node) else None
    return is_tensor(value) and value.dtype in (torch.int64, torch.int32)


def _is_one_row(new: Node, source: Node) -> bool:
    """True if an update writes one row, other nodes read the new value, and none the old one."""
    (index, *more) = [each for each in new.args[1] if each is not None]
    single = not more and all(size == 1 for size in index.meta["val"].shape)
    return single and len(source.users) == 1 and len(new.users) > 1 and memory_order(new.meta["val"]) is None


def with_updates(program: Callable[..., Any], updates: list[Update], count: int) -> Callable[..., Any]:
    """Returns a callable with the `count` outputs of the original graph, which makes the updates after `program`."""

    def run(*args: Any) -> Any:
        results: list[Any] = list(program(*args))
        for update in updates:
            target = args[update.number]
            if results[update.place] is target:
                continue  # the session has written it
            indices = [None if each is None else results[each] for each in update.indices]
            torch.ops.aten.index_put_.default(target, indices, results[update.place])
            results[update.place] = target
        return results[:count]

    return run
